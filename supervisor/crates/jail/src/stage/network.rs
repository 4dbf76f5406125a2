//! The network namespace's loopback interface.

use super::namespaces;
use super::request::Plan;
use super::socket_broker;
use super::step_error::StepError;
use crate::network::Network;
use crate::report::Status;
use crate::sys;

/// The advice where bringing it up is refused.
const LOOPBACK_ADVICE: &str =
    "add CAP_NET_ADMIN to the service's capabilities; docs/packages.md has the drop-in";

/// What a list of ports does not cover in the host's network, where a program that learns is. Landlock's
/// rules are about `bind` and `connect` of TCP, and about connecting to abstract names.
const PORTS_GAPS: &str = "TCP to and from the listed ports, and no UDP; but it can take abstract socket names, and listen \
                          at a port that the kernel picks (network: proxy has neither)";

/// Sets up the network that the program was granted. Runs in the new namespaces.
pub(super) fn set_up(plan: &Plan) -> Result<Option<Status>, StepError> {
    let (Some(isolation), Some(_)) = (plan.isolation(), plan.namespaces.get()) else {
        return Ok(Some(namespaces::missing(plan)));
    };
    if isolation.network == Network::Loopback {
        sys::network::bring_loopback_up().map_err(|error| {
            StepError::io("cannot bring up its loopback interface", &error, LOOPBACK_ADVICE)
        })?;
    }
    if socket_broker::is_used(plan) {
        // The child reports it.
        return Ok(None);
    }
    Ok(Some(if isolation.network.lists_ports() {
        Status::StandIn(PORTS_GAPS.into())
    } else {
        Status::Enforced
    }))
}
