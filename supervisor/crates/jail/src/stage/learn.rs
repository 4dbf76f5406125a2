//! Handing the filter's listener over to the supervisor, for a program that is run to learn what it needs.

use std::os::fd::{AsFd as _, BorrowedFd};

use super::request::Plan;
use super::step::StepError;
use crate::wire::{self, Note};

/// Sends the listener, if there is one. Ours stays open until the program is executed, which closes it; from
/// the moment that the filter holds, calls outside the profile wait for the supervisor.
pub(super) fn hand_over(plan: &Plan, control: BorrowedFd<'_>) -> Result<(), StepError> {
    let Some(listener) = plan.listener.get() else { return Ok(()) };
    wire::send(control, &Note::Learning, &[listener.as_fd()])
        .map_err(|error| StepError::io("cannot hand over the filter's listener", &error, ""))
}
