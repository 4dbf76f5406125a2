//! Runs the guard's work on large answers without delaying other calls: the thread's other tasks are moved to
//! another thread (`block_in_place`) before the work starts.

use talon_guard::Executor;
use tokio::runtime::{Handle, RuntimeFlavor};

/// The executor of all stacks.
pub(super) const EXECUTOR: Executor = Executor::new(run);

fn run(work: &mut dyn FnMut()) {
    if can_move_tasks() { tokio::task::block_in_place(work) } else { work() }
}

/// A single-threaded runtime has no other thread to move tasks to.
fn can_move_tasks() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::Future;

    use talon_guard::{Call, LARGE_ANSWER_BYTES, Origin, RawAnswer, ValidateLayer};
    use tower::{ServiceBuilder, ServiceExt as _, service_fn};

    use super::*;

    /// The end of a call whose answer has this size, through the first layer that reads all of it.
    fn validated(bytes: usize) -> impl Future<Output = usize> + Send {
        let plugin =
            service_fn(move |_: Call| async move { Ok::<_, Infallible>(RawAnswer(vec![0; bytes].into())) });
        let stack = ServiceBuilder::new().layer(ValidateLayer::new().executor(EXECUTOR)).service(plugin);
        async move {
            let call = Call::new("c1", "hello", "greet", Origin::Model);
            stack.oneshot(call).await.expect_err("it is no message");
            bytes
        }
    }

    #[tokio::test]
    async fn where_there_is_one_thread_nothing_is_kept_back() {
        // `block_in_place` would panic here.
        assert_eq!(EXECUTOR.run(LARGE_ANSWER_BYTES, || 7), 7);
        assert_eq!(validated(LARGE_ANSWER_BYTES).await, LARGE_ANSWER_BYTES);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_while_a_large_answer_is_worked_on() {
        let (done, told) = std::sync::mpsc::channel();
        let working = async move {
            // The work blocks its thread until another task of the same runtime has run.
            EXECUTOR.run(LARGE_ANSWER_BYTES, || {
                tokio::spawn(async move { done.send(()) });
                told.recv().expect("the other task runs");
                LARGE_ANSWER_BYTES
            })
        };
        assert_eq!(tokio::spawn(working).await.unwrap(), LARGE_ANSWER_BYTES);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_large_answer_comes_through_the_layers() {
        let answer = tokio::spawn(validated(LARGE_ANSWER_BYTES));
        assert_eq!(answer.await.unwrap(), LARGE_ANSWER_BYTES);
    }
}
