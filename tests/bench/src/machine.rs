//! The machine of a run, and whether it was quiet.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use crate::samples::Samples;

/// The largest interquartile range of the noise probe's times, as a part of the median; above it the table
/// says that the machine was too noisy. Measured: 0.01 to 0.03 on a quiet virtual machine, 0.20 and more next
/// to a compiler.
pub const NOISY: f64 = 0.10;

/// Where and when a run was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOrigin {
    /// The commit, with `+` appended if the tree was changed.
    pub commit: String,
    /// The day, in UTC.
    pub date: String,
    /// The processor's name, the cores this process may use, the kernel's release.
    pub machine: String,
    /// Whether it was the short run.
    pub quick: bool,
    /// How long the run took, in seconds.
    pub seconds: u64,
    /// The noise of the machine during each suite: the spread of the same work's times, as a part of their
    /// median. Kept for each suite, because a noisy period in one of them would disappear in the whole run.
    pub noise: BTreeMap<String, f64>,
    /// How many cores the busy neighbours took, by the suite that was measured beside them; empty if none
    /// was.
    #[serde(default)]
    pub neighbour_cores: BTreeMap<String, f64>,
}

/// Times the same piece of work repeatedly during a run.
#[derive(Debug)]
pub struct Probe {
    /// The times of the work, by suite.
    times: BTreeMap<String, Samples>,
    /// The suite; `None` beside busy neighbours, where noise is intended.
    now: Option<String>,
}

impl Probe {
    /// A probe that begins with this suite.
    #[must_use]
    pub fn new(suite: &str) -> Self {
        Self { times: BTreeMap::new(), now: Some(suite.to_owned()) }
    }

    /// Switches to another suite. `None`: the probe times nothing until the next switch.
    pub fn turn_to(&mut self, suite: Option<&str>) {
        self.now = suite.map(str::to_owned);
    }

    /// Runs the work once: about a millisecond of arithmetic that fits into a core's own cache.
    pub fn run_once(&mut self) {
        let Some(now) = &self.now else { return };
        let begin = Instant::now();
        let mut value = 1_u64;
        for number in 0..400_000_u64 {
            value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(number));
        }
        std::hint::black_box(value);
        self.times.entry(now.clone()).or_default().0.push(begin.elapsed().as_secs_f64());
    }

    /// The spread of the times, by suite.
    #[must_use]
    pub fn noise(&self) -> BTreeMap<String, f64> {
        let relative = |times: &Samples| times.spread().map_or(0.0, |spread| spread.relative_width());
        self.times.iter().map(|(suite, times)| (suite.clone(), relative(times))).collect()
    }
}

impl RunOrigin {
    /// The suites in which the machine was too noisy, for people: `many (14 %)`; `None` if it was quiet in
    /// all.
    #[must_use]
    pub fn noisy(&self) -> Option<String> {
        let noisy = self.noise.iter().filter(|(_, noise)| **noise > NOISY);
        let told: Vec<String> =
            noisy.map(|(suite, noise)| format!("{suite} ({:.0} %)", noise * 100.0)).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// The origin of a run on this machine and tree, now.
    #[must_use]
    pub fn of_here(quick: bool, took: Duration, probe: &Probe) -> Self {
        let said = |program: &str, arguments: &[&str]| {
            let output =
                Command::new(program).args(arguments).current_dir(talon_tests::repository()).output();
            let output = output.ok().filter(|output| output.status.success())?;
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let commit =
            said("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
        let changed = said("git", &["status", "--porcelain", "--untracked-files=no"]);
        let changed = changed.is_some_and(|changed| !changed.is_empty());
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let kernel = said("uname", &["-r"]).unwrap_or_default();
        let today = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        Self {
            commit: format!("{commit}{}", if changed { "+" } else { "" }),
            date: today.split('T').next().unwrap_or_default().to_owned(),
            machine: format!("{}, {cores} cores, Linux {kernel}", processor()),
            quick,
            seconds: took.as_secs(),
            noise: probe.noise(),
            neighbour_cores: BTreeMap::new(),
        }
    }
}

fn processor() -> String {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = told.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
