//! The limits that every request passes before a service sees it: number, size and time.
//!
//! A service reads a request's message before it checks it, and holds what it has read for as long as the
//! client wants. So half-sent requests are bounded in number, bytes and time, for each plugin separately,
//! however many sockets its instances have: one plugin cannot use up the capacity of another.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::{Bytes, Incoming};
use parking_lot::Mutex;
use talon_listen::PermitBody;
use talon_store::PluginId;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::{Code, Status};
use tower_service::Service;

use crate::limits::{MAX_MESSAGE_BYTES, MAX_REQUEST_BYTES, MAX_REQUESTS, MAX_WRITES};

/// A response that holds its request's permit; a refused request has none.
type Answer = http::Response<PermitBody<Body, Option<Arc<RequestPermit>>>>;

/// The request budgets of all plugins that have sockets.
#[derive(Debug, Default)]
pub(crate) struct RequestBudgets(Mutex<BTreeMap<PluginId, Weak<RequestBudget>>>);

impl RequestBudgets {
    /// The budget of a plugin, which all its sockets share.
    pub(crate) fn for_plugin(&self, plugin: &PluginId) -> Arc<RequestBudget> {
        let mut rooms = self.0.lock();
        if let Some(room) = rooms.get(plugin).and_then(Weak::upgrade) {
            return room;
        }
        rooms.retain(|_, room| room.strong_count() > 0);
        let room = RequestBudget::new_plugin();
        rooms.insert(plugin.clone(), Arc::downgrade(&room));
        room
    }
}

/// The concurrent requests of one plugin, or of one operator's connection.
#[derive(Debug)]
pub(crate) struct RequestBudget {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    max_bytes: usize,
    writes: Semaphore,
}

impl RequestBudget {
    /// The budget of a plugin.
    pub(crate) fn new_plugin() -> Arc<Self> {
        Self::with_max_bytes(MAX_REQUEST_BYTES)
    }

    /// The budget of an operator's connection. Its requests may be streams of many gigabytes, of which little
    /// is held at once.
    pub(crate) fn new_operator() -> Arc<Self> {
        Self::with_max_bytes(usize::MAX)
    }

    fn with_max_bytes(most_bytes: usize) -> Arc<Self> {
        let (requests, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { requests, bytes, max_bytes: most_bytes, writes: Semaphore::new(MAX_WRITES) })
    }

    /// Waits for one of the plugin's write permits, which is released when dropped.
    pub(crate) async fn write(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.writes.acquire().await.ok()
    }
}

/// Limits the requests of one connection to a service.
#[derive(Debug, Clone)]
pub(crate) struct Gate<S> {
    inner: S,
    budget: Arc<RequestBudget>,
    closed: CancellationToken,
    /// The requests of this connection: one reference each, and one of the gate's.
    running: Arc<()>,
    /// The longest time for a request, whatever its client says.
    max_duration: Duration,
}

impl<S> Gate<S> {
    /// `closed` is cancelled when no new request may start.
    pub(crate) fn new(
        inner: S,
        budget: Arc<RequestBudget>,
        closed: CancellationToken,
        max_duration: Duration,
    ) -> Self {
        Self { inner, budget, closed, running: Arc::new(()), max_duration }
    }

    /// Tells whether a request of this connection is not answered yet.
    pub(crate) fn activity(&self) -> Activity {
        Activity(Arc::downgrade(&self.running))
    }

    fn admit(&self) -> Result<Arc<RequestPermit>, Status> {
        if self.closed.is_cancelled() {
            return Err(Status::unavailable("this socket is being closed and takes no new requests"));
        }
        let place = RequestPermit {
            budget: Arc::clone(&self.budget),
            bytes: AtomicUsize::new(0),
            _running: Arc::clone(&self.running),
        };
        if self.budget.requests.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            let text = format!(
                "{MAX_REQUESTS} requests are the most at once of one plugin: wait for some to be answered"
            );
            return Err(Status::resource_exhausted(text));
        }
        Ok(Arc::new(place))
    }
}

impl<S> hyper::service::Service<http::Request<Incoming>> for Gate<S>
where
    S: Service<http::Request<CountedBody>, Response = http::Response<Body>, Error = Infallible> + Clone,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let place = match self.admit() {
            Ok(place) => place,
            Err(status) => return answer(status.into_http(), None).boxed(),
        };
        let time =
            grpc_timeout(request.headers()).map_or(self.max_duration, |wanted| wanted.min(self.max_duration));
        let held = Arc::clone(&place);
        let answered = self.inner.clone().call(request.map(|body| CountedBody { body, permit: place }));
        Box::pin(async move {
            let response = match tokio::time::timeout(time, answered).await {
                Ok(Ok(response)) => explain_size_error(response),
                Ok(Err(never)) => match never {},
                Err(_late) => {
                    let text = format!(
                        "it took longer than {time:?}: a write may or may not have been done, and can be tried again"
                    );
                    Status::deadline_exceeded(text).into_http()
                }
            };
            answer(response, Some(held)).await
        })
    }
}

async fn answer(
    response: http::Response<Body>,
    place: Option<Arc<RequestPermit>>,
) -> Result<Answer, Infallible> {
    Ok(response.map(|body| PermitBody::new(body, place)))
}

/// Replaces the library's error for a message that is too large, which says "out of range".
fn explain_size_error(response: http::Response<Body>) -> http::Response<Body> {
    let too_large = response.headers().get(Status::GRPC_STATUS).is_some_and(|code| {
        code.as_bytes().iter().fold(0, |number, digit| number * 10 + i32::from(digit.wrapping_sub(b'0')))
            == Code::OutOfRange as i32
    });
    if !too_large {
        return response;
    }
    let text = format!(
        "a request may have {MAX_MESSAGE_BYTES} bytes, and a value in it {}: keep less under one key",
        talon_store::limits::MAX_VALUE_BYTES
    );
    Status::invalid_argument(text).into_http()
}

/// The client's timeout from the header: at most eight digits and a unit.
fn grpc_timeout(headers: &http::HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// A request's share of the budget, released when dropped.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    budget: Arc<RequestBudget>,
    bytes: AtomicUsize,
    _running: Arc<()>,
}

/// Whether a connection has requests that are not answered.
#[derive(Debug)]
pub(crate) struct Activity(Weak<()>);

impl Activity {
    /// Whether every request of the connection was answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.strong_count() <= 1
    }
}

impl RequestPermit {
    /// Adds bytes, and returns whether they fit in the budget.
    fn grow(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.budget.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.budget.max_bytes
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.budget.bytes.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
        self.budget.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request's body that counts its bytes.
#[derive(Debug)]
pub(crate) struct CountedBody {
    body: Incoming,
    permit: Arc<RequestPermit>,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Ok(frame)) => frame,
            // The client stopped sending, or its connection ended.
            Some(Err(error)) => return Poll::Ready(Some(Err(Status::cancelled(error.to_string())))),
        };
        let fits = frame.data_ref().is_none_or(|data| self.permit.grow(data.len()));
        Poll::Ready(Some(if fits {
            Ok(frame)
        } else {
            let text = format!(
                "{} MiB of requests are the most at once on one socket: wait for some to be answered",
                MAX_REQUEST_BYTES >> 20
            );
            Err(Status::resource_exhausted(text))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
