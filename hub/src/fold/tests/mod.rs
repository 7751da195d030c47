//! Tests of the fold.
