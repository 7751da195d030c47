//! Owns: how much of a request is taken from somebody who has not introduced itself.
//! Never: reads what is in it.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use hyper::body::{Bytes, Frame, SizeHint};
use proto::v1::sync_server::SERVICE_NAME;
use shared::tls::{Calls, LargeIntroduction, PeerIdentity};
use tonic::{Status, body::Body, codegen::http};

use super::metrics::DoorMetrics;

/// Bytes that are taken of a stream before its Hello, and of any other request of a member. On one stream at a time an
/// identity may send more, because a Hello may name thousands of namespaces; that one ends where every message does.
pub const HELLO_BYTES_MAX: usize = 64 * 1024;

/// The introduction of a stream; clones are of the same stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Introduction(Arc<Said>);

#[derive(Debug, Default)]
struct Said {
    hello: AtomicBool,
    at_length: Mutex<Option<LargeIntroduction>>,
}

impl Introduction {
    /// Its Hello was read: from here on flow control and the session bound what is taken.
    pub(crate) fn said(&self) {
        self.0.hello.store(true, Ordering::Relaxed);
    }

    /// Its Hello was answered, and nothing of it waits any more.
    pub(crate) fn answered(&self) {
        drop(self.at_length().take());
    }

    fn at_length(&self) -> std::sync::MutexGuard<'_, Option<LargeIntroduction>> {
        // It guards one value: a panic elsewhere cannot leave it half written.
        self.0.at_length.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets it say more than its share, unless another stream of its holder does.
    fn lengthen(&self, calls: &Calls) -> bool {
        let mut at_length = self.at_length();
        if at_length.is_none() {
            *at_length = calls.introduce_at_length();
        }
        at_length.is_some()
    }
}

/// The request, read up to its bound.
pub(super) fn bounded(
    mut request: http::Request<Body>,
    peer: &PeerIdentity,
    metrics: &DoorMetrics,
) -> http::Request<Body> {
    let introduction = introduces_itself(request.uri().path()).then(Introduction::default);
    if let Some(introduction) = &introduction {
        request.extensions_mut().insert(introduction.clone());
    }
    let (calls, metrics) = (peer.calls.clone(), metrics.clone());
    request.map(|body| {
        Body::new(Bounded {
            body,
            taken: 0,
            introduction,
            calls,
            metrics,
        })
    })
}

struct Bounded {
    body: Body,
    taken: usize,
    /// The introduction of a stream that can make one.
    introduction: Option<Introduction>,
    calls: Calls,
    metrics: DoorMetrics,
}

impl Bounded {
    fn take(&mut self, bytes: usize) -> Result<(), Status> {
        let introduction = self.introduction.as_ref();
        if introduction.is_some_and(|introduction| introduction.0.hello.load(Ordering::Relaxed)) {
            return Ok(());
        }
        self.taken = self.taken.saturating_add(bytes);
        if self.taken <= HELLO_BYTES_MAX
            || introduction.is_some_and(|introduction| introduction.lengthen(&self.calls))
        {
            return Ok(());
        }
        self.metrics.refused("before_hello");
        Err(Status::resource_exhausted(format!(
            "{} bytes came before a Hello, and {HELLO_BYTES_MAX} are taken: begin with Hello; of one with more bytes \
             each member may say one at a time",
            self.taken
        )))
    }
}

impl hyper::body::Body for Bounded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
            && let Err(status) = self.take(data.len())
        {
            return Poll::Ready(Some(Err(status)));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The only method whose streams introduce themselves, after its service's name.
const STREAM: &str = "/Stream";

/// Returns true if the calls of this path begin with Hello.
fn introduces_itself(path: &str) -> bool {
    let service = path.strip_prefix('/');
    service.and_then(|path| path.strip_prefix(SERVICE_NAME)) == Some(STREAM)
}
