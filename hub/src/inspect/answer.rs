//! The header of every answer: the hub and the revision; and the wait for a revision that a caller has seen elsewhere.

use std::time::Duration;

use proto::v1;
use shared::model::Revision;
use tonic::Status;

use super::{AT_LEAST_WAITING_MAX, Inspection, gone, paging::Shown};
use crate::writer::request::TERM;

/// Longest wait of a request for the revision that it names.
const AT_LEAST_WAIT: Duration = Duration::from_secs(5);

/// The hub that answers, as it is in every answer.
#[derive(Debug, Clone)]
pub struct Answerer {
    /// Its name in its certificate.
    pub hub: Box<str>,
    /// The program's version.
    pub hub_version: Box<str>,
}

impl Inspection {
    /// This hub, in an answer that is as of `revision`. It leads, so that nothing newer was recorded than it knows.
    pub(crate) fn answered_by(&self, revision: Revision) -> Option<v1::AnsweredBy> {
        Some(v1::AnsweredBy {
            hub: self.answerer.hub.to_string(),
            hub_version: self.answerer.hub_version.to_string(),
            term: self.present.read().map_or(TERM, |present| present.term),
            revision: revision.0,
            age_millis: 0,
        })
    }

    /// This hub, in a page, which may be of a revision that is not the newest any more.
    pub(super) fn answered_by_page(&self, page: &Shown) -> Option<v1::AnsweredBy> {
        let answered_by = self.answered_by(page.head.revision)?;
        Some(v1::AnsweredBy {
            age_millis: page.age_millis,
            ..answered_by
        })
    }

    /// Waits until `revision` is published, for a bounded time. 0 asks for nothing.
    pub(crate) async fn at_least(&self, revision: u64) -> Result<(), Status> {
        // In this order: what is published after the subscription wakes it.
        let mut changed = self.view.subscribe();
        if self.has(revision) {
            return Ok(());
        }
        let _place = self.at_least_waiting.try_acquire().map_err(|_| {
            Status::resource_exhausted(format!(
                "{AT_LEAST_WAITING_MAX} requests wait for a revision already, as many as there may be: ask again in a \
                 moment, or without at_least_revision"
            ))
        })?;
        let reached = async { while !self.has(revision) && changed.changed().await.is_ok() {} };
        tokio::select! {
            biased;
            () = self.drain.cancelled() => {}
            () = reached => {}
            () = tokio::time::sleep(AT_LEAST_WAIT) => {}
        }
        if self.has(revision) {
            Ok(())
        } else {
            Err(self.behind(revision))
        }
    }

    fn has(&self, revision: u64) -> bool {
        let present = self.present.read();
        present.is_ok_and(|present| present.head.revision.0 >= revision)
    }

    fn behind(&self, revision: u64) -> Status {
        let head = match self.present.read() {
            Ok(present) => present.head,
            Err(none) => return gone(none),
        };
        Status::unavailable(format!(
            "revision {revision} did not come within {} s: hub {} has revision {} of epoch {}. If {revision} was seen \
             in an epoch before this one, ask without at_least_revision",
            AT_LEAST_WAIT.as_secs(),
            self.answerer.hub,
            head.revision,
            head.epoch
        ))
    }
}
