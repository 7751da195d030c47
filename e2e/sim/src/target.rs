//! The target of a request: its path and query, read once. Knows which kinds are served, and nothing of their objects.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    kinds::{Kind, Kinds},
    managers::Subresource,
    status::Refusal,
};

/// A parsed path and query.
pub(crate) struct Target {
    pub(super) kind: Arc<Kind>,
    pub(super) version: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) subresource: Subresource,
    query: BTreeMap<String, String>,
}

impl Target {
    /// Reads what a request names; refused where nothing is served.
    pub(super) fn parse(kinds: &Kinds, path: &str, query: &str) -> Result<Self, Refusal> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Err(Refusal::no_such_path()),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !matches!(rest, [] | ["status"]) => (*namespace, rest),
            rest => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, "", Subresource::Main),
            [plural, name] => (*plural, *name, Subresource::Main),
            [plural, name, "scale"] => (*plural, *name, Subresource::Scale),
            [plural, name, "status"] => (*plural, *name, Subresource::Status),
            _ => return Err(Refusal::no_such_path()),
        };
        let kind = kinds
            .find(group, version, plural)
            .ok_or_else(Refusal::no_such_path)?;
        let served = match subresource {
            Subresource::Main => true,
            Subresource::Scale => kind.has_scale,
            Subresource::Status => kind.has_status,
        };
        if !served || (!name.is_empty() && kind.namespaced == namespace.is_empty()) {
            return Err(Refusal::no_such_path());
        }
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Ok(Self {
            kind,
            version: version.to_owned(),
            namespace,
            name,
            subresource,
            query,
        })
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.query.get(name).map(String::as_str), Some("true" | "1"))
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }
}
