//! One context, and all contexts of a file, as values. Nothing here reads or writes a file.

use std::path::{Path, PathBuf};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};
use shared::tls::{HubAddress, InvalidAddress};

/// Longest name of a context, in bytes.
const NAME_BYTES_MAX: usize = 63;
/// The beginning of PEM; a value that begins otherwise is a path.
const PEM_BEGIN: &str = "-----BEGIN";

/// A hub, and the certificate for calls to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Context {
    /// Its name in the file.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// The clusterset, as `TRUST-DOMAIN/NAME`. The certificate must be of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusterset: Option<String>,
    /// Addresses of the hub, tried in turn.
    #[serde(with = "addresses")]
    pub hub: Vec<HubAddress>,
    /// Certificates of the authorities that are trusted.
    pub ca: Pem,
    /// The certificate of the operator or reader.
    pub certificate: Pem,
    /// Its private key.
    pub key: Pem,
}

/// PEM, in the file itself or in another one.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// The text itself.
    Inline(String),
    /// A path; a relative one begins at the directory of the contexts' file.
    File(PathBuf),
}

impl Pem {
    /// The same, with a path that does not depend on the working directory.
    pub fn below(self, directory: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(directory.join(path)),
            inline => inline,
        }
    }
}

/// A path, or a placeholder for text: a key must not reach a log or a terminal.
impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inline(_) => f.write_str("(in the file)"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Serialize for Pem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inline(text) => serializer.serialize_str(text),
            Self::File(path) => path.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Pem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Parse(|text| {
            if text.trim_start().starts_with(PEM_BEGIN) {
                return Ok(Self::Inline(text.to_owned()));
            }
            if text.is_empty() || text.contains('\n') {
                return Err("this is neither PEM nor the path of a PEM file".to_owned());
            }
            Ok(Self::File(text.into()))
        }))
    }
}

/// Reads a text with a function. The error of a visitor has the line of the text, that of its caller has not.
struct Parse<T>(fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for Parse<T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

/// Checks the name of a context.
pub fn valid_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(allowed) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "a context's name is 1 to {NAME_BYTES_MAX} of A-Z, a-z, 0-9, '-', '_', '.' and '@'"
    ))
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_str(Parse(valid_name))
}

/// Addresses as text.
mod addresses {
    use super::*;

    struct Address(HubAddress);

    impl<'de> Deserialize<'de> for Address {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(Parse(|text| {
                let address = text.parse().map_err(|error: InvalidAddress| error.to_string());
                address.map(Self)
            }))
        }
    }

    pub(super) fn serialize<S: Serializer>(hubs: &[HubAddress], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(hubs.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<HubAddress>, D::Error> {
        let addresses = Vec::<Address>::deserialize(deserializer)?;
        if addresses.is_empty() {
            return Err(D::Error::custom("hub needs one address at least"));
        }
        Ok(addresses.into_iter().map(|Address(address)| address).collect())
    }
}

/// All contexts of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Contexts {
    /// The context that commands use without `--context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The contexts, in the order in which they were added.
    #[serde(default)]
    pub contexts: Vec<Context>,
}

