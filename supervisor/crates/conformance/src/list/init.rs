//! Checks of the settings that a plugin gets.

use super::section;
use crate::check::{Applicability, Check, Level, Test};

pub(super) const SETTINGS: Check = Check {
    id: "init.settings",
    title: "takes the settings it is given",
    tries: "Init is called with the plugin's `config`: that of its plugin.yaml, of the configuration, or of --config-json.",
    why: "A plugin that refuses its settings does not start, and no other check can be made.",
    mend: "If it needs settings, give them with --config-json or a configuration file. If it takes none, let it answer `{}` or leave Init unimplemented.",
    level: Level::Must,
    about: Applicability::All,
    section: section::INIT,
    test: Test::InitSettings,
};

pub(super) const EMPTY_CONFIG: Check = Check {
    id: "init.empty-config",
    title: "answers to no settings at all",
    tries: "A fresh process gets Init with `{}`.",
    why: "That is what it gets without any configuration. It may refuse, with a text that says what is missing; it may not die or hang, which gives an operator no information.",
    mend: "Catch what a missing setting throws, and answer Init with a gRPC error whose text names the setting.",
    level: Level::Must,
    about: Applicability::All,
    section: section::INIT,
    test: Test::InitEmptyConfig,
};

pub(super) const UNKNOWN_KEYS: Check = Check {
    id: "init.unknown-keys",
    title: "survives a setting that it does not know",
    tries: "A fresh process gets its settings and one key more, `talon_conformance_unknown`. Whether it takes or refuses that is reported.",
    why: "Settings are written by hand, and typing errors happen. Refusing an unknown key is kinder than ignoring it; dying is neither.",
    mend: "Answer Init with INVALID_ARGUMENT and the key's name, or ignore the key.",
    level: Level::Must,
    about: Applicability::All,
    section: section::INIT,
    test: Test::InitUnknownKeys,
};
