//! State that the connections of one proxy share.

use tokio::net::UnixStream;

use crate::connector::Connector;
use crate::counters::Counters;
use crate::denial::OnDenied;

/// State that the connections of one proxy share.
pub(crate) struct ProxyState {
    pub(crate) connector: Connector,
    pub(crate) counters: Counters,
    pub(crate) on_denied: OnDenied,
    pub(crate) only_uid: Option<u32>,
}

impl ProxyState {
    /// Whether the peer has the only accepted uid.
    pub(crate) fn may_connect(&self, stream: &UnixStream) -> bool {
        self.only_uid.is_none_or(|uid| stream.peer_cred().is_ok_and(|peer| peer.uid() == uid))
    }
}
