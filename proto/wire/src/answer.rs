//! The answer to one request, from its computation to its last byte.

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

/// The error text for a call whose own timeout has expired. It is tonic's, which clients know.
const TIMEOUT_MESSAGE: &str = "Timeout expired";

/// An answer.
#[derive(Debug)]
pub enum Answer {
    /// One message, encoded by [`framed`](crate::message::framed).
    Message(Bytes),
    /// The response of a tonic server.
    Other(Response<Body>),
}

/// Answers a request with the result of `work`: [`run_until_reset`], and then [`send`].
pub async fn answer(
    mut respond: SendResponse<Bytes>,
    deadline: Option<Instant>,
    work: impl Future<Output = Result<Answer, Status>>,
) {
    let answer = {
        let work = pin!(work);
        run_until_reset(&mut respond, deadline, work).await
    };
    if let Some(answer) = answer {
        send(respond, answer).await;
    }
}

/// Runs `work` as long as a client waits for it. Returns `None` once the client has reset the stream, and a
/// status once the deadline has passed.
///
/// The caller must drop unfinished work before it sends the answer, so that its permit is free for the
/// client's next call. The caller pins the work, because a future is copied each time it is passed on, and
/// this one is large.
pub async fn run_until_reset(
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
        () = over => Some(Err(Status::cancelled(TIMEOUT_MESSAGE))),
    }
}

/// Sends an answer. Resolves once h2 has taken all of it, which depends on the other end's flow control, or
/// once the client is gone.
pub async fn send(mut respond: SendResponse<Bytes>, answer: Result<Answer, Status>) {
    // The client is gone, so an error is of no interest.
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
    if !poll_fn(|cx| poll_capacity(&mut sending, cx)).await {
        return Ok(());
    }
    // What exceeds the window waits in h2, in one piece.
    sending.send_data(message, false)?;
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, OK);
    sending.send_trailers(trailers)
}

/// Sends a response with a possibly endless body, no faster than the client receives it, until the client
/// cancels it.
async fn send_response(respond: &mut SendResponse<Bytes>, response: Response<Body>) -> Result<(), h2::Error> {
    let (head, mut body) = response.into_parts();
    let ended = body.is_end_stream();
    let mut sending = respond.send_response(Response::from_parts(head, ()), ended)?;
    if ended {
        return Ok(());
    }
    loop {
        if !poll_fn(|cx| poll_capacity(&mut sending, cx)).await {
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

/// Waits until the client can receive more; `false` once it never will.
fn poll_capacity(sending: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> Poll<bool> {
    sending.reserve_capacity(1);
    while sending.capacity() == 0 {
        match ready!(sending.poll_capacity(cx)) {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Poll::Ready(false),
        }
    }
    Poll::Ready(true)
}
