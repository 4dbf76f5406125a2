//! Sends the filter's listener to the supervisor, for a program that runs to learn what it needs.

use std::os::fd::{AsFd as _, BorrowedFd};

use super::request::Plan;
use super::step_error::StepError;
use crate::wire::{self, StageNote};

/// Sends the listener, if there is one. Our copy stays open until the program is executed, which closes it.
/// As soon as the filter is in force, calls outside the profile wait for the supervisor.
pub(super) fn send_listener(plan: &Plan, control: BorrowedFd<'_>) -> Result<(), StepError> {
    let Some(listener) = plan.listener.get() else { return Ok(()) };
    wire::send(control, &StageNote::Listening, &[listener.as_fd()])
        .map_err(|error| StepError::io("cannot hand over the filter's listener", &error, ""))
}
