//! Gives up what is not answered: the head of an answer and every further part of it must come in seconds. Watches are
//! silent by nature; they end by their own timeout and by the connection's keepalive. And endless ones: an answer has a
//! bound of bytes, and so has each event of a watch, because they are held until they are complete.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Service};

use super::request::{ApiMetrics, Asked};

/// Longest silence of an API server that has been asked something.
pub const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Longest wait for the first byte of a watch, which the API server may hold back until its cache is there.
pub const WATCH_WAIT: Duration = Duration::from_secs(30);

/// Most bytes of an answer. A page of a list has 500 objects, and an object 1.5 MiB at most.
pub const ANSWER_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Most bytes of one event of a watch: an object with room for what the API server adds.
pub const EVENT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Most bytes that are held of one API server's answer, and of one event of its watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerBounds {
    /// Of an answer.
    pub answer: u64,
    /// Of an event.
    pub event: u64,
}

impl Default for AnswerBounds {
    /// For a cluster whose objects are listed and watched.
    fn default() -> Self {
        Self {
            answer: ANSWER_BYTES_MAX,
            event: EVENT_BYTES_MAX,
        }
    }
}

impl AnswerBounds {
    /// For a cluster of which single objects are asked.
    pub const fn single(bytes: u64) -> Self {
        Self {
            answer: bytes,
            event: bytes,
        }
    }
}

/// The API server's answer exceeds the bound.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the API server's answer has more than {0} bytes without an end: it is not read on")]
pub struct TooLarge(u64);

/// The API server did not answer.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the API server did not answer within {0:?}")]
pub struct NoAnswer(Duration);

/// A service whose requests end in time.
#[derive(Clone)]
pub(super) struct Deadline<S> {
    inner: S,
    metrics: ApiMetrics,
    bounds: AnswerBounds,
}

impl<S> Deadline<S> {
    pub(super) fn new(inner: S, metrics: ApiMetrics, bounds: AnswerBounds) -> Self {
        Self {
            inner,
            metrics,
            bounds,
        }
    }
}

impl<S, B> Service<Request<Body>> for Deadline<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Answer<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let asked = Asked::of(request.method(), request.uri());
        let (metrics, bounds) = (self.metrics.clone(), self.bounds);
        let answering = self.inner.call(request);
        Box::pin(async move {
            let wait = if asked.is_watch() { WATCH_WAIT } else { ANSWER_WAIT };
            let answered = match tokio::time::timeout(wait, answering).await {
                Ok(answered) => answered.map_err(Into::into),
                Err(_) => Err(NoAnswer(wait).into()),
            };
            metrics.count(&asked, answered.as_ref().ok().map(Response::status));
            let silence = (!asked.is_watch()).then(|| Box::pin(tokio::time::sleep(wait)));
            let most = if asked.is_watch() {
                bounds.event
            } else {
                bounds.answer
            };
            let taken = Taken {
                is_watch: asked.is_watch(),
                most,
                left: most,
            };
            Ok(answered?.map(|body| Answer { body, silence, taken }))
        })
    }
}

/// The body of an answer, which ends with an error when it stops coming.
pub(super) struct Answer<B> {
    body: B,
    /// Absent for a watch.
    silence: Option<Pin<Box<Sleep>>>,
    taken: Taken,
}

/// The bytes of an answer that may still come.
struct Taken {
    /// In a watch each line counts for itself.
    is_watch: bool,
    most: u64,
    left: u64,
}

impl Taken {
    /// More came. A watch is read line by line.
    fn take(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        let is_end = |byte: &u8| self.is_watch && *byte == b'\n';
        let (first, last) = (bytes.iter().position(is_end), bytes.iter().rposition(is_end));
        let mut left = self.left.checked_sub(first.unwrap_or(bytes.len()) as u64);
        if let Some(last) = last {
            // Lines that begin and end within one part are no longer than the part.
            let begun = (bytes.len() - last - 1) as u64;
            left = left.and_then(|_| self.most.checked_sub(begun));
        }
        self.left = left.ok_or(TooLarge(self.most))?;
        Ok(())
    }
}

impl<B> HttpBody for Answer<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if let Some(silence) = &mut self.silence {
                silence.as_mut().reset(Instant::now() + ANSWER_WAIT);
            }
            let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
            if let Some(Err(error)) = bytes.map(|bytes| self.taken.take(bytes)) {
                return Poll::Ready(Some(Err(error.into())));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        match &mut self.silence {
            Some(silence) => silence
                .as_mut()
                .poll(context)
                .map(|()| Some(Err(NoAnswer(ANSWER_WAIT).into()))),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
