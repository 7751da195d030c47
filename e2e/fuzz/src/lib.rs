//! Owns: what is fuzzed, and the seeds. The test `fuzz` of the workspace plays the same two files.
//! Never: is part of the workspace: fuzzers need a compiler of C++.

pub mod decoders;
pub mod seeds;
