//! The credentials in force now: what every new handshake uses. Replacing them touches no connection that is already
//! up; their watchers are told.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::{credentials::Credentials, pem::CredentialsError};
use crate::identity::{CertificateFacts, Identity};

/// Credentials that can be replaced while others use them.
pub struct LiveCredentials {
    current: RwLock<Arc<Credentials>>,
    changes: watch::Sender<u64>,
}

impl LiveCredentials {
    /// Puts the first credentials in force.
    pub fn new(credentials: Credentials) -> Arc<Self> {
        Arc::new(Self {
            current: RwLock::new(Arc::new(credentials)),
            changes: watch::Sender::new(0),
        })
    }

    /// The credentials in force.
    pub fn current(&self) -> Arc<Credentials> {
        // The lock guards one pointer: a panic elsewhere cannot leave it half written.
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Tells of every replacement.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The identity of this process, the same for its whole life.
    pub fn identity(&self) -> Identity {
        self.current().facts().identity.clone()
    }

    /// Key and validity of the certificate in force.
    pub fn facts(&self) -> CertificateFacts {
        self.current().facts().clone()
    }

    /// Puts new credentials in force, for new handshakes. They must be for the same identity.
    pub fn replace(&self, credentials: Credentials) -> Result<(), CredentialsError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let (old, new) = (&current.facts().identity, &credentials.facts().identity);
        if old != new {
            return Err(CredentialsError::OtherIdentity {
                old: old.to_string(),
                new: new.to_string(),
            });
        }
        *current = Arc::new(credentials);
        drop(current);
        self.changes.send_modify(|changes| *changes += 1);
        Ok(())
    }
}
