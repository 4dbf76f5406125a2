//! Checks of what a plugin declares.

use super::section;
use crate::check::{Applicability, Check, Level, Test};

pub(super) const ANSWERED: Check = Check {
    id: "capabilities.answered",
    title: "says what it offers",
    tries: "Capabilities is called and its answer decoded.",
    why: "Without it the start fails: the host does not know what it could call.",
    mend: "Serve Capabilities of opentalon.plugin.v1.PluginService, or set `service` to the name under which the plugin serves it.",
    level: Level::Must,
    about: Applicability::All,
    section: section::CAPABILITIES,
    test: Test::CapabilitiesAnswered,
};

pub(super) const NAMES: Check = Check {
    id: "capabilities.names",
    title: "its names can be used as they are shown",
    tries: "The plugin's name and those of its actions have to match `[a-zA-Z0-9_-]{1,64}`; names of parameters have to be plain text.",
    why: "Models and wires take no other names. A declaration with a bad name is refused whole; an action with an unusable parameter is left out.",
    mend: "Rename it.",
    level: Level::Must,
    about: Applicability::All,
    section: section::CAPABILITIES,
    test: Test::CapabilitiesNames,
};

pub(super) const DUPLICATES: Check = Check {
    id: "capabilities.duplicates",
    title: "every name is there once",
    tries: "Actions of one name, and parameters of one name in one action, are looked for.",
    why: "Which of the two would be called is a guess, so the whole declaration is refused.",
    mend: "Rename one of them.",
    level: Level::Must,
    about: Applicability::All,
    section: section::CAPABILITIES,
    test: Test::CapabilitiesDuplicates,
};

pub(super) const SCHEMAS: Check = Check {
    id: "capabilities.schemas",
    title: "its types and schemas can be read",
    tries: "Each `schema` and `output_schema` has to be JSON, an object or a boolean. A `type` that is none of string, integer, number, boolean, array and object gives a warning.",
    why: "Hosts check arguments against them, and models are shown them. A schema that is no JSON checks nothing.",
    mend: "Write the schema as JSON text, or leave it out where the type says it all.",
    level: Level::Must,
    about: Applicability::All,
    section: section::CAPABILITIES,
    test: Test::CapabilitiesSchemas,
};

pub(super) const SIZES: Check = Check {
    id: "capabilities.sizes",
    title: "declares no more than a host takes",
    tries: "The numbers of actions and parameters, the lengths of texts and schemas and the size of the message are held against the host's limits.",
    why: "A declaration over a limit is refused whole.",
    mend: "Declare less: shorter descriptions, fewer actions, schemas without what no caller needs.",
    level: Level::Must,
    about: Applicability::All,
    section: section::CAPABILITIES,
    test: Test::CapabilitiesSizes,
};

pub(super) const STABLE: Check = Check {
    id: "capabilities.stable",
    title: "says the same twice",
    tries: "Capabilities is called again, and both answers are compared action by action.",
    why: "A host reads them at every start and reports every change to the operator, since a changed description may hide a changed purpose. Differences at every start hide the changes that matter.",
    mend: "Leave out what changes each time, such as times and counters, and give lists an order.",
    level: Level::Must,
    about: Applicability::All,
    section: section::CAPABILITIES,
    test: Test::CapabilitiesStable,
};

pub(super) const ROLES: Check = Check {
    id: "capabilities.roles",
    title: "what it declares for a role takes what the role sends",
    tries: "Each action that declares a role has to take the role's arguments, by name and type, and to need no others. A role that is not known gives a warning. A job that it proposes has to be one that an operator could accept.",
    why: "A service calls the action with these arguments. An entry of `extensions` for an action that does not take them is failing.",
    mend: "Declare the parameters of docs/extensions, or set takes_further_arguments.",
    level: Level::Must,
    about: Applicability::All,
    section: section::CAPABILITIES,
    test: Test::CapabilitiesRoles,
};
