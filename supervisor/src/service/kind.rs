//! What one service differs in from another.

use std::future::Future;

use prost::Message;
use talon_control::{Control, ControlError};

use super::held::Held;

/// Our end of a service's control socket.
pub(crate) type Line<K> = Control<<K as Kind>::To, <K as Kind>::From>;

/// What one service should have, and what becomes of what it says.
pub(crate) trait Kind: Send + Sync + Sized + 'static {
    /// What it is called in the log and in events: `state service`.
    const CALLED: &'static str;
    /// What it is told.
    type To: Message;
    /// What it says.
    type From: Message + Default;
    /// What its present process was given so far.
    type Given: Default + Send;

    /// Gives it what it should have and was not given yet; with nothing given, what it begins with. Called at the start of each
    /// process, whenever something [changed](Held::changed), and after each of its words.
    ///
    /// An error ends the session, and with it the process.
    fn give(
        held: &Held<Self>,
        line: &Line<Self>,
        given: &mut Self::Given,
    ) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Takes in what it says.
    fn hear(held: &Held<Self>, given: &mut Self::Given, said: Self::From);

    /// A process of it is gone. What waited for it is let go of, so that whoever waits learns that now.
    fn ended(&self);
}
