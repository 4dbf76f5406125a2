//! The network namespace's loopback interface.

use super::namespaces;
use super::request::Plan;
use super::step_error::StepError;
use crate::network::Network;
use crate::report::Status;
use crate::sys;

/// The advice where bringing it up is refused.
const LOOPBACK_ADVICE: &str =
    "add CAP_NET_ADMIN to the service's capabilities; docs/packages.md has the drop-in";

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
    Ok(Some(Status::Enforced))
}
