//! Checks of calls.

use super::section;
use crate::check::{Applicability, Check, Level, Test};

pub(super) const ECHO_ID: Check = Check {
    id: "execute.echo-id",
    title: "answers under the call's own id",
    tries: "An action is called, and the answer's `call_id` compared with the call's `id`. Which actions may be called stands above.",
    why: "An answer under another id is thrown away: it may belong to somebody else.",
    mend: "Copy `id` of the request into `call_id` of every answer, also of those that say no.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteEchoId,
};

pub(super) const DECODES: Check = Check {
    id: "execute.decodes",
    title: "its answers are what they should be",
    tries: "The answers of every action that may be called have to decode, their texts as UTF-8, their structured content as JSON.",
    why: "An answer that is anything else is refused by the guard, and its caller gets an error.",
    mend: "Serialize with the generated messages. Replace what is no UTF-8 before it is put into a field.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteDecodes,
};

pub(super) const ROLES: Check = Check {
    id: "execute.roles",
    title: "answers in a role what the role asks for",
    tries: "Every action that may be called and declares a role is called with the role's sample (docs/extensions). It may say no; an answer has to be that of the role.",
    why: "What is no such answer counts as a failure of the entry: a turn ends, a notification is sent again, a request is refused.",
    mend: "Answer with the structured content of docs/extensions. The helpers of the SDKs make it.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteRoles,
};

pub(super) const UNKNOWN_ACTION: Check = Check {
    id: "execute.unknown-action",
    title: "says no to an action that it does not have",
    tries: "An action is called that was not declared, once by a harmless name and once by a hostile one.",
    why: "A tool that says no answers with OK and `error`. A gRPC error counts as a fault of the plugin, and faults stop calls to it for a while; INVALID_ARGUMENT, NOT_FOUND and UNIMPLEMENTED count as warnings.",
    mend: "Answer with `call_id` and an `error` that names the actions there are.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteUnknownAction,
};

pub(super) const MISSING_ARGUMENTS: Check = Check {
    id: "execute.missing-arguments",
    title: "says no where arguments are missing",
    tries: "Actions that require arguments are called without any.",
    why: "The host refuses such calls, but other hosts do not, and a declaration and its code can drift apart.",
    mend: "Answer with an `error` that names what is missing. Do not let the exception of a missing key become a gRPC error.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteMissingArguments,
};

pub(super) const UNKNOWN_ARGUMENT: Check = Check {
    id: "execute.unknown-argument",
    title: "survives an argument that it did not declare",
    tries: "An action is called with one argument more. Whether it is ignored or refused does not matter.",
    why: "The same: hosts that pass on what they are given exist.",
    mend: "Ignore it, or answer with an `error` that names it.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteUnknownArgument,
};

pub(super) const HOSTILE_ARGUMENTS: Check = Check {
    id: "execute.hostile-arguments",
    title: "survives hostile arguments",
    tries: "Each parameter gets control characters, a NUL, 100 KiB, nothing, and, by its type, numbers that are none or too large, and JSON that is broken or nested ten thousand deep.",
    why: "Arguments come from models, and models read what strangers wrote. A plugin that dies of them takes the calls of everybody else with it.",
    mend: "Check arguments before they are used and answer with an `error`. Bound the depth to which JSON is parsed.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteHostileArguments,
};

pub(super) const CONCURRENT: Check = Check {
    id: "execute.concurrent",
    title: "keeps calls apart that come at once",
    tries: "Sixteen calls are sent side by side, each with a different id.",
    why: "That is how many a host sends unless configured. An answer under a neighbour's id is lost for both.",
    mend: "Keep nothing about a call outside of the call. A plugin that can do one thing at a time may queue, as long as every call is answered.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteConcurrent,
};

pub(super) const CANCELLED: Check = Check {
    id: "execute.cancelled",
    title: "keeps serving after a call was cancelled",
    tries: "Calls are reset right after they were sent; then another one has to be answered.",
    why: "Callers give up, and deadlines pass. That is no reason for a plugin to die or to hang.",
    mend: "Treat a broken stream as the end of that call alone.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteCancelled,
};

pub(super) const DEADLINE: Check = Check {
    id: "execute.deadline",
    title: "ends a call by its deadline and keeps serving",
    tries: "A call with 50 ms in its `grpc-timeout` header is sent and not reset. The plugin has five seconds to end it; after that another call has to be answered. An action that is quicker shows only the second: name a slow one with --action.",
    why: "With `kill_overdue_after` only the header tells a plugin that the time is over, and a plugin that ignores it is killed. Ignoring it warns; no longer answering fails.",
    mend: "End what you do for a call when its context is cancelled or its deadline passes; gRPC libraries tell you.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteDeadline,
};

pub(super) const LARGE_ANSWER: Check = Check {
    id: "execute.large-answer",
    title: "keeps its answers below the announced limit",
    tries: "A fresh process gets a limit of 64 KiB by OPENTALON_GRPC_MAX_MSG_BYTES; every action that may be called has to stay below. Only an action with much to say shows it: name one with --action.",
    why: "A larger message is thrown away whole, and its caller learns nothing but that.",
    mend: "Read the variable, and answer with an `error` (or with less) where the answer would be larger. Without the variable 8 MiB are the most.",
    level: Level::Must,
    about: Applicability::All,
    section: section::START,
    test: Test::ExecuteLargeAnswer,
};
