//! Encodes messages as protobuf, in buffers that stay small, and decodes none that becomes far larger in memory than it is. A stream keeps its buffers as large as they ever were, a
//! hub has a thousand streams, and nearly all of them are silent nearly all the time.

mod fields;

use std::{any::TypeId, marker::PhantomData};

use prost::Message;
use tonic::{
    Status,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};
use tonic_prost::{ProstCodec, ProstDecoder};

use crate::v1;

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
    type Decoder = Bounded<U>;

    fn encoder(&mut self) -> Self::Encoder {
        Exact(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        let settings = BufferSettings::new(HEARD_BYTES, HAND_ON_BYTES);
        Bounded(ProstCodec::<T, U>::raw_decoder(settings))
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

/// Decodes a message. One of a member, which may be 4 MiB, is refused unread if it has more parts than any agent sends:
/// two bytes of it can become a hundred in memory.
#[derive(Debug, Clone)]
pub struct Bounded<U>(ProstDecoder<U>);

impl<U: Message + Default + 'static> Decoder for Bounded<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let is_members = TypeId::of::<U>() == TypeId::of::<v1::AgentMessage>();
        if is_members && fields::are_too_many(buffer) {
            return Err(Status::out_of_range(format!(
                "the message has more than {} parts",
                fields::MESSAGE_FIELDS_MAX
            )));
        }
        self.0.decode(buffer)
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.0.buffer_settings()
    }
}
