//! The one string with which a cluster joins: where the hub is, the pin of its authority's key, the token. It is text
//! that survives a shell, a YAML file and a chat: a version, then letters, digits, '-' and '_', the length and a
//! checksum inside, so that a cut string is distinguished from a wrong one.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};

use super::{
    KeyFingerprint, advice,
    token::{TOKEN_BYTES, TokenSecret},
};

/// Prefix of a string of this version.
const PREFIX: &str = "tributary-join-1-";
/// Prefix of strings of all versions.
const FAMILY: &str = "tributary-join-";
/// Longest string that is read, in bytes.
pub const JOIN_STRING_BYTES_MAX: usize = 4 * 1024;
/// Most addresses of either kind.
pub const JOIN_ADDRESSES_MAX: usize = 8;
/// Bytes of the pin.
const PIN_BYTES: usize = 32;
/// Bytes of the checksum.
const CHECK_BYTES: usize = 4;
/// Bytes that say how many follow.
const LENGTH_BYTES: usize = 2;

/// The content of a join string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinString {
    /// Addresses at which clusters join, as `https://HOST:PORT`; tried in turn.
    pub doors: Vec<String>,
    /// Addresses at which members reach the hub, as `https://HOST:PORT`.
    pub hubs: Vec<String>,
    /// sha256 of the public key of the authority that the hub's certificate leads to.
    pub pin: KeyFingerprint,
    /// The token.
    pub token: TokenSecret,
}

/// Why a text is no join string. It never repeats the text: there is a token in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJoinString {
    /// It is something else.
    #[error(
        "it is no join string: `{}` prints one, which begins with {PREFIX}",
        advice::token_create("my-cluster")
    )]
    Other,
    /// It is of a later release.
    #[error("it is a join string of a later release: update the agent")]
    Later,
    /// Its end is missing.
    #[error(
        "the join string was cut: {found} of {whole} characters are there; copy all of it, it is one line"
    )]
    Cut {
        /// Characters that are there.
        found: usize,
        /// Characters of the whole.
        whole: usize,
    },
    /// Characters of it were changed.
    #[error("the join string was changed on its way: copy it again, or have another made")]
    Changed,
}

impl JoinString {
    /// Reads a string; white space around it does not count.
    pub fn parse(text: &str) -> Result<Self, InvalidJoinString> {
        let text = text.trim();
        let Some(encoded) = text.strip_prefix(PREFIX) else {
            let later = text
                .strip_prefix(FAMILY)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            let cut = !text.is_empty() && PREFIX.starts_with(text);
            return Err(match (later, cut) {
                (_, true) => InvalidJoinString::Changed,
                (true, _) => InvalidJoinString::Later,
                _ => InvalidJoinString::Other,
            });
        };
        if text.len() > JOIN_STRING_BYTES_MAX {
            return Err(InvalidJoinString::Changed);
        }
        let whole = announced(encoded).ok_or(InvalidJoinString::Changed)?;
        if encoded.len() < whole {
            return Err(InvalidJoinString::Cut {
                found: text.len(),
                whole: PREFIX.len() + whole,
            });
        }
        let bytes = BASE64URL_NOPAD.decode(encoded.as_bytes());
        let bytes = bytes.map_err(|_| InvalidJoinString::Changed)?;
        Self::from_bytes(&bytes).ok_or(InvalidJoinString::Changed)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, check) = bytes.split_last_chunk::<CHECK_BYTES>()?;
        if checksum(body) != *check {
            return None;
        }
        let (length, body) = body.split_first_chunk::<LENGTH_BYTES>()?;
        if usize::from(u16::from_be_bytes(*length)) != body.len() {
            return None;
        }
        let (pin, body) = body.split_first_chunk::<PIN_BYTES>()?;
        let (token, addresses) = body.split_first_chunk::<TOKEN_BYTES>()?;
        let (doors, hubs) = std::str::from_utf8(addresses).ok()?.split_once(' ')?;
        Some(Self {
            doors: list(doors)?,
            hubs: list(hubs)?,
            pin: KeyFingerprint(*pin),
            token: TokenSecret::new(*token),
        })
    }

    /// The string; `None` with more addresses than fit.
    pub fn encode(&self) -> Option<String> {
        let addresses = format!("{} {}", self.doors.join(","), self.hubs.join(","));
        let body = [&self.pin.0[..], self.token.bytes(), addresses.as_bytes()].concat();
        let mut bytes = u16::try_from(body.len()).ok()?.to_be_bytes().to_vec();
        bytes.extend(body);
        bytes.extend(checksum(&bytes));
        let text = format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&bytes));
        (Self::parse(&text).as_ref() == Ok(self)).then_some(text)
    }
}

