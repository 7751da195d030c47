//! How messages become bytes: protobuf, in buffers that stay small. A stream keeps its buffers as large as they ever
//! were, a hub has a thousand streams, and nearly all of them are silent nearly all the time.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::ProstCodec;

/// Bytes of a buffer at first.
const BUFFER_BYTES: usize = 2 * 1024;
/// Encoded bytes that are handed on, though more messages wait.
const HAND_ON_BYTES: usize = 4 * 1024;

/// The codec of every service of this contract.
#[derive(Debug, Clone)]
pub struct SmallBuffers<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for SmallBuffers<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for SmallBuffers<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = <ProstCodec<T, U> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(settings())
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(settings())
    }
}

fn settings() -> BufferSettings {
    BufferSettings::new(BUFFER_BYTES, HAND_ON_BYTES)
}
