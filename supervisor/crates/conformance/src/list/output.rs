//! Checks of what a plugin prints, and of what its calls put out while they run.

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

pub(super) const CALLS: Check = Check {
    id: "output.calls",
    title: "what its calls put out is whole lines of theirs",
    tries: "The actions that may be called are called while somebody listens to notices. Of each `CallOutput` the call is the one that runs, and the lines have no line ends and at most 4 KiB. It is skipped for a plugin without notices.",
    why: "Lines of no call in flight are dropped, longer ones are cut, and people see a line end within a line as a mark.",
    mend: "Send the `id` of the call with whole lines, and nothing after its answer. The SDKs' `output` does.",
    level: Level::Must,
    about: Applicability::GoPlugin,
    section: section::NOTICES,
    test: Test::OutputCalls,
};
