//! Owns: the continuation of an answer in pages: a token names the revision and the last object shown, and which
//! request it belongs to. It is content, and no secret: a forged one reads what its maker may read anyway.
//! Never: keeps anything, or looks anything up.

use std::{fmt, str::FromStr};

use shared::model::{ClusterId, Epoch, KeyFingerprint, Revision, ServiceKey};

/// Objects in a page of a request that does not say how many.
pub const PAGE_OBJECTS_DEFAULT: u32 = 1_000;
/// Most objects in a page; who asks for more gets as many.
pub const PAGE_OBJECTS_MAX: u32 = 5_000;
/// A page is full at this many bytes of objects. An object that is larger is a page of its own.
pub const PAGE_BYTES_MAX: usize = 256 * 1024;
/// Longest token. The longest names make one of two thirds of it.
pub const PAGE_TOKEN_BYTES_MAX: usize = 384;

/// Bytes of an object in a message beside its own.
const OBJECT_FRAME_BYTES: usize = 6;
/// First part of a token: another form has another number.
const FORM: &str = "1";

/// The last object of a page: the answer continues after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Last {
    Member(ClusterId),
    RevokedKey(KeyFingerprint),
    Export(ClusterId, ServiceKey),
    Import(ServiceKey),
    Profile(ClusterId),
}

/// The position at which an answer continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageToken {
    pub(super) epoch: Epoch,
    pub(super) revision: Revision,
    /// The request, without the size of pages.
    pub(super) question: Question,
    pub(super) last: Last,
}

/// Digest of a request: the pages of one answer all come from the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question([u8; 8]);

/// Text that no hub gave out as a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoToken;

impl Question {
    /// The question of a request that says this.
    pub(super) fn of(words: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for word in words {
            // No name has a line feed in it.
            hasher.update(word.as_bytes()).update(b"\n");
        }
        let mut short = [0; 8];
        hasher.finalize_xof().fill(&mut short);
        Self(short)
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl fmt::Display for Last {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(cluster) => write!(f, "member/{cluster}"),
            Self::RevokedKey(key) => write!(f, "key/{key}"),
            Self::Export(cluster, service) => write!(f, "export/{cluster}/{service}"),
            Self::Import(service) => write!(f, "import/{service}"),
            Self::Profile(cluster) => write!(f, "profile/{cluster}"),
        }
    }
}

impl fmt::Display for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            epoch,
            revision,
            question,
            last,
        } = self;
        write!(f, "{FORM}:{epoch}:{revision}:{question}:{last}")
    }
}

impl FromStr for PageToken {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        if text.len() > PAGE_TOKEN_BYTES_MAX {
            return Err(NoToken);
        }
        let fields: Vec<&str> = text.split(':').collect();
        let [FORM, epoch, revision, question, last] = fields[..] else {
            return Err(NoToken);
        };
        let token = Self {
            epoch: epoch.parse().map_err(|_| NoToken)?,
            revision: Revision(revision.parse().map_err(|_| NoToken)?),
            question: Question(
                u64::from_str_radix(question, 16)
                    .map_err(|_| NoToken)?
                    .to_be_bytes(),
            ),
            last: last_from(last).ok_or(NoToken)?,
        };
        // There is one way to write each.
        if token.to_string() == text {
            Ok(token)
        } else {
            Err(NoToken)
        }
    }
}

fn last_from(text: &str) -> Option<Last> {
    let words: Vec<&str> = text.split('/').collect();
    let cluster = |id| ClusterId::new(id).ok();
    let service = |namespace, name| ServiceKey::new(namespace, name).ok();
    match words[..] {
        ["member", id] => Some(Last::Member(cluster(id)?)),
        ["key", key] => Some(Last::RevokedKey(key.parse().ok()?)),
        ["export", id, namespace, name] => Some(Last::Export(cluster(id)?, service(namespace, name)?)),
        ["import", namespace, name] => Some(Last::Import(service(namespace, name)?)),
        ["profile", id] => Some(Last::Profile(cluster(id)?)),
        _ => None,
    }
}

/// The room of one page.
#[derive(Debug)]
pub(super) struct Page {
    objects: u32,
    bytes: usize,
    is_empty: bool,
}

impl Page {
    /// An empty page for so many objects; 0: as many as is good.
    pub(super) fn of(objects: u32) -> Self {
        let objects = match objects {
            0 => PAGE_OBJECTS_DEFAULT,
            some => some.min(PAGE_OBJECTS_MAX),
        };
        Self {
            objects,
            bytes: PAGE_BYTES_MAX,
            is_empty: true,
        }
    }

    /// Returns true if there is room for an object of so many bytes, which it takes. There always is for the first.
    pub(super) fn takes(&mut self, bytes: usize) -> bool {
        let bytes = bytes + OBJECT_FRAME_BYTES;
        let fits = self.is_empty || (self.objects > 0 && bytes <= self.bytes);
        if fits {
            self.is_empty = false;
            self.objects = self.objects.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        fits
    }
}

#[cfg(test)]
mod tests;
