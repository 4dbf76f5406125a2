//! The control socket to the process that started this one, and the messages to it.

use talon_control::Control;
use talon_proto::state::{FromState, ToState, from_state};

/// The control socket to the process that started this one.
pub(crate) type ControlSocket = Control<FromState, ToState>;

/// A message to the starter.
pub(crate) fn message(kind: from_state::Kind) -> FromState {
    FromState { kind: Some(kind) }
}
