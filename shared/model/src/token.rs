//! Tokens with which clusters join: the secret, what is recorded of it, and which ids it is good for.
//! It makes no secret: the random bytes are given to it. It knows neither who may use one nor when.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};

use super::{ClusterId, UnixMillis, bytes, policy::Pattern};

/// Random bytes of a token.
pub const TOKEN_BYTES: usize = 32;
/// Digits of a token's name: enough among the tokens that one hub remembers.
pub const TOKEN_ID_DIGITS: usize = 16;
/// Most clusters that may join with one token.
pub const TOKEN_USES_MAX: u32 = 1_024;
/// Longest time that a token may be good for: 30 days.
pub const TOKEN_MILLIS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Longest certificate with its intermediates that is recorded for a use, as PEM, in bytes.
pub const JOINED_CERTIFICATE_BYTES_MAX: usize = 12 * 1024;
/// Longest cluster id, in bytes.
const ID_BYTES_MAX: usize = 63;

/// A token. It is shown nowhere but in the join string.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret([u8; TOKEN_BYTES]);

impl TokenSecret {
    /// A token of these random bytes.
    pub fn new(random: [u8; TOKEN_BYTES]) -> Self {
        Self(random)
    }

    /// Its bytes, for its sender.
    pub fn bytes(&self) -> &[u8; TOKEN_BYTES] {
        &self.0
    }

    /// The recorded hash. The secret is random, so its hash gives nothing away.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0).into())
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }
}

/// sha256 of a token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// The name by which people call the token: its first digits.
    pub fn id(&self) -> String {
        self.0[..TOKEN_ID_DIGITS / 2]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Returns true if a text has the form of a token's name.
    pub fn is_id(text: &str) -> bool {
        bytes::from_hex::<{ TOKEN_ID_DIGITS / 2 }>(text).is_some()
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id())
    }
}

/// The ids that a token is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenScope {
    /// This one.
    Id(ClusterId),
    /// Those of a pattern.
    Pattern(Pattern),
}

/// A text that names no ids that a token could be good for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScope {
    /// It has no star and is no id.
    #[error("is no cluster id: use 1 to 63 of a-z, 0-9 and '-', alphanumeric at both ends")]
    Id,
    /// No cluster id looks like that.
    #[error(
        "matches no cluster id: ids are DNS labels, 1 to 63 of a-z, 0-9 and '-', alphanumeric at both ends; write it as \
         'prod-*'"
    )]
    MatchesNothing,
    /// Every id looks like that.
    #[error("matches every cluster id: name a part that they have in common, as 'prod-*'")]
    MatchesEverything,
}

impl TokenScope {
    /// Returns true if the token is good for this id.
    pub fn covers(&self, cluster: &ClusterId) -> bool {
        match self {
            Self::Id(id) => id == cluster,
            Self::Pattern(pattern) => pattern.matches(cluster.as_str()),
        }
    }
}

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id.as_str()),
            Self::Pattern(pattern) => pattern.fmt(f),
        }
    }
}

impl FromStr for TokenScope {
    type Err = InvalidScope;

    /// A text with a star is a pattern.
    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        if !text.contains('*') {
            return ClusterId::new(text).map(Self::Id).map_err(|_| InvalidScope::Id);
        }
        let pattern: Pattern = text.parse().map_err(|_| InvalidScope::MatchesNothing)?;
        let literal = text.bytes().filter(|byte| *byte != b'*').count();
        let edges = |edge: &str| !text.starts_with(edge) && !text.ends_with(edge);
        if text.contains('.') || literal > ID_BYTES_MAX || !edges("-") {
            return Err(InvalidScope::MatchesNothing);
        }
        if !text.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
            return Err(InvalidScope::MatchesEverything);
        }
        Ok(Self::Pattern(pattern))
    }
}

/// The record of a token when it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// Its hash.
    pub hash: TokenHash,
    /// The ids that it is good for.
    pub scope: TokenScope,
    /// Number of clusters that may join with it: 1 to [`TOKEN_USES_MAX`].
    pub uses: u32,
    /// Until when.
    pub expires_at: UnixMillis,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_matches_nothing_or_everything_is_refused() {
        let read = |text: &str| text.parse::<TokenScope>();
        for (text, covered) in [
            ("prod-*", "prod-1"),
            ("*-eu", "a-eu"),
            ("east", "east"),
            ("a*b", "a-b"),
        ] {
            let scope = read(text).expect(text);
            assert!(scope.covers(&ClusterId::new(covered).expect("valid")), "{text}");
            assert_eq!(scope.to_string(), text);
        }
        for text in [
            "prod.*",
            "-*",
            "*-",
            "*--",
            "Prod-*",
            "prod *",
            &format!("{}*", "a".repeat(64)),
        ] {
            assert_eq!(read(text), Err(InvalidScope::MatchesNothing), "{text}");
        }
        for text in ["*", "**", "*-*"] {
            assert_eq!(read(text), Err(InvalidScope::MatchesEverything), "{text}");
        }
        for text in ["", "East", "a_b"] {
            assert_eq!(read(text), Err(InvalidScope::Id), "{text}");
        }
    }

    #[test]
    fn a_token_is_printed_by_the_digits_of_its_hash_only() {
        let secret = TokenSecret::new([7; TOKEN_BYTES]);
        assert_eq!(format!("{secret:?}"), "a token");
        let id = secret.hash().id();
        assert!(TokenHash::is_id(&id) && id.len() == TOKEN_ID_DIGITS, "{id}");
        assert!(!TokenHash::is_id("07070707"));
    }
}
