//! What Landlock alone forbids, on the host's files and network: on a machine that forbids namespaces.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::OnceLock;

use common::filter::{where_call_gives, where_namespaces_are_refused};
use common::*;
use talon_jail::{
    Access, BindMount, CompiledProfile, InheritedFds, Isolation, JailSpec, JailedProgram, LoopbackListeners,
    Mode, Network, Program, SpawnError, Status,
};

const ANYWHERE: Network = Network::Host { connect: None, bind: None };

fn shown(path: impl AsRef<Path>, access: Access) -> BindMount {
    let path = path.as_ref();
    BindMount { at: path.into(), from: path.into(), access, needed: path.exists() }
}

/// The system's programs, something that is not there, and what else is shown.
fn isolation(network: Network, more: &[BindMount]) -> Isolation {
    let mut view = system();
    view.shown.push(shown("/does/not/exist", Access::Read));
    view.shown.extend_from_slice(more);
    Isolation {
        view,
        network,
        listeners: LoopbackListeners::default(),
        profile: CompiledProfile { name: "ports".into(), ..unfiltered() },
    }
}

/// Starts it where namespaces are forbidden, so that nothing but Landlock stands before the host's files.
fn start_bare(mut wanted: JailSpec, isolation: Isolation, given: &InheritedFds<'_>) -> JailedProgram {
    wanted.mode = Mode::BestEffort;
    wanted.isolation = Some(isolation);
    let jailed = where_namespaces_are_refused(|| talon_jail::spawn(&stage(), &wanted, given, LONG).unwrap());
    assert!(matches!(status(&jailed, "namespaces"), Status::Missing(_)), "{:?}", jailed.report);
    let landlock = status(&jailed, "landlock");
    match abi() {
        6.. => assert_eq!(*landlock, Status::Enforced),
        _ => assert!(matches!(landlock, Status::StandIn(_)), "{landlock:?}"),
    }
    jailed
}

fn bare(wanted: JailSpec, isolation: Isolation) -> Outcome {
    finish(start_bare(wanted, isolation, &InheritedFds::default()))
}

/// The kernel's ABI, as the refusal of one that no kernel has says it; 0 without Landlock.
fn abi() -> i32 {
    static ABI: OnceLock<i32> = OnceLock::new();
    *ABI.get_or_init(|| {
        let mut wanted = sh("exit 0");
        wanted.mode = Mode::BestEffort;
        let mut isolation = isolation(Network::None, &[]);
        isolation.profile.landlock_abi = u32::MAX;
        wanted.isolation = Some(isolation);
        let jailed = start(&wanted).unwrap();
        let Status::Missing(text) = status(&jailed, "landlock").clone() else {
            panic!("{:?}", jailed.report)
        };
        finish(jailed);
        let abi = text.strip_prefix("kernel has ABI ").and_then(|rest| rest.split_once(','));
        abi.map_or(0, |(abi, _)| abi.parse().unwrap())
    })
}

fn skipped_below(least: i32, test: &str) -> bool {
    if abi() < least {
        eprintln!("skipped {test}: the kernel has Landlock ABI {}, not {least}", abi());
    }
    abi() < least
}

/// Perl is what every Debian and most others have, and it can speak to any socket.
fn perl(script: &str) -> JailSpec {
    spec(&["/usr/bin/perl", "-MSocket", "-e", script])
}

fn skipped_without_perl(test: &str) -> bool {
    let is_there = Path::new("/usr/bin/perl").exists();
    if !is_there {
        eprintln!("skipped {test}: there is no /usr/bin/perl");
    }
    !is_there
}

