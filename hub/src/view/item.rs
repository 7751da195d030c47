//! An object in the form in which members get it: encoded when the first of them is sent it, once for all.
//! What nobody is interested in, or what changes again before it is sent, is never encoded and takes no memory
//! beside the state. It decides nothing; the same object always gives the same bytes.

use std::sync::OnceLock;

use bytes::Bytes;
use shared::{model::sync::DesiredItem, wire};

/// One derived object, or its removal, as members get it.
#[derive(Debug, Clone)]
pub struct Item {
    content: DesiredItem,
    encoded: OnceLock<Bytes>,
}

impl Item {
    /// An object that nobody was sent yet. Its content is shared with the state, not copied.
    pub fn new(content: DesiredItem) -> Self {
        Self {
            content,
            encoded: OnceLock::new(),
        }
    }

    /// Its bytes, which all members share.
    pub fn bytes(&self) -> Bytes {
        let encode = || wire::encode_desired(&self.content);
        self.encoded.get_or_init(encode).clone()
    }
}

#[cfg(test)]
mod tests {
    use shared::model::{
        Revision, ServiceKey,
        sync::{DesiredChange, DesiredKey},
    };

    use super::*;

    #[test]
    fn it_is_encoded_when_it_is_first_sent_and_all_share_the_bytes() {
        let service = ServiceKey::new("shop", "cart").expect("valid");
        let content = DesiredItem {
            revision: Revision(7),
            change: DesiredChange::Removed(DesiredKey::Import(service)),
        };
        let item = Item::new(content.clone());
        assert!(item.encoded.get().is_none());
        let (one, other) = (item.bytes(), item.bytes());
        assert_eq!(one, wire::encode_desired(&content));
        assert_eq!(one.as_ptr(), other.as_ptr());
    }
}
