//! `plugins.lua`, written out: a plugin, and entries of `extensions` for its scripts. From here on scripts are what plugins are.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use talon_agent_settings::TimeSpan;
use talon_extensions::{Effect, HookEntry, Role};

use super::types::{Config, ConfiguredPlugin, LuaScripts};
use crate::program_lookup;

/// The plugin's configured name, which no other plugin may have beside `plugins.lua`.
pub(crate) const PLUGIN: &str = "lua";
/// The program.
const PROGRAM: &str = "talon-lua";
/// What a script's file ends with, and a file with its tests.
const ENDING: &str = ".lua";
const TESTS_ENDING: &str = "_test.lua";
/// The longest name of a script, and the most scripts: as in `talon-lua`, which says what is wrong with others.
const MAX_NAME_BYTES: usize = 40;
const MAX_SCRIPTS: usize = 256;
/// How many names of the directory are looked at.
const MAX_ENTRIES: usize = 4096;
/// How much longer a call may take than all of its script's own limits, in seconds: it waits for the worker.
const WAIT_SECONDS: u64 = 5;
/// The largest answer, in bytes: a message of 256 KiB as JSON.
const MAX_STRUCTURED: &str = "2MiB";

/// Writes the block out, if there is one and its directory is there. Blocking: it lists the directory.
pub(super) fn expand(config: &mut Config) {
    let Some(lua) = config.plugins.lua.clone() else { return };
    let Some(scripts) = scripts(&lua) else { return };
    for role in [Role::Filter, Role::RequestHook, Role::ResponseHook] {
        let entries = scripts.iter().map(|script| entry(&lua, script, role));
        let list = match role {
            Role::Filter => &mut config.extensions.filters,
            Role::RequestHook => &mut config.extensions.request_hooks,
            _ => &mut config.extensions.response_hooks,
        };
        list.extend(entries);
    }
    let _ = config.plugins.tools.plugins.insert(PLUGIN.to_owned(), plugin(&lua));
}

/// Takes out what [`expand`] wrote: what is left can be read again as the same configuration.
pub(super) fn without_written_out(config: &Config) -> Config {
    let mut config = config.clone();
    if config.plugins.lua.is_none() {
        return config;
    }
    let _ = config.plugins.tools.plugins.remove(PLUGIN);
    let extensions = &mut config.extensions;
    for list in [&mut extensions.filters, &mut extensions.request_hooks, &mut extensions.response_hooks] {
        // No entry of a file may have all metadata.
        list.retain(|entry| entry.metadata != [HookEntry::ALL_METADATA]);
    }
    config
}

/// The scripts' names, in order; `None` without the directory.
pub(crate) fn scripts(lua: &LuaScripts) -> Option<Vec<String>> {
    let files = std::fs::read_dir(&lua.scripts_dir).ok()?;
    let names = files.take(MAX_ENTRIES).flatten().filter_map(|file| file.file_name().into_string().ok());
    let scripts = names.filter_map(|file| {
        let name = file.strip_suffix(ENDING).filter(|_| !file.ends_with(TESTS_ENDING))?;
        is_name(name).then(|| name.to_owned())
    });
    let mut sorted: BTreeSet<String> = scripts.collect();
    while sorted.len() > MAX_SCRIPTS {
        let _ = sorted.pop_last();
    }
    let mut ordered: Vec<String> = lua.order.iter().filter_map(|name| sorted.take(name)).collect();
    ordered.extend(sorted);
    Some(ordered)
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(plain)
}

fn entry(lua: &LuaScripts, script: &str, role: Role) -> HookEntry {
    let action = match role {
        Role::Filter => "filter",
        Role::RequestHook => "pre_hook",
        _ => "post_hook",
    };
    let own = lua.scripts.get(script);
    let mut may = own
        .and_then(|own| own.may.clone())
        .unwrap_or_else(|| vec![Effect::Annotate, Effect::Replace, Effect::Drop]);
    if role == Role::Filter {
        may.retain(|effect| *effect != Effect::Replace);
    }
    HookEntry {
        name: Some(format!("{script}{ENDING}")),
        may,
        on_failure: own.and_then(|own| own.fail),
        deadline: TimeSpan::from_secs(lua.limits_of(script).deadline_seconds()),
        metadata: vec![HookEntry::ALL_METADATA.to_owned()],
        ..HookEntry::new(format!("{PLUGIN}.{script}-{action}"))
    }
}

fn plugin(lua: &LuaScripts) -> ConfiguredPlugin {
    let program = program_lookup::find(PROGRAM);
    let longest = lua.scripts.keys().map(|script| lua.limits_of(script)).chain([lua.limits]);
    let longest = longest.map(|limits| limits.deadline_seconds()).max().unwrap_or_default();
    let settings = json!({
        // A name without a path is looked for, and its absence reported.
        "command": program.as_deref().unwrap_or(Path::new(PROGRAM)),
        "timeout": format!("{}s", longest.saturating_add(WAIT_SECONDS)),
        "max_structured_bytes": MAX_STRUCTURED,
        "models": lua.default_model.as_ref().map(|model| models(lua, model)),
        "sandbox": { "network": "none", "fs": { "read": [lua.scripts_dir] } },
        "config": lua.program_settings(),
    });
    serde_json::from_value(settings).expect("these are keys of a plugin, with values that they take")
}

/// The grant of `ctx.llm`: the default model, as often and as long as the scripts' limits say. Further models are granted by
/// `plugins.tools.overrides.lua.models`.
fn models(lua: &LuaScripts, default_model: &str) -> serde_json::Value {
    let limits = || lua.scripts.keys().map(|script| lua.limits_of(script)).chain([lua.limits]);
    json!({
        "allow": [default_model],
        // A grant has one call at least; a script with fewer is stopped by its own limit.
        "max_calls": limits().map(|limits| limits.llm_max_calls).max().unwrap_or_default().max(1),
        "timeout": format!("{}s", limits().map(|limits| limits.llm_timeout_seconds).max().unwrap_or(1)),
    })
}

#[cfg(test)]
#[path = "lua_tests.rs"]
mod tests;