// Promises: JAIL-10
#[test]
fn files_are_what_the_view_says() {
    if skipped_below(2, "files_are_what_the_view_says") {
        return;
    }
    let (read, write) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for directory in [read.path(), write.path()] {
        std::fs::copy("/bin/true", directory.join("true")).unwrap();
    }
    let script = format!(
        "try() {{ name=$1; shift; if \"$@\" 2>/dev/null; then echo $name yes; else echo $name no; fi; }}
         try passwd cat /etc/passwd
         try root ls /
         try execute /usr/bin/true
         cd {read}
         try read-list ls .
         try read-read cmp true /bin/true
         try read-execute ./true
         try read-make touch made
         try read-write sh -c ': >> true'
         cd {write}
         try write-execute ./true
         try write-make mkdir d
         try write-write sh -c 'echo x > f'
         try write-rename mv f d/f
         try write-truncate sh -c ': > d/f'
         try write-link ln -s /etc/passwd l
         try write-follow cat l
         try write-hard-link ln /etc/hostname h
         try write-socket mkfifo p
         try write-remove rm -r d
         try null sh -c 'echo x > /dev/null'
         try random sh -c 'head -c 1 /dev/urandom > /dev/null'
         try own-status grep -q NoNewPrivs /proc/self/status
         try own-score sh -c 'echo 1000 > /proc/self/oom_score_adj'
         try tmp sh -c 'echo > {tmp}/talon-landlock-test'
         true",
        read = read.path().display(),
        write = write.path().display(),
        tmp = std::env::temp_dir().display(),
    );
    let without = run(&sh(&script));
    assert!(
        without.stdout.contains("passwd yes") && without.stdout.contains("tmp yes"),
        "{}",
        without.stdout
    );
    assert!(without.stdout.contains("read-execute yes"), "{}", without.stdout);
    let _ = std::fs::remove_file(std::env::temp_dir().join("talon-landlock-test"));
    for name in ["l", "p", "h"] {
        let _ = std::fs::remove_file(write.path().join(name));
    }
    let _ = std::fs::remove_file(read.path().join("made"));

    let shown = [shown(&read, Access::Read), shown(&write, Access::Write)];
    let outcome = bare(sh(&script), isolation(Network::None, &shown));
    let expected = "execute read-list read-read write-make write-write write-rename write-truncate write-link \
                    write-socket write-remove null random own-status";
    for line in outcome.stdout.lines().filter(|line| line.ends_with(" yes") || line.ends_with(" no")) {
        let (name, answer) = line.split_once(' ').unwrap();
        let allowed = expected.split(' ').any(|expected| expected == name);
        assert_eq!(answer == "yes", allowed, "{line}");
    }
    let answers =
        outcome.stdout.lines().filter(|line| line.ends_with(" yes") || line.ends_with(" no")).count();
    assert_eq!(answers, script.matches("try ").count(), "{}\n{}", outcome.stdout, outcome.stderr);
}

#[test]
fn a_private_place_can_be_written_and_executed_from_by_switch() {
    if skipped_below(2, "a_private_place_can_be_written_and_executed_from_by_switch") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let script = format!("cd {} && cp /usr/bin/true t && {{ ./t || echo no; }}", place.path().display());
    for (exec, answer) in [(false, "no\n"), (true, "")] {
        let mut isolation = isolation(Network::None, &[]);
        isolation.view.private.at = place.path().into();
        isolation.view.private.exec = exec;
        assert_eq!(bare(sh(&script), isolation).stdout, answer);
    }
}

#[test]
fn a_program_by_descriptor_needs_no_rule_for_its_path() {
    if skipped_below(2, "a_program_by_descriptor_needs_no_rule_for_its_path") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    std::fs::copy("/bin/sh", &path).unwrap();
    let in_memory = rustix::fs::memfd_create("program", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let mut in_memory = File::from(in_memory);
    std::io::copy(&mut File::open("/bin/sh").unwrap(), &mut in_memory).unwrap();
    // Reopened, as what is open for writing cannot be executed.
    let in_memory = {
        use std::os::fd::AsRawFd as _;
        File::open(format!("/proc/self/fd/{}", in_memory.as_raw_fd())).unwrap()
    };
    for program in [File::open(&path).unwrap(), in_memory] {
        let mut wanted = sh(&format!("{} -c 'echo again'; echo once", path.display()));
        wanted.program = Program::Descriptor;
        let jailed = start_bare(
            wanted,
            isolation(Network::None, &[]),
            &InheritedFds { program: Some(program.as_fd()), ..InheritedFds::default() },
        );
        let out = finish(jailed).stdout;
        assert!(out.ends_with("once\n"), "{out}");
    }
}

// Promises: JAIL-12
#[test]
fn ports_are_those_of_the_list() {
    const TEST: &str = "ports_are_those_of_the_list";
    if skipped_below(4, TEST) || skipped_without_perl(TEST) {
        return;
    }
    let (one, other) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let [one, other] = [&one, &other].map(|listener| listener.local_addr().unwrap().port());
    let wanted = || {
        perl(&format!(
            "for my $port ({one}, {other}) {{
                socket(my $s, PF_INET, SOCK_STREAM, 0) or die;
                my $ok = connect($s, pack_sockaddr_in($port, INADDR_LOOPBACK));
                print $ok ? 'connected ' : ($!{{EACCES}} ? 'denied ' : \"$! \");
             }}
             socket(my $s, PF_INET, SOCK_STREAM, 0) or die;
             print bind($s, pack_sockaddr_in(0, INADDR_LOOPBACK)) ? 'bound' : ($!{{EACCES}} ? 'denied' : $!);"
        ))
    };
    let host = |connect: Option<Vec<u16>>, bind| Network::Host { connect, bind };
    for (network, answer) in [
        (ANYWHERE, "connected connected bound"),
        (Network::Loopback, "connected connected bound"),
        (Network::None, "denied denied denied"),
        (host(Some(vec![one]), None), "connected denied bound"),
        (host(None, Some(vec![])), "connected connected denied"),
        (host(Some(vec![]), Some(vec![0])), "denied denied bound"),
    ] {
        assert_eq!(bare(wanted(), isolation(network.clone(), &[])).stdout, answer, "{network:?}");
    }
}

