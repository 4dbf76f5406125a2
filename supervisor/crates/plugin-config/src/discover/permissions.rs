//! Limits what a manifest may request: nothing beyond what the operator allows.
//!
//! Every setting that the operator makes for this plugin counts as permission, because it also overrides the
//! manifest.

use std::path::PathBuf;

use talon_jail::Mode;

use crate::entry::{PluginSandbox, PluginSettings, SandboxMode, overdue_limit};
use crate::name::PluginName;
use crate::spec::{NetworkAccess, SandboxFs};
use crate::spec::{PluginSpec, SandboxSettings};
use crate::units::{ByteSize, Duration};

/// The operator's settings for one plugin; a later entry overrides an earlier one.
pub(super) type OperatorSettings<'a> = [Option<&'a PluginSettings>; 2];

/// What a manifest requests beyond the operator's settings. Each text names the key, the requested value and
/// how the operator can allow it. `spec` holds the operator's settings for all plugins.
pub(super) fn excess_requests(
    manifest: &PluginSettings,
    operator: OperatorSettings<'_>,
    spec: &PluginSpec,
) -> Vec<String> {
    let operator = || operator.into_iter().flatten();
    let mut wishes = ExcessRequests { name: &spec.name, list: Vec::new() };
    if let Some(wanted) = manifest.sandbox.mode
        && strictness(wanted.into()) < strictness(spec.sandbox.mode)
        && !operator().any(|settings| settings.sandbox.mode.is_some())
    {
        let ours = SandboxMode::from(spec.sandbox.mode).as_str();
        wishes.add("sandbox.mode", wanted.as_str(), ours);
    }
    let words: Vec<&PluginSandbox> = operator().map(|settings| &settings.sandbox).collect();
    let sandbox = SandboxRequest { requested: &manifest.sandbox, operator: &words, defaults: &spec.sandbox };
    sandbox.check_profile(&mut wishes);
    sandbox.check_network(&mut wishes);
    sandbox.check_files(&mut wishes);
    for limit in LIMITS {
        let Some(wanted) = (limit.setting)(manifest) else { continue };
        let ours = (limit.maximum)(spec);
        let beyond = if limit.kind == LimitKind::Niceness { wanted < ours } else { wanted > ours };
        if beyond && !operator().any(|settings| (limit.setting)(settings).is_some()) {
            let shown = |value: u64| match limit.kind {
                LimitKind::Time if value == NO_LIMIT => "0s".to_owned(),
                LimitKind::Time => Duration::from(std::time::Duration::from_millis(value)).to_string(),
                LimitKind::Bytes => ByteSize::bytes(value).to_string(),
                LimitKind::Count | LimitKind::Niceness => value.to_string(),
            };
            wishes.add(limit.key, &shown(wanted), &shown(ours));
        }
    }
    if manifest.allow_tcp == Some(true) && !operator().any(|settings| settings.allow_tcp.is_some()) {
        wishes.add("allow_tcp", "true", "false");
    }
    wishes.list
}

struct ExcessRequests<'a> {
    name: &'a PluginName,
    list: Vec<String>,
}

impl ExcessRequests<'_> {
    fn add(&mut self, key: &str, wanted: &str, ours: &str) {
        let Self { name, list } = self;
        list.push(format!(
            "{key}: plugin.yaml asks for {wanted}, and the operator's word is {ours}: remove it there, or allow it with plugins.tools.overrides.{name}.{key}: {wanted}"
        ));
    }

    fn add_list<T: serde::Serialize>(&mut self, key: &str, wanted: &[T], ours: &[T]) {
        // JSON is YAML, so that the line can be copied as it stands.
        let shown = |list: &[T]| serde_json::to_string(list).unwrap_or_default();
        self.add(key, &shown(wanted), &shown(ours));
    }
}

fn strictness(mode: Mode) -> u8 {
    match mode {
        Mode::Off => 0,
        Mode::BestEffort => 1,
        Mode::Enforce => 2,
    }
}

