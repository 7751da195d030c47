//! Owns: the refusal of a message by its kind, before anything in it is decoded.

use shared::model::sync::AgentMessageKind;
use tonic::Status;

use super::SessionActor;

impl SessionActor {
    /// Checks that a message of this kind may come now; its content is decoded only then.
    ///
    /// # Errors
    ///
    /// The status with which the session ends.
    pub fn check_order(&self, kind: AgentMessageKind) -> Result<(), Status> {
        let order = self.machine.check_order(kind);
        order.map_err(|violation| self.violation(violation.to_string()))
    }
}
