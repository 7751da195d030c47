//! The difference between two versions of a derived object ↔ bytes, and the way from one version to the other.
//! It restores the very object or none: the hashes of both versions are compared. It never asks for anything.

use bytes::Bytes;
use prost::Message as _;
use proto::v1::{self, desired_item::Item};

use super::{
    desired::{decode_desired, encode_desired},
    item_key::key_to_proto,
};
use crate::difference;
use model::sync::{DesiredChange, DesiredItem, ItemDifference, ItemHash};

/// An object of fewer bytes has no difference: its frame takes as many.
const WHOLE_BYTES_MIN: usize = 128;

/// The outcome of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// The object that it leads to.
    Object(DesiredItem),
    /// The held object is already the result.
    Held,
    /// It leads to an object of a newer hub that this agent cannot read.
    Unreadable,
}

/// Why nothing came of it. The object is to be had whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRestored {
    /// Nothing is held as its base.
    #[error("nothing is held that the difference leads from")]
    NoBase,
    /// Another version is held.
    #[error("the difference leads from another version than the one that is held")]
    OtherBase,
    /// No object came of it, or another one than was meant.
    #[error("the difference does not lead to the object that it says")]
    OtherObject,
}

/// Encodes what leads from one version of an object to the next as an item to send; `None`: the whole is no longer, or
/// hardly. `base` and `whole` are the encoded versions, `item` is the newer one.
pub fn encode_difference(base: &[u8], whole: &[u8], item: &DesiredItem) -> Option<Bytes> {
    if whole.len() < WHOLE_BYTES_MIN {
        return None;
    }
    let difference = v1::ItemDifference {
        key: Some(key_to_proto(&item.change.key())),
        base_hash: ItemHash::of(base).0.to_vec(),
        difference: difference::difference(base, whole)?,
        hash: ItemHash::of(whole).0.to_vec(),
    };
    let item = v1::DesiredItem {
        revision: item.revision.0,
        item: Some(Item::Difference(difference)),
    };
    let bytes: Bytes = item.encode_to_vec().into();
    // A quarter is the least that is worth the work at the other end.
    (bytes.len() <= whole.len() / 4 * 3).then_some(bytes)
}

/// The object that a difference makes from the held one.
///
/// # Errors
///
/// [`NotRestored`] if the held object is not its base, or the result is nothing or another object.
pub fn restore(held: Option<&DesiredItem>, difference: &ItemDifference) -> Result<Restored, NotRestored> {
    let base = encode_desired(held.ok_or(NotRestored::NoBase)?);
    let base_hash = ItemHash::of(&base);
    if base_hash == difference.hash {
        return Ok(Restored::Held);
    }
    if base_hash != difference.base {
        return Err(NotRestored::OtherBase);
    }
    let whole = difference::restore(&base, &difference.difference).map_err(|_| NotRestored::OtherObject)?;
    if ItemHash::of(&whole) != difference.hash {
        return Err(NotRestored::OtherObject);
    }
    let Ok(item) = decode_desired(whole.into()) else {
        return Ok(Restored::Unreadable);
    };
    let is_removal = matches!(item.change, DesiredChange::Removed(_));
    if is_removal || item.change.key() != difference.key || item.revision != difference.revision {
        return Err(NotRestored::OtherObject);
    }
    Ok(Restored::Object(item))
}

#[cfg(test)]
mod tests;
