//! `talon jail run`: any command in the jail.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use nix::unistd::{Uid, User, getegid, geteuid};
use talon_jail::{
    Access, Identity, InheritedFds, Isolation, JailSpec, JailedProgram, Limits, LoopbackListeners, Machine,
    Network, Stage, Status, View,
};
use talon_plugin_config::units::ByteSize;

use super::exit::{JAIL_FAILED, code, spawn_failure};
use super::options::{ModeArg, NetworkArg, ProfileParser, profile};
use super::profile_recorder::ProfileRecorder;
use super::relay::SignalRelay;
use super::{grants, program, relay, report};
use crate::failure::Failure;
use crate::output::Output;

/// Uids for commands, if this process may set them. They lie in a range that systemd's list of uids leaves
/// unassigned (65536 to 99999), next to the default `sandbox.uid_range` of plugins. The pid selects one: two
/// commands get the same uid only if their pids differ by a multiple of ten thousand, and then share only a
/// process limit. `--uid` overrides it.
const UIDS: std::ops::RangeInclusive<u32> = 80_000..=89_999;

/// Timeout for building the jail. It takes milliseconds, but a stuck file system must not hang a shell.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Where programs are looked up in the jail if PATH is not set.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Variables that a command inherits: language, time zone, terminal type.
const INHERITED_VARIABLES: [&str; 5] = ["PATH", "LANG", "LC_ALL", "TZ", "TERM"];

/// Run a command in the jail that plugins get.
///
/// It sees the system's programs and libraries, the paths granted here, and a private /tmp and home that are
/// deleted afterwards. Its output is passed through unchanged, its input is empty, and its exit code is
/// passed on: 128 plus the signal's number if a signal ended it, 125 if the jail could not be built, 126 if
/// the command cannot be executed, 127 if it was not found.
///
/// As root the command gets another uid, so granted paths must be accessible to that uid (or to everybody).
/// Without root it keeps your uid, in a user namespace.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon jail run -- /bin/sh -c 'id; ls /'
  talon jail run --report -- ./my-plugin --selftest
  talon jail run --read /srv/code --network loopback -- ./my-plugin
  talon jail run --execute ~/venv -- ./tool.py
  talon jail run --learn own.toml -- ./my-plugin
  talon jail run --profile ./own.toml --memory 256MiB -- ./my-plugin")]
pub(crate) struct RunArgs {
    /// The permitted system calls: a built-in profile, or the path of a profile file.
    #[arg(long, value_name = "PROFILE", default_value = "strict", value_parser = ProfileParser)]
    profile: String,
    /// What the command may connect to.
    #[arg(long, value_enum, default_value_t = NetworkArg::None)]
    network: NetworkArg,
    /// A file or directory that the command may read.
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// A file or directory that the command may read and execute, such as a Python environment.
    #[arg(long, value_name = "PATH")]
    execute: Vec<PathBuf>,
    /// A file or directory that the command may read and change.
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// An environment variable; without a value it is passed through.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    env: Vec<(OsString, OsString)>,
    /// The uid and gid of the command; needs root. Otherwise an unused one.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    uid: Option<u32>,
    /// Memory limit for all its processes together, such as 256MiB.
    #[arg(long, value_name = "BYTES")]
    memory: Option<ByteSize>,
    /// What happens when a protection is not available here.
    #[arg(long, value_enum, default_value_t = ModeArg::Enforce)]
    mode: ModeArg,
    /// Allow executing files written to /tmp, as PyInstaller's programs need.
    #[arg(long)]
    tmp_exec: bool,
    /// Report on stderr which protections are in force, and how the command ended; with `--output json` as
    /// one JSON value a line.
    #[arg(long)]
    report: bool,
    /// Allow all system calls that no profile forbids outright, and write a profile to this new file with the
    /// calls used beyond --profile. Read it before you use it: a call that was used was not necessarily
    /// needed.
    #[arg(long, value_name = "FILE")]
    learn: Option<PathBuf>,
    /// The command and its arguments.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Why a `--env` is refused.
#[derive(Debug, thiserror::Error)]
enum VariableError {
    #[error("{0} is not set: write {0}=VALUE")]
    NotSet(String),
    #[error("a variable needs a name")]
    NoName,
}

/// `NAME=VALUE`, or the name of a variable to pass through.
fn variable(text: &str) -> Result<(OsString, OsString), VariableError> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, value.into()),
        None => (text, std::env::var_os(text).ok_or_else(|| VariableError::NotSet(text.to_owned()))?),
    };
    if name.is_empty() { Err(VariableError::NoName) } else { Ok((name.into(), value)) }
}

impl RunArgs {
    pub(super) fn run(mut self, out: &mut Output) -> Result<u8, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::new(JAIL_FAILED, error.to_string());
        let network = Network::from(self.network);
        let profile = profile(&self.profile)?;
        let learning = self
            .learn
            .take()
            .map(|file| ProfileRecorder::create(file, &profile, &self.command))
            .transpose()?;
        let compiled = match &learning {
            Some(_) => profile.compile_learning(&network),
            None => profile.compile(&network),
        };
        let compiled = compiled.map_err(|error| failed(&error))?;
        let stage = Stage::from_current_exe().map_err(|error| failed(&error))?;
        let machine = talon_jail::probe(&stage);
        let namespaces = is_available(&machine, "namespaces");

