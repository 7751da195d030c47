//! Classifies refused and failed requests by their meaning for the plan. It never retries.

use std::time::Duration;

use kube_core::Status;

/// Why an action was not done.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failure {
    /// The cluster is not as the plan saw it: look and plan again.
    #[error("the object is not as it was seen: {0}")]
    Stale(String),
    /// This agent may not write for now, or not any more.
    #[error("the Lease of this cluster is not renewed")]
    Suspended,
    /// The API server asks to wait.
    #[error("the API server asks to wait {0:?}")]
    Throttled(Duration),
    /// The API server does not take the content.
    #[error("the API server refuses the content: {message}")]
    Refused {
        /// Its words.
        message: String,
        /// The fields it names.
        fields: Vec<String>,
    },
    /// We may not do that, or the namespace is going away.
    #[error("the API server forbids it: {0}")]
    Forbidden(String),
    /// The served schema lacks a field that we wrote.
    #[error("the served schema lacks a field: {0}")]
    Schema(String),
    /// The API server answers that it could not: it is broken, something that it asks is away, or a range is full.
    #[error("{0}")]
    Failed(String),
    /// No answer, or none of an API server.
    #[error("{0}")]
    Unavailable(String),
}

/// The API server's words for an apply that names an undeclared field.
const UNDECLARED_FIELD: &str = "field not declared in schema";
/// Wait after a 429 that names no time.
const THROTTLED_DEFAULT: Duration = Duration::from_secs(1);

impl Failure {
    /// One word for metrics.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Stale(_) => "stale",
            Self::Suspended => "suspended",
            Self::Throttled(_) => "throttled",
            Self::Refused { .. } => "refused",
            Self::Forbidden(_) => "forbidden",
            Self::Schema(_) => "schema",
            Self::Failed(_) | Self::Unavailable(_) => "unavailable",
        }
    }

    /// The API server has answered and may take another request.
    pub(crate) fn is_answer(&self) -> bool {
        !matches!(self, Self::Suspended | Self::Throttled(_) | Self::Unavailable(_))
    }

    /// Only another content or an operator's hand helps.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Forbidden(_) | Self::Schema(_))
    }
}

impl From<api::server::Error> for Failure {
    fn from(error: api::server::Error) -> Self {
        match error {
            api::server::Error::Api(status) => Self::from_status(&status),
            error => Self::Unavailable(format!("the request failed: {error}")),
        }
    }
}

impl Failure {
    fn from_status(status: &Status) -> Self {
        let message = status.message.clone();
        let details = status.details.as_ref();
        let fields: Vec<String> = details
            .map(|details| details.causes.iter().map(|cause| cause.field.clone()).collect())
            .unwrap_or_default();
        match status.code {
            404 | 409 | 410 => Self::Stale(message),
            422 if fields.iter().any(|field| field == "metadata.uid") => Self::Stale(message),
            400 | 413 | 422 => Self::Refused { message, fields },
            401 | 403 => Self::Forbidden(message),
            429 => {
                let seconds = details.map_or(0, |details| details.retry_after_seconds);
                Self::Throttled(match seconds {
                    0 => THROTTLED_DEFAULT,
                    seconds => Duration::from_secs(seconds.into()),
                })
            }
            500 if message.contains(UNDECLARED_FIELD) => Self::Schema(message),
            code => Self::Failed(format!("HTTP {code}: {message}")),
        }
    }
}