#[test]
fn abstract_sockets_and_processes_outside_are_out_of_reach() {
    const TEST: &str = "abstract_sockets_and_processes_outside_are_out_of_reach";
    if skipped_below(6, TEST) || skipped_without_perl(TEST) {
        return;
    }
    let own = std::process::id();
    let name = format!("talon-landlock-test-{own}");
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let wanted = || {
        perl(&format!(
            "socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die;
             print connect($s, pack_sockaddr_un(\"\\0{name}\")) ? 'connected ' : ($!{{EPERM}} ? 'denied ' : \"$! \");
             for my $process ({own}, getppid(), $$) {{
                print kill(0, $process) ? 'signalled ' : ($!{{EPERM}} ? 'denied ' : \"$! \");
             }}"
        ))
    };
    assert_eq!(run(&wanted()).stdout, "connected signalled signalled signalled ");
    assert_eq!(bare(wanted(), isolation(ANYWHERE, &[])).stdout, "denied denied denied signalled ");
}

#[test]
fn a_program_that_is_not_shown_to_be_executed_is_refused_by_name() {
    if skipped_below(2, "a_program_that_is_not_shown_to_be_executed_is_refused_by_name") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("true");
    std::fs::copy("/bin/true", &path).unwrap();
    for access in [Access::Read, Access::Write] {
        let mut wanted = spec(&[path.to_str().unwrap()]);
        wanted.mode = Mode::BestEffort;
        wanted.isolation = Some(isolation(Network::None, &[shown(&directory, access)]));
        let refused = where_namespaces_are_refused(|| start(&wanted).unwrap_err());
        let SpawnError::Step { step, reason } = &refused else { panic!("{refused}") };
        assert_eq!(step, "program");
        assert!(reason.contains("what it sees must include it"), "{reason}");
    }
}

/// The step and the reason of a refusal in the mode that refuses.
fn refusal(isolation: Isolation) -> (String, String) {
    let mut wanted = sh("exit 0");
    wanted.isolation = Some(isolation);
    match start(&wanted) {
        Err(SpawnError::Step { step, reason }) => (step, reason),
        Err(other) => panic!("not a step: {other}"),
        Ok(jailed) => panic!("it was started: {:?}", jailed.report),
    }
}

// Promises: JAIL-11
#[test]
fn a_kernel_that_has_less_than_the_profile_asks_is_refused() {
    if skipped_below(2, "a_kernel_that_has_less_than_the_profile_asks_is_refused") {
        return;
    }
    let mut isolation = isolation(Network::None, &[]);
    isolation.profile.landlock_abi = 1000;
    let (step, reason) = refusal(isolation);
    assert_eq!(step, "landlock");
    let expected = format!(
        "kernel has ABI {}, profile `ports` asks 1000 (use a newer kernel, or another profile)",
        abi()
    );
    assert_eq!(reason, expected);
}

// Promises: JAIL-10
#[test]
fn calls_that_are_filtered_are_a_refusal_and_never_silence() {
    if skipped_below(2, "calls_that_are_filtered_are_a_refusal_and_never_silence") {
        return;
    }
    for (call, errno, expected) in [
        (libc::SYS_landlock_create_ruleset, libc::ENOSYS, "a filter hides it"),
        (libc::SYS_landlock_create_ruleset, libc::EPERM, "a filter is in the way"),
        (libc::SYS_landlock_create_ruleset, libc::EOPNOTSUPP, "not switched on"),
        (libc::SYS_landlock_create_ruleset, 0, "ABI 0"),
        (libc::SYS_landlock_add_rule, libc::EPERM, "cannot allow /"),
        (libc::SYS_landlock_restrict_self, libc::EPERM, "a filter is in the way"),
        (libc::SYS_landlock_restrict_self, 0, "can still be read"),
    ] {
        let (step, reason) = where_call_gives(call, errno, || refusal(isolation(Network::None, &[])));
        assert_eq!(step, "landlock");
        assert!(reason.contains(expected), "{call} {errno}: {reason}");
    }
}

#[test]
fn in_the_mode_that_does_what_it_can_a_filtered_call_is_reported() {
    let mut wanted = sh("exit 0");
    wanted.isolation = Some(isolation(Network::None, &[]));
    wanted.mode = Mode::BestEffort;
    let jailed = where_call_gives(libc::SYS_landlock_restrict_self, libc::EPERM, || start(&wanted).unwrap());
    assert!(matches!(status(&jailed, "landlock"), Status::Missing(_)), "{:?}", jailed.report);
    finish(jailed);
}

#[test]
fn a_view_of_everything_is_refused() {
    let mut wanted = sh("exit 0");
    wanted.isolation = Some(isolation(Network::None, &[shown("/", Access::Read)]));
    assert!(start(&wanted).unwrap_err().to_string().contains("cannot be in a view"));
}

#[test]
fn without_isolation_it_is_not_asked_for() {
    let jailed = start(&sh("exit 0")).unwrap();
    assert!(matches!(status(&jailed, "landlock"), Status::Missing(text) if text == "not asked for"));
    finish(jailed);
}
