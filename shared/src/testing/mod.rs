//! Generators of model values, and an API server that refuses. For tests only.

pub mod api_server;

pub use wire::testing::*;
