//! What a program in the jail gets, and what it does not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;

use common::*;
use talon_jail::{ExitStatus, InheritedFds, Mode, Program, Status};

#[test]
fn output_errors_and_exit_code_arrive() {
    let outcome = run(&sh("echo out; echo err >&2; exit 3"));
    assert_eq!(outcome.stdout, "out\n");
    assert_eq!(outcome.stderr, "err\n");
    assert_eq!(outcome.status, ExitStatus::Code(3));
}

// Promises: LAUNCH-27
#[test]
fn a_program_by_descriptor_runs_where_its_path_could_not_be_reached() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    std::fs::copy("/bin/sh", &path).unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let file = File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();

    let mut wanted = sh("echo $0; exit 4");
    wanted.program = Program::Descriptor;
    wanted.argv.push("its-own-name".into());
    wanted.identity = is_root().then(|| nobody(1));
    let outcome = finish(talon_jail::spawn(&stage(), &wanted, &with_program(&file), LONG).unwrap());
    assert_eq!((outcome.stdout.as_str(), outcome.status), ("its-own-name\n", ExitStatus::Code(4)));
}

// Promises: LAUNCH-2
#[test]
fn only_standard_descriptors_are_open() {
    let _extra = File::open("/dev/zero").unwrap();
    let program = File::open("/bin/sh").unwrap();
    let mut by_descriptor = sh("ls -l /proc/$$/fd");
    by_descriptor.program = Program::Descriptor;
    for (wanted, program) in [(sh("ls -l /proc/$$/fd"), None), (by_descriptor, Some(program.as_fd()))] {
        let outcome = finish(
            talon_jail::spawn(&stage(), &wanted, &InheritedFds { program, ..InheritedFds::default() }, LONG)
                .unwrap(),
        );
        let open: Vec<_> = outcome.stdout.lines().filter_map(|line| line.split_once(" -> ")).collect();
        assert_eq!(open.len(), 3, "{}", outcome.stdout);
        assert!(open[0].0.ends_with(" 0") && open[0].1 == "/dev/null", "{open:?}");
        assert!(open[1].0.ends_with(" 1") && open[1].1.starts_with("pipe:"), "{open:?}");
        assert!(open[2].0.ends_with(" 2") && open[2].1.starts_with("pipe:"), "{open:?}");
    }
}

#[test]
fn the_environment_is_the_given_one_alone() {
    let mut wanted = spec(&["/usr/bin/env"]);
    wanted.env = vec![("A".into(), "1".into()), ("B".into(), "x=y z".into())];
    assert_eq!(run(&wanted).stdout, "A=1\nB=x=y z\n");
    wanted.env.clear();
    assert_eq!(run(&wanted).stdout, "");
}

// Promises: LAUNCH-4
#[test]
fn limits_are_set_hard_and_soft() {
    let mut wanted = sh("cat /proc/self/limits");
    wanted.limits.nofile = 200;
    wanted.limits.fsize_bytes = 4096;
    wanted.limits.memlock_bytes = 8192;
    wanted.limits.data_bytes = Some(1 << 30);
    let jailed = start(&wanted).unwrap();
    assert_eq!(*status(&jailed, "rlimits"), Status::Enforced);
    let limits = finish(jailed).stdout;
    for (name, value) in [
        ("Max open files", "200"),
        ("Max file size", "4096"),
        ("Max locked memory", "8192"),
        ("Max data size", "1073741824"),
        ("Max core file size", "1"),
    ] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let mut columns = line[name.len()..].split_whitespace();
        assert_eq!((columns.next(), columns.next()), (Some(value), Some(value)), "{line}");
    }
}

// Promises: LAUNCH-5
#[test]
fn a_limit_above_the_supervisors_own_is_lowered_and_said() {
    let mut wanted = sh("ulimit -Hn");
    wanted.limits.nofile = 1 << 40;
    let jailed = start(&wanted).unwrap();
    let Status::StandIn(text) = status(&jailed, "rlimits").clone() else { panic!("{:?}", jailed.report) };
    let given = finish(jailed).stdout;
    assert!(text.contains(&format!("nofile {} instead of {}", given.trim(), 1_u64 << 40)), "{text}");
}

/// The lines of /proc/self/status that the tests look at.
const STATUS: &str = "grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|SigBlk|SigIgn|Umask):' /proc/self/status";

fn value<'s>(status: &'s str, name: &str) -> &'s str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim()
}

// Promises: LAUNCH-12
#[test]
fn no_privileges_no_blocked_signals_and_a_private_umask() {
    let outcome = run(&sh(STATUS));
    assert_eq!(value(&outcome.stdout, "NoNewPrivs"), "1");
    assert_eq!(value(&outcome.stdout, "Umask"), "0077");
    for none in ["CapInh", "CapPrm", "CapEff", "CapAmb", "SigBlk", "SigIgn"] {
        assert_eq!(value(&outcome.stdout, none), "0000000000000000", "{none}");
    }
    if is_root() {
        assert_eq!(value(&outcome.stdout, "CapBnd"), "0000000000000000");
    }
}

