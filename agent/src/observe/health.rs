//! The control plane's health, by its own /readyz and /version.
//! It reports changes only: an unchanged health is an unchanged fact.

use std::{sync::Arc, time::Duration};

use http::Request;
use kube::Client;
use shared::{
    api::convert::{ReadyzAnswer, health_from},
    model::Health,
};
use tracing::debug;

/// How often the control plane is asked.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// How long it may take to answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Failures in a row before a silent or unready control plane counts as such: one late answer is no outage.
const FAILURES_IN_A_ROW: u32 = 3;

/// Asks and remembers.
pub struct Probe {
    client: Client,
    version: String,
    failures: u32,
}

impl Probe {
    /// A probe that has asked nothing.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            version: String::new(),
            failures: 0,
        }
    }

    /// Asks once. `None`: nothing can be said yet.
    pub async fn ask(&mut self) -> Option<Arc<Health>> {
        let version = tokio::time::timeout(PROBE_TIMEOUT, self.client.apiserver_version()).await;
        if let Ok(Ok(info)) = version {
            self.version = info.git_version;
        }
        let answered = tokio::time::timeout(PROBE_TIMEOUT, self.readyz())
            .await
            .ok()
            .flatten();
        let answer = match &answered {
            Some((status, body)) => ReadyzAnswer::Answered {
                status: *status,
                body,
            },
            None => ReadyzAnswer::Unreachable,
        };
        let health = match health_from(answer, &self.version) {
            Ok(health) => health,
            Err(problem) => {
                debug!(%problem, "/readyz cannot be read");
                return None;
            }
        };
        let ready = health.control_plane == shared::model::ControlPlane::Ready;
        self.failures = if ready { 0 } else { self.failures + 1 };
        (ready || self.failures >= FAILURES_IN_A_ROW).then(|| Arc::new(health))
    }

    /// Status and body of /readyz?verbose; `None` when it did not answer.
    async fn readyz(&self) -> Option<(u16, String)> {
        let request = Request::get("/readyz?verbose").body(Vec::new()).ok()?;
        match self.client.request_text(request).await {
            Ok(body) => Some((200, body)),
            Err(kube::Error::Api(status)) => Some((status.code, status.message)),
            Err(_) => None,
        }
    }
}
