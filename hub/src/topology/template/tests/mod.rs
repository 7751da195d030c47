//! The golden vectors, which Go's own engine made.

mod golden;
