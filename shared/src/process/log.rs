//! Structured logs to standard error, as text or JSON, and the rules for their levels.
//!
//! | level | meaning |
//! |---|---|
//! | `error` | a person must act, now or soon: the log is sick, a certificate has expired, the process ends |
//! | `warn` | something is wrong; it heals by itself or needs a look by daylight: a hub is unreachable, an object was refused |
//! | `info` | a state changed: started, listed, connected, a member joined, drained. Quiet when nothing changes |
//! | `debug` | expected ends and single steps: a connection closed, a watch restarted, a handshake of an unauthenticated peer failed |
//! | `trace` | contents, for development |
//!
//! Whatever an unauthenticated peer can cause at will is `debug` and a metric, never a higher level. Values are fields,
//! not part of the sentence; identity (cluster, session) is in spans.

use std::io;

use tracing_subscriber::{EnvFilter, fmt, util::SubscriberInitExt};

/// Default log filter. The watch library warns at every retry of a watch that is not permitted; the agent reports that
/// itself, once. The HTTP/2 library warns of acts that any peer can repeat at will.
const DEFAULT_FILTER: &str = "info,kube_runtime::watcher=error,h2=error";

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line, for machines.
    Json,
}

/// The log flags; flatten them into a program's own.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct LogArgs {
    /// Format of log lines on standard error
    #[arg(
        long,
        env = "TRIBUTARY_LOG_FORMAT",
        value_name = "FORMAT",
        value_enum,
        default_value_t = LogFormat::Text,
        help_heading = "Logging",
        global = true
    )]
    pub log_format: LogFormat,
    /// Log filter: a level, or levels per module, for example info,tributary_shared::tls=debug
    #[arg(
        long,
        env = "TRIBUTARY_LOG_FILTER",
        value_name = "FILTER",
        default_value = DEFAULT_FILTER,
        help_heading = "Logging",
        global = true
    )]
    pub log_filter: String,
}

/// Logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LogInitError {
    /// The filter cannot be read.
    #[error("--log-filter {filter:?} cannot be read: {problem}; write for example info or info,kube=warn")]
    Filter {
        /// The filter as given.
        filter: String,
        /// The problem.
        problem: String,
    },
    /// Something else logs already.
    #[error("logging was started twice in one process")]
    Twice,
}

impl LogArgs {
    /// Starts logging for the whole process.
    pub fn init(&self) -> Result<(), LogInitError> {
        let filter = self.filter()?;
        let lines = fmt::Subscriber::builder()
            .with_env_filter(filter)
            .with_writer(io::stderr);
        let started = match self.log_format {
            LogFormat::Text => lines
                .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
                .finish()
                .try_init(),
            LogFormat::Json => lines.json().flatten_event(true).finish().try_init(),
        };
        started.map_err(|_| LogInitError::Twice)
    }

    fn filter(&self) -> Result<EnvFilter, LogInitError> {
        let parsed = EnvFilter::builder().parse(&self.log_filter);
        parsed.map_err(|error| LogInitError::Filter {
            filter: self.log_filter.clone(),
            problem: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_cannot_be_read_is_an_error_and_not_ignored() {
        let args = |filter: &str| LogArgs {
            log_format: LogFormat::Text,
            log_filter: filter.to_owned(),
        };
        assert!(args("info,tributary_shared::tls=debug").filter().is_ok());
        assert!(args(DEFAULT_FILTER).filter().is_ok());
        let error = args("info,hub=loud").filter().expect_err("no such level");
        assert!(error.to_string().contains("info,hub=loud"), "{error}");
    }
}
