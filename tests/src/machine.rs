//! A Debian machine with its own systemd, in a container: for tests of units and packages.
//!
//! `systemd-nspawn` boots a root that mmdebstrap made once, below `target/systemd`; all changes in it are
//! discarded. Commands enter its namespaces from outside, so that the test needs no software in it.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use talon_harness::{Scratch, is_root, target};

/// The release that is booted.
const RELEASE: &str = "bookworm";
/// The packages besides Debian's minimal set: the service manager, what its tools need, and ps.
const PACKAGES: &str = "systemd,systemd-sysv,dbus,procps,util-linux,curl";
/// Only a limit for hangs, not an expectation of speed.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// The cgroup hierarchies that a service manager uses: both versions, and the second alone.
const HIERARCHIES: [&str; 3] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup"];

/// A running machine. Dropping it ends it with all its processes.
#[derive(Debug)]
pub struct Machine {
    container: Child,
    /// The pid of the machine's first process on the host.
    first: u32,
    groups: Vec<PathBuf>,
    /// The directory that is `/in` inside.
    pub shared: Scratch,
}

impl Machine {
    /// Why a machine cannot be booted here, if so.
    #[must_use]
    pub fn missing_requirement() -> Option<String> {
        if !is_root() {
            return Some("only root boots machines".to_owned());
        }
        let missing = ["systemd-nspawn", "mmdebstrap", "nsenter"]
            .into_iter()
            .find(|tool| Command::new(tool).arg("--version").output().is_err());
        missing.map(|tool| format!("{tool} is not installed (tests/scripts/deps.sh test installs it)"))
    }

    /// Boots a machine.
    ///
    /// # Errors
    /// Why this host cannot: no packages to build it from, or containers that do not boot.
    ///
    /// # Panics
    /// When our own files cannot be created.
    pub fn boot() -> Result<Self, String> {
        let root = root()?;
        let shared = Scratch::new();
        let groups = groups();
        let enter: Vec<_> = groups.iter().map(|group| group.join("cgroup.procs")).collect();
        let log = fs::File::create(shared.join("console.log")).expect("the scratch directory takes files");
        let mut script = String::from("set -e\n");
        for procs in &enter {
            script.push_str(&format!("echo $$ >{}\n", procs.display()));
        }
        script.push_str("exec systemd-nspawn \"$@\"\n");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script, "sh", "-q", "--volatile=overlay", "--keep-unit", "--register=no"])
            .args(["--private-network", "--console=pipe", "--link-journal=no", "-M"])
            .arg(format!("talon-test-{}", std::process::id()))
            .arg("-D")
            .arg(&root)
            .arg(format!("--bind={}:/in", shared.path().display()))
            // nspawn's own filter precedes the units' and does not allow these.
            .arg("--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self")
            .args(["--boot", "systemd.unit=multi-user.target", "systemd.show_status=no"])
            // Version 2 if the host has it besides version 1: plugins' groups are made there.
            .env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            // A ^C is for the test runner.
            .process_group(0);
        let container = command.spawn().map_err(|error| format!("systemd-nspawn does not start: {error}"))?;
        let mut machine = Self { container, first: 0, groups, shared };
        machine.await_boot()?;
        Ok(machine)
    }

    fn await_boot(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let ended = self.container.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                let console = fs::read_to_string(self.shared.join("console.log")).unwrap_or_default();
                return Err(format!("the container does not boot ({ended:?}): {console}"));
            }
            // The first child is an intermediate process, which makes the namespaces and ends.
            self.first = child_of(self.container.id()).unwrap_or(0);
            let state = match self.first {
                0 => String::new(),
                _ => String::from_utf8_lossy(&self.run(&["systemctl", "is-system-running", "--wait"]).stdout)
                    .into_owned(),
            };
            // Degraded means that some of its own units failed; ours are tested all the same.
            if matches!(state.trim_end(), "running" | "degraded") {
                return Ok(());
            }
            pause();
        }
    }

    /// Runs a program in it, as root.
    ///
    /// # Panics
    /// When nsenter is gone.
    #[must_use]
    pub fn run(&self, words: &[&str]) -> Output {
        Command::new("timeout")
            .arg(WAIT_TIMEOUT.as_secs().to_string())
            .args(["nsenter", "--all", "--target", &self.first.to_string(), "env", "-i"])
            .args(["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=", "HOME=/root"])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .expect("nsenter starts")
    }

    /// Runs a shell script in it, which must succeed; returns its output.
    ///
    /// # Panics
    /// When it fails, with diagnostics.
    pub fn sh(&self, script: &str) -> String {
        let output = self.run(&["sh", "-euc", script]);
        let said = text(&output);
        assert!(output.status.success(), "{script}: {}\n{said}\n{}", output.status, self.diagnostics());
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// One property of a unit.
    #[must_use]
    pub fn show(&self, unit: &str, property: &str) -> String {
        self.sh(&format!("systemctl show --value --property={property} {unit}"))
    }

    /// Polls until the output of a script satisfies the predicate.
    ///
    /// # Panics
    /// When it never does.
    pub fn until(&self, what: &str, script: &str, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let output = self.run(&["sh", "-c", script]);
            let said = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
            if wanted(&said) {
                return said;
            }
            assert!(
                Instant::now() < deadline,
                "there was never {what}; last: {said}\n{}",
                self.diagnostics()
            );
            pause();
        }
    }

    /// The state of Talon in systemd and the journal, for a failed test.
    #[must_use]
    pub fn diagnostics(&self) -> String {
        let script = "systemctl status talon.service talon.socket --no-pager -l; \
                      journalctl --no-pager -o short-monotonic -n 80 _SYSTEMD_UNIT=talon.service + UNIT=talon.service";
        text(&self.run(&["sh", "-c", script]))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for pid in [self.first, self.container.id()].into_iter().filter(|pid| *pid != 0) {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
        let _ = self.container.wait();
        for group in &self.groups {
            let _ = fs::write(group.join("cgroup.kill"), "1");
            // The kernel keeps a group until its last process is gone.
            let deadline = Instant::now() + Duration::from_secs(10);
            while remove_groups(group).is_err() && Instant::now() < deadline {
                pause();
            }
        }
    }
}

