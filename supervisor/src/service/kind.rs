//! The trait that each managed service implements.

use std::future::Future;

use prost::Message;
use talon_control::{Control, ControlError};

use super::held::Held;

/// The supervisor's end of a service's control socket.
pub(crate) type Line<K> = Control<<K as Kind>::To, <K as Kind>::From>;

/// The desired state of one service, and the handling of its messages.
pub(crate) trait Kind: Send + Sync + Sized + 'static {
    /// Its name in the log and in events: `state service`.
    const CALLED: &'static str;
    /// Messages to the service.
    type To: Message;
    /// Messages from the service.
    type From: Message + Default;
    /// What the current process has received so far.
    type Given: Default + Send;

    /// Sends what the process should have and has not received yet; at first, its initial settings. Called at
    /// the start of each process, after each [change](Held::changed), and after each message from it.
    ///
    /// An error ends the session, and with it the process.
    fn give(
        held: &Held<Self>,
        line: &Line<Self>,
        given: &mut Self::Given,
    ) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Handles a message from the service.
    fn hear(held: &Held<Self>, given: &mut Self::Given, said: Self::From);

    /// The process has ended. Whatever waited for it is dropped, so that the callers learn it now.
    fn ended(&self);
}
