//! One request of a host, from its head to the end of its answer.
//!
//! `Execute` is what nearly all of them are, and is served on h2 itself: measured, the layers of a whole HTTP server around it
//! cost a small call half as much again. Everything else is tonic's generated servers' as it comes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use prost::bytes::Bytes;
use talon_proto::plugin::ToolResultResponse;
use tokio::time::{Instant, sleep_until};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tonic::codegen::http::{Request, Response};
use tonic_health::pb::health_server::Health;
use tower::Service;

use super::message;
use super::router::Router;
use super::server::MAX_REQUEST_BYTES;
use crate::deadline;

const EXECUTE: &str = "/opentalon.plugin.v1.PluginService/Execute";
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// What the host is told whose own time for a call is over, in tonic's words, which hosts know.
const TIMER: &str = "Timeout expired";

/// What is answered.
enum Answer {
    Result(ToolResultResponse),
    Other(Response<Body>),
}

/// Serves one request. What works on it is dropped as soon as nobody waits for it any more: the host resets the stream, or its
/// time is over.
pub(super) async fn serve<H: Health>(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    router: Router<H>,
) {
    let timeout = deadline::timeout_of(request.headers());
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let over = async {
        match deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    let answer = tokio::select! {
        biased;
        answer = work(request, router, deadline) => answer,
        _ = poll_fn(|cx| respond.poll_reset(cx)) => return,
        () = over => Err(Status::cancelled(TIMER)),
    };
    // A host that is gone gets nothing, and there is nobody else to tell.
    let _gone = match answer {
        Ok(Answer::Result(result)) => send_result(&mut respond, &result),
        Ok(Answer::Other(response)) => send(&mut respond, response).await,
        Err(status) => respond.send_response(status.into_http(), true).map(drop),
    };
}

async fn work<H: Health>(
    request: Request<RecvStream>,
    mut router: Router<H>,
    deadline: Option<Instant>,
) -> Result<Answer, Status> {
    let (head, body) = request.into_parts();
    let plain = head.headers.get(ENCODING).is_none_or(|encoding| encoding == "identity");
    if head.uri.path() == EXECUTE && plain {
        let request = message::read(body, MAX_REQUEST_BYTES).await?;
        return router.wire.run(request, &head.headers, deadline).await.map(Answer::Result);
    }
    let body = Body::new(Received { body, ended: false });
    match router.call(Request::from_parts(head, body)).await {
        Ok(response) => Ok(Answer::Other(response)),
        Err(never) => match never {},
    }
}

fn send_result(respond: &mut SendResponse<Bytes>, result: &ToolResultResponse) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    head.headers_mut().insert(CONTENT_TYPE, GRPC);
    let mut sending = respond.send_response(head, false)?;
    // What does not fit into the host's window waits in h2, in the one piece that it is.
    sending.send_data(message::framed(result), false)?;
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, OK);
    sending.send_trailers(trailers)
}

/// Sends an answer whose body may go on for long, no faster than the host takes it and no longer than it wants it.
async fn send(respond: &mut SendResponse<Bytes>, response: Response<Body>) -> Result<(), h2::Error> {
    let (head, mut body) = response.into_parts();
    let ended = body.is_end_stream();
    let mut sending = respond.send_response(Response::from_parts(head, ()), ended)?;
    if ended {
        return Ok(());
    }
    loop {
        if !poll_fn(|cx| poll_room(&mut sending, cx)).await {
            return Ok(());
        }
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            _ = poll_fn(|cx| sending.poll_reset(cx)) => return Ok(()),
        };
        match frame.map(|frame| frame.map(Frame::into_data)) {
            None => return sending.send_data(Bytes::new(), true),
            Some(Ok(Ok(data))) => sending.send_data(data, false)?,
            Some(Ok(Err(frame))) => {
                if let Ok(trailers) = frame.into_trailers() {
                    return sending.send_trailers(trailers);
                }
            }
            Some(Err(_)) => {
                sending.send_reset(Reason::INTERNAL_ERROR);
                return Ok(());
            }
        }
    }
}

/// Whether the host takes more; `false` once it never will.
fn poll_room(sending: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> Poll<bool> {
    sending.reserve_capacity(1);
    while sending.capacity() == 0 {
        match ready!(sending.poll_capacity(cx)) {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Poll::Ready(false),
        }
    }
    Poll::Ready(true)
}

/// The body of a request for tonic's servers.
struct Received {
    body: RecvStream,
    /// All data is here; trailers are next.
    ended: bool,
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.ended {
            match ready!(self.body.poll_data(cx)) {
                Some(Ok(piece)) => {
                    // It fails only where the stream is over, and then nothing more comes.
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
