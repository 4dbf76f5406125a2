//! How many descriptors the supervisor may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Fewer than this are worth a word. Each plugin takes about a dozen, each caller one; and the kernel counts
/// descriptors that a user's processes have under way to each other against this limit of whoever sends the next one,
/// so that without uids of their own plugins could use it up.
const ENOUGH: u64 = 65_536;

/// Raises our soft limit to the hard one. The soft one is 1,024 for the sake of `select()`, which nothing here uses;
/// plugins get a limit of their own.
pub(super) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    if let Some(hard) = limit.maximum.filter(|hard| *hard < ENOUGH) {
        tracing::info!(limit = hard, "few open files are allowed; raise LimitNOFILE= in the service");
    }
}
