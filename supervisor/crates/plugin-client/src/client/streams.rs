//! The service that tonic's generated clients call: for streams, which are opened once in a process's life.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderName, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Frame;
use tonic::body::Body;
use tower::Service;

use super::link::{Link, LinkError};
use super::shared_stream::{poll_data, poll_trailers};

/// tonic assumes that this header is base64 and panics otherwise. It is not needed.
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// A service for tonic's clients that makes one call on a link.
#[derive(Debug, Clone)]
pub(super) struct LinkService {
    link: Arc<Link>,
}

impl LinkService {
    pub(super) fn new(link: &Arc<Link>) -> Self {
        Self { link: link.clone() }
    }
}

impl Service<Request<Body>> for LinkService {
    type Response = Response<Body>;
    type Error = LinkError;
    type Future = BoxFuture<'static, Result<Response<Body>, LinkError>>;

    /// Always ready: waiting for a connection is part of the call, inside its deadline.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let link = self.link.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let (response, sending) = link.open_stream(|| Request::from_parts(head.clone(), ())).await?;
            tokio::spawn(send(body, sending));
            let (mut head, receiving) = response.await?.into_parts();
            head.headers.remove(DETAILS);
            Ok(Response::from_parts(head, Body::new(ResponseBody { receiving, ended: false })))
        })
    }
}

/// Sends a body to its end, unless the plugin ends the stream first.
async fn send(mut body: Body, mut sending: SendStream<Bytes>) {
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            _ = poll_fn(|cx| sending.poll_reset(cx)) => return,
        };
        // Messages sent this way are a few bytes long, so h2 may buffer them until the window opens.
        let sent = match frame.map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => sending.send_data(data, false),
            Some(Ok(Err(_not_data))) => continue,
            Some(Err(_)) => return sending.send_reset(h2::Reason::CANCEL),
            None => return drop(sending.send_data(Bytes::new(), true)),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// The body of an answer.
struct ResponseBody {
    receiving: RecvStream,
    /// All data was read; trailers follow.
    ended: bool,
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if !self.ended {
            match ready!(poll_data(&mut self.receiving, cx)) {
                Some(piece) => return Poll::Ready(Some(piece.map(Frame::data))),
                None => self.ended = true,
            }
        }
        let readable = |mut trailers: HeaderMap| {
            trailers.remove(DETAILS);
            Frame::trailers(trailers)
        };
        poll_trailers(&mut self.receiving, cx)
            .map(|trailers| trailers.map(|some| some.map(readable)).transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.receiving.is_end_stream()
    }
}
