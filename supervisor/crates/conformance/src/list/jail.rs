//! Checks under the jail's profiles.

use super::section;
use crate::check::{Applicability, Check, Level, Test};

pub(super) const STRICT: Check = Check {
    id: "jail.strict",
    title: "lives under the strict profile",
    tries: "Where the plugin runs under another profile, all checks that passed are made again under `strict`. Where it runs under `strict` anyway, the jail's report has to say that the profile was enforced.",
    why: "`strict` is the profile of a plugin without any configuration. One that needs more has to be granted it by name on every machine.",
    mend: "Do without the system call, or say in the plugin's documentation which profile it needs. `talon jail run --learn FILE` shows what it makes.",
    level: Level::Must,
    about: Applicability::All,
    section: section::START,
    test: Test::JailStrict,
};
