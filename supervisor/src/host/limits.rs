//! The limits on requests to `host.sock`.

use std::time::Duration;

use crate::config::HostLimits;
use crate::peer::Peer;

/// The size of a request without its arguments: names, the call's id and the session context.
pub(super) const REQUEST_SLACK_BYTES: usize = 64 << 10;
/// Bytes of requests of one server that are not read to their ends, of one user: 256 of them with the default `guard.max_argument_bytes`
/// (1 MiB). A request that needs more gets RESOURCE_EXHAUSTED, and may be sent again at once.
pub(super) const MAX_UNREAD_BYTES_OF_ONE: usize = 256 << 20;
/// The same of all users.
pub(super) const MAX_UNREAD_BYTES: usize = 2 * MAX_UNREAD_BYTES_OF_ONE;

/// How many requests one server takes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Of all.
    pub(super) all: usize,
    /// Of one user or subject.
    pub(super) of_one: usize,
    /// Of one connection.
    pub(super) of_connection: u32,
    /// The key of `host.limits` that sets [`RequestLimits::all`].
    pub(super) all_key: &'static str,
    /// That which sets [`RequestLimits::of_one`].
    pub(super) of_one_key: &'static str,
}

impl RequestLimits {
    /// Those of `host.sock`.
    #[must_use]
    pub fn of_socket(limits: &HostLimits) -> Self {
        Self {
            all: count(limits.requests),
            of_one: count(limits.requests_per_user),
            of_connection: limits.requests_per_connection,
            all_key: "requests",
            of_one_key: "requests_per_user",
        }
    }

    /// Those of the connection of one of our own services.
    #[must_use]
    pub fn of_service(limits: &HostLimits, peer: &Peer) -> Self {
        let all = count(limits.service_requests);
        // Whoever floods the gateway leaves half of them to others; the others have one user.
        let of_one = if peer.is_gateway() { all / 2 } else { all };
        let (of_connection, key) = (limits.service_requests, "service_requests");
        Self { all, of_one, of_connection, all_key: key, of_one_key: key }
    }
}

/// A configured number.
pub(super) fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// How long connections may take to close once all their requests are answered. A client needs a moment to
/// answer the GOAWAY; one that says nothing (stopped, hung, or connected without a request) must not hold up
/// the end of this supervisor, and with it the start of the next.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
