//! Checks of the systemd unit: whether the running unit matches the packaged one where that matters.

use std::collections::HashMap;

use talon_proto::host::GetStatusResponse;
use tokio::process::Command;

use super::bounded::output_of;
use super::check::{Check, CheckBuilder, Section};

/// The unit's name unless the supervisor reports another one.
const UNIT: &str = "talon.service";

/// The expected value of a property, and its purpose.
struct ExpectedProperty {
    property: &'static str,
    matches: fn(&str) -> bool,
    /// The line in the unit file.
    line: &'static str,
    reason: &'static str,
}

const EXPECTED_PROPERTIES: [ExpectedProperty; 8] = [
    ExpectedProperty {
        property: "Type",
        matches: |value| value.starts_with("notify"),
        line: "Type=notify",
        reason: "systemd takes it for ready before its plugins are",
    },
    ExpectedProperty {
        property: "NotifyAccess",
        matches: |value| value == "main",
        line: "NotifyAccess=main",
        reason: "only the supervisor may say how the service is",
    },
    ExpectedProperty {
        property: "WatchdogUSec",
        matches: |value| !matches!(value, "" | "0" | "infinity"),
        line: "WatchdogSec=30",
        reason: "a supervisor that hangs is not found out",
    },
    ExpectedProperty {
        property: "Delegate",
        matches: |value| value == "yes",
        line: "Delegate=yes",
        reason: "plugins' memory and processor time cannot be limited by the kernel",
    },
    ExpectedProperty {
        property: "KillMode",
        matches: |value| value == "process",
        line: "KillMode=process",
        reason: "a restart would kill the plugins that the next supervisor is to take over",
    },
    ExpectedProperty {
        property: "FileDescriptorStoreMax",
        matches: |value| value.parse::<u32>().is_ok_and(|most| most > 0),
        line: "FileDescriptorStoreMax=4",
        reason: "a restart cannot keep the plugins' sockets, and starts them anew",
    },
    ExpectedProperty {
        property: "LimitNOFILE",
        matches: |value| value == "infinity" || value.parse::<u64>().is_ok_and(|most| most >= 65_536),
        line: "LimitNOFILE=524288",
        reason: "every client, plugin and log file takes some, and a handover takes all of the plugins' at once",
    },
    ExpectedProperty {
        property: "StateDirectoryMode",
        matches: |value| u32::from_str_radix(value, 8).is_ok_and(|mode| mode & 0o066 == 0),
        line: "StateDirectoryMode=0711",
        reason: "others could read or change what plugins keep",
    },
];

const fn check_named(what: &'static str) -> CheckBuilder {
    CheckBuilder(Section::Service, what)
}

/// The unit's checks; none without systemd.
pub(super) async fn checks(status: Option<&GetStatusResponse>) -> Vec<Check> {
    // The same test as sd_booted(3).
    if !std::path::Path::new("/run/systemd/system").exists() {
        return vec![
            check_named("systemd").ok("this machine was not booted with systemd: no unit to look at"),
        ];
    }
    let unit = status.and_then(|status| unit_of(status.pid)).unwrap_or_else(|| UNIT.to_owned());
    let properties: Vec<&str> = ["LoadState", "ActiveState", "MainPID", "NeedDaemonReload", "NRestarts"]
        .into_iter()
        .chain(EXPECTED_PROPERTIES.iter().map(|wanted| wanted.property))
        .collect();
    let mut command = Command::new("systemctl");
    command.args(["show", &unit, "--property", &properties.join(",")]);
    match output_of(&mut command).await {
        Ok(text) => unit_checks(&unit, &parse(&text), status.map(|status| status.pid)),
        Err(error) => vec![check_named("systemd").warn(format!("systemctl does not answer: {error}"))],
    }
}

/// The unit of a process, by its cgroup.
fn unit_of(pid: u32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let units = text.lines().flat_map(|line| line.rsplit('/'));
    units.filter(|part| part.ends_with(".service")).map(str::to_owned).next()
}

fn parse(text: &str) -> HashMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once('=')).collect()
}

