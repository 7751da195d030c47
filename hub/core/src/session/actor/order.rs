//! Owns: the refusal of a message by its kind, before anything in it is decoded.

use model::sync::AgentMessageKind;

use super::{SessionActor, SessionEnd};

impl SessionActor {
    /// Checks that a message of this kind may come now; its content is decoded only then.
    ///
    /// # Errors
    ///
    /// The end of the session.
    pub fn check_order(&self, kind: AgentMessageKind) -> Result<(), SessionEnd> {
        let order = self.machine.check_order(kind);
        order.map_err(|violation| self.violation(violation.to_string()))
    }
}
