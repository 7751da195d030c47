//! The wire contract, compiled from `proto/tributary/v1`. It holds generated code, and the codec of its
//! streams.

mod codec;

pub use codec::SmallBuffers;

/// Messages and services of the package `tributary.v1`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod v1 {
    tonic::include_proto!("tributary.v1");
}

/// The compiled descriptor of the contract, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tributary_v1.bin"));
