//! The wire contract, compiled from `proto/tributary/v1`. It holds generated code, and the codec of its
//! streams.

#[cfg(feature = "services")]
mod codec;

#[cfg(feature = "services")]
pub use codec::SmallBuffers;

/// Messages and services of the package `tributary.v1`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/tributary.v1.rs"));
}

/// The compiled descriptor of the contract, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tributary_v1.bin"));
