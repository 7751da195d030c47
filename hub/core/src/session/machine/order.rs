//! Owns: which kinds of messages may come when.
//! Never: looks into a message. It is checked before anything is decoded, because a peer that is not admitted, or whose
//! key was revoked, must not choose what the hub decodes.

use model::sync::AgentMessageKind;

use super::{Phase, Session, Violation};

impl Session {
    /// Checks that a message of this kind may come now.
    pub fn check_order(&self, kind: AgentMessageKind) -> Result<(), Violation> {
        use AgentMessageKind::{Goodbye, Heartbeat, Hello, Pong};
        match (&self.phase, kind) {
            (Phase::AwaitingHello, Hello) => Ok(()),
            (Phase::AwaitingHello, _) | (_, Hello) => Err(Violation::HelloOutOfPlace),
            (Phase::Admitting(_), Heartbeat | Goodbye | Pong) | (Phase::Open { .. }, _) => Ok(()),
            (Phase::Admitting(_), _) => Err(Violation::BeforeWelcome),
        }
    }
}
