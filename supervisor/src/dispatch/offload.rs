//! Offloading of large answers, so that they do not delay other calls.
//!
//! The guard processes an answer in one go and occupies its thread meanwhile. With one worker thread on a
//! machine of two cores, every small call would wait behind an answer of several megabytes. So the thread's
//! other tasks are moved to another thread (`block_in_place`) before the processing of a large answer starts.
//!
//! The size of an answer is known at the bottom of the stack, but the expensive layers are above. So the
//! bottom layer (`DeferLarge`) holds a large answer back for one poll and sets a flag, and the top future
//! (`Offload`) polls again at once, this time inside `block_in_place`.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use talon_guard::{Call, CallError, RawAnswer};
use tokio::runtime::{Handle, RuntimeFlavor};
use tower::Service;

/// Answers of at least this size are offloaded. Processing 256 KiB takes some hundred microseconds; moving
/// the other tasks to another thread costs some tens.
const LARGE_BYTES: usize = 256 << 10;

thread_local! {
    /// Whether a large answer was deferred during the current poll of the stack on this thread.
    static DEFERRED: Cell<bool> = const { Cell::new(false) };
}

/// A service that defers large answers by one poll.
#[derive(Clone)]
pub(super) struct DeferLarge<S>(pub(super) S);

impl<S> Service<Call> for DeferLarge<S>
where
    S: Service<Call, Response = RawAnswer, Error = CallError>,
{
    type Response = RawAnswer;
    type Error = CallError;
    type Future = DeferLargeFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, call: Call) -> Self::Future {
        DeferLargeFuture { answer: self.0.call(call), large: None }
    }
}

pin_project! {
    /// The answer to one call; if it is large, it is deferred once.
    pub(super) struct DeferLargeFuture<F> {
        #[pin]
        answer: F,
        large: Option<RawAnswer>,
    }
}

impl<F: Future<Output = Result<RawAnswer, CallError>>> Future for DeferLargeFuture<F> {
    type Output = Result<RawAnswer, CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(answer) = this.large.take() {
            return Poll::Ready(Ok(answer));
        }
        let answer = ready!(this.answer.poll(cx))?;
        if answer.0.len() < LARGE_BYTES || !can_offload() {
            return Poll::Ready(Ok(answer));
        }
        *this.large = Some(answer);
        DEFERRED.set(true);
        // The top polls again in any case. The waker is for a layer in between that runs the call on a
        // separate task.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A single-threaded runtime has no other thread to move tasks to.
fn can_offload() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

pin_project! {
    /// A call through a stack whose bottom layer is [`DeferLarge`]. Polls again in `block_in_place` if the
    /// answer was deferred.
    pub(super) struct Offload<F> {
        #[pin]
        pub(super) call: F,
    }
}

impl<F: Future> Future for Offload<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut call = self.project().call;
        DEFERRED.set(false);
        let polled = call.as_mut().poll(cx);
        if polled.is_pending() && DEFERRED.take() {
            return tokio::task::block_in_place(|| call.poll(cx));
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use talon_guard::Origin;
    use tower::{ServiceExt as _, service_fn};

    use super::*;

    /// How many polls it takes until an answer of this size is ready.
    async fn asked(bytes: usize) -> usize {
        let plugin =
            DeferLarge(service_fn(move |_: Call| async move { Ok(RawAnswer(vec![0; bytes].into())) }));
        let call = Call::new("c1", "hello", "greet", Origin::Model);
        let mut answer = Box::pin(plugin.oneshot(call));
        let mut asked = 0;
        let counted = std::future::poll_fn(|cx| {
            asked += 1;
            answer.as_mut().poll(cx)
        });
        let answer = Offload { call: counted }.await.unwrap();
        assert_eq!(answer.0.len(), bytes);
        asked
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn only_a_large_answer_is_asked_for_again() {
        let asked = tokio::spawn(async { (asked(LARGE_BYTES - 1).await, asked(LARGE_BYTES).await) });
        assert_eq!(asked.await.unwrap(), (1, 2));
    }

    #[tokio::test]
    async fn where_there_is_one_thread_nothing_is_kept_back() {
        assert_eq!(asked(LARGE_BYTES).await, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_while_a_large_answer_is_worked_on() {
        let plugin = DeferLarge(service_fn(|_: Call| async { Ok(RawAnswer(vec![0; LARGE_BYTES].into())) }));
        let (done, told) = std::sync::mpsc::channel();
        let call = Call::new("c1", "hello", "greet", Origin::Model);
        let working = async move {
            let answer = plugin.oneshot(call).await;
            // The stack above blocks its thread until another task of the same runtime has run.
            tokio::spawn(async move { done.send(()) });
            told.recv().expect("the other task runs");
            answer
        };
        let answer = tokio::spawn(Offload { call: working }).await.unwrap().unwrap();
        assert_eq!(answer.0.len(), LARGE_BYTES);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn without_a_top_it_comes_all_the_same() {
        let plugin = DeferLarge(service_fn(|_: Call| async { Ok(RawAnswer(vec![0; LARGE_BYTES].into())) }));
        let call = Call::new("c1", "hello", "greet", Origin::Model);
        let answer = tokio::spawn(plugin.oneshot(call)).await.unwrap().unwrap();
        assert_eq!(answer.0.len(), LARGE_BYTES);
    }
}
