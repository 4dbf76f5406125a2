//! One connection to a process, made anew when it broke, and the streams on it.
//!
//! This is hyper's HTTP/2 and not tonic's channel, because that one ends every call itself once the time in its
//! `grpc-timeout` header is over, and the stream with it: nobody could see any more whether the plugin would have
//! ended the call by its deadline. Here a stream can be kept after its caller is gone ([`Tap`]).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tonic::body::Body;
use tower::Service;

use crate::connect::{ConnectError, Target};

/// HTTP/2 frames of up to 1 MiB: measured, an answer of 64 KiB takes half the time it takes in frames of the
/// default 16 KiB, because it arrives in one buffer.
const MAX_FRAME_BYTES: u32 = 1 << 20;

/// How much of one answer may be under way: 2 MiB, so that a large one need not wait for window updates, and an
/// oversized one is refused after that much.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;

/// How much may be under way on one connection: eight large answers at once.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Why a call did not get through to the plugin, or nothing came back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// There is no connection.
    #[error("cannot connect: {0}")]
    Connect(#[from] ConnectError),
    /// It broke, or does not speak HTTP/2, or the stream was reset.
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

/// One connection to a process.
#[derive(Debug)]
pub(super) struct Link {
    target: Target,
    /// Held while a new connection is made, so that one is made and not one for each call that waits.
    sender: tokio::sync::Mutex<SendRequest<Body>>,
}

impl Link {
    pub(super) async fn open(target: Target) -> Result<Self, LinkError> {
        let sender = dial(&target).await?;
        Ok(Self { target, sender: tokio::sync::Mutex::new(sender) })
    }

    async fn sender(&self) -> Result<SendRequest<Body>, LinkError> {
        let mut sender = self.sender.lock().await;
        if sender.is_closed() {
            *sender = dial(&self.target).await?;
        }
        Ok(sender.clone())
    }
}

async fn dial(target: &Target) -> Result<SendRequest<Body>, LinkError> {
    let io = target.connect().await?;
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_frame_size(MAX_FRAME_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .handshake(io)
        .await?;
    // It ends with its last sender and stream; how it ended each of its calls is told.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// A service for tonic's clients that makes one call on a link.
#[derive(Debug, Clone)]
pub(super) struct OneCall {
    pub(super) link: Arc<Link>,
    pub(super) tap: Tap,
}

impl OneCall {
    pub(super) fn new(link: &Arc<Link>) -> Self {
        Self { link: link.clone(), tap: Tap::default() }
    }
}

impl Service<Request<Body>> for OneCall {
    type Response = Response<Body>;
    type Error = LinkError;
    type Future = BoxFuture<'static, Result<Response<Body>, LinkError>>;

    /// Always ready: waiting for a connection is part of the call, inside its deadline.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { link, tap } = self.clone();
        Box::pin(async move {
            let mut sender = link.sender().await?;
            *tap.flow() = Flow::Asked(Box::pin(sender.send_request(request)));
            let response = poll_fn(|cx| tap.poll_response(cx)).await?;
            Ok(response)
        })
    }
}

/// One call's stream, held together with whoever waits for the answer: it is reset when the last of both lets go.
#[derive(Debug, Clone, Default)]
pub(super) struct Tap(Arc<Mutex<Flow>>);

#[derive(Default)]
enum Flow {
    /// Nothing of the call is on its way to the plugin.
    #[default]
    Unsent,
    /// The plugin was asked.
    Asked(BoxFuture<'static, Result<Response<Incoming>, hyper::Error>>),
    /// It answers.
    Answering(Incoming),
    /// It has ended the stream, or somebody else reads on.
    Over,
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unsent => "Unsent",
            Self::Asked(_) => "Asked",
            Self::Answering(_) => "Answering",
            Self::Over => "Over",
        })
    }
}

impl Tap {
    /// Resolves once the plugin has ended the stream; at once if it never saw the call. What still comes is thrown
    /// away as it comes, so that no more than a window's worth is ever held. Only for when nobody waits for the
    /// answer any more.
    pub(super) async fn ended(self) {
        let flow = std::mem::replace(&mut *self.flow(), Flow::Over);
        let mut rest = match flow {
            Flow::Unsent | Flow::Over => return,
            Flow::Asked(response) => match response.await {
                Ok(response) => response.into_body(),
                Err(_) => return,
            },
            Flow::Answering(rest) => rest,
        };
        while let Some(Ok(_)) = rest.frame().await {
            // A plugin that sends without a pause must not keep the thread to itself.
            tokio::task::coop::consume_budget().await;
        }
    }

    #[cfg(test)]
    pub(super) fn is_answering(&self) -> bool {
        matches!(*self.flow(), Flow::Answering(_))
    }

    fn flow(&self) -> MutexGuard<'_, Flow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_response(&self, cx: &mut Context<'_>) -> Poll<Result<Response<Body>, hyper::Error>> {
        let mut flow = self.flow();
        let Flow::Asked(response) = &mut *flow else { return Poll::Pending };
        match ready!(response.as_mut().poll(cx)) {
            Ok(response) => {
                let (parts, body) = response.into_parts();
                *flow = Flow::Answering(body);
                // The body is looked at when it is wrapped.
                drop(flow);
                Poll::Ready(Ok(Response::from_parts(parts, Body::new(Tapped(self.clone())))))
            }
            Err(error) => {
                *flow = Flow::Over;
                Poll::Ready(Err(error))
            }
        }
    }
}

/// The body of an answer, for whoever waits for it.
struct Tapped(Tap);

impl hyper::body::Body for Tapped {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut flow = self.0.flow();
        let Flow::Answering(body) = &mut *flow else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            *flow = Flow::Over;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &*self.0.flow() {
            Flow::Answering(body) => body.is_end_stream(),
            _ => true,
        }
    }
}
