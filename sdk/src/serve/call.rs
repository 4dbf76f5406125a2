//! One request of a host, from its head to the end of its answer.
//!
//! `Execute` is what nearly all of them are, and is served on h2 itself: measured, the layers of a whole HTTP server around it
//! cost a small call half as much again. Everything else is tonic's generated servers' as it comes.

use h2::RecvStream;
use h2::server::SendResponse;
use prost::bytes::Bytes;
use talon_wire::{Answer, answer, deadline_of, is_plain, message, received};
use tokio::time::Instant;
use tonic::Status;
use tonic::codegen::http::Request;
use tonic_health::pb::health_server::Health;
use tower::Service;

use super::router::Router;
use super::server::MAX_REQUEST_BYTES;

const EXECUTE: &str = "/opentalon.plugin.v1.PluginService/Execute";

/// Serves one request.
pub(super) async fn serve<H: Health>(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    router: Router<H>,
) {
    let deadline = deadline_of(request.headers());
    answer(respond, deadline, work(request, router, deadline)).await;
}

async fn work<H: Health>(
    request: Request<RecvStream>,
    mut router: Router<H>,
    deadline: Option<Instant>,
) -> Result<Answer, Status> {
    let (head, body) = request.into_parts();
    if head.uri.path() == EXECUTE && is_plain(&head.headers) {
        let request = message::read(body, MAX_REQUEST_BYTES).await?;
        let result = router.wire.run(request, &head.headers, deadline).await?;
        return Ok(Answer::Message(message::framed(&result)));
    }
    match router.call(Request::from_parts(head, received(body))).await {
        Ok(response) => Ok(Answer::Other(response)),
        Err(never) => match never {},
    }
}
