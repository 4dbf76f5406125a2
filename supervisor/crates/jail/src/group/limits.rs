//! The limits that are written into a program's cgroup.

use std::io;
use std::path::Path;

use super::control_file::write;
use super::error::GroupError;
use crate::spec::Limits;

/// The weight for the cores when they are scarce. The supervisor and everything else has 100, so a plugin
/// that spins takes at most a third from a supervisor that needs the same core.
const WEIGHT: &str = "50";

/// The period over which the kernel counts CPU time: its own default, 100 ms.
const CPU_PERIOD_US: u64 = 100_000;

/// How many of our own processes count along with the program's: its monitor, and the stage until it is
/// reaped.
const OWN_PROCESSES: u64 = 2;

/// One file of a cgroup.
struct Setting {
    controller: &'static str,
    file: &'static str,
    value: String,
    /// Whether a program is refused without it. The others are optional and are reported.
    needed: bool,
}

fn settings(limits: &Limits) -> Vec<Setting> {
    let setting = |file: &'static str, value: String, needed| {
        let (controller, _) = file.split_once('.').expect("each begins with its controller");
        Setting { controller, file, value, needed }
    };
    let mut settings = vec![
        setting("memory.max", limits.memory_bytes.to_string(), true),
        // Swapped-out memory does not count for the first.
        setting("memory.swap.max", "0".into(), false),
        // A program that has lost some of its processes is in an undefined state, so all of them are killed.
        setting("memory.oom.group", "1".into(), false),
        setting("pids.max", limits.nproc.saturating_add(OWN_PROCESSES).to_string(), true),
        setting("cpu.weight", WEIGHT.into(), false),
        setting("io.weight", WEIGHT.into(), false),
    ];
    if let Some(high) = limits.memory_high_bytes {
        settings.push(setting("memory.high", high.to_string(), true));
    }
    if let Some(percent) = limits.cpu_percent {
        let quota = u64::from(percent) * CPU_PERIOD_US / 100;
        settings.push(setting("cpu.max", format!("{quota} {CPU_PERIOD_US}"), true));
    }
    settings
}

/// Sets all limits. Returns those that this machine does not offer; one that it offers and refuses is an
/// error.
pub(super) fn apply(dir: &Path, limits: &Limits, controllers: &[&str]) -> Result<Vec<String>, GroupError> {
    let mut lacking = Vec::new();
    for Setting { controller, file, value, needed } in settings(limits) {
        if !controllers.contains(&controller) {
            lacking.push(format!("{file}: the controller {controller} is not available here"));
            continue;
        }
        let path = dir.join(file);
        match write(&path, &value) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                lacking.push(format!("{file}: not offered by this kernel"));
            }
            Err(source) if needed => return Err(GroupError::Limit { file: path, value, source }),
            Err(error) => lacking.push(format!("{file}: {error}")),
        }
    }
    Ok(lacking)
}
