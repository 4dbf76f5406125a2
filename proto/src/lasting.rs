//! The codec of streams that are open for a plugin's whole life.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::ProstCodec;

/// What one of them holds at first; it grows with a message that is larger. 256 bytes: a notice has some 50,
/// and tonic's default of 8 KiB, held for each plugin while nothing is said, was a tenth of what a supervisor
/// of 500 plugins used.
const BUFFER_BYTES: usize = 256;
/// How much is gathered before it is sent: as tonic has it.
const YIELD_BYTES: usize = 32 << 10;

/// tonic's codec, with a small buffer.
#[derive(Debug, Clone)]
pub(crate) struct LastingCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for LastingCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for LastingCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = <ProstCodec<T, U> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(BufferSettings::new(BUFFER_BYTES, YIELD_BYTES))
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(BUFFER_BYTES, YIELD_BYTES))
    }
}
