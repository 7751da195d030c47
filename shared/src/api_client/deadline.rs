//! Gives up what is not answered: the head of an answer and every further part of it must come in seconds. Watches
//! are silent by nature; they end by their own timeout and by the connection's keepalive.

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
const WATCH_WAIT: Duration = Duration::from_secs(30);

/// The API server did not answer.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the API server did not answer within {0:?}")]
pub struct NoAnswer(Duration);

/// A service whose requests end in time.
#[derive(Clone)]
pub(super) struct Deadline<S> {
    inner: S,
    metrics: ApiMetrics,
}

impl<S> Deadline<S> {
    pub(super) fn new(inner: S, metrics: ApiMetrics) -> Self {
        Self { inner, metrics }
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
        let metrics = self.metrics.clone();
        let answering = self.inner.call(request);
        Box::pin(async move {
            let wait = if asked.is_watch() { WATCH_WAIT } else { ANSWER_WAIT };
            let answered = match tokio::time::timeout(wait, answering).await {
                Ok(answered) => answered.map_err(Into::into),
                Err(_) => Err(NoAnswer(wait).into()),
            };
            metrics.count(&asked, answered.as_ref().ok().map(Response::status));
            let silence = (!asked.is_watch()).then(|| Box::pin(tokio::time::sleep(wait)));
            Ok(answered?.map(|body| Answer { body, silence }))
        })
    }
}

/// The body of an answer, which ends with an error when it stops coming.
pub(super) struct Answer<B> {
    body: B,
    /// Absent for a watch.
    silence: Option<Pin<Box<Sleep>>>,
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
