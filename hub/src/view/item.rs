//! An object in the forms in which members get it: whole, and as the difference from what it replaced. Both are made when
//! the first member is sent it, once for all. What nobody is interested in, or what changes again before it is sent, is
//! never encoded and takes no memory beside the state. It decides nothing: who holds what a difference leads from is for
//! others to know.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use shared::{
    model::{
        Revision,
        sync::{DesiredChange, DesiredItem},
    },
    wire,
};

/// One derived object, or its removal, as members get it.
#[derive(Debug)]
pub struct Item {
    content: DesiredItem,
    form: Mutex<Form>,
}

/// At any time there are the bytes of one version.
#[derive(Debug, Clone)]
enum Form {
    /// Nobody was sent it yet.
    Content(Option<Box<Version>>),
    /// Its bytes, and those of its difference if one pays.
    Encoded(Bytes, Option<Box<Version>>),
}

/// Bytes that belong to the last version that anybody was sent: its own, or those of what leads from it.
#[derive(Debug, Clone)]
struct Version {
    bytes: Bytes,
    /// That version's revision.
    revision: Revision,
    /// Revision of the next version, which nobody may have been sent.
    replaced_at: Revision,
}

impl Item {
    /// An object that nobody was sent yet. Its content is shared with the state, not copied.
    pub fn new(content: DesiredItem) -> Self {
        Self {
            content,
            form: Mutex::new(Form::Content(None)),
        }
    }

    /// It takes the place of `old`. What members were sent of that it may be told as a difference from, unless one of both
    /// is a removal.
    pub fn replaces(&mut self, old: Self) {
        if self.is_removal() || old.is_removal() {
            return;
        }
        let revision = old.content.revision;
        let base = match old.form.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Form::Content(base) => base,
            Form::Encoded(bytes, _) => Some(Box::new(Version {
                bytes,
                revision,
                replaced_at: self.content.revision,
            })),
        };
        self.form = Mutex::new(Form::Content(base));
    }

    /// Its bytes, which all members share.
    pub fn bytes(&self) -> Bytes {
        self.encoded().0
    }

    /// What leads to it from the version that stood at `revision`, if there is such a difference and it pays. All members
    /// share it.
    pub fn since(&self, revision: Revision) -> Option<Bytes> {
        let difference = self.encoded().1?;
        let stood = difference.revision <= revision && revision < difference.replaced_at;
        stood.then_some(difference.bytes)
    }

    fn is_removal(&self) -> bool {
        matches!(self.content.change, DesiredChange::Removed(_))
    }

    fn form(&self) -> MutexGuard<'_, Form> {
        // A form is put in its place as a whole.
        self.form.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn encoded(&self) -> (Bytes, Option<Box<Version>>) {
        let mut form = self.form();
        let base = match &mut *form {
            Form::Encoded(bytes, difference) => return (bytes.clone(), difference.clone()),
            Form::Content(base) => base.take(),
        };
        let bytes = wire::encode_desired(&self.content);
        let difference = base.and_then(|base| {
            let difference = wire::encode_difference(&base.bytes, &bytes, &self.content)?;
            Some(Box::new(Version {
                bytes: difference,
                ..*base
            }))
        });
        *form = Form::Encoded(bytes.clone(), difference.clone());
        (bytes, difference)
    }
}

impl Clone for Item {
    fn clone(&self) -> Self {
        Self {
            content: self.content.clone(),
            form: Mutex::new(self.form().clone()),
        }
    }
}

#[cfg(test)]
mod tests;
