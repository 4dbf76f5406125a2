use parking_lot::Mutex;

use futures_util::future::BoxFuture;
use futures_util::stream;
use http_body::{Body as _, Frame};
use http_body_util::StreamBody;
use talon_guard::Origin;
use talon_listen::BODY_TIMEOUT;
use tonic::Code;
use tonic::codegen::Bytes;

use super::*;
use crate::config::HostLimits;
use crate::peer::Peer;

/// A service that reads bodies, and never answers complete requests.
#[derive(Clone, Default)]
struct Reader {
    ended: Arc<Mutex<Vec<Code>>>,
    begun: Arc<Mutex<usize>>,
}

impl Service<Request> for Reader {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        *self.begun.lock() += 1;
        let ended = self.ended.clone();
        Box::pin(async move {
            let mut body = request.into_body();
            while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                if let Err(status) = frame {
                    ended.lock().push(status.code());
                    return Ok(status.into_http());
                }
            }
            std::future::pending().await
        })
    }
}

fn request(body: Body, uid: u32, rights: Option<(Role, Origin)>) -> Request {
    let mut request = http::Request::new(body);
    request.extensions_mut().insert(Peer {
        uid,
        gid: uid,
        pid: 1,
        rights,
        allowed: None,
        service: None,
        delegation: None,
    });
    request
}

fn limiter() -> RequestLimiter {
    RequestLimiter::new(RequestLimits::of_socket(&HostLimits::default()))
}

fn most_of_one() -> u32 {
    HostLimits::default().requests_per_user
}

const CALLER: Option<(Role, Origin)> = Some((Role::Call, Origin::Model));

fn never_whole() -> Body {
    Body::new(StreamBody::new(stream::pending::<Result<Frame<Bytes>, Status>>()))
}

fn code(response: &Response) -> Code {
    Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code())
}

#[tokio::test]
async fn nothing_of_a_request_is_read_for_somebody_who_may_do_nothing() {
    let reader = Reader::default();
    let mut gate = Gate::new(reader.clone(), limiter());
    let answer = gate.call(request(never_whole(), 1000, None)).await.unwrap();
    assert_eq!(code(&answer), Code::PermissionDenied);
    assert_eq!(*reader.begun.lock(), 0);
}

// Promises: HOST-20
#[tokio::test(start_paused = true)]
async fn a_request_that_never_becomes_whole_is_given_up() {
    let reader = Reader::default();
    let answer =
        Gate::new(reader.clone(), limiter()).call(request(never_whole(), 1000, CALLER)).await.unwrap();
    assert_eq!(code(&answer), Code::DeadlineExceeded);
    assert_eq!(*reader.ended.lock(), [Code::DeadlineExceeded]);
}

// Promises: HOST-7
#[tokio::test(start_paused = true)]
async fn one_user_cannot_hold_more_than_its_requests_and_others_get_in() {
    let mut gate = Gate::new(Reader::default(), limiter());
    let held: Vec<_> = (0..most_of_one()).map(|_| gate.call(request(Body::empty(), 1000, CALLER))).collect();
    let one_more = gate.call(request(Body::empty(), 1000, CALLER)).await.unwrap();
    assert_eq!(code(&one_more), Code::ResourceExhausted);
    let other = tokio::time::timeout(BODY_TIMEOUT / 2, gate.call(request(Body::empty(), 0, CALLER))).await;
    assert!(other.is_err(), "it was let in, and this service does not answer");
    drop(held);
    let later = tokio::time::timeout(BODY_TIMEOUT / 2, gate.call(request(Body::empty(), 1000, CALLER))).await;
    assert!(later.is_err(), "places that were given up are free again");
}

// Promises: HOST-20
#[tokio::test]
async fn an_answer_that_nobody_takes_keeps_its_place() {
    let answering = tower::service_fn(|_: Request| async {
        Ok::<_, Infallible>(Response::new(Body::new(StreamBody::new(stream::pending::<
            Result<Frame<Bytes>, Status>,
        >()))))
    });
    let mut gate = Gate::new(answering, limiter());
    let mut held = Vec::new();
    for _ in 0..most_of_one() {
        held.push(gate.call(request(Body::empty(), 1000, CALLER)).await.unwrap());
    }
    let full = gate.call(request(Body::empty(), 1000, CALLER)).await.unwrap();
    assert_eq!(code(&full), Code::ResourceExhausted);
    held.pop();
    let free = gate.call(request(Body::empty(), 1000, CALLER)).await.unwrap();
    assert_eq!(code(&free), Code::Ok);
}
