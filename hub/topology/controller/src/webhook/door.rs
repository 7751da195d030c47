//! Owns: a request, from its first byte to its answer: how long it may be and take, and how many are answered at once.
//! Never: judges: the rules do, for a review and the objects read for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use tokio::{sync::Semaphore, time::timeout};
use tracing::{debug, warn};

use super::metrics::{Answer, WebhookMetrics};
use crate::admission::{Beside, Review, Verdict};

/// Path of the requests.
const PATH: &str = "/validate";
/// Longest review, bytes: an object as it was and as it is to be, each as large as an API server takes.
pub(super) const REQUEST_BYTES_MAX: usize = 3 << 20;
/// Reviews that are judged at the same time; others wait for them.
pub(super) const REVIEWS_MAX: usize = 8;
/// Time limits of a review: shorter than the 10 s that an API server waits, so that it gets the reason.
pub(super) const TIMES: Times = Times {
    read: Duration::from_secs(6),
    whole: Duration::from_secs(9),
};

/// Time limits of a review.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Reading what it needs.
    pub(super) read: Duration,
    /// All of it.
    pub(super) whole: Duration,
}

/// Reads the objects that a review needs.
pub(super) trait Objects: Send + Sync + 'static {
    /// Reads the objects for this review; an error says why they cannot be read.
    fn read(&self, review: &Review) -> impl Future<Output = Result<Beside, String>> + Send;
}

struct Asked<O> {
    objects: O,
    metrics: WebhookMetrics,
    places: Arc<Semaphore>,
    times: Times,
    /// True if a message said that the needed objects cannot be read.
    failing: AtomicBool,
}

/// The routes of the port.
pub(super) fn router(objects: impl Objects, times: Times, metrics: WebhookMetrics) -> Router {
    let asked = Asked {
        objects,
        metrics,
        places: Arc::new(Semaphore::new(REVIEWS_MAX)),
        times,
        failing: AtomicBool::new(false),
    };
    Router::new()
        .route(PATH, post(validate))
        .with_state(Arc::new(asked))
}

async fn validate<O: Objects>(State(asked): State<Arc<Asked<O>>>, request: Request) -> Response {
    let answered = timeout(asked.times.whole, asked.answer(request)).await;
    let (answer, response) = answered.unwrap_or_else(|_| {
        let words = format!(
            "no answer within {} s: try again",
            asked.times.whole.as_secs_f64()
        );
        (
            Answer::Overdue,
            (StatusCode::GATEWAY_TIMEOUT, words).into_response(),
        )
    });
    asked.metrics.answered(answer);
    response
}

impl<O: Objects> Asked<O> {
    async fn answer(&self, request: Request) -> (Answer, Response) {
        let refused = |code: StatusCode, words: String| (Answer::Malformed, (code, words).into_response());
        let Ok(body) = to_bytes(request.into_body(), REQUEST_BYTES_MAX).await else {
            let words = format!("a review is cut off, or has more than {REQUEST_BYTES_MAX} bytes");
            return refused(StatusCode::PAYLOAD_TOO_LARGE, words);
        };
        // It is never closed.
        let Ok(place) = self.places.clone().acquire_owned().await else {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "ending".to_owned());
        };
        let review = match Review::read(&body) {
            Ok(review) => review,
            Err(why) => return refused(StatusCode::BAD_REQUEST, format!("the body {why}")),
        };
        drop(body);
        let read = timeout(self.times.read, self.objects.read(&review)).await;
        let late = |_| {
            Err(format!(
                "what it needs cannot be read within {} s",
                self.times.read.as_secs_f64()
            ))
        };
        let beside = match read.unwrap_or_else(late) {
            Ok(beside) => {
                self.failing.store(false, Ordering::Relaxed);
                beside
            }
            Err(why) => {
                // Later failures have the same cause.
                if self.failing.swap(true, Ordering::Relaxed) {
                    debug!("still: {why}");
                } else {
                    warn!("ClusterClasses and Clusters are refused, for they cannot be judged: {why}");
                }
                return told(&review.unread(&why));
            }
        };
        // Rules of a class may take long, and run on when nobody waits for them any more.
        let judging = tokio::task::spawn_blocking(move || {
            let _place = place;
            review.judge(&beside)
        });
        match judging.await.context("the rules panicked") {
            Ok(verdict) => told(&verdict),
            Err(error) => {
                warn!("a review has no answer: {error:#}");
                let words = "the rules failed: its log says more".to_owned();
                (
                    Answer::Failed,
                    (StatusCode::INTERNAL_SERVER_ERROR, words).into_response(),
                )
            }
        }
    }
}

fn told(verdict: &Verdict) -> (Answer, Response) {
    let said = verdict.to_json();
    if let Some(message) = said.pointer("/response/status/message") {
        debug!(%message, "refused");
    }
    let json = [(header::CONTENT_TYPE, "application/json")];
    (
        Answer::Given(verdict.outcome()),
        (json, said.to_string()).into_response(),
    )
}
