//! What a go-plugin program prints after its handshake.

use bytes::Bytes;
use talon_proto::goplugin;
use talon_proto::goplugin::stdio_data::Channel;
use tonic::{Code, Streaming};

use super::Client;
use super::streams::LinkService;
use super::unary::ORIGIN;

/// The largest message of go-plugin's output stream; go-plugin itself sends pieces of 1 KiB.
const STDIO_PIECE_BYTES: usize = 1 << 20;

/// A piece of output.
#[derive(Debug)]
pub enum StdioPiece {
    /// Of its standard output.
    Stdout(Bytes),
    /// Of its standard error.
    Stderr(Bytes),
}

/// The output stream of one process. Unread output would block the program.
#[derive(Debug)]
pub struct StdioReader {
    /// `None`: it could not be opened.
    stream: Option<Streaming<goplugin::StdioData>>,
    served: bool,
}

impl Client {
    /// Opens the output stream of a go-plugin program.
    pub async fn stdio(&self) -> StdioReader {
        let call = LinkService::new(self.inner.pool.first());
        let mut client = goplugin::grpc_stdio_client::GrpcStdioClient::with_origin(call, ORIGIN.clone())
            .max_decoding_message_size(STDIO_PIECE_BYTES);
        match client.stream_stdio(()).await {
            Ok(stream) => StdioReader { stream: Some(stream.into_inner()), served: true },
            Err(status) => StdioReader { stream: None, served: status.code() != Code::Unimplemented },
        }
    }
}

impl StdioReader {
    /// The next piece; `None` once the stream has ended, which its connection's end does, too.
    pub async fn next(&mut self) -> Option<StdioPiece> {
        match self.stream.as_mut()?.message().await {
            Ok(Some(piece)) if piece.channel() == Channel::Stderr => {
                Some(StdioPiece::Stderr(piece.data.into()))
            }
            Ok(Some(piece)) => Some(StdioPiece::Stdout(piece.data.into())),
            Ok(None) => None,
            Err(status) => {
                // Some servers report a missing method only at the end of the stream.
                self.served = status.code() != Code::Unimplemented;
                None
            }
        }
    }

    /// Whether the program has such a stream, as far as it is known by now.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.served
    }
}
