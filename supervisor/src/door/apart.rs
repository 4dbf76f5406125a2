//! Large answers, which are worked on apart from other calls.
//!
//! What the guard does with an answer it does in one go, and a thread that is at it does nothing else: with one thread for calls
//! on a machine of two cores, every small call waits behind an answer of megabytes. So the runtime is told before a large one is
//! begun with, and gives the thread's other calls to another one.
//!
//! How large an answer is shows at the bottom of the stack, and what takes the time is above. So the bottom keeps a large answer
//! back for a moment and says so, and the top asks again at once, this time apart.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use talon_guard::{Call, CallError, RawAnswer};
use tokio::runtime::{Handle, RuntimeFlavor};
use tower::Service;

/// From this size on an answer is worked on apart. 256 KiB: some hundred microseconds of work, while it costs some tens to give
/// other calls to another thread.
const LARGE_BYTES: usize = 256 << 10;

thread_local! {
    /// Whether a large answer was kept back in the turn of the stack that this thread is at.
    static KEPT_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Keeps large answers back until they are asked for apart.
#[derive(Clone)]
pub(super) struct KeepBack<S>(pub(super) S);

impl<S> Service<Call> for KeepBack<S>
where
    S: Service<Call, Response = RawAnswer, Error = CallError>,
{
    type Response = RawAnswer;
    type Error = CallError;
    type Future = KeptBack<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, call: Call) -> Self::Future {
        KeptBack { answer: self.0.call(call), large: None }
    }
}

pin_project! {
    /// The answer to one call, kept back once if it is large.
    pub(super) struct KeptBack<F> {
        #[pin]
        answer: F,
        large: Option<RawAnswer>,
    }
}

impl<F: Future<Output = Result<RawAnswer, CallError>>> Future for KeptBack<F> {
    type Output = Result<RawAnswer, CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(answer) = this.large.take() {
            return Poll::Ready(Ok(answer));
        }
        let answer = ready!(this.answer.poll(cx))?;
        if answer.0.len() < LARGE_BYTES || !can_be_apart() {
            return Poll::Ready(Ok(answer));
        }
        *this.large = Some(answer);
        KEPT_BACK.set(true);
        // The top asks again in any case; a layer in between that has a task of its own would not.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A runtime of one thread has no other that could take calls.
fn can_be_apart() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

pin_project! {
    /// A call through a stack at whose bottom large answers are kept back.
    pub(super) struct Apart<F> {
        #[pin]
        pub(super) call: F,
    }
}

impl<F: Future> Future for Apart<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut call = self.project().call;
        KEPT_BACK.set(false);
        let polled = call.as_mut().poll(cx);
        if polled.is_pending() && KEPT_BACK.take() {
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

    /// How often the top was asked for an answer of so many bytes until it was there.
    async fn asked(bytes: usize) -> usize {
        let plugin = KeepBack(service_fn(move |_: Call| async move { Ok(RawAnswer(vec![0; bytes].into())) }));
        let call = Call::new("c1", "hello", "greet", Origin::Model);
        let mut answer = Box::pin(plugin.oneshot(call));
        let mut asked = 0;
        let counted = std::future::poll_fn(|cx| {
            asked += 1;
            answer.as_mut().poll(cx)
        });
        let answer = Apart { call: counted }.await.unwrap();
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
        let plugin = KeepBack(service_fn(|_: Call| async { Ok(RawAnswer(vec![0; LARGE_BYTES].into())) }));
        let (done, told) = std::sync::mpsc::channel();
        let call = Call::new("c1", "hello", "greet", Origin::Model);
        let working = async move {
            let answer = plugin.oneshot(call).await;
            // What stands above waits, on its thread, for another task of the same runtime.
            tokio::spawn(async move { done.send(()) });
            told.recv().expect("the other task runs");
            answer
        };
        let answer = tokio::spawn(Apart { call: working }).await.unwrap().unwrap();
        assert_eq!(answer.0.len(), LARGE_BYTES);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn without_a_top_it_comes_all_the_same() {
        let plugin = KeepBack(service_fn(|_: Call| async { Ok(RawAnswer(vec![0; LARGE_BYTES].into())) }));
        let call = Call::new("c1", "hello", "greet", Origin::Model);
        let answer = tokio::spawn(plugin.oneshot(call)).await.unwrap().unwrap();
        assert_eq!(answer.0.len(), LARGE_BYTES);
    }
}
