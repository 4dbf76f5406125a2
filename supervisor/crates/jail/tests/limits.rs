//! Resource limits, seen inside and hit.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::process::Command;

use common::*;
use talon_jail::{ExitStatus, JailSpec, Mode, Status};

/// Perl is what every Debian and most others have, and it can make any system call.
fn perl(script: &str) -> JailSpec {
    spec(&["/usr/bin/perl", "-MErrno", "-e", script])
}

fn skipped_without_perl(test: &str) -> bool {
    let is_there = Path::new("/usr/bin/perl").exists();
    if !is_there {
        eprintln!("skipped {test}: there is no /usr/bin/perl");
    }
    !is_there
}

fn killed(signal: i32) -> ExitStatus {
    ExitStatus::Signal { signal, core_dumped: false }
}

/// The soft and the hard value of a line of `/proc/self/limits`.
fn limit<'l>(limits: &'l str, name: &str) -> (&'l str, &'l str) {
    let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
    let mut columns = line[name.len()..].split_whitespace();
    (columns.next().unwrap(), columns.next().unwrap())
}

#[test]
fn all_that_are_set_are_seen_inside() {
    let mut wanted = sh("cat /proc/self/limits");
    wanted.limits.as_bytes = Some(3 << 30);
    wanted.limits.cpu_seconds = Some(77);
    wanted.limits.stack_bytes = 4 << 20;
    let jailed = start(&wanted).unwrap();
    assert_eq!(*status(&jailed, "rlimits"), Status::Enforced);
    let limits = finish(jailed).stdout;
    for (name, value) in [
        ("Max open files", "1024"),
        ("Max file size", "1073741824"),
        ("Max locked memory", "65536"),
        ("Max core file size", "1"),
        ("Max data size", "4294967296"),
        ("Max stack size", "4194304"),
        ("Max address space", "3221225472"),
        ("Max cpu time", "77"),
        ("Max msgqueue size", "0"),
        ("Max realtime priority", "0"),
        ("Max nice priority", "0"),
    ] {
        assert_eq!(limit(&limits, name), (value, value), "{name}");
    }
    let open = run(&sh("cat /proc/self/limits")).stdout;
    for name in ["Max address space", "Max cpu time"] {
        assert_eq!(limit(&open, name).0, "unlimited", "{name} is for those who ask");
    }
}

// Promises: JAIL-23
#[test]
fn none_can_be_raised() {
    let script =
        "for limit in n f l d s c; do ulimit -H$limit unlimited 2> /dev/null && echo $limit; done; true";
    assert_eq!(run(&sh(script)).stdout, "");
    assert_eq!(
        run(&sh("ulimit -n 2000 2> /dev/null || echo no; ulimit -n 100 && echo yes")).stdout,
        "no\nyes\n"
    );
}

// Promises: JAIL-23
#[test]
fn a_hog_of_descriptors_stops_at_its_limit() {
    if skipped_without_perl("a_hog_of_descriptors_stops_at_its_limit") {
        return;
    }
    let hog = "my @held; while (open(my $next, '<', '/dev/null')) { push @held, $next; }
               print scalar(@held), $!{EMFILE} ? ' full' : \" $!\";";
    // Three are standard ones.
    assert_eq!(run(&perl(hog)).stdout, "1021 full");
}

// Promises: JAIL-23
#[test]
fn a_file_ends_at_its_limit() {
    if skipped_without_perl("a_file_ends_at_its_limit") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large");
    let mut wanted = perl(&format!(
        "$SIG{{XFSZ}} = 'IGNORE'; open(my $file, '>', '{}') or die;
         my $some = 'x' x 65536; while (syswrite($file, $some)) {{}} print $!{{EFBIG}} ? 'too big' : $!;",
        path.display()
    ));
    wanted.limits.fsize_bytes = 1 << 20;
    assert_eq!(run(&wanted).stdout, "too big");
    assert_eq!(path.metadata().unwrap().len(), 1 << 20);
}