fn unit_checks(unit: &str, shown: &HashMap<&str, &str>, running: Option<u32>) -> Vec<Check> {
    let value = |property: &str| shown.get(property).copied().unwrap_or_default();
    if value("LoadState") != "loaded" {
        return vec![match running {
            Some(_) => check_named("unit")
                .warn(format!("the supervisor runs, and not as {unit}"))
                .with_reason("it is not restarted when it exits, nor started at boot")
                .with_fix("install the package, or a unit of your own; docs/operations.md"),
            None => check_named("unit")
                .warn(format!("{unit} is not installed"))
                .with_fix("install the package; docs/operations.md"),
        }];
    }
    let mut checks = vec![check_named("unit").ok(format!("{unit} is {}", value("ActiveState")))];
    if running.is_some_and(|pid| value("MainPID") != pid.to_string()) {
        checks.push(
            check_named("main process")
                .warn(format!(
                    "the supervisor that answers is not {unit}'s (its main process is {})",
                    value("MainPID")
                ))
                .with_fix("stop the one that was started by hand"),
        );
    }
    if value("NeedDaemonReload") == "yes" {
        checks.push(
            check_named("unit file")
                .warn("it was changed after systemd read it")
                .with_fix("systemctl daemon-reload"),
        );
    }
    if value("NRestarts").parse::<u32>().is_ok_and(|count| count > 0) {
        checks.push(
            check_named("restarts")
                .warn(format!("systemd has started it again {} times", value("NRestarts")))
                .with_fix(format!(
                    "journalctl -u {unit} says why; `systemctl reset-failed {unit}` forgets the count"
                )),
        );
    }
    for wanted in &EXPECTED_PROPERTIES {
        let now = value(wanted.property);
        let of = CheckBuilder(Section::Service, wanted.property);
        checks.push(if (wanted.matches)(now) {
            of.ok(now)
        } else {
            let now = if now.is_empty() { "not set" } else { now };
            of.warn(now)
                .with_reason(wanted.reason)
                .with_fix(format!("{} (`systemctl edit {unit}`)", wanted.line))
        });
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    const SHIPPED: &str = "LoadState=loaded\nActiveState=active\nMainPID=7\nNeedDaemonReload=no\nNRestarts=0\nType=notify\n\
        NotifyAccess=main\nWatchdogUSec=30s\nDelegate=yes\nKillMode=process\nFileDescriptorStoreMax=4\n\
        LimitNOFILE=524288\nStateDirectoryMode=0711\n";

    // Promises: CLI-27
    #[test]
    fn the_unit_that_is_shipped_is_fine() {
        let checks = unit_checks("talon.service", &parse(SHIPPED), Some(7));
        assert!(checks.iter().all(|check| check.verdict == Verdict::Ok), "{checks:#?}");
        // The packaged unit file has to satisfy these checks.
        for wanted in &EXPECTED_PROPERTIES {
            let (property, value) = wanted.line.split_once('=').unwrap();
            let shown = if property == "WatchdogSec" { "30s" } else { value };
            assert!((wanted.matches)(shown), "{}", wanted.line);
        }
    }

    // Promises: CLI-27
    #[test]
    fn each_line_that_differs_says_why_it_matters_and_what_to_write() {
        for wanted in &EXPECTED_PROPERTIES {
            let text: String = SHIPPED
                .lines()
                .filter(|line| !line.starts_with(&format!("{}=", wanted.property)))
                .map(|line| format!("{line}\n"))
                .collect();
            let checks = unit_checks("talon.service", &parse(&text), Some(7));
            let told = checks.iter().find(|check| check.verdict == Verdict::Warn).unwrap();
            assert_eq!(told.subject, wanted.property);
            assert!(!told.reason.is_empty() && told.fix.contains(wanted.line), "{told:?}");
        }
    }

    #[test]
    fn a_supervisor_beside_its_unit_is_told() {
        let checks = unit_checks("talon.service", &parse(SHIPPED), Some(8));
        assert!(checks.iter().any(|check| check.subject == "main process"), "{checks:#?}");
        let none = unit_checks("talon.service", &parse("LoadState=not-found\n"), Some(8));
        assert!(none[0].message.contains("not as talon.service"), "{none:#?}");
    }
}
