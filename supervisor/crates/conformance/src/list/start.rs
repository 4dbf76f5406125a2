//! Checks of the start.

use super::section;
use crate::check::{Applicability, Check, Level, Test};

pub(super) const HANDSHAKE: Check = Check {
    id: "start.handshake",
    title: "prints a handshake line in time",
    tries: "The program is started in its jail, and its standard output is read until there is a handshake line.",
    why: "Nothing else can be done with a plugin before its line: the host gives it `start_timeout` and then kills it.",
    mend: "Listen first, then print one line on standard output and flush it: many languages buffer standard output when it is a pipe. If the program ended, its last words say why; a program that ends with exit code 0 and says nothing is often one that could not make its socket.",
    level: Level::Must,
    about: Applicability::All,
    section: section::HANDSHAKE,
    test: Test::StartHandshake,
};

pub(super) const STRAY_OUTPUT: Check = Check {
    id: "start.stray-output",
    title: "prints nothing before the line",
    tries: "Lines on standard output before the handshake line are counted.",
    why: "Talon logs a banner of up to 64 lines and continues; other hosts take the first line for the handshake and give up. More than that is refused here, too.",
    mend: "Print banners and warnings to standard error.",
    level: Level::Should,
    about: Applicability::Direct,
    section: section::HANDSHAKE,
    test: Test::StartStrayOutput,
};

pub(super) const SINGLE_LINE: Check = Check {
    id: "start.single-line",
    title: "shakes hands once",
    tries: "What is printed after the handshake line is looked at, until the plugin has answered its first calls.",
    why: "A second handshake line means that something is started twice, or that a wrapper prints what its child prints. The host keeps to the first.",
    mend: "Print the line once. A wrapper should `exec` the program rather than run it as a child.",
    level: Level::Must,
    about: Applicability::Direct,
    section: section::HANDSHAKE,
    test: Test::StartSingleLine,
};

pub(super) const COOKIE: Check = Check {
    id: "start.cookie",
    title: "explains itself to a person",
    tries: "The program is started once without the magic cookie.",
    why: "A person who starts a plugin at a terminal sees a strange line and a program that hangs, unless the program says what it is.",
    mend: "If the cookie's variable is missing or wrong, say on standard error that this is a plugin and how to try it (`talon exec`), and exit with a code other than 0.",
    level: Level::Should,
    about: Applicability::GoPlugin,
    section: section::START,
    test: Test::StartCookie,
};
