//! Programs in their own cgroups. Needs cgroup v2 with the controllers memory and pids, and a group that is
//! ours alone; `make test-vm` starts a machine that has both.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::*;
use talon_jail::{
    ExitStatus, Group, GroupError, Groups, InheritedFds, JailSpec, JailedProgram, Limits, Status,
};

const MIB: u64 = 1 << 20;

/// Set where a test that is skipped must not pass for one that ran.
const REQUIRED: &str = "TALON_TEST_GROUPS";

/// The groups of one test's supervisor, or the reason why this machine has none.
fn groups(test: &str) -> Option<Groups> {
    // Several runs of these tests at once are several supervisors.
    let label = format!("test-{}-{}", std::process::id(), &test[..test.len().min(24)]);
    match Groups::open(&label) {
        Ok(groups) => Some(groups),
        Err(lacking) => {
            assert!(std::env::var_os(REQUIRED).is_none(), "{lacking}");
            eprintln!("skipped {test}: {lacking}");
            None
        }
    }
}

fn limits(memory_mib: u64) -> Limits {
    Limits { memory_bytes: memory_mib * MIB, ..Limits::default() }
}

fn start_in(group: &Group, spec: &JailSpec) -> JailedProgram {
    let given = InheritedFds { group: Some(group.procs()), ..InheritedFds::default() };
    talon_jail::spawn(&stage(), spec, &given, LONG).unwrap()
}

/// Where a group is.
fn dir(group: &Group) -> PathBuf {
    let procs = fs::read_link(format!("/proc/self/fd/{}", group.procs().as_raw_fd())).unwrap();
    procs.parent().unwrap().to_owned()
}

fn text(dir: &Path, file: &str) -> String {
    fs::read_to_string(dir.join(file)).unwrap().trim().to_owned()
}

/// Whatever ran in the groups of a test is over; so its own go too.
fn done(groups: Groups) {
    assert_eq!(groups.clear().unwrap(), 0, "each group was removed by its owner");
    let probe = groups.create("probe", &limits(32)).unwrap();
    let ours = dir(&probe).parent().unwrap().to_owned();
    drop(probe);
    fs::remove_dir(ours).unwrap();
}

#[test]
fn a_program_is_in_its_group_from_the_start() {
    let Some(groups) = groups("start") else { return };
    let wanted = Limits { nproc: 40, cpu_percent: Some(150), ..limits(64) };
    let group = groups.create("plugin", &wanted).unwrap();
    let dir = dir(&group);
    for (file, expected) in [
        ("memory.max", (64 * MIB).to_string()),
        ("memory.oom.group", "1".into()),
        ("pids.max", "42".into()),
        ("cpu.max", "150000 100000".into()),
        ("cpu.weight", "50".into()),
    ] {
        assert_eq!(text(&dir, file), expected, "{file}");
    }
    for lacking in group.missing_limits() {
        eprintln!("lacking: {lacking}");
        assert!(lacking.starts_with("io.") || lacking.starts_with("memory.swap"), "{lacking}");
    }
    let mut spec = isolated(sh("cat /proc/self/cgroup; read x"));
    spec.limits = wanted;
    let jailed = start_in(&group, &spec);
    assert_eq!(status(&jailed, "memory-group"), &Status::Enforced);
    assert_eq!(line(&jailed.stdout).trim_start_matches("0::"), "/", "its group is all that it sees");
    assert!(group.memory_current().unwrap() > 0);
    let outcome = finish(jailed);
    assert_eq!(group.explain(outcome.status), outcome.status, "it ended by itself");
    assert_eq!((group.oom_kills(), group.pids_refused()), (0, 0));
    drop(group);
    assert!(!dir.exists());
    done(groups);
}

/// Runs a hog in 32 MiB to its end.
fn killed_for_memory(test: &str, script: &str) {
    let Some(groups) = groups(test) else { return };
    let group = groups.create("hog", &limits(32)).unwrap();
    let neighbour = groups.create("neighbour", &limits(32)).unwrap();
    let beside = start_in(&neighbour, &sh("echo up; read x < /proc/self/fd/2"));
    line(&beside.stdout);
    let mut spec = sh(script);
    spec.identity = is_root().then(|| nobody(50));
    let outcome = finish(start_in(&group, &spec));
    let cause = group.explain(outcome.status);
    let ExitStatus::OutOfMemory { bytes, limit } = cause else { panic!("{cause}, {}", outcome.stderr) };
    assert_eq!(limit, 32 * MIB);
    assert!(bytes <= limit && bytes > limit / 2, "{bytes}");
    assert!(cause.to_string().contains("32 MiB"), "{cause}");
    eventually("nothing of it is left", || text(&dir(&group), "cgroup.events").contains("populated 0"));
    assert_eq!(neighbour.oom_kills(), 0);
    assert_eq!(beside.monitor.try_exit_status().unwrap(), None, "the neighbour goes on");
    drop((beside, group, neighbour));
    done(groups);
}

