//! Bodies in Kubernetes' protobuf, which kubectl of today sends for built-in kinds, as JSON of the same object.
//! Reads what `protobuf.yaml` describes; never writes protobuf, and never drops a field that is not described.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

/// First bytes of every protobuf body of Kubernetes.
const MAGIC: &[u8] = b"k8s\0";

/// One field: its JSON name, its type, whether it may be zero on purpose, whether it is a list.
struct Field {
    name: String,
    kind: String,
    zero: bool,
    list: bool,
}

type Messages = HashMap<String, BTreeMap<u64, Field>>;

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| {
    let text = include_str!("protobuf.yaml");
    let read: HashMap<String, BTreeMap<u64, String>> =
        serde_norway::from_str(text).expect("protobuf.yaml is read by every test");
    let fields = |fields: BTreeMap<u64, String>| fields.iter().map(|(at, text)| (*at, field(text))).collect();
    read.into_iter()
        .map(|(name, found)| (name, fields(found)))
        .collect()
});

fn field(text: &str) -> Field {
    let (name, kind) = text.split_once(' ').unwrap_or((text, "text"));
    Field {
        name: name.to_owned(),
        kind: kind.trim_end_matches(['?', '*']).to_owned(),
        zero: kind.ends_with('?'),
        list: kind.ends_with('*'),
    }
}

/// The object in an envelope; an error says what could not be read.
pub(crate) fn decode(body: &[u8]) -> Result<Value, String> {
    let envelope = body
        .strip_prefix(MAGIC)
        .ok_or("it does not begin with the bytes \"k8s\\0\"")?;
    let (mut kind, mut version, mut raw) = (String::new(), String::new(), &[][..]);
    for part in Parts(envelope) {
        match part? {
            (1, Content::Bytes(meta)) => {
                let meta = message("TypeMeta", meta)?;
                let text = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
                (kind, version) = (text("kind"), text("apiVersion"));
            }
            (2, Content::Bytes(object)) => raw = object,
            _ => {}
        }
    }
    if !MESSAGES.contains_key(&kind) {
        return Err(format!(
            "the simulated API server reads no {version} {kind:?} in protobuf; send JSON"
        ));
    }
    let mut object = message(&kind, raw)?;
    object["kind"] = json!(kind);
    object["apiVersion"] = json!(version);
    Ok(object)
}

/// The content after a field's number.
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of one message, in the order they were written.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn number(&mut self) -> Result<u64, String> {
        prost::encoding::decode_varint(&mut self.0).map_err(|_| "a number is cut off".to_owned())
    }

    fn part(&mut self) -> Result<(u64, Content<'a>), String> {
        let key = self.number()?;
        match key & 7 {
            0 => Ok((key >> 3, Content::Number(self.number()?))),
            2 => {
                let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                let (bytes, rest) = self.0.split_at_checked(length).ok_or("a field is cut off")?;
                self.0 = rest;
                Ok((key >> 3, Content::Bytes(bytes)))
            }
            other => Err(format!(
                "field {} has wire type {other}, which no Kubernetes type has",
                key >> 3
            )),
        }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<(u64, Content<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let part = self.part();
        if part.is_err() {
            self.0 = &[];
        }
        Some(part)
    }
}

/// One message. The descriptions nest and never repeat, so this ends.
fn message(kind: &str, bytes: &[u8]) -> Result<Value, String> {
    let fields = MESSAGES
        .get(kind)
        .ok_or_else(|| format!("{kind} is not described"))?;
    let mut object = Map::new();
    for part in Parts(bytes) {
        let (number, content) = part?;
        let Some(field) = fields.get(&number) else {
            match content {
                // Kubernetes writes every field that is no pointer, and nothing is lost with an empty one.
                Content::Number(0) | Content::Bytes([]) => continue,
                _ => {
                    return Err(format!(
                        "the simulated API server does not read field {number} of {kind}; send JSON"
                    ));
                }
            }
        };
        add(&mut object, field, content).map_err(|why| format!("{kind}.{}: {why}", field.name))?;
    }
    Ok(Value::Object(object))
}

