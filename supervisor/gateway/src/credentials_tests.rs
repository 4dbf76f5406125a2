//! Checks of credentials, over real sockets with a supervisor that knows none.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::future::{self, join_all};
use futures_util::stream::{self, StreamExt as _};
use tokio::net::UnixStream;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::transport::Server;

use super::*;
use crate::backends::{Backend, ConnectBackend};

/// Refuses every credential, and counts the checks.
#[derive(Clone, Default)]
struct CountingHost(Arc<AtomicUsize>);

impl tower::Service<http::Request<Body>> for CountingHost {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = future::Ready<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let status = match request.uri().path().rsplit('/').next() {
            Some("CheckCredential") => {
                self.0.fetch_add(1, Ordering::Relaxed);
                Status::unauthenticated("it is unknown")
            }
            _ => Status::unimplemented("not in this test"),
        };
        future::ready(Ok(status.into_http()))
    }
}

#[async_trait]
impl ConnectBackend for CountingHost {
    async fn connect(&self, _: Backend) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let incoming = stream::once(future::ready(Ok::<_, io::Error>(theirs))).chain(stream::pending());
        tokio::spawn(Server::builder().serve_with_incoming(self.clone(), incoming));
        Ok(ours)
    }
}

/// A supervisor that hands no connection in.
struct SilentHost;

#[async_trait]
impl ConnectBackend for SilentHost {
    async fn connect(&self, _: Backend) -> io::Result<UnixStream> {
        future::pending().await
    }
}

fn credential() -> Credential {
    Credential::parse("talon_t1_secret").unwrap()
}

fn credentials(host: impl ConnectBackend) -> HostCredentials {
    let connector: Arc<dyn ConnectBackend> = Arc::new(host);
    HostCredentials::new(Backends::new(&connector))
}

// Promises: GW-292
#[tokio::test]
async fn a_burst_with_one_credential_is_two_checks_and_who_comes_later_has_one_of_their_own() {
    let host = CountingHost::default();
    let (credentials, credential) = (credentials(host.clone()), credential());
    let burst = join_all((0..100).map(|_| credentials.caller(&credential))).await;
    assert!(burst.iter().all(|caller| matches!(caller, Err(AuthenticateError::Invalid))), "{burst:?}");
    assert_eq!(host.0.load(Ordering::Relaxed), 2);
    let later = credentials.caller(&credential).await;
    assert!(matches!(later, Err(AuthenticateError::Invalid)), "{later:?}");
    assert_eq!(host.0.load(Ordering::Relaxed), 3);
}

// Promises: GW-292
#[tokio::test(start_paused = true)]
async fn a_check_without_an_answer_ends_and_so_do_those_that_wait_for_it() {
    let (credentials, credential, begin) = (credentials(SilentHost), credential(), Instant::now());
    let callers = join_all((0..3).map(|_| credentials.caller(&credential))).await;
    for caller in &callers {
        let Err(AuthenticateError::Backend(status)) = caller else { panic!("{caller:?}") };
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    }
    // One check, and the one that the others share.
    assert!(begin.elapsed() < 3 * CHECK_TIMEOUT);
}

#[test]
fn what_is_not_understood_is_nobody() {
    let known = host::Credential {
        id: "t1".to_owned(),
        kind: "token".to_owned(),
        subject: "gw:token/t1".to_owned(),
        scopes: vec!["chat".to_owned()],
        channel: "api".to_owned(),
        ..host::Credential::default()
    };
    let found = caller(known.clone()).unwrap();
    assert_eq!((found.channel.as_ref(), found.session.clone()), ("api", None));
    for wrong in [
        host::Credential { kind: "x".to_owned(), ..known.clone() },
        host::Credential { subject: "root".to_owned(), ..known.clone() },
        host::Credential { scopes: vec!["all".to_owned()], ..known.clone() },
    ] {
        assert!(matches!(caller(wrong), Err(AuthenticateError::Answer(_))));
    }
}
