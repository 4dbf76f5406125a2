//! How long calls wait for the server.

use std::time::Duration;

/// How long connecting may take. A reachable server answers in milliseconds; after one such wait all calls
/// fail at once.
pub(super) const MAX_CONNECT: Duration = Duration::from_secs(3);
/// How long a call waits for a free connection.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(10);
/// How long a call waits for another call that has locked the same row. Transactions here take milliseconds.
pub(super) const MAX_LOCK: Duration = Duration::from_secs(5);
/// How long one statement may take. None needs seconds; the server cancels one that does.
pub(super) const MAX_STATEMENT: Duration = Duration::from_secs(30);
