//! Checks of the handshake line and its address.

use super::section;
use crate::check::{Applicability, Check, Level, Test};

pub(super) const LINE: Check = Check {
    id: "handshake.line",
    title: "the line reads as it should",
    tries: "The line is taken apart into its fields.",
    why: "A line that is cut, too long, of another dialect than configured, with netrpc, a certificate that was not requested or a multiplexed listener cannot be used.",
    mend: "Print `1|1|unix|PATH|grpc`, and nothing more unless the host asked for it.",
    level: Level::Must,
    about: Applicability::Direct,
    section: section::HANDSHAKE,
    test: Test::HandshakeLine,
};

pub(super) const VERSION: Check = Check {
    id: "handshake.version",
    title: "speaks a version that was offered",
    tries: "The core version has to be 1, and the application version one of those in PLUGIN_PROTOCOL_VERSIONS.",
    why: "Both sides have to mean the same messages.",
    mend: "Choose the version from PLUGIN_PROTOCOL_VERSIONS. If the plugin really serves opentalon.plugin.v1 under another number, list that in its `app_versions`.",
    level: Level::Must,
    about: Applicability::GoPlugin,
    section: section::HANDSHAKE,
    test: Test::HandshakeVersion,
};

pub(super) const UNOFFERED_VERSION: Check = Check {
    id: "handshake.unoffered-version",
    title: "does not claim a version that it cannot know",
    tries: "The program is started once with a single version in PLUGIN_PROTOCOL_VERSIONS that does not exist.",
    why: "A plugin that repeats whatever it is offered says it speaks protocols that are not written yet; the host then finds out by calls that go wrong.",
    mend: "Name the version that the plugin is built for, or exit with a word on standard error. The host compares and refuses with both numbers in its message.",
    level: Level::Must,
    about: Applicability::GoPlugin,
    section: section::HANDSHAKE,
    test: Test::HandshakeUnofferedVersion,
};

pub(super) const ADDRESS: Check = Check {
    id: "handshake.address",
    title: "listens in its own directory",
    tries: "The address has to be a socket in one of the plugin's three directories, of its own uid, with one of its own processes behind it.",
    why: "Anywhere else another program could answer in the plugin's place, or the plugin could have the host connect to somebody else's socket.",
    mend: "Make the socket in PLUGIN_UNIX_SOCKET_DIR (or TMPDIR), before the line is printed, and print its absolute path. TCP needs `allow_tcp` and `sandbox.network: full`.",
    level: Level::Must,
    about: Applicability::Direct,
    section: section::HANDSHAKE,
    test: Test::HandshakeAddress,
};

pub(super) const SOCKET_MODE: Check = Check {
    id: "handshake.socket-mode",
    title: "its socket is not open to everybody",
    tries: "The permissions of the socket are read. A socket that the host handed over is the host's own.",
    why: "The directory keeps others out as long as the host makes it so; a socket that everybody may write to has nothing but that.",
    mend: "Leave the umask alone, or make the socket with mode 0700.",
    level: Level::Should,
    about: Applicability::Direct,
    section: section::HANDSHAKE,
    test: Test::HandshakeSocketMode,
};

pub(super) const SERVES: Check = Check {
    id: "handshake.serves",
    title: "an HTTP/2 server answers at the address",
    tries: "The address is connected to, and the first call has to come back with any gRPC answer at all.",
    why: "A line that is printed before the server accepts, or a server that speaks something else, costs every start its whole timeout.",
    mend: "Accept connections before the line is printed, and serve gRPC over HTTP/2 without TLS. The oldest OpenTalon plugins speak lengths and JSON there: set `dialect: opentalon-v0` for them.",
    level: Level::Must,
    about: Applicability::All,
    section: section::SERVICE,
    test: Test::HandshakeServes,
};
