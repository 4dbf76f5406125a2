//! Checks of the end.

use super::section;
use crate::check::{Applicability, Check, Level, Test};

pub(super) const SHUTDOWN: Check = Check {
    id: "stop.shutdown",
    title: "ends when it is asked to",
    tries: "plugin.GRPCController/Shutdown is called; the process has `grace_period` to end.",
    why: "It is the one way to end that lets a plugin finish its work. One that agrees and stays is killed.",
    mend: "Stop the server, finish, and exit with 0. A plugin that does not know the call gets SIGTERM, which is allowed but gives a warning.",
    level: Level::Must,
    about: Applicability::GoPlugin,
    section: section::END,
    test: Test::StopShutdown,
};

pub(super) const SIGTERM: Check = Check {
    id: "stop.sigterm",
    title: "ends on SIGTERM",
    tries: "The process gets SIGTERM (in OpenTalon's dialect SIGINT first), and has `grace_period` to end.",
    why: "After that it gets SIGKILL, in the middle of whatever it does.",
    mend: "Handle SIGTERM, or leave it alone: the default is to end. A shell wrapper has to `exec` its program, or pass the signal on.",
    level: Level::Must,
    about: Applicability::All,
    section: section::END,
    test: Test::StopSigterm,
};

pub(super) const NOTHING_LEFT: Check = Check {
    id: "stop.nothing-left",
    title: "takes with it what it started",
    tries: "The program is asked to end while what would clear up behind it is stopped; processes and sockets that are still there are listed. A socket is only mentioned, a process fails.",
    why: "Whatever is left is killed without a word: a child that was writing a file leaves half of it. Other hosts leave such children running for ever.",
    mend: "End your children and wait for them before you exit.",
    level: Level::Must,
    about: Applicability::All,
    section: section::END,
    test: Test::StopNothingLeft,
};