/// Between two polls: there is no notification across the machine's boundary.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing that could be waited for reaches out of another machine"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A new group in each hierarchy, so that its leftovers can be found.
fn groups() -> Vec<PathBuf> {
    let name = format!("talon-test-{}", std::process::id());
    let usable = |hierarchy: &&&str| Path::new(hierarchy).join("cgroup.procs").exists();
    HIERARCHIES
        .iter()
        .filter(usable)
        .map(|hierarchy| Path::new(hierarchy).join(&name))
        .filter(|group| fs::create_dir(group).is_ok())
        .collect()
}

fn remove_groups(group: &Path) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(group) else { return Ok(()) };
    for entry in entries.flatten() {
        if entry.file_type()?.is_dir() {
            remove_groups(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

fn child_of(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// The root file system, built if it is missing: a quarter of a minute and 200 MB.
fn root() -> Result<PathBuf, String> {
    let dir = target().join("systemd");
    fs::create_dir_all(&dir).expect("the target directory takes directories");
    // Of concurrent tests, only one builds it.
    let lock = fs::File::create(dir.join("lock")).expect("the target directory takes files");
    let _held = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, errno)| errno.to_string())?;
    let root = dir.join(RELEASE);
    if root.join("usr/bin/curl").exists() {
        return Ok(root);
    }
    let making = dir.join(format!("{RELEASE}.making"));
    let _ = fs::remove_dir_all(&making);
    eprintln!("making a Debian {RELEASE} to boot, once …");
    let made = Command::new("mmdebstrap")
        .args(["--quiet", "--variant=minbase"])
        .arg(format!("--include={PACKAGES}"))
        .arg(RELEASE)
        .arg(&making)
        .output()
        .map_err(|error| format!("mmdebstrap does not start: {error}"))?;
    if !made.status.success() {
        return Err(format!("mmdebstrap made no Debian: {}", text(&made)));
    }
    fs::rename(&making, &root).map_err(|error| error.to_string())?;
    Ok(root)
}