fn add(object: &mut Map<String, Value>, field: &Field, content: Content<'_>) -> Result<(), String> {
    let name = field.name.clone();
    if matches!(field.kind.as_str(), "map" | "blobs" | "quantities") {
        let (key, value) = entry(&field.kind, content)?;
        object.entry(name).or_insert_with(|| json!({}))[key] = value;
        return Ok(());
    }
    let value = value(&field.kind, content)?;
    let zero = value.is_null() || value == json!("") || value == json!(0) || value == json!(false);
    if field.list {
        let list = object.entry(name).or_insert_with(|| json!([]));
        list.as_array_mut()
            .into_iter()
            .for_each(|list| list.push(value.clone()));
    } else if !zero || field.zero {
        object.insert(name, value);
    }
    Ok(())
}

fn value(kind: &str, content: Content<'_>) -> Result<Value, String> {
    match (kind, content) {
        ("int", Content::Number(number)) => Ok(json!(number.cast_signed())),
        ("bool", Content::Number(number)) => Ok(json!(number != 0)),
        ("text", Content::Bytes(bytes)) => {
            let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
            Ok(json!(text))
        }
        ("Time" | "MicroTime", Content::Bytes(bytes)) => time(kind, bytes),
        ("IntOrString", Content::Bytes(bytes)) => int_or_string(bytes),
        (kind, Content::Bytes(bytes)) => message(kind, bytes),
        (kind, Content::Number(_)) => Err(format!("is a number where {kind} was expected")),
    }
}

/// One entry of a map: a key and a text, bytes or a Quantity.
fn entry(kind: &str, content: Content<'_>) -> Result<(String, Value), String> {
    let Content::Bytes(bytes) = content else {
        return Err("is a number where an entry of a map was expected".to_owned());
    };
    let (mut key, mut item) = (String::new(), json!(""));
    for part in Parts(bytes) {
        match (part?, kind) {
            ((1, content), _) => key = value("text", content)?.as_str().unwrap_or_default().to_owned(),
            ((2, Content::Bytes(bytes)), "blobs") => item = json!(BASE64_STANDARD.encode(bytes)),
            ((2, Content::Bytes(bytes)), "quantities") => {
                for part in Parts(bytes) {
                    item = value("text", part?.1)?;
                }
            }
            ((2, content), _) => item = value("text", content)?,
            ((number, _), _) => return Err(format!("an entry has a field {number}")),
        }
    }
    Ok((key, item))
}

fn numbers(bytes: &[u8]) -> Result<BTreeMap<u64, i64>, String> {
    let mut numbers = BTreeMap::new();
    for part in Parts(bytes) {
        if let (at, Content::Number(number)) = part? {
            numbers.insert(at, number.cast_signed());
        }
    }
    Ok(numbers)
}

