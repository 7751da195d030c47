//! Encodes messages as protobuf, in buffers that stay small. A stream keeps its buffers as large as they ever were, a
//! hub has a thousand streams, and nearly all of them are silent nearly all the time.

use std::marker::PhantomData;

use prost::Message;
use tonic::{
    Status,
    codec::{BufferSettings, Codec, EncodeBuf, Encoder},
};
use tonic_prost::ProstCodec;

/// Initial size of the send buffer, in bytes.
const SAID_BYTES: usize = 2 * 1024;
/// Initial size of the receive buffer, in bytes: half of what a message of 8 KiB takes with its last item. A buffer
/// that is too small is doubled, so it reaches that size and no more.
const HEARD_BYTES: usize = 4 * 1024 + 512;
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
    type Encoder = Exact<T>;
    type Decoder = <ProstCodec<T, U> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        Exact(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(HEARD_BYTES, HAND_ON_BYTES))
    }
}

/// Encodes a message where there is room for it at once, so that no buffer is doubled on the way to it.
#[derive(Debug, Clone)]
pub struct Exact<T>(PhantomData<T>);

impl<T: Message> Encoder for Exact<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, message: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(message.encoded_len());
        message
            .encode(buffer)
            .map_err(|error| Status::internal(error.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(SAID_BYTES, HAND_ON_BYTES)
    }
}
