//! Any program in a plugin's jail, without a supervisor.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Result};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use talon_jail::{
    Access, ExitStatus, Identity, InheritedFds, Isolation, JailSpec, JailedProgram, Limits,
    LoopbackListeners, Mode, Monitor, Network, Profile, Program, Report, SpawnError, Stage, View,
};

use crate::{is_root, program};

/// Long enough for the start of a runtime on a busy machine; only a failure waits for it.
const RUN_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest output: a test's program that prints more is wrong, and reading has to end.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// A program to run.
#[derive(Debug)]
pub struct JailedFixture {
    stage: Stage,
    spec: JailSpec,
}

/// The result of a program that has ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// How it ended.
    pub status: ExitStatus,
    /// The jail's report.
    pub report: Report,
}

impl JailedFixture {
    /// A program by its path, with this profile and network. `uid` is the one that it gets where the test is
    /// root: programs that run at once take different ones, so that their process limits do not add up.
    ///
    /// # Panics
    /// When there is no such profile, or this machine cannot start a stage.
    #[must_use]
    pub fn new(uid: u32, profile: &str, network: Network, argv: &[&Path]) -> Self {
        let identity = is_root().then_some(Identity { uid, gid: uid });
        let ids = identity.map_or_else(
            || (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw()),
            |identity| (identity.uid, identity.gid),
        );
        let profile = Profile::builtin(profile).expect("it is built in");
        let private = View::default().private.at;
        let (home, tmp) = (private.join("h"), private.join("t"));
        let view = View::system(ids, &home, &network);
        let profile = profile.compile(&network).expect("a profile that is built in fits every network");
        let text = |text: &str| OsString::from(text);
        let spec = JailSpec {
            name: "test".into(),
            program: Program::Path(argv[0].into()),
            argv: argv.iter().map(|word| word.as_os_str().to_owned()).collect(),
            env: vec![
                (text("PATH"), text("/usr/bin:/bin")),
                (text("LANG"), text("C.UTF-8")),
                (text("HOME"), home.into()),
                (text("TMPDIR"), tmp.into()),
            ],
            cwd: "/".into(),
            identity,
            limits: Limits::default(),
            mode: Mode::Enforce,
            isolation: Some(Isolation { view, network, listeners: LoopbackListeners::default(), profile }),
        };
        let image = File::open(program("talon")).expect("it was just found");
        Self { stage: Stage::from_image(image).expect("memory takes a sealed image"), spec }
    }

    /// Shows it one more file or directory of the host.
    #[must_use]
    pub fn with_view(mut self, path: &Path, access: Access) -> Self {
        self.isolation().view.grant(path, access);
        self
    }

    /// Lets it execute what it writes, in a private directory of this size.
    #[must_use]
    pub fn tmp_exec(mut self, bytes: u64) -> Self {
        let private = &mut self.isolation().view.private;
        (private.exec, private.bytes) = (true, bytes);
        self
    }

    fn isolation(&mut self) -> &mut Isolation {
        self.spec.isolation.as_mut().expect("it was made with one")
    }

    /// Starts it.
    ///
    /// # Errors
    /// The jail's error.
    pub fn start(&self) -> std::result::Result<JailedProgram, SpawnError> {
        talon_jail::spawn(&self.stage, &self.spec, &InheritedFds::default(), RUN_TIMEOUT)
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it does not start, prints too much, or does not end.
    #[must_use]
    pub fn run(&self) -> Outcome {
        let jailed = self.start().unwrap_or_else(|error| panic!("{:?}: {error}", self.spec.argv));
        finish(jailed).unwrap_or_else(|error| panic!("{:?}: {error}", self.spec.argv))
    }
}

fn finish(jailed: JailedProgram) -> Result<Outcome> {
    let JailedProgram { stdout, stderr, monitor, report, .. } = jailed;
    let stdout = thread::spawn(|| all(stdout));
    let stderr = thread::spawn(|| all(stderr));
    let status = ended(&monitor)?;
    let text =
        |reader: thread::JoinHandle<Result<String>>| reader.join().expect("it reads and does not panic");
    Ok(Outcome { stdout: text(stdout)?, stderr: text(stderr)?, status, report })
}

/// Waits until a program and its monitor have ended.
///
/// # Errors
/// When they do not, or the kernel says no.
pub fn ended(monitor: &Monitor) -> Result<ExitStatus> {
    wait_for(monitor.control(), "the program")?;
    let status = monitor.try_exit_status()?.unwrap_or(ExitStatus::MonitorLost);
    wait_for(monitor.pidfd(), "its monitor")?;
    monitor.reap()?;
    Ok(status)
}

fn all(pipe: OwnedFd) -> Result<String> {
    let mut bytes = Vec::new();
    File::from(pipe).take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn wait_for(descriptor: impl std::os::fd::AsFd, what: &str) -> Result<()> {
    let timeout = Timespec::try_from(RUN_TIMEOUT).expect("two minutes are a time");
    match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&timeout))? {
        0 => Err(std::io::Error::other(format!("{what} has not ended in {RUN_TIMEOUT:?}"))),
        _ => Ok(()),
    }
}
