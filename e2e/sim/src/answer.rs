//! The answer to a request, as fronts and synchronous simulations read it. Values only: nothing here sends anything.

use bytes::Bytes;
use serde_json::Value;

use super::{listing::Listing, store::Watch};

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// A whole response.
    Whole {
        /// HTTP status code.
        code: u16,
        /// JSON, or text for the health endpoints.
        body: Value,
    },
    /// A list of objects, with code 200.
    List(Box<Listing>),
    /// An OpenAPI document, as it is sent.
    Document(Bytes),
    /// An open watch, to be read with `poll_watch`.
    Watch(Box<Watch>),
    /// The connection breaks: the request may have been performed.
    Lost,
}

/// An answer and how long a front holds it back.
#[derive(Debug)]
pub struct Reply {
    /// Its delay.
    pub delay_ms: u64,
    /// The answer.
    pub answer: Answer,
}
