//! What every test of real processes needs.
#![allow(dead_code, clippy::allow_attributes, reason = "each test binary uses a part of it")]

pub(crate) mod filter;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use talon_jail::{
    Access, BindMount, CompiledProfile, ExitStatus, Identity, InheritedFds, Isolation, JailSpec,
    JailedProgram, Limits, LoopbackListeners, Mode, Monitor, Network, Program, SpawnError, Stage, Status,
    View,
};

/// Long enough for a machine that does a lot beside; nothing waits for it unless it fails.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// An unused uid on this machine. Tests that run at once each take another, so that their process
/// limits do not add up.
pub(crate) fn nobody(test: u32) -> Identity {
    Identity { uid: 71_000 + test, gid: 81_000 + test }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says why a test did nothing, when it needs root and is not.
pub(crate) fn skipped_without_root(test: &str) -> bool {
    if !is_root() {
        eprintln!("skipped {test}: only root can give a program another uid");
    }
    !is_root()
}

pub(crate) fn stage() -> Stage {
    Stage::from_image(File::open(env!("CARGO_BIN_EXE_jail-fixture")).unwrap()).unwrap()
}

pub(crate) fn spec(argv: &[&str]) -> JailSpec {
    JailSpec {
        name: "test".into(),
        program: Program::Path(argv[0].into()),
        argv: argv.iter().map(Into::into).collect(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/".into(),
        identity: None,
        limits: Limits::default(),
        mode: Mode::Enforce,
        isolation: None,
    }
}

pub(crate) fn sh(script: &str) -> JailSpec {
    spec(&["/bin/sh", "-c", script])
}

/// The same in its own namespaces, with a view of the system alone.
pub(crate) fn isolated(spec: JailSpec) -> JailSpec {
    let ids = spec.identity.map_or_else(
        || (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
        |identity| (identity.uid, identity.gid),
    );
    let view = View::system(ids, Path::new("/run/plugin/h"), &Network::None);
    let isolation = Isolation {
        view,
        network: Network::None,
        listeners: LoopbackListeners::default(),
        profile: unfiltered(),
    };
    JailSpec { isolation: Some(isolation), ..spec }
}

/// A filter that lets everything through, where what other protections refuse is to be seen.
pub(crate) fn unfiltered() -> CompiledProfile {
    const RETURN: u16 = 0x06;
    let filters = vec![vec![(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW)]];
    CompiledProfile { name: "unfiltered".into(), filters, ..CompiledProfile::default() }
}

/// The system's programs and libraries, and nothing else.
pub(crate) fn system() -> View {
    let shown = |path: &&str| BindMount {
        at: path.into(),
        from: path.into(),
        access: Access::Execute,
        needed: false,
    };
    let paths = ["/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache"];
    View { shown: paths.iter().map(shown).collect(), ..View::default() }
}

pub(crate) fn start(spec: &JailSpec) -> Result<JailedProgram, SpawnError> {
    talon_jail::spawn(&stage(), spec, &InheritedFds::default(), LONG)
}

pub(crate) fn with_program(file: &impl AsFd) -> InheritedFds<'_> {
    InheritedFds { program: Some(file.as_fd()), ..InheritedFds::default() }
}

/// What a program that has ended left.
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

/// Runs to the end.
pub(crate) fn run(spec: &JailSpec) -> Outcome {
    finish(start(spec).unwrap())
}

pub(crate) fn finish(jailed: JailedProgram) -> Outcome {
    let JailedProgram { stdout, stderr, monitor, .. } = jailed;
    let outcome = Outcome { stdout: all(stdout), stderr: all(stderr), status: ended(&monitor) };
    gone(&monitor);
    outcome
}

pub(crate) fn all(pipe: OwnedFd) -> String {
    let mut text = String::new();
    File::from(pipe).read_to_string(&mut text).unwrap();
    text
}

/// The next line, byte by byte so that nothing behind it is taken.
pub(crate) fn line(pipe: &OwnedFd) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        assert!(readable(pipe), "no line came");
        assert_ne!(rustix::io::read(pipe, &mut byte), Ok(0), "the pipe ended in {line:?}");
        if byte == *b"\n" {
            return String::from_utf8(line).unwrap();
        }
        line.push(byte[0]);
    }
}

pub(crate) fn readable(fd: impl AsFd) -> bool {
    let timeout = Timespec::try_from(LONG).unwrap();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).unwrap() == 1
}

/// How the program ended, once it has.
pub(crate) fn ended(monitor: &Monitor) -> ExitStatus {
    assert!(readable(monitor.control()), "the program has not ended");
    monitor.try_exit_status().unwrap().expect("it was reported")
}

/// Waits until the monitor has exited, and reaps it.
pub(crate) fn gone(monitor: &Monitor) {
    assert!(readable(monitor.pidfd()), "the monitor has not ended");
    assert!(monitor.reap().unwrap());
    assert!(monitor.reap().unwrap(), "reaping twice is no error");
}

pub(crate) fn pidfd(pid: &str) -> OwnedFd {
    pidfd_open(Pid::from_raw(pid.trim().parse().unwrap()).unwrap(), PidfdFlags::empty()).unwrap()
}

/// A zombie is dead too: who has to reap it may not be us.
pub(crate) fn is_dead(pid: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())) else { return true };
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    after_name.starts_with(['Z', 'X'])
}

/// Looks again and again, for what the kernel gives no notice of.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not in {LONG:?}");
        let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        poll(&mut [], Some(&moment)).unwrap();
    }
}

pub(crate) fn status<'r>(jailed: &'r JailedProgram, name: &str) -> &'r Status {
    &jailed.report.iter().find(|line| line.name == name).unwrap_or_else(|| panic!("no line {name}")).status
}