        let identity = self.identity(&machine)?;
        let ids = identity.map_or_else(
            || (geteuid().as_raw(), getegid().as_raw()),
            |identity| (identity.uid, identity.gid),
        );
        let mut view = View::system(ids, &home(&View::default()), &network);
        grants::add(&mut view, "--read", &self.read, Access::Read)?;
        grants::add(&mut view, "--execute", &self.execute, Access::Execute)?;
        grants::add(&mut view, "--write", &self.write, Access::Write)?;
        view.private.exec = self.tmp_exec;
        let cwd = directory(&view, namespaces);
        let env = self.environment(&view, namespaces);
        let limits = Limits::default();
        let limits =
            Limits { memory_bytes: self.memory.map_or(limits.memory_bytes, ByteSize::get), ..limits };
        let found = program::find(&self.command[0], &mut view, namespaces)?;
        let spec = JailSpec {
            name: "jail run".into(),
            program: found.program,
            argv: self.command,
            env,
            cwd,
            identity,
            limits,
            mode: self.mode.into(),
            isolation: Some(Isolation {
                view,
                network,
                listeners: LoopbackListeners::default(),
                profile: compiled,
            }),
        };

        let signals = SignalRelay::install().map_err(|error| failed(&error))?;
        let given = InheritedFds { program: found.file.as_ref().map(AsFd::as_fd), ..InheritedFds::default() };
        let jailed =
            talon_jail::spawn(&stage, &spec, &given, START_TIMEOUT).map_err(|error| spawn_failure(&error))?;
        if self.report {
            report::print_start(&jailed, ids.0, out);
        } else {
            report::print_missing(&jailed.report, out);
        }
        let JailedProgram { stdout, stderr, monitor, learner, .. } = jailed;
        let relayed = relay::copy(stdout, std::io::stdout())
            .and_then(|copied| Ok([copied, relay::copy(stderr, std::io::stderr())?]))
            .map_err(|error| failed(&error))?;
        let status = signals.wait(&monitor).map_err(|error| failed(&error))?;
        drop(signals);
        for copied in relayed {
            // A copy thread that panicked has printed why; the exit status stays.
            let _ = copied.join();
        }
        relay::wait_until_gone(&monitor).map_err(|error| failed(&error))?;
        if self.report {
            report::print_end(status, out);
        }
        if let (Some(learning), Some(learner)) = (learning, learner) {
            learning.finish(&learner.finish())?;
        }
        code(status)
    }

    fn identity(&self, machine: &Machine) -> Result<Option<Identity>, Failure> {
        let same = |uid| Some(Identity { uid, gid: uid });
        match (self.uid, is_available(machine, "own-uid")) {
            (Some(uid), true) => Ok(same(uid)),
            (Some(_), false) => Err(Failure::new(
                JAIL_FAILED,
                "--uid needs root, or its capabilities (see `talon doctor`); without --uid it keeps your own",
            )),
            (None, true) => Ok(same(unused_uid(std::process::id()))),
            (None, false) => Ok(None),
        }
    }

    /// A few inherited variables, the writable directories, and the requested variables; later ones override
    /// earlier ones.
    fn environment(&self, view: &View, namespaces: bool) -> Vec<(OsString, OsString)> {
        let mut env = std::collections::BTreeMap::from([(OsString::from("PATH"), DEFAULT_PATH.into())]);
        for name in INHERITED_VARIABLES {
            env.extend(std::env::var_os(name).map(|value| (name.into(), value)));
        }
        if namespaces {
            env.insert("HOME".into(), home(view).into());
            env.insert("TMPDIR".into(), "/tmp".into());
        }
        env.extend(self.env.iter().cloned());
        env.into_iter().collect()
    }
}

/// Whether a protection is fully available.
fn is_available(machine: &Machine, name: &str) -> bool {
    machine.protections.iter().any(|line| line.name == name && line.status == Status::Enforced)
}

fn unused_uid(pid: u32) -> u32 {
    let count = UIDS.end() - UIDS.start() + 1;
    let of = |offset: u32| UIDS.start() + (pid % count + offset) % count;
    // An account in this range is unusual; if all are taken, the jail reports what is wrong with the first.
    let free = |uid: &u32| matches!(User::from_uid(Uid::from_raw(*uid)), Ok(None));
    (0..count).map(of).find(free).unwrap_or_else(|| of(0))
}

/// The private directory for HOME.
fn home(view: &View) -> PathBuf {
    view.private.at.join("h")
}

/// The current directory if it is visible in the jail; otherwise the home.
fn directory(view: &View, namespaces: bool) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_else(|_| Path::new("/").into());
    if !namespaces || view.contains(&here) { here } else { home(view) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uid_is_in_the_range_and_nobodys() {
        for pid in [0, 1, 9_999, 10_000, u32::MAX] {
            let uid = unused_uid(pid);
            assert!(UIDS.contains(&uid), "{uid}");
            assert!(User::from_uid(Uid::from_raw(uid)).unwrap().is_none());
        }
    }

    #[test]
    fn variables_are_given_or_passed_on() {
        assert_eq!(variable("A=b=c").unwrap(), ("A".into(), "b=c".into()));
        assert_eq!(variable("PATH").unwrap().1, std::env::var_os("PATH").unwrap());
        assert!(variable("NO_SUCH_VARIABLE_HERE").unwrap_err().to_string().contains("=VALUE"));
        assert!(variable("=x").is_err());
    }
}
