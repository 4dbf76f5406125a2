//! The rate of requests of one client address: counted before anything else is done for it.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::identity::{ClientAddress, ConnectedFrom};
use crate::problem::{Problem, ProblemKind};

/// A layer.
pub(crate) async fn limited_by_address(State(app): State<App>, request: Request, next: Next) -> Response {
    let settings = app.settings();
    let Some(connected) = request.extensions().get::<ConnectedFrom>() else {
        return Problem::new(ProblemKind::Internal, "a request without a connection").into_response();
    };
    let address = ClientAddress::of_request(*connected, request.headers(), &settings.proxies);
    match app.rates.take_address(address, settings.limits.requests_per_minute_per_address) {
        Ok(()) => next.run(request).await,
        Err(wait) => {
            let detail =
                "this address sends too many requests (gateway.limits.requests_per_minute_per_address): wait";
            Problem::new(ProblemKind::TooManyRequests, detail).with_retry_after(wait).into_response()
        }
    }
}