/// A time; one that was never set has no seconds.
fn time(kind: &str, bytes: &[u8]) -> Result<Value, String> {
    let numbers = numbers(bytes)?;
    let Some(seconds) = numbers.get(&1) else {
        return Ok(Value::Null);
    };
    let nanos = numbers
        .get(&2)
        .and_then(|nanos| i32::try_from(*nanos).ok())
        .unwrap_or_default();
    let moment = jiff::Timestamp::new(*seconds, nanos).map_err(|_| "is no time")?;
    let format = if kind == "MicroTime" {
        "%Y-%m-%dT%H:%M:%S.%6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(json!(moment.strftime(format).to_string()))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let stated = numbers(bytes)?;
    if stated.get(&1) != Some(&1) {
        return Ok(json!(stated.get(&2).copied().unwrap_or_default()));
    }
    let mut text = Value::Null;
    for part in Parts(bytes) {
        if let (3, content) = part? {
            text = value("text", content)?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of `kubectl create` of 1.36, recorded.
    const NAMESPACE: &[u8] =
        b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x19\n\x11\n\x01x\x12\0\x1a\0\"\0*\x002\x008\0B\0\x12\0\x1a\x02\n\0\x1a\0\"\0";
    const SERVICE: &[u8] = b"k8s\0\n\r\n\x02v1\x12\x07Service\x12]\n\x1b\n\x01s\x12\0\x1a\0\"\0*\x002\x008\0B\0Z\x08\n\x03app\x12\x01s\
        \x12:\n\x15\n\x0280\x12\x03TCP\x18P\"\x06\x08\0\x10P\x1a\0(\0\x12\x08\n\x03app\x12\x01s\x1a\0\"\tClusterIP:\0B\0R\0Z\0`\0h\0\
        \x1a\x02\n\0\x1a\0\"\0";

    #[test]
    fn what_kubectl_sends_is_read_as_the_json_that_it_used_to_send() {
        let namespace = decode(NAMESPACE).expect("a Namespace");
        let expected = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}, "spec": {}, "status": {}});
        assert_eq!(namespace, expected);
        let service = decode(SERVICE).expect("a Service");
        let ports = json!([{"name": "80", "protocol": "TCP", "port": 80, "targetPort": 80}]);
        let expected = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": {"app": "s"}},
            "spec": {"ports": ports, "selector": {"app": "s"}, "type": "ClusterIP"}, "status": {"loadBalancer": {}}});
        assert_eq!(service, expected);
    }

    #[test]
    fn a_field_that_is_not_described_is_refused_and_an_empty_one_is_not() {
        // ObjectMeta has no field 99: key 99 << 3 | 2, a length, a content.
        let with = |content: &[u8]| {
            let mut meta = vec![0x9a, 0x06, content.len() as u8];
            meta.extend_from_slice(content);
            message("ObjectMeta", &meta)
        };
        assert_eq!(with(b""), Ok(json!({})));
        let refused = with(b"x").expect_err("it would be lost");
        assert!(refused.contains("field 99 of ObjectMeta"), "{refused}");
    }

    #[test]
    fn a_body_that_is_cut_anywhere_in_its_object_is_not_taken_for_a_whole_one() {
        // The envelope ends with two empty fields of two bytes each, which say nothing.
        for length in 0..SERVICE.len() - 4 {
            assert_ne!(decode(&SERVICE[..length]), decode(SERVICE), "cut at {length}");
        }
    }

    #[test]
    fn zero_is_kept_where_it_was_meant() {
        assert_eq!(message("DeploymentSpec", &[0x08, 0]), Ok(json!({"replicas": 0})));
        assert_eq!(message("DeploymentSpec", &[0x28, 0]), Ok(json!({})));
        // Times: one second and half, and one that was never set.
        let renewed = message("LeaseSpec", &[0x22, 8, 0x08, 1, 0x10, 0x80, 0xca, 0xb5, 0xee, 1]);
        assert_eq!(renewed, Ok(json!({"renewTime": "1970-01-01T00:00:01.500000Z"})));
        assert_eq!(message("ObjectMeta", &[0x42, 0]), Ok(json!({})));
        // Quantities, a port by its name, bytes.
        let limits = message("ResourceRequirements", b"\x0a\x09\x0a\x03cpu\x12\x02\x0a\0");
        assert_eq!(limits, Ok(json!({"limits": {"cpu": ""}})));
        let port = message("ServicePort", b"\x22\x07\x08\x01\x1a\x03web");
        assert_eq!(port, Ok(json!({"targetPort": "web"})));
        let map = message("ConfigMap", b"\x1a\x08\x0a\x01b\x12\x03\x00\x01\x02");
        assert_eq!(map, Ok(json!({"binaryData": {"b": "AAEC"}})));
    }
}
