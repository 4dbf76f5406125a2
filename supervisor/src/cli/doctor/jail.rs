//! Each protection of the jail: what this machine supports, what is configured, what is in force.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use talon_jail::{Available, Machine, Mode, Stage, StageError, Status};
use talon_plugin::entry::SandboxMode;
use talon_proto::host::{GetStatusResponse, Plugin};

use super::super::table::{Cell, Table};
use super::check::{Check, Of, Section, Verdict};
use super::wrap::wrapped_on;
use crate::config::Config;
use crate::serve::find_plugins;

/// Everything known about the jails on this machine.
pub(super) struct Jails {
    machine: Machine,
    asked: Asked,
    running: Option<Running>,
}

/// The configured modes.
struct Asked {
    /// `sandbox.mode`.
    mode: Mode,
    /// The effective mode of each plugin that would run.
    plugins: Vec<(String, Mode)>,
}

/// The plugins of the running supervisor that have a process.
struct Running {
    plugins: Vec<Plugin>,
}

/// For how many plugins one protection is in force.
#[derive(Debug, PartialEq, Eq)]
struct Holds {
    plugins: usize,
    enforced: usize,
    stand_in: usize,
}

impl Jails {
    /// Inspects the machine and the configured plugins. Blocking.
    pub(super) fn look(
        config: Option<&Config>,
        status: Option<&GetStatusResponse>,
    ) -> Result<Self, StageError> {
        let machine = talon_jail::probe(&Stage::from_current_exe()?);
        Ok(Self { machine, asked: Asked::by(config), running: status.map(Running::on) })
    }

    pub(super) fn checks(&self) -> Vec<Check> {
        vec![self.tier(), self.asked.check()]
    }

    fn tier(&self) -> Check {
        let machine = &self.machine;
        let mut says = format!("{}: {}", machine.tier.name(), machine.tier.describe());
        let accepted = machine.accepted_by_enforce();
        let verdict = match (accepted, self.asked.enforce()) {
            (true, _) => Verdict::Ok,
            (false, false) => Verdict::Warn,
            (false, true) => Verdict::Fail,
        };
        if !accepted {
            let refused: Vec<_> = machine.refused().map(|line| line.name).collect();
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
    fn holds(&self, name: &str) -> Option<Holds> {
        self.running.as_ref().map(|running| running.holds(name))
    }

    pub(super) fn table(&self, page: usize) -> Table {
        let asked = self.asked.word();
        let mut table = Table::new(&["PROTECTION", "AVAILABLE", "ASKED", "ENFORCED", ""]);
        let column =
            |title: &str, cells: &mut dyn Iterator<Item = usize>| cells.fold(title.len(), usize::max);
        let used = column("PROTECTION", &mut self.machine.lines.iter().map(|line| line.name.len()))
            + "AVAILABLE".len()
            + column("ASKED", &mut [asked.len()].into_iter())
            + column(
                "ENFORCED",
                &mut self.machine.lines.iter().map(|line| enforced(self.holds(line.name)).len()),
            )
            + 4 * 2;
        for line in &self.machine.lines {
            let holds = self.holds(line.name);
            let texts = wrapped_on(page, line.says(), used);
            let mut first = Some([
                line.name.into(),
                self.available(line),
                asked.as_str().into(),
                Cell::styled(enforced(self.holds(line.name)), holds_style(holds.as_ref())),
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
        for line in self.machine.lines.iter().filter(|line| !line.remedy.is_empty()) {
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

    fn available(&self, line: &Available) -> Cell {
        let color = match &line.status {
            Status::Enforced => AnsiColor::Green,
            Status::Missing(_) if self.asked.enforce() => AnsiColor::Red,
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
        let plugins =
            self.asked.plugins.iter().map(|(name, mode)| json!({ "name": name, "mode": mode_word(*mode) }));
        value["asked"] = json!({ "mode": mode_word(self.asked.mode), "plugins": plugins.collect::<Value>() });
        let protection = |line: &Available| {
            let enforced = self.holds(line.name).map(|holds| {
                json!({ "plugins": holds.plugins, "enforced": holds.enforced, "stand_in": holds.stand_in })
            });
            json!({
                "protection": line.name,
                "available": word(&line.status),
                "says": line.says(),
                "remedy": line.remedy,
                "asked": self.asked.word(),
                "enforced": enforced,
            })
        };
        value["protections"] = machine.lines.iter().map(protection).collect();
    }
}

impl Asked {
    fn by(config: Option<&Config>) -> Self {
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
            let of = Of(Section::Sandbox, "jail: mode");
            if less { of.warn(says) } else { of.ok(says) }
        }
    }
}

impl Running {
    fn on(status: &GetStatusResponse) -> Self {
        let running = |plugin: &&Plugin| plugin.instances.iter().any(|instance| instance.pid != 0);
        Self { plugins: status.plugins.iter().filter(running).cloned().collect() }
    }

    /// A plugin's report lists the protections that are not in force; all others are.
    fn holds(&self, name: &str) -> Holds {
        let mut holds = Holds { plugins: self.plugins.len(), enforced: 0, stand_in: 0 };
        for plugin in &self.plugins {
            let mut texts = plugin.not_enforced.iter();
            match texts.find_map(|text| text.strip_prefix(name)?.strip_prefix(": ")) {
                None => holds.enforced += 1,
                Some(text) if text.starts_with(crate::serve::STAND_IN) => holds.stand_in += 1,
                Some(_) => {}
            }
        }
        holds
    }
}

/// "2 of 2", "1 of 2, 1 stand-in"; "-" if nothing runs.
fn enforced(holds: Option<Holds>) -> String {
    match holds {
        None | Some(Holds { plugins: 0, .. }) => "-".to_owned(),
        Some(Holds { plugins, enforced: 0, stand_in }) if stand_in == plugins => "stand-in".to_owned(),
        Some(Holds { plugins, enforced, stand_in: 0 }) => format!("{enforced} of {plugins}"),
        Some(Holds { plugins, enforced, stand_in }) => {
            format!("{enforced} of {plugins}, {stand_in} stand-in")
        }
    }
}

fn holds_style(holds: Option<&Holds>) -> Style {
    match holds {
        None | Some(Holds { plugins: 0, .. }) => Style::new(),
        Some(Holds { plugins, enforced, .. }) if enforced == plugins => AnsiColor::Green.on_default(),
        Some(Holds { plugins, enforced, stand_in }) if enforced + stand_in == *plugins => {
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
    SandboxMode::from(mode).word()
}

#[cfg(test)]
#[path = "jail_tests.rs"]
mod tests;
