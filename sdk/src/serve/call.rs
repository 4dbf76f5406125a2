//! One request of a host, from its head to the end of its answer.
//!
//! Nearly all requests are `Execute`, which is served directly on h2: measured, the layers of a complete HTTP
//! server make a small call half as much more expensive. Everything else goes to tonic's generated servers.

use std::pin::pin;
use std::sync::Arc;

use h2::RecvStream;
use h2::server::SendResponse;
use prost::bytes::Bytes;
use talon_wire::{Answer, answer, deadline_of, is_plain, message, request_body, run_until_reset, send};
use tonic::codegen::http::Request;
use tonic::codegen::http::request::Parts;
use tonic_health::pb::health_server::Health;
use tower::Service;

use super::router::Router;
use super::service::ServedPlugin;

const EXECUTE: &str = "/opentalon.plugin.v1.PluginService/Execute";

/// The largest request. Hosts of this contract agree on 32 MiB; Talon itself stops arguments much earlier.
pub(super) const MAX_REQUEST_BYTES: usize = 32 << 20;

/// Whether a request is an `Execute` that [`execute`] can serve.
pub(super) fn is_execute(request: &Request<RecvStream>) -> bool {
    request.uri().path() == EXECUTE && is_plain(request.headers())
}

/// Serves one `Execute`. Boxing a future copies everything it holds, so this one holds everything once: an
/// `async fn` would hold its arguments twice.
pub(super) fn execute(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    wire: Arc<ServedPlugin>,
) -> impl Future<Output = ()> + Send {
    let deadline = deadline_of(request.headers());
    let (Parts { headers, .. }, body) = request.into_parts();
    async move {
        let answer = {
            let work = pin!(async {
                let request = message::read(body, MAX_REQUEST_BYTES).await?;
                let result = wire.run(request, &headers, deadline).await?;
                Ok(Answer::Message(message::framed(&result)))
            });
            run_until_reset(&mut respond, deadline, work).await
        };
        if let Some(answer) = answer {
            send(respond, answer).await;
        }
    }
}

/// Serves any other request.
pub(super) async fn serve_other<H: Health>(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    mut router: Router<H>,
) {
    let deadline = deadline_of(request.headers());
    let work = async {
        match router.call(request.map(request_body)).await {
            Ok(response) => Ok(Answer::Other(response)),
            Err(never) => match never {},
        }
    };
    answer(respond, deadline, work).await;
}
