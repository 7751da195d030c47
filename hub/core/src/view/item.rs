//! An object in the forms in which members get it: whole, and as the difference from what it replaced. Whole it is
//! encoded for each whom it is sent to, which costs little more than to copy it; its bytes take no memory beside the
//! state. The difference is made when the first member is sent it, once for all, and kept. An object that nobody is
//! interested in, or that changes again before it is sent, is never encoded. It decides nothing: who holds what a
//! difference leads from is for others to know.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use model::{
    Revision,
    sync::{DesiredChange, DesiredItem},
};

/// One derived object, or its removal, as members get it. It is small in its place: a tree has more places than items.
#[derive(Debug, Clone)]
pub struct Item(Box<Parts>);

#[derive(Debug)]
struct Parts {
    content: DesiredItem,
    form: Mutex<Form>,
}

/// Knowledge of the version sent before.
#[derive(Debug, Clone)]
enum Form {
    /// Nobody was sent this one yet. The last version that somebody was sent, if there is one.
    Unsent(Option<Box<Version>>),
    /// Somebody was sent it. The difference from the version before, if it pays.
    Sent(Option<Box<Difference>>),
}

/// A version that somebody was sent.
#[derive(Debug, Clone)]
struct Version {
    /// It is shared with states that are no longer the present one, until this is sent.
    content: DesiredItem,
    /// Revision of the next version, which nobody may have been sent.
    replaced_at: Revision,
}

/// The way on from an earlier version.
#[derive(Debug, Clone)]
struct Difference {
    bytes: Bytes,
    /// The earlier version's revision.
    revision: Revision,
    /// Revision of the next version.
    replaced_at: Revision,
}

impl Item {
    /// An object that nobody was sent yet. Its content is shared with the state, not copied.
    pub fn new(content: DesiredItem) -> Self {
        let form = Mutex::new(Form::Unsent(None));
        Self(Box::new(Parts { content, form }))
    }

    /// The object.
    pub fn content(&self) -> &DesiredItem {
        &self.0.content
    }

    /// It takes the place of `old`. The version that members hold, as the base of a difference, unless one of both is a
    /// removal.
    pub fn replaces(&mut self, old: Self) {
        if self.is_removal() || old.is_removal() {
            return;
        }
        let old = *old.0;
        let base = match old.form.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Form::Unsent(base) => base,
            Form::Sent(_) => Some(Box::new(Version {
                content: old.content,
                replaced_at: self.0.content.revision,
            })),
        };
        self.0.form = Mutex::new(Form::Unsent(base));
    }

    /// Its bytes.
    pub fn bytes(&self) -> Bytes {
        // From here on it is a version that somebody was sent.
        drop(self.sent());
        wire::encode_desired(&self.0.content)
    }

    /// The difference from the version at `revision`, if there is one and it pays. All members share it.
    pub fn since(&self, revision: Revision) -> Option<Bytes> {
        match &*self.sent() {
            Form::Sent(Some(difference)) => {
                let stood = difference.revision <= revision && revision < difference.replaced_at;
                stood.then(|| difference.bytes.clone())
            }
            Form::Sent(None) | Form::Unsent(_) => None,
        }
    }

    fn is_removal(&self) -> bool {
        matches!(self.0.content.change, DesiredChange::Removed(_))
    }

    fn form(&self) -> MutexGuard<'_, Form> {
        // A form is put in its place as a whole.
        self.0.form.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The form once it is sent. Encoding is deterministic: what the base gives is what was sent of it.
    fn sent(&self) -> MutexGuard<'_, Form> {
        let mut form = self.form();
        if let Form::Unsent(base) = &mut *form {
            let difference = base.take().and_then(|base| self.since_version(&base));
            *form = Form::Sent(difference.map(Box::new));
        }
        form
    }

    fn since_version(&self, base: &Version) -> Option<Difference> {
        let [before, now] = [&base.content, &self.0.content].map(wire::encode_desired);
        Some(Difference {
            bytes: wire::encode_difference(&before, &now, &self.0.content)?,
            revision: base.content.revision,
            replaced_at: base.replaced_at,
        })
    }
}

impl Clone for Parts {
    fn clone(&self) -> Self {
        // A form is put in its place as a whole.
        let form = self.form.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            content: self.content.clone(),
            form: Mutex::new(form.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
