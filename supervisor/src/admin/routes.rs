//! The answer to each request.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::Full;

use super::agent::AgentMetrics;
use super::collector::Collector;
use super::metrics::page;
use super::ready;
use super::ready::Readiness;
use super::sources::Sources;
use super::state_usage::StateUsage;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
/// The start page, for people.
const INDEX: &str = "talon\n\n/healthz  whether the supervisor answers\n/readyz   whether it takes calls, and which plugins \
                     do not\n/metrics  its numbers, for Prometheus\n";

/// Answers requests.
pub(super) struct Routes {
    sources: Sources,
    collector: Collector,
}

impl Routes {
    pub(super) fn new(sources: Sources, quotas: StateUsage, numbers: AgentMetrics) -> Self {
        Self { collector: Collector::new(sources.clone(), quotas, numbers), sources }
    }

    pub(super) async fn answer<B: Body>(
        &self,
        request: &Request<B>,
        over_tcp: bool,
    ) -> Response<Full<Bytes>> {
        if over_tcp && !names_loopback(request) {
            // Protects from DNS rebinding: a page in a browser whose name suddenly resolves to this machine.
            return response(
                StatusCode::MISDIRECTED_REQUEST,
                TEXT,
                "ask for it by 127.0.0.1, [::1] or localhost\n",
            );
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer =
                response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "nothing can be changed here: use GET\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        if !request.body().is_end_stream() {
            return response(StatusCode::BAD_REQUEST, TEXT, "a request here has no body\n");
        }
        match request.uri().path() {
            "/" => response(StatusCode::OK, TEXT, INDEX),
            "/healthz" => response(StatusCode::OK, JSON, self.health()),
            "/readyz" => {
                let readiness = self.readiness();
                let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                response(status, JSON, readiness.json())
            }
            "/metrics" => response(StatusCode::OK, page::CONTENT_TYPE, self.collector.collect().await),
            _ => response(StatusCode::NOT_FOUND, TEXT, format!("there is no such page\n\n{INDEX}")),
        }
    }

    fn readiness(&self) -> Readiness {
        ready::readiness(&self.sources)
    }

    /// The event loop answers if this is sent at all.
    fn health(&self) -> String {
        let about = &self.sources.info;
        let state = if self.sources.dispatcher.is_draining() { "draining" } else { "serving" };
        let uptime = about.started.elapsed().unwrap_or_default().as_secs();
        let health = serde_json::json!({
            "status": "ok",
            "state": state,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": uptime,
        });
        format!("{health}\n")
    }
}

/// Whether the Host header names this machine.
fn names_loopback<B>(request: &Request<B>) -> bool {
    let Some(Ok(host)) = request.headers().get(HOST).map(HeaderValue::to_str) else { return false };
    let Ok(authority) = host.parse::<http::uri::Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn response(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: METRIC-11
    #[test]
    fn only_names_of_this_machine_lead_here() {
        let names = |host: &str| names_loopback(&Request::builder().header(HOST, host).body(()).unwrap());
        for host in ["127.0.0.1:9464", "127.8.0.1", "[::1]:9464", "localhost", "localhost:80"] {
            assert!(names(host), "{host}");
        }
        for host in ["example.com", "localhost.example.com:80", "10.0.0.1", "", "127.0.0.1.example.com"] {
            assert!(!names(host), "{host}");
        }
        assert!(!names_loopback(&Request::new(())));
    }
}
