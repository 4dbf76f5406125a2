//! Calls an inner service as soon as it is ready.
//!
//! The layers from rescue down are always ready and wait for the service below them inside the call. tower's
//! `Oneshot` does that too, but in each of these layers it clones everything below and stores the call until
//! it is polled. Here a service that is ready, which is the usual case, is called at once, without a clone
//! and without storing the call.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use pin_project_lite::pin_project;
use tower_service::Service;

use crate::call::Call;

/// Calls `inner` now if it is ready, otherwise as soon as it is.
pub(crate) fn call_when_ready<S>(inner: &mut S, call: Call) -> CallWhenReady<S>
where
    S: Service<Call> + Clone,
{
    // No task has to be woken yet: the future polls a service that is not ready once more.
    let state = match inner.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(())) => State::Called { future: inner.call(call) },
        Poll::Ready(Err(error)) => State::Failed { error: Some(error) },
        Poll::Pending => {
            // The service that was polled goes with the call, because it may already be in a queue; a clone
            // stays behind.
            let next = inner.clone();
            let asked = mem::replace(inner, next);
            State::Waiting { ahead: Some(Box::new((asked, call))) }
        }
    };
    CallWhenReady { state }
}

pin_project! {
    /// The answer to one call.
    pub(crate) struct CallWhenReady<S>
    where
        S: Service<Call>,
    {
        #[pin]
        state: State<S>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S>
    where
        S: Service<Call>,
    {
        // Boxed to keep the future small for calls that do not wait: it is moved several times.
        Waiting { ahead: Option<Box<(S, Call)>> },
        Called {
            #[pin]
            future: S::Future,
        },
        Failed { error: Option<S::Error> },
        Done,
    }
}

/// The panic message of a future that is polled after its end.
pub(crate) const POLLED_AFTER_END: &str = "polled after it was done";

impl<S: Service<Call>> Future for CallWhenReady<S> {
    type Output = Result<S::Response, S::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateProj::Called { future } => {
                    let answer = ready!(future.poll(cx));
                    // Drop the inner future, and what the call holds, before a layer above judges the
                    // outcome.
                    state.set(State::Done);
                    return Poll::Ready(answer);
                }
                StateProj::Waiting { ahead } => {
                    if let Some((service, _)) = ahead.as_deref_mut() {
                        ready!(service.poll_ready(cx))?;
                    }
                    let (mut service, call) = *ahead.take().expect(POLLED_AFTER_END);
                    let future = service.call(call);
                    state.set(State::Called { future });
                }
                StateProj::Failed { error } => {
                    return Poll::Ready(Err(error.take().expect(POLLED_AFTER_END)));
                }
                StateProj::Done => panic!("{POLLED_AFTER_END}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio_test::task::spawn;
    use tokio_test::{assert_pending, assert_ready_ok};
    use tower::limit::ConcurrencyLimit;
    use tower::service_fn;

    use super::*;
    use crate::testing::call;

    /// Counts how often it was cloned.
    struct CloneCounter<S>(S, Arc<AtomicUsize>);

    impl<S: Clone> Clone for CloneCounter<S> {
        fn clone(&self) -> Self {
            self.1.fetch_add(1, Ordering::Relaxed);
            Self(self.0.clone(), Arc::clone(&self.1))
        }
    }

    impl<S: Service<Call>> Service<Call> for CloneCounter<S> {
        type Response = S::Response;
        type Error = S::Error;
        type Future = S::Future;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
            self.0.poll_ready(cx)
        }
        fn call(&mut self, call: Call) -> S::Future {
            self.0.call(call)
        }
    }

    #[test]
    fn what_is_ready_is_called_without_a_clone() {
        let clones = Arc::new(AtomicUsize::new(0));
        let echo = service_fn(|call: Call| std::future::ready(Ok::<_, Infallible>(call.id.clone())));
        let mut service = CloneCounter(echo, Arc::clone(&clones));
        for id in ["1", "2"] {
            let answer = assert_ready_ok!(spawn(call_when_ready(&mut service, call(id))).poll());
            assert_eq!(&*answer, id);
        }
        assert_eq!(clones.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_not_ready_is_waited_for_and_keeps_nobody_else_waiting() {
        let until = service_fn(|call: Call| async move {
            match &*call.id {
                "never" => std::future::pending().await,
                _ => Ok::<_, Infallible>(call.id.clone()),
            }
        });
        // `poll_ready` reserves the only permit. If it reserved one for a service that no caller waits on,
        // that permit would be lost.
        let mut service = ConcurrencyLimit::new(until, 1);
        let mut running = spawn(call_when_ready(&mut service, call("never")));
        assert_pending!(running.poll());
        let mut second = spawn(call_when_ready(&mut service, call("2")));
        let mut third = spawn(call_when_ready(&mut service, call("3")));
        assert_pending!(second.poll());
        assert_pending!(third.poll());
        drop(running);
        assert!(second.is_woken());
        assert_eq!(&*assert_ready_ok!(second.poll()), "2");
        drop(second);
        assert_eq!(&*assert_ready_ok!(third.poll()), "3");
    }
}
