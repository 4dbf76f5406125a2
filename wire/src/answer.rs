//! The answer to one request, from the work on it to its last byte.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use prost::bytes::Bytes;
use tokio::time::{Instant, sleep_until};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::Response;
use tonic::codegen::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// What a caller is told whose own time for a call is over, in tonic's words, which clients know.
const TIMER: &str = "Timeout expired";

/// What is answered.
#[derive(Debug)]
pub enum Answer {
    /// One message, as [`framed`](crate::message::framed) writes it down.
    Message(Bytes),
    /// What one of tonic's servers answers.
    Other(Response<Body>),
}

/// Answers a request with what `work` comes to: [`awaited`], and then [`send`].
pub async fn answer(
    mut respond: SendResponse<Bytes>,
    deadline: Option<Instant>,
    work: impl Future<Output = Result<Answer, Status>>,
) {
    let answer = {
        let work = pin!(work);
        awaited(&mut respond, deadline, work).await
    };
    if let Some(answer) = answer {
        send(respond, answer).await;
    }
}

/// What work comes to, as long as somebody waits for it: `None` once the other end has reset the stream, and a status that says so once
/// its time is over.
///
/// Work that is not done then is to be dropped before the answer goes out, so that whoever calls again finds its place free. It is pinned
/// by who has it, because a future that is handed on is copied each time, and work is large.
pub async fn awaited(
    respond: &mut SendResponse<Bytes>,
    deadline: Option<Instant>,
    work: Pin<&mut impl Future<Output = Result<Answer, Status>>>,
) -> Option<Result<Answer, Status>> {
    let over = async {
        match deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        answer = work => Some(answer),
        _ = poll_fn(|cx| respond.poll_reset(cx)) => None,
        () = over => Some(Err(Status::cancelled(TIMER))),
    }
}

/// Sends an answer. Resolves once h2 has taken all of it, which it does no faster than the other end has room for it, or once nobody
/// wants it.
pub async fn send(mut respond: SendResponse<Bytes>, answer: Result<Answer, Status>) {
    // Who is gone gets nothing, and there is nobody else to tell.
    let _gone = match answer {
        Ok(Answer::Message(message)) => send_message(&mut respond, message).await,
        Ok(Answer::Other(response)) => send_response(&mut respond, response).await,
        Err(status) => respond.send_response(status.into_http(), true).map(drop),
    };
}

async fn send_message(respond: &mut SendResponse<Bytes>, message: Bytes) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    head.headers_mut().insert(CONTENT_TYPE, GRPC);
    let mut sending = respond.send_response(head, false)?;
    if !poll_fn(|cx| poll_room(&mut sending, cx)).await {
        return Ok(());
    }
    // What does not fit into the window waits in h2, in the one piece that it is.
    sending.send_data(message, false)?;
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, OK);
    sending.send_trailers(trailers)
}

/// Sends an answer whose body may go on for long, no faster than the other end takes it and no longer than it wants it.
async fn send_response(respond: &mut SendResponse<Bytes>, response: Response<Body>) -> Result<(), h2::Error> {
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

/// Whether the other end takes more; `false` once it never will.
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