// Promises: JAIL-27
#[test]
fn one_that_takes_too_much_memory_is_killed_whole() {
    killed_for_memory("one", "sleep 1000 & exec dd if=/dev/zero of=/dev/null bs=100M count=1000");
}

#[test]
fn many_that_take_too_much_together_are_killed() {
    let one = "dd if=/dev/zero of=/dev/null bs=8M count=1000000";
    killed_for_memory("many", &format!("for i in 1 2 3 4 5 6; do {one} & done; wait; sleep 1000"));
}

#[test]
fn files_in_memory_count() {
    // The file goes with the process that has it open.
    let script =
        "f=/dev/shm/talon-test-$$; exec 3>$f; rm $f; dd if=/dev/zero bs=1M count=100 >&3; sleep 1000";
    killed_for_memory("files", script);
}

// Promises: JAIL-27
#[test]
fn a_fork_bomb_ends_at_its_limit() {
    let Some(groups) = groups("bomb") else { return };
    let group = groups.create("bomb", &Limits { nproc: 20, ..limits(64) }).unwrap();
    let mut spec = sh("bomb() { while :; do (bomb) & done; }; bomb 2>/dev/null & sleep 1000");
    spec.identity = is_root().then(|| nobody(51));
    let jailed = start_in(&group, &spec);
    eventually("a process is refused", || group.pids_refused() > 0);
    let running: u64 = text(&dir(&group), "pids.current").parse().unwrap();
    assert!(running <= 22, "{running}");
    group.kill().unwrap();
    gone(&jailed.monitor);
    drop(group);
    done(groups);
}

// Promises: JAIL-27
#[test]
fn cpu_time_is_rationed() {
    let Some(groups) = groups("cpu") else { return };
    let group = groups.create("spin", &Limits { cpu_percent: Some(10), ..limits(64) }).unwrap();
    let jailed = start_in(&group, &sh("while :; do :; done"));
    let throttled = || {
        let stat = text(&dir(&group), "cpu.stat");
        let count = stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")).unwrap();
        count.parse::<u64>().unwrap()
    };
    eventually("it is made to wait", || throttled() > 0);
    drop((jailed, group));
    done(groups);
}

// Promises: JAIL-27
#[test]
fn killing_a_group_ends_what_left_its_family() {
    let Some(groups) = groups("kill") else { return };
    let group = groups.create("daemons", &limits(64)).unwrap();
    let jailed = start_in(&group, &sh("setsid sh -c 'sleep 1000 & echo $!; sleep 1000' & sleep 1000"));
    let daemon = line(&jailed.stdout);
    group.kill().unwrap();
    gone(&jailed.monitor);
    eventually("the daemon is dead", || is_dead(&daemon));
    // Its monitor was in it, so there is no report of how it ended.
    let ended = jailed.monitor.try_exit_status().unwrap();
    assert_eq!(ended, Some(ExitStatus::MonitorLost));
    assert_eq!(group.explain(ExitStatus::MonitorLost), ExitStatus::MonitorLost, "memory was not why");
    drop(group);
    done(groups);
}

#[test]
fn a_group_that_is_dropped_takes_its_processes_along() {
    let Some(groups) = groups("drop") else { return };
    let group = groups.create("left", &limits(64)).unwrap();
    let jailed = start_in(&group, &sh("echo $$; sleep 1000"));
    let pid = line(&jailed.stdout);
    assert!(matches!(groups.create("left", &limits(64)), Err(GroupError::InUse(_))), "it is in use");
    let dir = dir(&group);
    drop(group);
    assert!(!dir.exists());
    assert!(is_dead(&pid));
    gone(&jailed.monitor);
    done(groups);
}

