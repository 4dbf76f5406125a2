//! The messages of two supervisors during a takeover.
//!
//! ```text
//! old ── Offer + the bundle ──────────► new     it has started, its configuration is checked
//!     ◄── Taken, or Failed with why ──          it serves host.sock, and owns the processes
//!     ── Gone ────────────────────────►         the old one has released everything; without it the new one exits
//! ```

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use prost::Message;
use talon_control::{Control, ControlError};
use talon_sanitize::{Raw, Sanitized};
use tokio::time::timeout;

/// Maximum length of a reason.
const MAX_WHY_BYTES: usize = 1 << 10;

/// One message.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HandoverMessage {
    #[prost(enumeration = "Kind", tag = "1")]
    kind: i32,
    /// The reason; with [`Kind::Failed`].
    #[prost(string, tag = "2")]
    why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Kind {
    /// Any unknown value.
    Unknown = 0,
    Offer = 1,
    Taken = 2,
    Failed = 3,
    Gone = 4,
}

/// The connection of the two supervisors.
#[derive(Debug)]
pub(super) struct HandoverConnection(Control<HandoverMessage, HandoverMessage>);

/// Why no (further) message came. In each case the other supervisor does not continue the handover.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandoverConnectionError {
    #[error("it ended without a word; see its log")]
    Ended,
    #[error("it said nothing for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("it failed: {0}")]
    Failed(Sanitized),
    #[error("it said something that is not understood")]
    Unexpected,
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl HandoverConnection {
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        Control::new(socket).map(Self)
    }

    pub(super) async fn offer(&self, bundle: BorrowedFd<'_>) -> Result<(), HandoverConnectionError> {
        self.send(Kind::Offer, "", Some(bundle)).await
    }

    pub(super) async fn taken(&self) -> Result<(), HandoverConnectionError> {
        self.send(Kind::Taken, "", None).await
    }

    pub(super) async fn gone(&self) -> Result<(), HandoverConnectionError> {
        self.send(Kind::Gone, "", None).await
    }

    pub(super) async fn failed(&self, why: &str) -> Result<(), HandoverConnectionError> {
        self.send(Kind::Failed, Raw::from(why).line_within(MAX_WHY_BYTES).as_str(), None).await
    }

    async fn send(
        &self,
        kind: Kind,
        why: &str,
        with: Option<BorrowedFd<'_>>,
    ) -> Result<(), HandoverConnectionError> {
        Ok(self.0.send(&HandoverMessage { kind: kind.into(), why: why.to_owned() }, with).await?)
    }

    /// The next message, which must be of this kind, and its descriptor.
    pub(super) async fn receive(
        &self,
        kind: Kind,
        within: Duration,
    ) -> Result<Option<OwnedFd>, HandoverConnectionError> {
        let packet = timeout(within, self.0.receive())
            .await
            .map_err(|_| HandoverConnectionError::Silent(within))??;
        let packet = packet.ok_or(HandoverConnectionError::Ended)?;
        match packet.message.kind() {
            Kind::Failed => {
                let why = Raw::from(packet.message.why.as_str()).line_within(MAX_WHY_BYTES);
                Err(HandoverConnectionError::Failed(why))
            }
            heard if heard == kind => Ok(packet.descriptor),
            _ => Err(HandoverConnectionError::Unexpected),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn lines() -> (HandoverConnection, HandoverConnection) {
        let (one, other) = talon_control::pair().unwrap();
        (HandoverConnection::new(one).unwrap(), HandoverConnection::new(other).unwrap())
    }

    #[tokio::test]
    async fn a_word_out_of_turn_ends_it() {
        let (old, new) = lines();
        new.taken().await.unwrap();
        assert!(matches!(old.receive(Kind::Gone, SOON).await, Err(HandoverConnectionError::Unexpected)));
    }

    #[tokio::test]
    async fn a_failure_says_why_in_one_line_and_an_end_is_one() {
        let (old, new) = lines();
        new.failed("no\nroom").await.unwrap();
        let failed = old.receive(Kind::Taken, SOON).await.unwrap_err();
        assert_eq!(failed.to_string(), "it failed: no\\nroom");
        drop(new);
        assert!(matches!(old.receive(Kind::Taken, SOON).await, Err(HandoverConnectionError::Ended)));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_has_an_end() {
        let (old, _new) = lines();
        assert!(matches!(old.receive(Kind::Taken, SOON).await, Err(HandoverConnectionError::Silent(_))));
    }

    #[tokio::test]
    async fn an_offer_brings_its_parcel() {
        let (old, new) = lines();
        let (bundle, _other) = talon_control::pair().unwrap();
        old.offer(bundle.as_fd()).await.unwrap();
        assert!(new.receive(Kind::Offer, SOON).await.unwrap().is_some());
    }
}
