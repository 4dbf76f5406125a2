//! Several may speak about one plugin: its manifest, its entry in the config file, the overrides. The later wins.

use talon_jail::Mode;

use super::check::CheckError;
use super::defaults::SpecDefaults;
use crate::entry::{PluginEntry, PluginSettings, SandboxMode};
use crate::name::PluginName;
use crate::spec::PluginSpec;
use crate::units::ByteSize;

/// What the plugin says about itself, and what the operator's own entry says.
#[derive(Clone, Copy, Default)]
pub(super) struct Said<'a> {
    pub(super) manifest: Option<&'a PluginEntry>,
    pub(super) entry: Option<&'a PluginEntry>,
}

/// Applies all that is said about a plugin to the defaults in `spec`.
pub(super) fn settle(
    mut spec: PluginSpec,
    said: Said<'_>,
    defaults: &SpecDefaults,
) -> Result<PluginSpec, CheckError> {
    let over = defaults.overrides.get(spec.name.as_str());
    let operator = [said.entry.map(|entry| &entry.settings), over];
    if let Some(manifest) = said.manifest {
        within(&manifest.settings, operator, &spec)?;
        manifest.apply(&mut spec);
        // An operator's word wins over an author's: also the one about all actions over those about single ones.
        if operator.iter().flatten().any(|settings| settings.calls.timeout.is_some()) {
            spec.calls.action_timeouts.clear();
        }
    }
    if let Some(entry) = said.entry {
        entry.apply(&mut spec);
    }
    if let Some(over) = over {
        over.apply(&mut spec);
    }
    Ok(spec)
}

/// Refuses a manifest that asks for what only the operator may give. `spec` still holds what the operator says to all
/// plugins; what is said about this one counts as leave, whatever it is, because it is also what will hold.
fn within(
    manifest: &PluginSettings,
    operator: [Option<&PluginSettings>; 2],
    spec: &PluginSpec,
) -> Result<(), CheckError> {
    let operator = || operator.into_iter().flatten();
    let mut wishes = Vec::new();
    if let Some(wanted) = manifest.sandbox.mode
        && strictness(wanted.into()) < strictness(spec.sandbox.mode)
        && !operator().any(|settings| settings.sandbox.mode.is_some())
    {
        let ours = SandboxMode::from(spec.sandbox.mode).word();
        wishes.push(wish(&spec.name, "sandbox.mode", wanted.word(), ours));
    }
    for limit in LIMITS {
        let Some(wanted) = (limit.said)(manifest) else { continue };
        let ours = (limit.ceiling)(spec);
        if wanted > ours && !operator().any(|settings| (limit.said)(settings).is_some()) {
            let shown = |value: u64| match limit.in_bytes {
                true => ByteSize::bytes(value).to_string(),
                false => value.to_string(),
            };
            wishes.push(wish(&spec.name, limit.key, &shown(wanted), &shown(ours)));
        }
    }
    if manifest.allow_tcp == Some(true) && !operator().any(|settings| settings.allow_tcp.is_some()) {
        wishes.push(wish(&spec.name, "allow_tcp", "true", "false"));
    }
    if wishes.is_empty() { Ok(()) } else { Err(CheckError::Beyond { wishes }) }
}

fn wish(name: &PluginName, key: &str, wanted: &str, ours: &str) -> String {
    format!(
        "{key}: plugin.yaml asks for {wanted}, and the operator's word is {ours}: remove it there, or allow it with plugins.tools.overrides.{name}.{key}: {wanted}"
    )
}

fn strictness(mode: Mode) -> u8 {
    match mode {
        Mode::Off => 0,
        Mode::BestEffort => 1,
        Mode::Enforce => 2,
    }
}

/// One limit: how it is written, and how it is meant.
struct Limit {
    key: &'static str,
    in_bytes: bool,
    said: fn(&PluginSettings) -> Option<u64>,
    ceiling: fn(&PluginSpec) -> u64,
}

const LIMITS: [Limit; 6] = [
    // A message is held in the supervisor's memory, not in the plugin's.
    Limit {
        key: "max_message_bytes",
        in_bytes: true,
        said: |settings| settings.calls.max_message_bytes.map(ByteSize::get),
        ceiling: |spec| spec.max_message_bytes as u64,
    },
    Limit {
        key: "limits.nofile",
        in_bytes: false,
        said: |settings| settings.limits.nofile,
        ceiling: |spec| spec.sandbox.limits.nofile,
    },
    Limit {
        key: "limits.nproc",
        in_bytes: false,
        said: |settings| settings.limits.nproc,
        ceiling: |spec| spec.sandbox.limits.nproc,
    },
    Limit {
        key: "limits.fsize_bytes",
        in_bytes: true,
        said: |settings| settings.limits.fsize_bytes.map(ByteSize::get),
        ceiling: |spec| spec.sandbox.limits.fsize_bytes,
    },
    Limit {
        key: "limits.memlock_bytes",
        in_bytes: true,
        said: |settings| settings.limits.memlock_bytes.map(ByteSize::get),
        ceiling: |spec| spec.sandbox.limits.memlock_bytes,
    },
    Limit {
        key: "limits.data_bytes",
        in_bytes: true,
        said: |settings| settings.limits.data_bytes.map(ByteSize::get),
        ceiling: |spec| spec.sandbox.limits.data_bytes.unwrap_or(u64::MAX),
    },
];

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
