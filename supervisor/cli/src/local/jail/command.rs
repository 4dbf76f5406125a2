//! A command in the jail that plugins get.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{Uid, User, getegid, geteuid};
use talon_jail::{
    CompiledProfile, Identity, InheritedFds, Isolation, JailSpec, JailedProgram, Limits, LoopbackListeners,
    Machine, Mode, Network, Stage, Status, View,
};

use super::exit::{JAIL_FAILED, spawn_failure};
use super::grants::Grants;
use super::program;
use crate::failure::Failure;

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

/// A command, and what it has beside the system's programs and libraries.
pub(crate) struct JailedCommand {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// The program and its arguments.
    pub(crate) argv: Vec<OsString>,
    /// The permitted system calls.
    pub(crate) profile: CompiledProfile,
    /// What it may connect to: the network that the profile was compiled for.
    pub(crate) network: Network,
    /// The files that it sees.
    pub(crate) grants: Grants,
    /// Variables beside the inherited ones.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Its uid and gid; otherwise an unused one, or those of this process if it may not set any.
    pub(crate) uid: Option<u32>,
    /// The limits of all its processes together.
    pub(crate) limits: Limits,
    /// What happens when a protection is not available.
    pub(crate) mode: Mode,
    /// Whether files written to its /tmp may be executed.
    pub(crate) tmp_exec: bool,
}

/// A command that runs.
pub(crate) struct RunningCommand {
    pub(crate) jailed: JailedProgram,
    /// Its uid.
    pub(crate) uid: u32,
}

impl JailedCommand {
    /// Starts it. Its input is empty unless there is a `stdin`.
    ///
    /// Fails with the exit codes of [`super::exit`] if the jail cannot be built or there is no such program, and as
    /// wrong usage if a path that is granted is not there.
    pub(crate) fn start(self, stdin: Option<BorrowedFd<'_>>) -> Result<RunningCommand, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::new(JAIL_FAILED, error.to_string());
        let stage = Stage::from_current_exe().map_err(|error| failed(&error))?;
        let machine = talon_jail::probe(&stage);
        let namespaces = is_available(&machine, "namespaces");
        let identity = self.identity(&machine)?;
        let ids = identity.map_or_else(
            || (geteuid().as_raw(), getegid().as_raw()),
            |identity| (identity.uid, identity.gid),
        );
        let mut view = View::system(ids, &home(&View::default()), &self.network);
        self.grants.add_to(&mut view)?;
        view.private.exec = self.tmp_exec;
        let cwd = directory(&view, namespaces);
        let env = self.environment(&view, namespaces);
        let found = program::find(&self.argv[0], &mut view, namespaces)?;
        let spec = JailSpec {
            name: self.name.into(),
            program: found.program,
            argv: self.argv,
            env,
            cwd,
            identity,
            limits: self.limits,
            mode: self.mode,
            isolation: Some(Isolation {
                view,
                network: self.network,
                listeners: LoopbackListeners::default(),
                profile: self.profile,
            }),
        };
        let program = found.file.as_ref().map(AsFd::as_fd);
        let given = InheritedFds { program, stdin, ..InheritedFds::default() };
        let jailed =
            talon_jail::spawn(&stage, &spec, &given, START_TIMEOUT).map_err(|error| spawn_failure(&error))?;
        Ok(RunningCommand { jailed, uid: ids.0 })
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
}