// Promises: LAUNCH-7
#[test]
fn an_identity_is_its_uid_and_gid_and_no_group() {
    if skipped_without_root("an_identity_is_its_uid_and_gid_and_no_group") {
        return;
    }
    let mut wanted = sh(&format!("{STATUS}; grep processes /proc/self/limits"));
    wanted.identity = Some(nobody(2));
    wanted.limits.nproc = 50;
    let jailed = start(&wanted).unwrap();
    for name in ["own-uid", "process-tree", "process-count", "capabilities", "bounding-set"] {
        assert_eq!(*status(&jailed, name), Status::Enforced, "{name}");
    }
    let outcome = finish(jailed);
    let [uid, gid] = [nobody(2).uid, nobody(2).gid].map(|id| format!("{id}\t{id}\t{id}\t{id}"));
    assert_eq!(value(&outcome.stdout, "Uid"), uid);
    assert_eq!(value(&outcome.stdout, "Gid"), gid);
    assert_eq!(value(&outcome.stdout, "Groups"), "");
    let processes: Vec<_> = outcome.stdout.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(processes, ["Max", "processes", "50", "50", "processes"]);
}

// Promises: LAUNCH-11
#[test]
fn a_shared_uid_is_said_loudly() {
    let mut wanted = sh("id -u");
    let jailed = start(&wanted).unwrap();
    let own = rustix::process::getuid().as_raw().to_string();
    assert!(matches!(status(&jailed, "own-uid"), Status::Missing(text) if text.contains(&own)));
    assert!(matches!(status(&jailed, "process-count"), Status::Missing(_)));
    assert!(matches!(status(&jailed, "process-tree"), Status::StandIn(_)));
    assert_eq!(finish(jailed).stdout.trim(), own);

    wanted.mode = Mode::Off;
    let off = start(&wanted).unwrap();
    for name in ["no-new-privs", "rlimits", "capabilities"] {
        assert!(matches!(status(&off, name), Status::Missing(text) if text.contains("off")), "{name}");
    }
    assert_eq!(finish(off).stdout.trim(), own);
}

#[test]
fn what_was_not_asked_for_is_in_every_report() {
    let jailed = start(&sh("exit 0")).unwrap();
    for name in ["filesystem", "network", "namespaces"] {
        assert!(matches!(status(&jailed, name), Status::Missing(_)), "{name}");
    }
    finish(jailed);
}

// Promises: LAUNCH-16
#[test]
fn the_program_leads_a_group_of_its_own_and_is_no_session_leader() {
    let outcome = run(&sh("cat /proc/$$/stat; echo $$"));
    let (stat, own) = outcome.stdout.trim().split_once('\n').unwrap();
    let [group, session, terminal] = group_session_terminal(stat);
    assert_eq!(group, own);
    assert_ne!(session, own);
    // Our own may be 0: that of a leader outside our pid namespace.
    let ours = std::fs::read_to_string("/proc/self/stat").unwrap();
    assert_ne!(session, group_session_terminal(&ours)[1]);
    assert_eq!(terminal, "0", "it has a terminal");
}

fn group_session_terminal(stat: &str) -> [&str; 3] {
    let columns: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    [columns[2], columns[3], columns[4]]
}

// Promises: LAUNCH-21
#[test]
fn the_monitor_holds_nothing_of_the_program_and_no_capability_but_kill() {
    let jailed = start(&sh("echo up; exec sleep 1000")).unwrap();
    line(&jailed.stdout);
    let monitor = jailed.monitor.pid();
    let status = std::fs::read_to_string(format!("/proc/{monitor}/status")).unwrap();
    let kill = if is_root() { "0000000000000020" } else { "0000000000000000" };
    assert_eq!(value(&status, "CapEff"), kill);
    assert_eq!(value(&status, "CapPrm"), kill);
    if is_root() {
        let fds = std::fs::read_dir(format!("/proc/{monitor}/fd")).unwrap();
        for fd in fds {
            let target = std::fs::read_link(fd.unwrap().path()).unwrap();
            assert!(!target.to_string_lossy().starts_with("pipe:"), "{target:?}");
        }
        assert_eq!(std::fs::read_link(format!("/proc/{monitor}/cwd")).unwrap().to_string_lossy(), "/");
    }
    jailed.monitor.kill_all().unwrap();
    finish(jailed);
}

#[test]
fn it_may_open_its_output_by_name() {
    let mut wanted = isolated(sh("echo out >/dev/stdout; echo err >/dev/stderr"));
    wanted.identity = is_root().then(|| nobody(60));
    let outcome = run(&wanted);
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("out\n", "err\n"));
}
