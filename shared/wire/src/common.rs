//! Conversions that every kind needs: enums, keys, metadata, fixed-size bytes.

use std::collections::BTreeSet;

use prost_types::Timestamp;
use proto::v1;

use model::{
    ChainHash, ClusterId, Cursor, Epoch, IpFamily, ListingGroup, Metadata, Protocol, Revision, ServiceKey,
    ServicePort, ServiceType, SessionAffinity, UnixMillis,
    bytes::from_hex,
    name::is_dns_label,
    validate::{InvalidValue, shown},
};

/// The result of taking a value from the wire: what is wrong names its field.
pub(super) type Taken<T> = Result<T, InvalidValue>;

/// A time.
pub fn timestamp(at: UnixMillis) -> Timestamp {
    Timestamp {
        seconds: (at.0 / 1_000) as i64,
        nanos: (at.0 % 1_000) as i32 * 1_000_000,
    }
}

/// A message or value that has to be there.
pub(super) fn required<T>(field: &str, value: Option<T>) -> Taken<T> {
    value.ok_or_else(|| InvalidValue::new(field, "is missing; the sender must set it"))
}

/// A number that must fit the model's type.
pub(super) fn narrow<T: TryFrom<u32>>(field: &str, value: u32, rule: &str) -> Taken<T> {
    T::try_from(value).map_err(|_| InvalidValue::new(field, format!("is {value}; {rule}")))
}

/// Bytes of a fixed length.
pub(super) fn fixed_bytes<const N: usize>(field: &str, bytes: &[u8]) -> Taken<[u8; N]> {
    <[u8; N]>::try_from(bytes)
        .map_err(|_| InvalidValue::new(field, format!("has {} bytes; it must have {N}", bytes.len())))
}

/// Bytes of a fixed length, written as lower-case hexadecimal digits.
pub(super) fn fixed_hex<const N: usize>(field: &str, text: &str) -> Taken<[u8; N]> {
    from_hex(text).ok_or_else(|| {
        let digits = 2 * N;
        let problem = format!("is {}; write {digits} lower-case hexadecimal digits", shown(text));
        InvalidValue::new(field, problem)
    })
}

/// The error for a number that is no value of its enum.
pub(super) fn unknown_value(field: &str, number: i32) -> InvalidValue {
    let problem = format!("is {number}, which is no value that this version knows; update the older side");
    InvalidValue::new(field, problem)
}

pub(super) fn boxed(text: &Option<String>) -> Option<Box<str>> {
    text.as_deref().map(Box::from)
}

pub(super) fn owned(text: &Option<Box<str>>) -> Option<String> {
    text.as_deref().map(String::from)
}

pub(super) fn service_key_to_proto(key: &ServiceKey) -> v1::ServiceKey {
    v1::ServiceKey {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
    }
}

pub(super) fn service_key_from_proto(field: &str, key: Option<v1::ServiceKey>) -> Taken<ServiceKey> {
    let key = required(field, key)?;
    ServiceKey::new(&key.namespace, &key.name).map_err(|error| InvalidValue::new(field, error.to_string()))
}

pub(super) fn cluster_from_proto(field: &str, cluster: &str) -> Taken<ClusterId> {
    ClusterId::new(cluster).map_err(|error| InvalidValue::new(field, error.to_string()))
}

pub(super) fn protocol_to_proto(protocol: Protocol) -> i32 {
    match protocol {
        Protocol::Tcp => v1::Protocol::Tcp,
        Protocol::Udp => v1::Protocol::Udp,
        Protocol::Sctp => v1::Protocol::Sctp,
    }
    .into()
}

pub(super) fn protocol_from_proto(number: i32) -> Taken<Protocol> {
    match v1::Protocol::try_from(number) {
        Ok(v1::Protocol::Tcp) => Ok(Protocol::Tcp),
        Ok(v1::Protocol::Udp) => Ok(Protocol::Udp),
        Ok(v1::Protocol::Sctp) => Ok(Protocol::Sctp),
        Ok(v1::Protocol::Unspecified) | Err(_) => Err(unknown_value("protocol", number)),
    }
}

pub(super) fn family_to_proto(family: IpFamily) -> i32 {
    match family {
        IpFamily::V4 => v1::IpFamily::Ipv4,
        IpFamily::V6 => v1::IpFamily::Ipv6,
    }
    .into()
}

pub(super) fn family_from_proto(field: &str, number: i32) -> Taken<IpFamily> {
    match v1::IpFamily::try_from(number) {
        Ok(v1::IpFamily::Ipv4) => Ok(IpFamily::V4),
        Ok(v1::IpFamily::Ipv6) => Ok(IpFamily::V6),
        Ok(v1::IpFamily::Unspecified) | Err(_) => Err(unknown_value(field, number)),
    }
}

pub(super) fn service_type_to_proto(service_type: ServiceType) -> i32 {
    match service_type {
        ServiceType::ClusterSetIp => v1::ServiceType::ClusterSetIp,
        ServiceType::Headless => v1::ServiceType::Headless,
    }
    .into()
}

pub(super) fn service_type_from_proto(number: i32) -> Taken<ServiceType> {
    match v1::ServiceType::try_from(number) {
        Ok(v1::ServiceType::ClusterSetIp) => Ok(ServiceType::ClusterSetIp),
        Ok(v1::ServiceType::Headless) => Ok(ServiceType::Headless),
        Ok(v1::ServiceType::Unspecified) | Err(_) => Err(unknown_value("type", number)),
    }
}

pub(super) fn affinity_to_proto(affinity: SessionAffinity) -> String {
    match affinity {
        SessionAffinity::None => "None",
        SessionAffinity::ClientIp => "ClientIP",
    }
    .into()
}

