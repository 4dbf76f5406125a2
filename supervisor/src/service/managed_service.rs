//! The trait that each managed service implements.

use std::future::Future;
use std::os::fd::OwnedFd;

use prost::Message;
use talon_control::{Control, ControlError};

use super::handle::ServiceHandle;

/// The supervisor's end of a service's control socket.
pub(crate) type ControlSocket<K> = Control<<K as ManagedService>::Outgoing, <K as ManagedService>::Incoming>;

/// The desired state of one service, and the handling of its messages.
pub(crate) trait ManagedService: Send + Sync + Sized + 'static {
    /// Its name in the log and in events: `state service`.
    const NAME: &'static str;
    /// Messages to the service.
    type Outgoing: Message;
    /// Messages from the service.
    type Incoming: Message + Default;
    /// What the current process has received so far.
    type Session: Default + Send;

    /// Sends what the process should have and has not received yet; at first, its initial settings. Called at
    /// the start of each process, after each [change](Held::changed), and after each message from it.
    ///
    /// An error ends the session, and with it the process.
    fn reconcile(
        held: &ServiceHandle<Self>,
        line: &ControlSocket<Self>,
        given: &mut Self::Session,
    ) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// The session with a new process, which has received nothing yet.
    fn new_session(_pid: u32, _uid: u32) -> Self::Session {
        Self::Session::default()
    }

    /// Handles a message from the service.
    /// Most messages have no descriptor; one that is not wanted is closed.
    fn receive(
        held: &ServiceHandle<Self>,
        given: &mut Self::Session,
        said: Self::Incoming,
        descriptor: Option<OwnedFd>,
    );

    /// Whether a message reports what a client of the service changed. There may be as many of these as clients make, so that they have
    /// a limit of their own.
    fn is_operation(_message: &Self::Incoming) -> bool {
        false
    }

    /// The process has ended. Whatever waited for it is dropped, so that the callers learn it now.
    fn process_ended(&self);
}
