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

pub(super) const STORAGE_REVISIONS: Check = Check {
    id: "execute.storage-revisions",
    title: "writes a key once of many, by its revision",
    tries: "A key is set, then by eight calls at once with the same revision, deleted with an old and with its revision, and set again.",
    why: "A plugin's comparison and every repeated write of talon-state depend on it: a second write with the same revision is a lost update.",
    mend: "Compare and write in one step of what stands behind it. Give each write a new revision, such as a random number; never count from one for each key.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteStorageRevisions,
};

pub(super) const STORAGE_SCANS: Check = Check {
    id: "execute.storage-scans",
    title: "lists keys in order, in pages, while others write",
    tries: "25 keys are listed in pages of ten, while other keys are set. Each of the 25 has to be in a page, in the order of the bytes, with the size of its value.",
    why: "Keys that a page leaves out are lost to the plugin that lists them, and its quota is counted wrongly.",
    mend: "List keys behind `after` in the order of their bytes, not by position.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteStorageScans,
};

pub(super) const STORAGE_BYTES: Check = Check {
    id: "execute.storage-bytes",
    title: "keeps any bytes, up to the limits",
    tries: "Keys and values with zero bytes, bytes that are no UTF-8, patterns of other stores, and of the largest sizes are set and read.",
    why: "Plugins store anything. A key that is taken for a pattern or a text is another key.",
    mend: "Store keys and values as bytes. If what stands behind it takes only text, store the base64url.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteStorageBytes,
};

pub(super) const STORAGE_REFUSALS: Check = Check {
    id: "execute.storage-refusals",
    title: "changes nothing where a request is wrong",
    tries: "An unknown operation, a value whose digest is one of other bytes, and a set without a key have to be refused, and the key to be absent.",
    why: "A later version may ask for more, and damage on the way must not be stored.",
    mend: "Answer with an `error`, or with the outcome `refused`. The helpers of the SDKs check digests.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteStorageRefusals,
};

pub(super) const STORAGE_DURABLE: Check = Check {
    id: "execute.storage-durable",
    title: "keeps what it acknowledged when it is killed",
    tries: "A key is set, the process is killed and started again, and the key is read.",
    why: "`stored` is a promise to a plugin. talon-state has no other copy.",
    mend: "Answer `stored` when the write is on the disk of what stands behind it, not before.",
    level: Level::Must,
    about: Applicability::All,
    section: section::EXECUTE,
    test: Test::ExecuteStorageDurable,
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
