//! Owns: taking keys and tokens out of texts: those that are known, and whatever looks like one. Pure.
//! Never: reads a file.

/// Replaces a secret.
pub const REDACTED: &str = "[redacted]";
/// Shorter texts are no secrets: taking them out would take out words.
const SECRET_CHARS_MIN: usize = 12;
/// The beginning and the end of a PEM block of a private key.
const KEY_BEGIN: &str = "-----BEGIN";
const KEY_END: &str = "-----END";
const KEY_WORD: &str = "PRIVATE KEY-----";
/// The beginning of a JSON Web Token: an object in base64.
const TOKEN_BEGIN: &str = "eyJ";
/// Fields of kubeconfigs and Secrets that hold credentials, as they are written in YAML or JSON.
const CREDENTIAL_FIELDS: [&str; 7] = [
    "client-key-data",
    "token",
    "password",
    "tls.key",
    "authorization",
    "joinstring",
    "join-string",
];

/// Secrets that must not leave this machine.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    known: Vec<String>,
}

impl Secrets {
    /// Every line of a file with a secret in it, such as a private key or a token: a part of one is a secret, too.
    pub fn add(&mut self, secret: &str) {
        let lines = secret.lines().map(str::trim);
        let long = lines.filter(|line| line.chars().count() >= SECRET_CHARS_MIN);
        let secret = long.filter(|line| !line.starts_with("-----"));
        self.known.extend(secret.map(ToOwned::to_owned));
    }

    /// The text without them.
    pub fn redact(&self, text: &str) -> String {
        let mut known: Vec<&String> = self.known.iter().collect();
        known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let mut text = text.to_owned();
        for secret in known {
            text = text.replace(secret.as_str(), REDACTED);
        }
        let mut within_key = false;
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let begins = line.contains(KEY_BEGIN) && line.contains(KEY_WORD);
            if begins || within_key {
                if begins {
                    out.push_str(REDACTED);
                    out.push('\n');
                }
                // A key on one line, as JSON has it, ends where it begins.
                within_key = !line.contains(KEY_END);
                continue;
            }
            out.push_str(&line_without(line));
        }
        out
    }
}

/// A line without tokens, and without the value of a field that holds a credential.
fn line_without(line: &str) -> String {
    let lower = line.to_lowercase();
    let names = lower.trim_start_matches([' ', '-', '"', '\'']);
    let holds = |field: &&str| {
        let rest = names.strip_prefix(*field);
        rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with([':', '=']))
    };
    if CREDENTIAL_FIELDS.iter().any(holds) {
        let end = line.find([':', '=']).map_or(line.len(), |place| place + 1);
        return format!("{} {REDACTED}\n", &line[..end]);
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(place) = rest.find(TOKEN_BEGIN) {
        let (before, token) = rest.split_at(place);
        let of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
        let end = token.find(|c| !of_token(c)).unwrap_or(token.len());
        out.push_str(before);
        out.push_str(if end < SECRET_CHARS_MIN {
            &token[..end]
        } else {
            REDACTED
        });
        rest = &token[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_secret_goes_wherever_it_stands_and_in_parts() {
        let mut secrets = Secrets::default();
        secrets.add("-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\nAgEGCCqGSM49AwEH\n-----END PRIVATE KEY-----\n");
        secrets.add("short");
        let text = secrets.redact("x=MIGHAgEAMBMGByqGSM49; y AgEGCCqGSM49AwEH, a short word");
        assert_eq!(text, "x=[redacted]; y [redacted], a short word");
    }

    #[test]
    fn the_longer_of_two_secrets_goes_whole() {
        let mut secrets = Secrets::default();
        secrets.add("abcdefghijkl");
        secrets.add("abcdefghijklmnop");
        assert_eq!(secrets.redact("abcdefghijklmnop."), "[redacted].");
    }

    #[test]
    fn a_private_key_that_nobody_knows_goes_with_all_its_lines() {
        let text = "before\n-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n-----END EC PRIVATE KEY-----\nafter\n";
        assert_eq!(Secrets::default().redact(text), "before\n[redacted]\nafter\n");
        let open = "before\n-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n";
        assert_eq!(Secrets::default().redact(open), "before\n[redacted]\n");
        let line = "a: \"-----BEGIN PRIVATE KEY-----\\nc2Vj\\n-----END PRIVATE KEY-----\"\nafter\n";
        assert_eq!(Secrets::default().redact(line), "[redacted]\nafter\n");
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        assert_eq!(Secrets::default().redact(certificate), certificate);
    }

    #[test]
    fn tokens_and_the_fields_that_hold_them_go() {
        let redact = |text: &str| Secrets::default().redact(text);
        assert_eq!(
            redact("got eyJhbGciOiJSUzI1NiJ9.eyJpc3Mi.sig, ok"),
            "got [redacted], ok"
        );
        assert_eq!(redact("keyJoy eyJ\n"), "keyJoy eyJ\n");
        assert_eq!(redact("    token: abc\nx: 1\n"), "    token: [redacted]\nx: 1\n");
        assert_eq!(redact("  \"password\": \"p\",\n"), "  \"password\": [redacted]\n");
        assert_eq!(redact("tokens: 3\n"), "tokens: 3\n");
    }
}