// Promises: JAIL-23
#[test]
fn memory_stack_and_cpu_time_end_where_they_should() {
    if skipped_without_perl("memory_stack_and_cpu_time_end_where_they_should") {
        return;
    }
    let mut memory = perl("my $hog = 'x' x (256 << 20); print 'got it';");
    assert_eq!(run(&memory).stdout, "got it");
    memory.limits.data_bytes = Some(128 << 20);
    let outcome = run(&memory);
    assert!(outcome.stdout.is_empty() && outcome.stderr.contains("Out of memory"), "{}", outcome.stderr);

    let mut stack = sh("f() { f; }; f");
    stack.limits.stack_bytes = 256 << 10;
    assert_eq!(run(&stack).status, killed(libc::SIGSEGV));

    let mut cpu = sh("while :; do :; done");
    cpu.limits.cpu_seconds = Some(1);
    assert_eq!(run(&cpu).status, killed(libc::SIGKILL));
}

#[test]
fn what_no_plugin_needs_is_refused() {
    if skipped_without_perl("what_no_plugin_needs_is_refused") {
        return;
    }
    let (open, remove, schedule) = (libc::SYS_mq_open, libc::SYS_mq_unlink, libc::SYS_sched_setscheduler);
    let (create, fifo) = (libc::O_CREAT | libc::O_RDWR, libc::SCHED_FIFO);
    let script = format!(
        "my $name = \"talon-limits-test\";
         if (syscall({open}, $name, {create}, 0600, 0) < 0) {{ print $!{{EMFILE}} ? 'refused ' : \"$! \"; }}
         else {{ syscall({remove}, $name); print 'made '; }}
         my $priority = pack('i', 1);
         print syscall({schedule}, 0, {fifo}, $priority) < 0 ? ($!{{EPERM}} ? 'refused' : $!) : 'real time';"
    );
    assert_eq!(run(&perl(&script)).stdout, "refused refused");
}

// Promises: JAIL-25
#[test]
fn it_stands_behind_everybody_else() {
    if skipped_without_perl("it_stands_behind_everybody_else") {
        return;
    }
    let own = rustix::process::getpriority_process(None).unwrap();
    let script = "print getpriority(0, 0), ' '; setpriority(0, 0, getpriority(0, 0) - 1);
                  print $!{EACCES} ? 'refused ' : 'raised ', getpriority(0, 0), ' ';
                  open(my $score, '<', '/proc/self/oom_score_adj') or die; print <$score>;
                  if (open(my $session, '<', '/proc/self/autogroup')) { print <$session>; }";
    let mut wanted = perl(script);
    wanted.limits.nice = 3;
    let jailed = start(&wanted).unwrap();
    let share = status(&jailed, "cpu-share").clone();
    let nice = (own + 3).min(19);
    assert!(
        matches!(&share, Status::StandIn(text) if text.starts_with(&format!("nice {nice}")) && text.contains("cgroup")),
        "{share:?}"
    );
    let out = finish(jailed).stdout;
    let mut lines = out.lines();
    assert_eq!(lines.next().unwrap(), format!("{nice} refused {nice} 500"));
    // Others than root may get EAGAIN.
    if let Some(session) = lines.next().filter(|_| is_root()) {
        assert!(session.ends_with(" nice 3"), "{session}");
    }
}

/// Starts a supervisor by way of something that changes how it runs, and gives what its program says of
/// itself.
fn under(changed: &[&str], inside: &str) -> Option<String> {
    if !Path::new(changed[0]).exists() {
        eprintln!("skipped: there is no {}", changed[0]);
        return None;
    }
    let fixture = env!("CARGO_BIN_EXE_jail-fixture");
    let mut command = Command::new(changed[0]);
    let output = command.args(&changed[1..]).args([fixture, "/bin/sh", "-c", inside]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    if text.is_empty() {
        eprintln!("skipped: {changed:?}: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    assert!(text.contains("rlimits: Enforced"), "{text}");
    let (_, inside) = text.split_once("\n\n").unwrap();
    Some(inside.to_owned())
}

#[test]
fn how_the_supervisor_is_run_is_not_inherited() {
    // Of the program and its monitor.
    const POLICY: &str = "chrt -p $$; chrt -p $PPID";
    if let Some(inside) = under(&["/usr/bin/chrt", "-r", "5"], POLICY) {
        assert_eq!(inside.matches("SCHED_OTHER").count(), 2, "{inside}");
    }
    if let Some(inside) = under(&["/usr/bin/chrt", "-b", "0"], POLICY) {
        assert_eq!(inside.matches("SCHED_BATCH").count(), 2, "what comes after others stays: {inside}");
    }
    for class in [["-c1", "-n0"], ["-c2", "-n0"]] {
        let changed = ["/usr/bin/ionice", class[0], class[1]];
        if let Some(inside) = under(&changed, "ionice -p $$; ionice -p $PPID") {
            assert!(inside.starts_with("none: prio 0\nnone: prio 0\n"), "{inside}");
        }
    }
    if let Some(inside) = under(&["/usr/bin/ionice", "-c3"], "ionice -p $$; ionice -p $PPID") {
        assert!(inside.starts_with("idle\nidle\n"), "{inside}");
    }
    if let Some(inside) = under(&["/usr/bin/setarch", "-R"], "cat /proc/self/personality") {
        assert!(inside.starts_with("00000000\n"), "{inside}");
    }
}

#[test]
fn nothing_is_set_where_it_is_switched_off() {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let mut wanted = sh("cat /proc/self/oom_score_adj; nice");
    wanted.mode = Mode::Off;
    let nice = rustix::process::getpriority_process(None).unwrap();
    assert_eq!(run(&wanted).stdout, format!("{own}{nice}\n"));
}

/// Forks until it is stopped, and says what it got to.
const BOMB: &str = "my $count = 1; $| = 1;
    while (1) {
        my $child = fork();
        last if !defined $child;
        if ($child == 0) { close STDOUT; close STDERR; sleep; exit; }
        die 'never stops' if ++$count > 100;
    }
    print $count, $!{EAGAIN} ? ' full' : \" $!\";
    open(my $limits, '<', '/proc/self/limits'); print <$limits>;";

// Promises: JAIL-24
#[test]
fn a_bomb_of_processes_stops_at_the_limit_of_its_uid() {
    const TEST: &str = "a_bomb_of_processes_stops_at_the_limit_of_its_uid";
    if skipped_without_root(TEST) || skipped_without_perl(TEST) {
        return;
    }
    let mut bomb = perl(BOMB);
    bomb.identity = Some(nobody(40));
    bomb.limits.nproc = 20;
    let jailed = start(&bomb).unwrap();
    assert_eq!(*status(&jailed, "process-count"), Status::Enforced);
    let out = finish(jailed).stdout;
    assert!(out.starts_with("20 full"), "{out}");
    assert_eq!(limit(&out, "Max pending signals"), ("256", "256"));
}

// Promises: JAIL-24
#[test]
fn in_a_user_namespace_the_bomb_is_counted_apart_from_its_uid() {
    const TEST: &str = "in_a_user_namespace_the_bomb_is_counted_apart_from_its_uid";
    if skipped_without_perl(TEST) {
        return;
    }
    let mut bomb = isolated(perl(BOMB));
    bomb.limits.nproc = 20;
    bomb.mode = Mode::BestEffort;
    let jailed = start(&bomb).unwrap();
    if is_root() || *status(&jailed, "namespaces") != Status::Enforced {
        eprintln!("skipped {TEST}: root's programs are not put into a user namespace, or there are none");
        jailed.monitor.kill_all().unwrap();
        finish(jailed);
        return;
    }
    assert_eq!(*status(&jailed, "process-count"), Status::Enforced);
    assert_eq!(*status(&jailed, "keyring"), Status::Enforced);
    let out = finish(jailed).stdout;
    // Its monitor is of the same uid and counted too, and so is the stage until it has quite ended.
    assert!(out.starts_with("19 full") || out.starts_with("18 full"), "{out}");
}