/// The length of the whole in characters, as stated at its beginning.
fn announced(encoded: &str) -> Option<usize> {
    // Four characters are three bytes.
    let Some(beginning) = encoded.get(..4) else {
        return Some(BASE64URL_NOPAD.encode_len(LENGTH_BYTES + PIN_BYTES + TOKEN_BYTES + CHECK_BYTES));
    };
    let bytes = BASE64URL_NOPAD.decode(beginning.as_bytes()).ok()?;
    let length = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
    let whole = BASE64URL_NOPAD.encode_len(LENGTH_BYTES + length + CHECK_BYTES);
    (whole <= JOIN_STRING_BYTES_MAX).then_some(whole)
}

fn checksum(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let digest = Sha256::digest(bytes);
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&digest[..CHECK_BYTES]);
    check
}

fn list(text: &str) -> Option<Vec<String>> {
    let addresses: Vec<String> = text.split(',').map(str::to_owned).collect();
    let known = |address: &String| address.starts_with("https://") && !address.contains(' ');
    (addresses.len() <= JOIN_ADDRESSES_MAX && addresses.iter().all(known)).then_some(addresses)
}

impl fmt::Display for JoinString {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pin {})", self.doors.join(","), self.pin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join_string() -> JoinString {
        JoinString {
            doors: vec![
                "https://hub.example.org:8444".into(),
                "https://[fd00::1]:8444".into(),
            ],
            hubs: vec!["https://hub.example.org:8443".into()],
            pin: KeyFingerprint([3; 32]),
            token: TokenSecret::new([9; TOKEN_BYTES]),
        }
    }

    #[test]
    fn what_was_written_is_read_and_shows_no_token() {
        let text = join_string().encode().expect("it fits");
        assert_eq!(JoinString::parse(&format!("  {text}\n")), Ok(join_string()));
        let shown = format!("{:?} {}", join_string(), join_string());
        assert!(!shown.contains("9, 9") && !shown.contains("0909"), "{shown}");
    }

    /// A cut at any place, or any changed character, is refused.
    #[test]
    fn a_string_that_was_cut_is_told_from_one_that_was_changed() {
        let text = join_string().encode().expect("it fits");
        for end in PREFIX.len()..text.len() {
            let cut = JoinString::parse(&text[..end]).expect_err("cut");
            assert!(matches!(cut, InvalidJoinString::Cut { .. }), "{end}: {cut:?}");
        }
        for place in PREFIX.len()..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("ASCII");
            assert!(JoinString::parse(&changed).is_err(), "{place}");
        }
        for (text, expected) in [
            ("", InvalidJoinString::Other),
            ("hello", InvalidJoinString::Other),
            ("tributary-join-2-AAAA", InvalidJoinString::Later),
            ("tributary-jo", InvalidJoinString::Changed),
        ] {
            assert_eq!(JoinString::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn more_addresses_than_fit_are_refused() {
        let doors = vec!["https://hub:8444".to_owned(); JOIN_ADDRESSES_MAX + 1];
        assert_eq!(
            JoinString {
                doors,
                ..join_string()
            }
            .encode(),
            None
        );
    }
}
