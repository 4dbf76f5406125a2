//! Each protection of the jail: what this machine supports, what is configured, what is in force.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use talon_jail::{Machine, Mode, ProtectionSupport, Stage, StageError, Status};
use talon_plugin_config::entry::SandboxMode;
use talon_proto::host::{GetStatusResponse, Plugin};
use talon_supervisor::config::Config;
use talon_supervisor::serve::find_plugins;

use super::check::{Check, CheckBuilder, Section, Verdict};
use crate::table::{Cell, Table};
use crate::wrap::wrapped_on;

/// The protection's name in reports.
const MEMORY_GROUP: &str = "memory-group";

/// Why a cgroup matters.
const NO_CGROUP: &str = "memory is watched instead of limited: a plugin can pass its limit between two looks, some memory of the \
                         kernel is not counted, and the cores are shared by nice alone";

/// Everything known about the jails on this machine.
pub(super) struct JailReport {
    machine: Machine,
    requested: RequestedModes,
    running: Option<RunningPlugins>,
}

/// The configured modes.
struct RequestedModes {
    /// `sandbox.mode`.
    mode: Mode,
    /// The effective mode of each plugin that would run.
    plugins: Vec<(String, Mode)>,
}

/// The plugins of the running supervisor that have a process.
struct RunningPlugins {
    plugins: Vec<Plugin>,
}

/// For how many plugins one protection is in force.
#[derive(Debug, PartialEq, Eq)]
struct EnforcementCount {
    plugins: usize,
    enforced: usize,
    stand_in: usize,
}

impl JailReport {
    /// Inspects the machine and the configured plugins. Blocking.
    pub(super) fn inspect(
        config: Option<&Config>,
        status: Option<&GetStatusResponse>,
    ) -> Result<Self, StageError> {
        let machine = talon_jail::probe(&Stage::from_current_exe()?);
        Ok(Self {
            machine,
            requested: RequestedModes::from_config(config),
            running: status.map(RunningPlugins::from_status),
        })
    }

    pub(super) fn checks(&self) -> Vec<Check> {
        vec![self.tier(), self.cgroup(), self.requested.check()]
    }

    /// Whether plugins get cgroups: those of the running supervisor, or otherwise of one that is started from
    /// here.
    fn cgroup(&self) -> Check {
        let of = CheckBuilder(Section::Sandbox, "jail: cgroup");
        let Some(line) = self.machine.protections.iter().find(|line| line.name == MEMORY_GROUP) else {
            return of.warn("the jail does not say whether there are cgroups").with_fix("please report this");
        };
        let running = self.enforcement(MEMORY_GROUP).filter(|running| running.plugins > 0);
        let says = match running {
            Some(EnforcementCount { plugins, enforced, .. }) if enforced == plugins => {
                return of.ok("every plugin of the running supervisor has a cgroup");
            }
            Some(EnforcementCount { plugins, enforced, .. }) => {
                format!(
                    "{} of {plugins} plugins of the running supervisor have no cgroup",
                    plugins - enforced
                )
            }
            None if line.status == Status::Enforced => {
                return of.ok(format!(
                    "a supervisor that is started from here gives each plugin {}",
                    line.detail()
                ));
            }
            None => format!("a supervisor that is started from here has none: {}", line.detail()),
        };
        let fix = match line.status {
            // The running supervisor was started elsewhere.
            Status::Enforced => "restart it from here, or with Delegate=yes in its unit; docs/operations.md",
            _ => line.remedy.as_str(),
        };
        of.warn(says).with_reason(NO_CGROUP).with_fix(fix)
    }

    fn tier(&self) -> Check {
        let machine = &self.machine;
        let mut says = format!("{}: {}", machine.tier.name(), machine.tier.describe());
        let accepted = machine.accepted_by_enforce();
        let verdict = match (accepted, self.requested.enforce()) {
            (true, _) => Verdict::Ok,
            (false, false) => Verdict::Warn,
            (false, true) => Verdict::Fail,
        };
        if !accepted {
            let refused: Vec<_> = machine.missing().map(|line| line.name).collect();
            let _ = write!(
                says,
                "; sandbox.mode: enforce refuses plugins here, for lack of {}",
                refused.join(", ")
            );
        }
        if verdict == Verdict::Fail {
            says.push_str(" (see below how to get them, or set sandbox.mode to best-effort)");
        }
        Check::new(Section::Sandbox, "jail: tier", verdict, says)
    }

