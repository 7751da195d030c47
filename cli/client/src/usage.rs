//! The error for arguments that are incomplete.

/// A flag, a variable or a context is missing, or two arguments do not go together. The program ends with the exit code of
/// wrong arguments.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);