impl Contexts {
    /// Reads a file's text. An error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let contexts: Self = serde_norway::from_str(text).map_err(|error| error.to_string())?;
        for (index, context) in contexts.contexts.iter().enumerate() {
            if contexts
                .contexts
                .iter()
                .take(index)
                .any(|other| other.name == context.name)
            {
                return Err(format!("two contexts are named {}", context.name));
            }
        }
        match &contexts.current {
            Some(current) if contexts.get(current).is_none() => {
                Err(format!("the current context {current} is not in the list"))
            }
            _ => Ok(contexts),
        }
    }

    /// The text of a file with these contexts.
    pub fn text(&self) -> anyhow::Result<String> {
        Ok(serde_norway::to_string(self)?)
    }

    /// The context of a name.
    pub fn get(&self, name: &str) -> Option<&Context> {
        self.contexts.iter().find(|context| context.name == name)
    }

    /// Adds a context, or replaces the one of its name. The first one becomes the current one.
    pub fn put(&mut self, context: Context) {
        self.current.get_or_insert_with(|| context.name.clone());
        match self.contexts.iter_mut().find(|other| other.name == context.name) {
            Some(there) => *there = context,
            None => self.contexts.push(context),
        }
    }

    /// Removes a context; true if there was one. If it was the current one, none is current afterwards.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.contexts.len();
        self.contexts.retain(|context| context.name != name);
        if self.current.as_deref() == Some(name) {
            self.current = None;
        }
        self.contexts.len() < before
    }

    /// The names, as a sentence lists them.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self
            .contexts
            .iter()
            .map(|context| context.name.as_str())
            .collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
current: prod
contexts:
- name: prod
  clusterset: example.org/default
  hub:
  - https://hub.example.org:8443
  ca: ca.crt
  certificate: |
    -----BEGIN CERTIFICATE-----
    AAAA
    -----END CERTIFICATE-----
  key: keys/alice.key
";

    #[test]
    fn a_file_is_read_and_written_as_it_was() {
        let contexts = Contexts::parse(FILE).expect("valid");
        assert_eq!(contexts.text().expect("text"), FILE);
        let prod = contexts.get("prod").expect("prod");
        assert_eq!(
            prod.ca.clone().below(Path::new("/etc")),
            Pem::File("/etc/ca.crt".into())
        );
        assert!(matches!(&prod.certificate, Pem::Inline(text) if text.starts_with(PEM_BEGIN)));
        assert!(!format!("{contexts:?}").contains("AAAA"));
        assert_eq!(Contexts::parse(" \n"), Ok(Contexts::default()));
    }

    #[test]
    fn what_is_wrong_in_a_file_is_told_with_its_line() {
        for (from, to, told) in [
            (
                "https://hub.example.org:8443",
                "hub.example.org:8443",
                &["is not a hub address", "line 6"][..],
            ),
            ("  ca: ca.crt\n", "", &["missing field `ca`", "line 3"]),
            (
                "  ca: ca.crt",
                "  ca: ''",
                &["neither PEM nor the path", "line 7"],
            ),
            (
                "  ca: ca.crt",
                "  authority: ca.crt",
                &["unknown field `authority`", "line 7"],
            ),
            (
                "- name: prod",
                "- name: 'a b'",
                &["a context's name is", "line 3"],
            ),
            (
                "current: prod",
                "current: test",
                &["the current context test is not in the list"],
            ),
            ("current: prod", "current: [", &["line"]),
        ] {
            let error = Contexts::parse(&FILE.replace(from, to)).expect_err(to);
            for word in told {
                assert!(error.contains(word), "{to}: {error}");
            }
        }
        let twice = format!("{FILE}{}", FILE.split_once("contexts:\n").expect("contexts").1);
        assert_eq!(
            Contexts::parse(&twice),
            Err("two contexts are named prod".to_owned())
        );
    }

    #[test]
    fn the_first_context_becomes_current_and_a_removed_one_is_not() {
        let prod = Contexts::parse(FILE).expect("valid").contexts.remove(0);
        let mut contexts = Contexts::default();
        contexts.put(Context {
            name: "test".into(),
            ..prod.clone()
        });
        contexts.put(prod.clone());
        assert_eq!(contexts.current.as_deref(), Some("test"));
        contexts.put(Context {
            clusterset: None,
            ..prod
        });
        assert_eq!(
            (contexts.contexts.len(), contexts.names().as_str()),
            (2, "test, prod")
        );
        assert!(contexts.get("prod").is_some_and(|prod| prod.clusterset.is_none()));
        assert!(contexts.remove("test") && !contexts.remove("test"));
        assert_eq!(contexts.current, None);
    }
}