// Promises: JAIL-28
#[test]
fn what_an_earlier_supervisor_left_is_cleared_and_nothing_else() {
    let Some(groups) = groups("crash") else { return };
    let Some(others) = self::groups("other") else { return };
    let other = others.create("plugin", &limits(64)).unwrap();
    let theirs = start_in(&other, &sh("echo $$; sleep 1000"));
    let their_pid = line(&theirs.stdout);

    let left = groups.create("left", &limits(64)).unwrap();
    let jailed = start_in(&left, &sh("echo $$; sleep 1000"));
    let (pid, dir) = (line(&jailed.stdout), dir(&left));
    fs::create_dir(dir.join("below")).unwrap();
    std::mem::forget(left);
    let empty = groups.create("empty", &limits(64)).unwrap();
    std::mem::forget(empty);
    assert_eq!(groups.clear().unwrap(), 2);
    assert!(!dir.exists());
    assert!(is_dead(&pid));
    gone(&jailed.monitor);

    assert!(!is_dead(&their_pid), "somebody else's was killed");
    drop((theirs, other));
    done(groups);
    done(others);
}

#[test]
fn an_empty_leftover_of_the_same_name_is_replaced() {
    let Some(groups) = groups("again") else { return };
    std::mem::forget(groups.create("plugin", &limits(64)).unwrap());
    let group = groups.create("plugin", &limits(48)).unwrap();
    assert_eq!(text(&dir(&group), "memory.max"), (48 * MIB).to_string());
    drop(group);
    done(groups);
}

/// The label by which a second supervisor, this binary once more, opens its groups.
const LABEL: &str = "TALON_TEST_LABEL";

/// Only something when it is started by [`Other`].
#[test]
fn another_supervisor() {
    let Some(label) = std::env::var_os(LABEL) else { return };
    match Groups::open(label.to_str().unwrap()) {
        Ok(groups) => {
            drop(groups.create("plugin", &limits(64)).unwrap());
            println!("opened {:?}", groups.controllers());
        }
        Err(lacking) => println!("lacking {lacking}"),
    }
    println!("in {}", fs::read_to_string("/proc/self/cgroup").unwrap().trim());
}

/// A separate group for a second supervisor, as a service manager makes one.
struct Other {
    dir: PathBuf,
    /// With the end of its output: it would not outlive that.
    member: Option<(Child, OwnedFd)>,
}

impl Other {
    fn new(beside: &Groups, name: &str) -> Self {
        let probe = beside.create("probe", &limits(64)).unwrap();
        let base = dir(&probe).ancestors().nth(2).unwrap().to_owned();
        let dir = base.join(format!("other-{}-{name}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        Self { dir, member: None }
    }

    fn in_it(&self, group: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg("echo $$ > \"$0/cgroup.procs\" && exec \"$@\"").arg(self.dir.join(group));
        command
    }

    /// Somebody else in the same group.
    fn with_a_stranger(mut self) -> Self {
        let mut member = self.in_it("".as_ref());
        let member = member.args(["cat", "/proc/self/cgroup", "-"]);
        let mut member = member.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = OwnedFd::from(member.stdout.take().unwrap());
        // It is there once it has said so.
        line(&said);
        self.member = Some((member, said));
        self
    }

    /// What a supervisor says that is started in it.
    fn open(&self, group: &str) -> String {
        let test = std::env::current_exe().unwrap();
        let mut command = self.in_it(group.as_ref());
        command.arg(test).args(["--exact", "another_supervisor", "--nocapture"]).env(LABEL, "second");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        if let Some((mut member, _said)) = self.member.take() {
            drop(member.stdin.take());
            let _ = member.wait();
        }
        for below in ["talon-second", "supervisor", ""] {
            let _ = fs::remove_dir(self.dir.join(below));
        }
        assert!(!self.dir.exists() || std::thread::panicking(), "{} is left", self.dir.display());
    }
}

#[test]
fn a_supervisor_moves_into_a_leaf_and_finds_it_again() {
    let Some(groups) = groups("leaf") else { return };
    let other = Other::new(&groups, "leaf");
    let name = other.dir.file_name().unwrap().to_str().unwrap();
    let said = other.open("");
    assert!(said.contains("opened [\"memory\", \"pids\""), "{said}");
    assert!(said.contains(&format!("{name}/supervisor")), "{said}");
    // Started again where it was.
    let again = other.open("supervisor");
    assert!(again.contains("opened") && again.contains(&format!("{name}/supervisor\n")), "{again}");
    drop(other);
    done(groups);
}

#[test]
fn a_group_with_somebody_else_in_it_stays_as_it_is() {
    let Some(groups) = groups("stranger") else { return };
    let other = Other::new(&groups, "stranger").with_a_stranger();
    let said = other.open("");
    assert!(said.contains("lacking 1 other processes are in the cgroup"), "{said}");
    assert!(!said.contains("/supervisor"), "{said}");
    assert_eq!(text(&other.dir, "cgroup.subtree_control"), "");
    assert!(!other.dir.join("supervisor").exists());
    drop(other);
    done(groups);
}