    /// For how many plugins a protection is in force.
    fn enforcement(&self, name: &str) -> Option<EnforcementCount> {
        self.running.as_ref().map(|running| running.enforcement(name))
    }

    pub(super) fn table(&self, page: usize) -> Table {
        let asked = self.requested.word();
        let mut table = Table::new(&["PROTECTION", "AVAILABLE", "ASKED", "ENFORCED", ""]);
        let column =
            |title: &str, cells: &mut dyn Iterator<Item = usize>| cells.fold(title.len(), usize::max);
        let used = column("PROTECTION", &mut self.machine.protections.iter().map(|line| line.name.len()))
            + "AVAILABLE".len()
            + column("ASKED", &mut [asked.len()].into_iter())
            + column(
                "ENFORCED",
                &mut self.machine.protections.iter().map(|line| enforced(self.enforcement(line.name)).len()),
            )
            + 4 * 2;
        for line in &self.machine.protections {
            let holds = self.enforcement(line.name);
            let texts = wrapped_on(page, line.detail(), used);
            let mut first = Some([
                line.name.into(),
                self.available(line),
                asked.as_str().into(),
                Cell::styled(enforced(self.enforcement(line.name)), enforcement_style(holds.as_ref())),
            ]);
            for text in texts {
                let mut row = first.take().unwrap_or_default().to_vec();
                row.push(text.into());
                table.row(row);
            }
        }
        table
    }

    /// How to get each protection that is not fully supported; empty if there is none.
    pub(super) fn remedies(&self, page: usize) -> Table {
        let mut table = Table::new(&["TO GET", ""]);
        let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in self.machine.protections.iter().filter(|line| !line.remedy.is_empty()) {
            match told.iter_mut().find(|(remedy, _)| *remedy == line.remedy) {
                Some((_, names)) => names.push(line.name),
                None => told.push((&line.remedy, vec![line.name])),
            }
        }
        let used = told.iter().map(|(_, names)| names.join(", ").len()).max().unwrap_or_default() + 2;
        for (remedy, names) in told {
            let mut names = Some(names.join(", "));
            for text in wrapped_on(page, remedy, used) {
                table.row(vec![names.take().unwrap_or_default().into(), text.into()]);
            }
        }
        table
    }

    fn available(&self, line: &ProtectionSupport) -> Cell {
        let color = match &line.status {
            Status::Enforced => AnsiColor::Green,
            Status::Missing(_) if self.requested.enforce() => AnsiColor::Red,
            Status::StandIn(_) | Status::Missing(_) => AnsiColor::Yellow,
        };
        Cell::styled(word(&line.status), color.on_default())
    }

    /// Adds the same data as JSON.
    pub(super) fn add_to(&self, value: &mut Value) {
        let machine = &self.machine;
        value["machine"] = json!({
            "tier": machine.tier.name(),
            "says": machine.tier.describe(),
            "accepted_by_enforce": machine.accepted_by_enforce(),
            "kernel": machine.kernel,
        });
        let plugins = self
            .requested
            .plugins
            .iter()
            .map(|(name, mode)| json!({ "name": name, "mode": mode_word(*mode) }));
        value["asked"] =
            json!({ "mode": mode_word(self.requested.mode), "plugins": plugins.collect::<Value>() });
        let protection = |line: &ProtectionSupport| {
            let enforced = self.enforcement(line.name).map(|holds| {
                json!({ "plugins": holds.plugins, "enforced": holds.enforced, "stand_in": holds.stand_in })
            });
            json!({
                "protection": line.name,
                "available": word(&line.status),
                "says": line.detail(),
                "remedy": line.remedy,
                "asked": self.requested.word(),
                "enforced": enforced,
            })
        };
        value["protections"] = machine.protections.iter().map(protection).collect();
    }
}

impl RequestedModes {
    fn from_config(config: Option<&Config>) -> Self {
        let Some(config) = config else { return Self { mode: Mode::Enforce, plugins: Vec::new() } };
        let plugins = find_plugins(config).plugins;
        let plugins = plugins.into_iter().map(|spec| (spec.name.to_string(), spec.sandbox.mode));
        Self { mode: config.spec_defaults().sandbox.mode, plugins: plugins.collect() }
    }