/// One plugin's jail: the manifest's request, the operator's settings for this plugin, and the settings for
/// all plugins.
struct SandboxRequest<'a> {
    requested: &'a PluginSandbox,
    operator: &'a [&'a PluginSandbox],
    defaults: &'a SandboxSettings,
}

impl SandboxRequest<'_> {
    fn check_profile(&self, wishes: &mut ExcessRequests<'_>) {
        if let Some(wanted) = &self.requested.profile
            && *wanted != self.defaults.profile
            && !self.operator.iter().any(|word| word.profile.is_some())
        {
            wishes.add("sandbox.profile", wanted, &self.defaults.profile);
        }
    }

    fn check_network(&self, wishes: &mut ExcessRequests<'_>) {
        let Self { requested: wanted, operator: words, defaults: wide } = self;
        let granted = words.iter().rev().find_map(|word| word.network);
        if let Some(network) = wanted.network
            && network > wide.network
            && granted.is_none()
        {
            wishes.add("sandbox.network", network.as_str(), wide.network.as_str());
        }
        // Ports only narrow what `full` gives.
        let ports = [
            (
                "sandbox.ports.connect",
                &wanted.ports.connect,
                &wide.ports.connect,
                words.iter().any(|w| w.ports.connect.is_some()),
            ),
            (
                "sandbox.ports.bind",
                &wanted.ports.bind,
                &wide.ports.bind,
                words.iter().any(|w| w.ports.bind.is_some()),
            ),
        ];
        for (key, wanted, wide, said) in ports {
            if let (Some(wanted), Some(wide)) = (wanted, wide)
                && !said
                && !wanted.iter().all(|port| wide.contains(port))
            {
                wishes.add_list(key, wanted, wide);
            }
        }
        let Some(allow) = &wanted.allow else { return };
        let through_proxy = granted.or(wanted.network).unwrap_or(wide.network) == NetworkAccess::Proxy;
        // A plugin with full network access may restrict itself to a few destinations.
        let narrower = granted.is_none() && wide.network == NetworkAccess::Full;
        if through_proxy
            && !narrower
            && !words.iter().any(|word| word.allow.is_some())
            && !allow.iter().all(|destination| wide.allow.contains(destination))
        {
            wishes.add_list("sandbox.allow", allow, &wide.allow);
        }
    }

    fn check_files(&self, wishes: &mut ExcessRequests<'_>) {
        let Self { requested: wanted, operator: words, defaults: wide } = self;
        if wanted.ca_file.is_some()
            && wanted.ca_file != wide.ca_file
            && !words.iter().any(|word| word.ca_file.is_some())
        {
            let shown = |file: &Option<PathBuf>| {
                file.as_ref().map_or("none".into(), |file| file.display().to_string())
            };
            wishes.add("sandbox.ca_file", &shown(&wanted.ca_file), &shown(&wide.ca_file));
        }
        for (index, (name, list)) in wanted.fs.lists().into_iter().enumerate() {
            let Some(list) = list else { continue };
            let of = |fs: &SandboxFs| fs.lists()[index].1.cloned();
            if words.iter().any(|word| of(&word.fs).is_some()) {
                continue;
            }
            let granted = of(&wide.fs).unwrap_or_default();
            // Paths must match exactly: something inside a granted directory may be a symlink made by another
            // process.
            if !list.iter().all(|path| granted.contains(path)) {
                wishes.add_list(&format!("sandbox.fs.{name}"), list, &granted);
            }
        }
        if wanted.tmp_exec == Some(true)
            && !wide.tmp_exec
            && !words.iter().any(|word| word.tmp_exec.is_some())
        {
            wishes.add("sandbox.tmp_exec", "true", "false");
        }
    }
}

/// How a limit is written, and in which direction it restricts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitKind {
    Count,
    Bytes,
    /// In milliseconds; no limit is written `0s`.
    Time,
    /// A niceness: a higher value leaves more CPU time to others.
    Niceness,
}