pub(super) fn affinity_from_proto(text: &str) -> Taken<SessionAffinity> {
    match text {
        "None" => Ok(SessionAffinity::None),
        "ClientIP" => Ok(SessionAffinity::ClientIp),
        _ => Err(InvalidValue::new(
            "sessionAffinity",
            "is neither \"None\" nor \"ClientIP\"; use one of them",
        )),
    }
}

pub(super) fn group_to_proto(group: ListingGroup) -> i32 {
    match group {
        ListingGroup::Exports => v1::ListingGroup::Exports,
        ListingGroup::Properties => v1::ListingGroup::Properties,
    }
    .into()
}

pub(super) fn group_from_proto(number: i32) -> Taken<ListingGroup> {
    match v1::ListingGroup::try_from(number) {
        Ok(v1::ListingGroup::Exports) => Ok(ListingGroup::Exports),
        Ok(v1::ListingGroup::Properties) => Ok(ListingGroup::Properties),
        Ok(v1::ListingGroup::Unspecified) | Err(_) => Err(unknown_value("group", number)),
    }
}

pub(super) fn metadata_to_proto(metadata: &Metadata) -> Vec<v1::KeyValue> {
    let pairs = metadata.iter().map(|(key, value)| v1::KeyValue {
        key: key.to_string(),
        value: value.to_string(),
    });
    pairs.collect()
}

/// Keys must come sorted and once each: the same metadata then always has the same bytes.
pub(super) fn metadata_from_proto(field: &str, pairs: Vec<v1::KeyValue>) -> Taken<Metadata> {
    if !pairs.is_sorted_by(|one, next| one.key < next.key) {
        return Err(InvalidValue::new(
            field,
            "are not sorted by key, or a key is there twice; sort them, each once",
        ));
    }
    Ok(pairs
        .into_iter()
        .map(|pair| (pair.key.into(), pair.value.into()))
        .collect())
}

pub(super) fn service_port_to_proto(port: &ServicePort) -> v1::ServicePort {
    v1::ServicePort {
        name: port.name.to_string(),
        protocol: protocol_to_proto(port.protocol),
        port: port.port.into(),
        app_protocol: owned(&port.app_protocol),
    }
}

fn service_port_from_proto(port: v1::ServicePort) -> Taken<ServicePort> {
    Ok(ServicePort {
        protocol: protocol_from_proto(port.protocol)?,
        port: narrow("port", port.port, PORT_RULE)?,
        app_protocol: boxed(&port.app_protocol),
        name: port.name.into(),
    })
}

pub(super) const PORT_RULE: &str = "use 1 to 65535";

pub(super) fn service_ports_from_proto(ports: Vec<v1::ServicePort>) -> Taken<Vec<ServicePort>> {
    each("ports", ports, service_port_from_proto)
}

pub(super) fn families_from_proto(families: Vec<i32>) -> Taken<Vec<IpFamily>> {
    families
        .into_iter()
        .map(|family| family_from_proto("ipFamilies", family))
        .collect()
}

/// Takes every item of a list; a fault of one is reported with its place. It gets no more room than it needs: in that
/// of the message it would keep four times as much.
pub(super) fn each<T, U>(field: &str, items: Vec<T>, take: impl Fn(T) -> Taken<U>) -> Taken<Vec<U>> {
    let one = |(index, item)| take(item).map_err(|problem| problem.within(format_args!("{field}[{index}]")));
    let mut taken: Vec<U> = items.into_iter().enumerate().map(one).collect::<Taken<_>>()?;
    taken.shrink_to_fit();
    Ok(taken)
}

/// No list longer than its bound is looked at.
pub(super) fn at_most<T>(field: &str, items: &[T], max: usize) -> Taken<()> {
    if items.len() <= max {
        return Ok(());
    }
    Err(InvalidValue::new(
        field,
        format!("are {}; at most {max} are taken in one message", items.len()),
    ))
}

/// A set of namespaces.
pub(super) fn namespaces_from_proto(
    field: &str,
    names: Vec<String>,
    max: usize,
) -> Taken<BTreeSet<Box<str>>> {
    at_most(field, &names, max)?;
    let one = |name: String| {
        if is_dns_label(&name) {
            return Ok(name.into_boxed_str());
        }
        let shown = shown(&name);
        Err(InvalidValue::new(
            field,
            format!("{shown} is no name of a namespace"),
        ))
    };
    names.into_iter().map(one).collect()
}

pub(super) fn names_to_proto(names: BTreeSet<Box<str>>) -> Vec<String> {
    names.into_iter().map(String::from).collect()
}

pub(super) fn epoch_to_proto(epoch: Epoch) -> v1::Epoch {
    v1::Epoch {
        created_at_unix_millis: epoch.created_at.0,
        random: epoch.random,
    }
}

pub(super) fn epoch_from_proto(epoch: v1::Epoch) -> Epoch {
    Epoch {
        created_at: UnixMillis(epoch.created_at_unix_millis),
        random: epoch.random,
    }
}

pub(super) fn cursor_to_proto(cursor: Cursor) -> v1::Cursor {
    v1::Cursor {
        epoch: Some(epoch_to_proto(cursor.epoch)),
        revision: cursor.revision.0,
        hash: cursor.hash.0.to_vec(),
    }
}

pub(super) fn cursor_from_proto(cursor: v1::Cursor) -> Taken<Cursor> {
    Ok(Cursor {
        epoch: epoch_from_proto(required("cursor.epoch", cursor.epoch)?),
        revision: Revision(cursor.revision),
        hash: ChainHash(fixed_bytes("cursor.hash", &cursor.hash)?),
    })
}
