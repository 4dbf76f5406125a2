//! The control socket to the supervisor.

mod connector;

use talon_control::Control;
use talon_proto::gateway::{FromGateway, ToGateway, from_gateway};

pub(crate) use connector::{ConnectionError, SupervisorConnector};

/// The gateway's end.
pub(crate) type SupervisorControl = Control<FromGateway, ToGateway>;

/// A message to the supervisor.
pub(crate) fn message(kind: from_gateway::Kind) -> FromGateway {
    FromGateway { kind: Some(kind) }
}