/// One limit: its key and kind, and how to read it from a manifest and from the operator's settings.
struct Limit {
    key: &'static str,
    kind: LimitKind,
    setting: fn(&PluginSettings) -> Option<u64>,
    maximum: fn(&PluginSpec) -> u64,
}

const fn limit(
    key: &'static str,
    kind: LimitKind,
    said: fn(&PluginSettings) -> Option<u64>,
    ceiling: fn(&PluginSpec) -> u64,
) -> Limit {
    Limit { key, kind, setting: said, maximum: ceiling }
}

/// Stands for "no limit": greater than every other value.
const NO_LIMIT: u64 = u64::MAX;

/// How long a plugin may keep running a call after its deadline.
fn overdue_ms(time: Option<std::time::Duration>) -> u64 {
    time.map_or(NO_LIMIT, |time| u64::try_from(time.as_millis()).unwrap_or(NO_LIMIT))
}

const LIMITS: [Limit; 14] = [
    // How long it may keep working on a call that no caller waits for.
    limit(
        "kill_overdue_after",
        LimitKind::Time,
        |said| said.lifecycle.kill_overdue_after.map(|time| overdue_ms(overdue_limit(time))),
        |spec| overdue_ms(spec.lifecycle.kill_overdue_after),
    ),
    // The supervisor buffers messages in its own memory, not in the plugin's.
    limit(
        "max_message_bytes",
        LimitKind::Bytes,
        |said| said.calls.max_message_bytes.map(ByteSize::get),
        |spec| spec.max_message_bytes as u64,
    ),
    limit("limits.nofile", LimitKind::Count, |said| said.limits.nofile, |spec| spec.sandbox.limits.nofile),
    limit("limits.nproc", LimitKind::Count, |said| said.limits.nproc, |spec| spec.sandbox.limits.nproc),
    limit(
        "limits.fsize_bytes",
        LimitKind::Bytes,
        |said| said.limits.fsize_bytes.map(ByteSize::get),
        |spec| spec.sandbox.limits.fsize_bytes,
    ),
    limit(
        "limits.memlock_bytes",
        LimitKind::Bytes,
        |said| said.limits.memlock_bytes.map(ByteSize::get),
        |spec| spec.sandbox.limits.memlock_bytes,
    ),
    limit(
        "limits.data_bytes",
        LimitKind::Bytes,
        |said| said.limits.data_bytes.map(ByteSize::get),
        |spec| spec.sandbox.limits.data_bytes.unwrap_or(NO_LIMIT),
    ),
    limit(
        "limits.stack_bytes",
        LimitKind::Bytes,
        |said| said.limits.stack_bytes.map(ByteSize::get),
        |spec| spec.sandbox.limits.stack_bytes,
    ),
    limit(
        "limits.as_bytes",
        LimitKind::Bytes,
        |said| said.limits.as_bytes.map(ByteSize::get),
        |spec| spec.sandbox.limits.as_bytes.unwrap_or(NO_LIMIT),
    ),
    limit(
        "limits.cpu_seconds",
        LimitKind::Count,
        |said| said.limits.cpu_seconds,
        |spec| spec.sandbox.limits.cpu_seconds.unwrap_or(NO_LIMIT),
    ),
    limit(
        "limits.memory_bytes",
        LimitKind::Bytes,
        |said| said.limits.memory_bytes.map(ByteSize::get),
        |spec| spec.sandbox.limits.memory_bytes,
    ),
    limit(
        "limits.cpu_percent",
        LimitKind::Count,
        |said| said.limits.cpu_percent.map(u64::from),
        |spec| spec.sandbox.limits.cpu_percent.map_or(NO_LIMIT, u64::from),
    ),
    limit(
        "limits.nice",
        LimitKind::Niceness,
        |said| said.limits.nice.map(u64::from),
        |spec| u64::from(spec.sandbox.limits.nice),
    ),
    limit(
        "sandbox.tmp_bytes",
        LimitKind::Bytes,
        |said| said.sandbox.tmp_bytes.map(ByteSize::get),
        |spec| spec.sandbox.tmp_bytes,
    ),
];

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
