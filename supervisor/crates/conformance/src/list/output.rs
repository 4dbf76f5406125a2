//! Checks of what a plugin prints.

use super::section;
use crate::check::{Applicability, Check, Level, Test};

pub(super) const FLOOD: Check = Check {
    id: "output.flood",
    title: "logs no more than can be read",
    tries: "The lines are counted that had to be dropped while the checks before were made (more than 5,000 at once, or 1,000 a second for long).",
    why: "Floods are dropped and counted, and what mattered is dropped with them.",
    mend: "Log a line for what an operator would want to know, and leave the rest to a debug level.",
    level: Level::Must,
    about: Applicability::All,
    section: section::HANDSHAKE,
    test: Test::OutputFlood,
};
