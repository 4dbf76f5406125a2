//! A whole stack behind one type, for a host that calls it from many tasks.
//!
//! tower has each task clone the service that it calls. A clone of a whole stack increments and decrements
//! some twenty reference counts and allocates memory. A call needs the service only until it has passed down
//! through the layers, which happens before anything is awaited. So one idle clone, kept here, serves call
//! after call.

use std::convert::Infallible;
use std::fmt;

use parking_lot::Mutex;
use tower::util::BoxCloneSyncService;
use tower_service::Service;

use crate::call::Call;
use crate::call_when_ready::call_when_ready;
use crate::wrap::Guarded;

type Layers = BoxCloneSyncService<Call, Guarded, Infallible>;

/// All layers of a stack and the service inside them. Clones share the layers' state: one breaker, one queue.
///
/// ```
/// use talon_guard::{Answer, Call, Guard, GuardSettings, Origin, Stack, TraceLayer};
/// use tower::{ServiceBuilder, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let guard = Guard::new(GuardSettings::default())?;
/// let stack = Stack::new(
///     ServiceBuilder::new()
///         .layer(TraceLayer::new("greeter"))
///         .layer(guard.wrap_layer())
///         .layer(guard.truncate_layer())
///         .layer(guard.sanitize_layer())
///         .service(service_fn(|_: Call| std::future::ready(Ok(Answer::from_tool("hello".to_owned()))))),
/// );
/// let answer = stack.call(Call::new("c1", "greeter", "greet", Origin::Person)).await;
/// assert_eq!(*answer.content(), "hello");
/// # Ok(())
/// # }
/// ```
pub struct Stack {
    layers: Layers,
    /// A clone that is not in use.
    idle: Mutex<Option<Layers>>,
}

impl Stack {
    /// A stack of these layers.
    #[must_use]
    pub fn new<S>(layers: S) -> Self
    where
        S: Service<Call, Response = Guarded, Error = Infallible, Future: Send + 'static>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        Self::from_layers(Layers::new(layers))
    }

    fn from_layers(layers: Layers) -> Self {
        Self { layers, idle: Mutex::new(None) }
    }

    /// Runs a call through all layers. Dropping the future cancels the call.
    pub async fn call(&self, call: Call) -> Guarded {
        let mut layers = self.take();
        let answer = call_when_ready(&mut layers, call);
        self.put_back(layers);
        match answer.await {
            Ok(answer) => answer,
            Err(never) => match never {},
        }
    }

    /// Takes the idle clone. Makes a new one if it is in use or another task holds the lock: this never
    /// waits.
    fn take(&self) -> Layers {
        let spare = self.idle.try_lock().and_then(|mut spare| spare.take());
        spare.unwrap_or_else(|| self.layers.clone())
    }

    fn put_back(&self, layers: Layers) {
        if let Some(mut spare) = self.idle.try_lock() {
            *spare = Some(layers);
        }
    }
}

impl Clone for Stack {
    fn clone(&self) -> Self {
        Self::from_layers(self.layers.clone())
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio_test::task::spawn;
    use tokio_test::{assert_pending, assert_ready};
    use tower::limit::ConcurrencyLimit;
    use tower::{ServiceBuilder, service_fn};

    use super::*;
    use crate::answer::Answer;
    use crate::guard::{Guard, GuardSettings};
    use crate::testing::call;

    fn stack(places: usize) -> Stack {
        let guard = Guard::new(GuardSettings::default()).expect("there is no pattern");
        let plugin = service_fn(|call: Call| async move {
            match &*call.id {
                "never" => std::future::pending().await,
                id => Ok(Answer::from_tool(id.to_owned())),
            }
        });
        let layers = ServiceBuilder::new()
            .layer(guard.wrap_layer())
            .layer(guard.truncate_layer())
            .layer(guard.sanitize_layer())
            .service(ConcurrencyLimit::new(plugin, places));
        Stack::new(layers)
    }

    #[test]
    fn calls_run_beside_each_other() {
        let stack = stack(2);
        let mut first = spawn(stack.call(call("never")));
        assert_pending!(first.poll());
        for id in ["2", "3"] {
            assert_eq!(*assert_ready!(spawn(stack.call(call(id))).poll()).content(), *id);
        }
    }

    #[test]
    fn one_that_is_not_ready_is_not_laid_aside_half_asked() {
        let stack = stack(1);
        let mut running = spawn(stack.call(call("never")));
        assert_pending!(running.poll());
        let mut waiting = [spawn(stack.call(call("2"))), spawn(stack.call(call("3")))];
        for call in &mut waiting {
            assert_pending!(call.poll());
        }
        drop(running);
        for (mut call, id) in waiting.into_iter().zip(["2", "3"]) {
            assert_eq!(*assert_ready!(call.poll()).content(), *id);
        }
    }
}
