//! All checks, in the order in which they are performed.

use crate::check::{Applicability, Check, Level, Test};

const START: &str = "1-the-start";
const HANDSHAKE: &str = "2-the-handshake";
const SERVICE: &str = "3-the-service";
const INIT: &str = "init";
const CAPABILITIES: &str = "capabilities";
const EXECUTE: &str = "execute";
const HEALTH: &str = "health";
const END: &str = "5-the-end";

/// All checks, in the order in which they are performed.
pub const CHECKS: &[Check] = &[
    Check {
        id: "start.handshake",
        title: "prints a handshake line in time",
        tries: "The program is started in its jail, and its standard output is read until there is a handshake line.",
        why: "Nothing else can be done with a plugin before its line: the host gives it `start_timeout` and then kills it.",
        mend: "Listen first, then print one line on standard output and flush it: many languages buffer standard output when it is a pipe. If the program ended, its last words say why; a program that ends with exit code 0 and says nothing is often one that could not make its socket.",
        level: Level::Must,
        about: Applicability::All,
        section: HANDSHAKE,
        test: Test::StartHandshake,
    },
    Check {
        id: "start.stray-output",
        title: "prints nothing before the line",
        tries: "Lines on standard output before the handshake line are counted.",
        why: "Talon logs a banner of up to 64 lines and continues; other hosts take the first line for the handshake and give up. More than that is refused here, too.",
        mend: "Print banners and warnings to standard error.",
        level: Level::Should,
        about: Applicability::Direct,
        section: HANDSHAKE,
        test: Test::StartStrayOutput,
    },
    Check {
        id: "start.single-line",
        title: "shakes hands once",
        tries: "What is printed after the handshake line is looked at, until the plugin has answered its first calls.",
        why: "A second handshake line means that something is started twice, or that a wrapper prints what its child prints. The host keeps to the first.",
        mend: "Print the line once. A wrapper should `exec` the program rather than run it as a child.",
        level: Level::Must,
        about: Applicability::Direct,
        section: HANDSHAKE,
        test: Test::StartSingleLine,
    },
    Check {
        id: "start.cookie",
        title: "explains itself to a person",
        tries: "The program is started once without the magic cookie.",
        why: "A person who starts a plugin at a terminal sees a strange line and a program that hangs, unless the program says what it is.",
        mend: "If the cookie's variable is missing or wrong, say on standard error that this is a plugin and how to try it (`talon exec`), and exit with a code other than 0.",
        level: Level::Should,
        about: Applicability::GoPlugin,
        section: START,
        test: Test::StartCookie,
    },
    Check {
        id: "handshake.line",
        title: "the line reads as it should",
        tries: "The line is taken apart into its fields.",
        why: "A line that is cut, too long, of another dialect than configured, with netrpc, a certificate that was not requested or a multiplexed listener cannot be used.",
        mend: "Print `1|1|unix|PATH|grpc`, and nothing more unless the host asked for it.",
        level: Level::Must,
        about: Applicability::Direct,
        section: HANDSHAKE,
        test: Test::HandshakeLine,
    },
    Check {
        id: "handshake.version",
        title: "speaks a version that was offered",
        tries: "The core version has to be 1, and the application version one of those in PLUGIN_PROTOCOL_VERSIONS.",
        why: "Both sides have to mean the same messages.",
        mend: "Choose the version from PLUGIN_PROTOCOL_VERSIONS. If the plugin really serves opentalon.plugin.v1 under another number, list that in its `app_versions`.",
        level: Level::Must,
        about: Applicability::GoPlugin,
        section: HANDSHAKE,
        test: Test::HandshakeVersion,
    },
    Check {
        id: "handshake.unoffered-version",
        title: "does not claim a version that it cannot know",
        tries: "The program is started once with a single version in PLUGIN_PROTOCOL_VERSIONS that does not exist.",
        why: "A plugin that repeats whatever it is offered says it speaks protocols that are not written yet; the host then finds out by calls that go wrong.",
        mend: "Name the version that the plugin is built for, or exit with a word on standard error. The host compares and refuses with both numbers in its message.",
        level: Level::Must,
        about: Applicability::GoPlugin,
        section: HANDSHAKE,
        test: Test::HandshakeUnofferedVersion,
    },
    Check {
        id: "handshake.address",
        title: "listens in its own directory",
        tries: "The address has to be a socket in one of the plugin's three directories, of its own uid, with one of its own processes behind it.",
        why: "Anywhere else another program could answer in the plugin's place, or the plugin could have the host connect to somebody else's socket.",
        mend: "Make the socket in PLUGIN_UNIX_SOCKET_DIR (or TMPDIR), before the line is printed, and print its absolute path. TCP needs `allow_tcp` and `sandbox.network: full`.",
        level: Level::Must,
        about: Applicability::Direct,
        section: HANDSHAKE,
        test: Test::HandshakeAddress,
    },
    Check {
        id: "handshake.socket-mode",
        title: "its socket is not open to everybody",
        tries: "The permissions of the socket are read. A socket that the host handed over is the host's own.",
        why: "The directory keeps others out as long as the host makes it so; a socket that everybody may write to has nothing but that.",
        mend: "Leave the umask alone, or make the socket with mode 0700.",
        level: Level::Should,
        about: Applicability::Direct,
        section: HANDSHAKE,
        test: Test::HandshakeSocketMode,
    },
    Check {
        id: "handshake.serves",
        title: "an HTTP/2 server answers at the address",
        tries: "The address is connected to, and the first call has to come back with any gRPC answer at all.",
        why: "A line that is printed before the server accepts, or a server that speaks something else, costs every start its whole timeout.",
        mend: "Accept connections before the line is printed, and serve gRPC over HTTP/2 without TLS. The oldest OpenTalon plugins speak lengths and JSON there: set `dialect: opentalon-v0` for them.",
        level: Level::Must,
        about: Applicability::All,
        section: SERVICE,
        test: Test::HandshakeServes,
    },
    Check {
        id: "init.settings",
        title: "takes the settings it is given",
        tries: "Init is called with the plugin's `config`: that of its plugin.yaml, of the configuration, or of --config-json.",
        why: "A plugin that refuses its settings does not start, and no other check can be made.",
        mend: "If it needs settings, give them with --config-json or a configuration file. If it takes none, let it answer `{}` or leave Init unimplemented.",
        level: Level::Must,
        about: Applicability::All,
        section: INIT,
        test: Test::InitSettings,
    },
    Check {
        id: "init.empty-config",
        title: "answers to no settings at all",
        tries: "A fresh process gets Init with `{}`.",
        why: "That is what it gets without any configuration. It may refuse, with a text that says what is missing; it may not die or hang, which gives an operator no information.",
        mend: "Catch what a missing setting throws, and answer Init with a gRPC error whose text names the setting.",
        level: Level::Must,
        about: Applicability::All,
        section: INIT,
        test: Test::InitEmptyConfig,
    },
    Check {
        id: "init.unknown-keys",
        title: "survives a setting that it does not know",
        tries: "A fresh process gets its settings and one key more, `talon_conformance_unknown`. Whether it takes or refuses that is reported.",
        why: "Settings are written by hand, and typing errors happen. Refusing an unknown key is kinder than ignoring it; dying is neither.",
        mend: "Answer Init with INVALID_ARGUMENT and the key's name, or ignore the key.",
        level: Level::Must,
        about: Applicability::All,
        section: INIT,
        test: Test::InitUnknownKeys,
    },
    Check {
        id: "capabilities.answered",
        title: "says what it offers",
        tries: "Capabilities is called and its answer decoded.",
        why: "Without it the start fails: the host does not know what it could call.",
        mend: "Serve Capabilities of opentalon.plugin.v1.PluginService, or set `service` to the name under which the plugin serves it.",
        level: Level::Must,
        about: Applicability::All,
        section: CAPABILITIES,
        test: Test::CapabilitiesAnswered,
    },
    Check {
        id: "capabilities.names",
        title: "its names can be used as they are shown",
        tries: "The plugin's name and those of its actions have to match `[a-zA-Z0-9_-]{1,64}`; names of parameters have to be plain text.",
        why: "Models and wires take no other names. A declaration with a bad name is refused whole; an action with an unusable parameter is left out.",
        mend: "Rename it.",
        level: Level::Must,
        about: Applicability::All,
        section: CAPABILITIES,
        test: Test::CapabilitiesNames,
    },
    Check {
        id: "capabilities.duplicates",
        title: "every name is there once",
        tries: "Actions of one name, and parameters of one name in one action, are looked for.",
        why: "Which of the two would be called is a guess, so the whole declaration is refused.",
        mend: "Rename one of them.",
        level: Level::Must,
        about: Applicability::All,
        section: CAPABILITIES,
        test: Test::CapabilitiesDuplicates,
    },
    Check {
        id: "capabilities.schemas",
        title: "its types and schemas can be read",
        tries: "Each `schema` and `output_schema` has to be JSON, an object or a boolean. A `type` that is none of string, integer, number, boolean, array and object gives a warning.",
        why: "Hosts check arguments against them, and models are shown them. A schema that is no JSON checks nothing.",
        mend: "Write the schema as JSON text, or leave it out where the type says it all.",
        level: Level::Must,
        about: Applicability::All,
        section: CAPABILITIES,
        test: Test::CapabilitiesSchemas,
    },
    Check {
        id: "capabilities.sizes",
        title: "declares no more than a host takes",
        tries: "The numbers of actions and parameters, the lengths of texts and schemas and the size of the message are held against the host's limits.",
        why: "A declaration over a limit is refused whole.",
        mend: "Declare less: shorter descriptions, fewer actions, schemas without what no caller needs.",
        level: Level::Must,
        about: Applicability::All,
        section: CAPABILITIES,
        test: Test::CapabilitiesSizes,
    },
    Check {
        id: "capabilities.stable",
        title: "says the same twice",
        tries: "Capabilities is called again, and both answers are compared action by action.",
        why: "A host reads them at every start and reports every change to the operator, since a changed description may hide a changed purpose. Differences at every start hide the changes that matter.",
        mend: "Leave out what changes each time, such as times and counters, and give lists an order.",
        level: Level::Must,
        about: Applicability::All,
        section: CAPABILITIES,
        test: Test::CapabilitiesStable,
    },
    Check {
        id: "health.serving",
        title: "says that it serves",
        tries: "grpc.health.v1.Health/Check is called for the service `plugin`.",
        why: "A plugin whose health service does not say SERVING never becomes ready. One without a health service is judged by whether it answers Capabilities, which costs more and says less.",
        mend: "Serve grpc.health.v1 and set `plugin` to SERVING before the line is printed.",
        level: Level::Must,
        about: Applicability::All,
        section: HEALTH,
        test: Test::HealthServing,
    },
    Check {
        id: "health.unknown-service",
        title: "does not vouch for what it does not have",
        tries: "Health/Check is called for a service that does not exist.",
        why: "The health protocol answers NOT_FOUND. A plugin that says SERVING to every name has a constant there, and will say it when nothing works any more.",
        mend: "Use the health service that your gRPC library brings.",
        level: Level::Should,
        about: Applicability::All,
        section: HEALTH,
        test: Test::HealthUnknownService,
    },
    Check {
        id: "execute.echo-id",
        title: "answers under the call's own id",
        tries: "An action is called, and the answer's `call_id` compared with the call's `id`. Which actions may be called stands above.",
        why: "An answer under another id is thrown away: it may belong to somebody else.",
        mend: "Copy `id` of the request into `call_id` of every answer, also of those that say no.",
        level: Level::Must,
        about: Applicability::All,
        section: EXECUTE,
        test: Test::ExecuteEchoId,
    },
    Check {
        id: "execute.decodes",
        title: "its answers are what they should be",
        tries: "The answers of every action that may be called have to decode, their texts as UTF-8, their structured content as JSON.",
        why: "An answer that is anything else is refused by the guard, and its caller gets an error.",
        mend: "Serialize with the generated messages. Replace what is no UTF-8 before it is put into a field.",
        level: Level::Must,
        about: Applicability::All,
        section: EXECUTE,
        test: Test::ExecuteDecodes,
    },
    Check {
        id: "execute.unknown-action",
        title: "says no to an action that it does not have",
        tries: "An action is called that was not declared, once by a harmless name and once by a hostile one.",
        why: "A tool that says no answers with OK and `error`. A gRPC error counts as a fault of the plugin, and faults stop calls to it for a while; INVALID_ARGUMENT, NOT_FOUND and UNIMPLEMENTED count as warnings.",
        mend: "Answer with `call_id` and an `error` that names the actions there are.",
        level: Level::Must,
        about: Applicability::All,
        section: EXECUTE,
        test: Test::ExecuteUnknownAction,
    },
    Check {
        id: "execute.missing-arguments",
        title: "says no where arguments are missing",
        tries: "Actions that require arguments are called without any.",
        why: "The host refuses such calls, but other hosts do not, and a declaration and its code can drift apart.",
        mend: "Answer with an `error` that names what is missing. Do not let the exception of a missing key become a gRPC error.",
        level: Level::Must,
        about: Applicability::All,
        section: EXECUTE,
        test: Test::ExecuteMissingArguments,
    },
    Check {
        id: "execute.unknown-argument",
        title: "survives an argument that it did not declare",
        tries: "An action is called with one argument more. Whether it is ignored or refused does not matter.",
        why: "The same: hosts that pass on what they are given exist.",
        mend: "Ignore it, or answer with an `error` that names it.",
        level: Level::Must,
        about: Applicability::All,
        section: EXECUTE,
        test: Test::ExecuteUnknownArgument,
    },
    Check {
        id: "execute.hostile-arguments",
        title: "survives hostile arguments",
        tries: "Each parameter gets control characters, a NUL, 100 KiB, nothing, and, by its type, numbers that are none or too large, and JSON that is broken or nested ten thousand deep.",
        why: "Arguments come from models, and models read what strangers wrote. A plugin that dies of them takes the calls of everybody else with it.",
        mend: "Check arguments before they are used and answer with an `error`. Bound the depth to which JSON is parsed.",
        level: Level::Must,
        about: Applicability::All,
        section: EXECUTE,
        test: Test::ExecuteHostileArguments,
    },
    Check {
        id: "execute.concurrent",
        title: "keeps calls apart that come at once",
        tries: "Sixteen calls are sent side by side, each with a different id.",
        why: "That is how many a host sends unless configured. An answer under a neighbour's id is lost for both.",
        mend: "Keep nothing about a call outside of the call. A plugin that can do one thing at a time may queue, as long as every call is answered.",
        level: Level::Must,
        about: Applicability::All,
        section: EXECUTE,
        test: Test::ExecuteConcurrent,
    },
    Check {
        id: "execute.cancelled",
        title: "keeps serving after a call was cancelled",
        tries: "Calls are reset right after they were sent; then another one has to be answered.",
        why: "Callers give up, and deadlines pass. That is no reason for a plugin to die or to hang.",
        mend: "Treat a broken stream as the end of that call alone.",
        level: Level::Must,
        about: Applicability::All,
        section: EXECUTE,
        test: Test::ExecuteCancelled,
    },
    Check {
        id: "execute.deadline",
        title: "ends a call by its deadline and keeps serving",
        tries: "A call with 50 ms in its `grpc-timeout` header is sent and not reset. The plugin has five seconds to end it; after that another call has to be answered. An action that is quicker shows only the second: name a slow one with --action.",
        why: "With `kill_overdue_after` only the header tells a plugin that the time is over, and a plugin that ignores it is killed. Ignoring it warns; no longer answering fails.",
        mend: "End what you do for a call when its context is cancelled or its deadline passes; gRPC libraries tell you.",
        level: Level::Must,
        about: Applicability::All,
        section: EXECUTE,
        test: Test::ExecuteDeadline,
    },
    Check {
        id: "execute.large-answer",
        title: "keeps its answers below the announced limit",
        tries: "A fresh process gets a limit of 64 KiB by OPENTALON_GRPC_MAX_MSG_BYTES; every action that may be called has to stay below. Only an action with much to say shows it: name one with --action.",
        why: "A larger message is thrown away whole, and its caller learns nothing but that.",
        mend: "Read the variable, and answer with an `error` (or with less) where the answer would be larger. Without the variable 8 MiB are the most.",
        level: Level::Must,
        about: Applicability::All,
        section: START,
        test: Test::ExecuteLargeAnswer,
    },
    Check {
        id: "health.after-calls",
        title: "still serves after all that",
        tries: "Health/Check is called once more, on the process that took the calls before.",
        why: "A plugin that calls itself unhealthy after a call that it did not like is taken out of service for everybody.",
        mend: "Health is about the process. What is wrong with one call belongs into its answer.",
        level: Level::Must,
        about: Applicability::All,
        section: HEALTH,
        test: Test::HealthAfterCalls,
    },
    Check {
        id: "output.flood",
        title: "logs no more than can be read",
        tries: "The lines are counted that had to be dropped while the checks before were made (more than 5,000 at once, or 1,000 a second for long).",
        why: "Floods are dropped and counted, and what mattered is dropped with them.",
        mend: "Log a line for what an operator would want to know, and leave the rest to a debug level.",
        level: Level::Must,
        about: Applicability::All,
        section: HANDSHAKE,
        test: Test::OutputFlood,
    },
    Check {
        id: "stop.shutdown",
        title: "ends when it is asked to",
        tries: "plugin.GRPCController/Shutdown is called; the process has `grace_period` to end.",
        why: "It is the one way to end that lets a plugin finish its work. One that agrees and stays is killed.",
        mend: "Stop the server, finish, and exit with 0. A plugin that does not know the call gets SIGTERM, which is allowed but gives a warning.",
        level: Level::Must,
        about: Applicability::GoPlugin,
        section: END,
        test: Test::StopShutdown,
    },
    Check {
        id: "stop.sigterm",
        title: "ends on SIGTERM",
        tries: "The process gets SIGTERM (in OpenTalon's dialect SIGINT first), and has `grace_period` to end.",
        why: "After that it gets SIGKILL, in the middle of whatever it does.",
        mend: "Handle SIGTERM, or leave it alone: the default is to end. A shell wrapper has to `exec` its program, or pass the signal on.",
        level: Level::Must,
        about: Applicability::All,
        section: END,
        test: Test::StopSigterm,
    },
    Check {
        id: "stop.nothing-left",
        title: "takes with it what it started",
        tries: "The program is asked to end while what would clear up behind it is stopped; processes and sockets that are still there are listed. A socket is only mentioned, a process fails.",
        why: "Whatever is left is killed without a word: a child that was writing a file leaves half of it. Other hosts leave such children running for ever.",
        mend: "End your children and wait for them before you exit.",
        level: Level::Must,
        about: Applicability::All,
        section: END,
        test: Test::StopNothingLeft,
    },
    Check {
        id: "jail.strict",
        title: "lives under the strict profile",
        tries: "Where the plugin runs under another profile, all checks that passed are made again under `strict`. Where it runs under `strict` anyway, the jail's report has to say that the profile was enforced.",
        why: "`strict` is the profile of a plugin without any configuration. One that needs more has to be granted it by name on every machine.",
        mend: "Do without the system call, or say in the plugin's documentation which profile it needs. `talon jail run --learn FILE` shows what it makes.",
        level: Level::Must,
        about: Applicability::All,
        section: START,
        test: Test::JailStrict,
    },
];

/// The check with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|check| check.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::check::anchor;

    #[test]
    fn ids_are_names_and_each_is_there_once() {
        let ids: BTreeSet<_> = CHECKS.iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), CHECKS.len());
        for id in ids {
            let parts: Vec<_> = id.split('.').collect();
            let good = |part: &&str| part.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            assert!(parts.len() == 2 && parts.iter().all(good), "{id}");
        }
    }

    #[test]
    fn every_test_belongs_to_one_check() {
        for check in CHECKS {
            assert_eq!(CHECKS.iter().filter(|other| other.test == check.test).count(), 1, "{}", check.id);
        }
    }

    #[test]
    fn every_check_leads_to_a_section_of_the_protocol() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/protocol.md");
        let page = std::fs::read_to_string(path).unwrap();
        let headings =
            page.lines().filter_map(|line| line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")));
        let anchors: BTreeSet<_> = headings.map(anchor).collect();
        for check in CHECKS {
            assert!(
                anchors.contains(check.section),
                "{}: {} is not among {anchors:?}",
                check.id,
                check.section
            );
        }
    }
}
