//! A request body for tonic's servers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use h2::RecvStream;
use http_body::Frame;
use prost::bytes::Bytes;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::HeaderMap;
use tonic::codegen::http::header::HeaderName;

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Whether a request's message is uncompressed.
#[must_use]
pub fn is_plain(headers: &HeaderMap) -> bool {
    headers.get(ENCODING).is_none_or(|encoding| encoding == "identity")
}

/// The rest of a request after its headers, as a body for tonic.
#[must_use]
pub fn request_body(body: RecvStream) -> Body {
    Body::new(RequestBody { body, ended: false })
}

struct RequestBody {
    body: RecvStream,
    /// All data was received; trailers are next.
    ended: bool,
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.ended {
            match ready!(self.body.poll_data(cx)) {
                Some(Ok(piece)) => {
                    // It fails only if the stream is over, and then nothing more comes.
                    let _ = self.body.flow_control().release_capacity(piece.len());
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => self.ended = true,
            }
        }
        let trailers = ready!(self.body.poll_trailers(cx));
        Poll::Ready(trailers.map(|some| some.map(Frame::trailers)).map_err(Status::from).transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
