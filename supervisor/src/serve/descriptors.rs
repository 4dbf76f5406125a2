//! The supervisor's limit of open descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A lower limit is reported. Each plugin takes about a dozen, each client one. The kernel also counts
/// descriptors in flight over sockets per user, against the limit of the process that sends the next one. So
/// plugins that share a uid could use it up.
const ENOUGH: u64 = 65_536;

/// Raises the soft limit to the hard one. The soft limit is 1,024 for the sake of `select()`, which nothing
/// here uses; plugins get a separate limit.
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
