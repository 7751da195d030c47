//! Content-Type and Accept of a request. Reads bodies in JSON, YAML and protobuf; answers are always JSON, as objects
//! or as a table.

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use serde_json::{Value, json};

use super::{kinds::Kind, protobuf, status::Refusal};

/// The media type of Kubernetes' protobuf.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The form in which objects are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Object,
    /// As rows for people, which is what `kubectl get` asks for.
    Table,
}

/// The part of an object beside its row in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    /// Nothing.
    Nothing,
    /// Its metadata, for labels and namespaces.
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// The `includeObject` of a query.
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "None" => Self::Nothing,
            "Object" => Self::Object,
            _ => Self::Metadata,
        }
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().trim()
}

/// The media type of the body, without its parameters.
pub(crate) fn content_type(request: &Request<Bytes>) -> &str {
    let stated = text(request.headers(), header::CONTENT_TYPE);
    stated.split(';').next().unwrap_or_default().trim()
}

/// The first form of the Accept header that can be answered. A client that takes protobuf takes JSON beside it.
pub(crate) fn accepted(request: &Request<Bytes>) -> Result<Form, Refusal> {
    let stated = text(request.headers(), header::ACCEPT);
    if stated.is_empty() {
        return Ok(Form::Object);
    }
    let form = |clause: &str| {
        let mut parts = clause.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let stated = |name: &str| {
            parameters
                .iter()
                .find(|(found, _)| *found == name)
                .map(|(_, value)| *value)
        };
        let json = matches!(media, "application/json" | "application/*" | "*/*");
        match (json, stated("as"), stated("g"), stated("v")) {
            (true, None, ..) => Some(Form::Object),
            (true, Some("Table"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) => Some(Form::Table),
            _ => None,
        }
    };
    stated.split(',').find_map(form).ok_or_else(|| {
        let message = "only the following media types are accepted: application/json, \
                       application/json;as=Table;g=meta.k8s.io;v=v1";
        Refusal::new(406, "NotAcceptable", message)
    })
}

/// The body as JSON; nothing if there is none.
pub(crate) fn body(request: &Request<Bytes>, kind: &Kind) -> Result<Value, Refusal> {
    let bytes = request.body();
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    match content_type(request) {
        PROTOBUF if kind.custom => Err(Refusal::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml",
        )),
        PROTOBUF => protobuf::decode(bytes)
            .map_err(|why| Refusal::bad_request(format!("the protobuf body cannot be read: {why}"))),
        // kubectl sends apply patches as YAML; JSON is YAML too, but its own parser is the faster and stricter one.
        _ => serde_json::from_slice(bytes)
            .or_else(|_| serde_norway::from_slice(bytes))
            .map_err(|error| Refusal::bad_request(format!("the body is neither JSON nor YAML: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &str) -> Option<Form> {
        let request = Request::builder()
            .header(header::ACCEPT, accept)
            .body(Bytes::new());
        accepted(&request.expect("a request")).ok()
    }

    #[test]
    fn the_first_form_that_can_be_answered_is_taken() {
        for accept in [
            "",
            "*/*",
            "application/json",
            "application/vnd.kubernetes.protobuf,application/json",
        ] {
            assert_eq!(form(accept), Some(Form::Object), "{accept}");
        }
        let table =
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io";
        assert_eq!(form(&format!("{table},application/json")), Some(Form::Table));
        assert_eq!(
            form("application/json, application/json;as=Table;v=v1;g=meta.k8s.io"),
            Some(Form::Object)
        );
        let groups = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        assert_eq!(form(&format!("{groups},application/json")), Some(Form::Object));
        for accept in ["application/vnd.kubernetes.protobuf", "text/html", groups] {
            assert_eq!(form(accept), None, "{accept}");
        }
    }
}