    /// Whether a missing protection would keep any plugin from starting.
    fn enforce(&self) -> bool {
        self.mode == Mode::Enforce || self.plugins.iter().any(|(_, mode)| *mode == Mode::Enforce)
    }

    /// "enforce", or "enforce, 1 off" where plugins differ.
    fn word(&self) -> String {
        let mut word = mode_word(self.mode).to_owned();
        for mode in [Mode::Enforce, Mode::BestEffort, Mode::Off] {
            let count = self.plugins.iter().filter(|(_, other)| *other == mode).count();
            if mode != self.mode && count > 0 {
                let _ = write!(word, ", {count} {}", mode_word(mode));
            }
        }
        word
    }

    fn check(&self) -> Check {
        let count = match self.plugins.len() {
            0 => "no plugins".to_owned(),
            1 => "1 plugin".to_owned(),
            count => format!("{count} plugins"),
        };
        let mut says = format!("{}; {count}", mode_word(self.mode));
        for mode in [Mode::BestEffort, Mode::Off] {
            let names: Vec<_> = self
                .plugins
                .iter()
                .filter(|(_, other)| *other == mode)
                .map(|(name, _)| name.as_str())
                .collect();
            if mode != self.mode && !names.is_empty() {
                let _ = write!(says, ", {} {}: {}", names.len(), mode_word(mode), names.join(", "));
            }
        }
        let less = self.mode != Mode::Enforce || self.plugins.iter().any(|(_, mode)| *mode != Mode::Enforce);
        if self.mode == Mode::Off {
            says.push_str("; plugins run without a jail: set sandbox.mode to enforce");
        }
        {
            let of = CheckBuilder(Section::Sandbox, "jail: mode");
            if less { of.warn(says) } else { of.ok(says) }
        }
    }
}

impl RunningPlugins {
    fn from_status(status: &GetStatusResponse) -> Self {
        let running = |plugin: &&Plugin| plugin.instances.iter().any(|instance| instance.pid != 0);
        Self { plugins: status.plugins.iter().filter(running).cloned().collect() }
    }

    /// A plugin's report lists the protections that are not in force; all others are.
    fn enforcement(&self, name: &str) -> EnforcementCount {
        let mut holds = EnforcementCount { plugins: self.plugins.len(), enforced: 0, stand_in: 0 };
        for plugin in &self.plugins {
            let mut texts = plugin.not_enforced.iter();
            match texts.find_map(|text| text.strip_prefix(name)?.strip_prefix(": ")) {
                None => holds.enforced += 1,
                Some(text) if text.starts_with(talon_supervisor::serve::STAND_IN) => holds.stand_in += 1,
                Some(_) => {}
            }
        }
        holds
    }
}

/// "2 of 2", "1 of 2, 1 stand-in"; "-" if nothing runs.
fn enforced(holds: Option<EnforcementCount>) -> String {
    match holds {
        None | Some(EnforcementCount { plugins: 0, .. }) => "-".to_owned(),
        Some(EnforcementCount { plugins, enforced: 0, stand_in }) if stand_in == plugins => {
            "stand-in".to_owned()
        }
        Some(EnforcementCount { plugins, enforced, stand_in: 0 }) => format!("{enforced} of {plugins}"),
        Some(EnforcementCount { plugins, enforced, stand_in }) => {
            format!("{enforced} of {plugins}, {stand_in} stand-in")
        }
    }
}

fn enforcement_style(holds: Option<&EnforcementCount>) -> Style {
    match holds {
        None | Some(EnforcementCount { plugins: 0, .. }) => Style::new(),
        Some(EnforcementCount { plugins, enforced, .. }) if enforced == plugins => {
            AnsiColor::Green.on_default()
        }
        Some(EnforcementCount { plugins, enforced, stand_in }) if enforced + stand_in == *plugins => {
            AnsiColor::Yellow.on_default()
        }
        Some(_) => AnsiColor::Red.on_default(),
    }
}

fn word(status: &Status) -> &'static str {
    match status {
        Status::Enforced => "yes",
        Status::StandIn(_) => "stand-in",
        Status::Missing(_) => "no",
    }
}

fn mode_word(mode: Mode) -> &'static str {
    SandboxMode::from(mode).as_str()
}

#[cfg(test)]
#[path = "jail_tests.rs"]
mod tests;
