//! The process of a supervisor for one user.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::timeout;

use super::log_file::LogFile;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;

/// The unit under which the user's service manager runs it.
const UNIT: &str = "talon-user";
/// How long the service manager may take: it answers when the supervisor is ready.
const MANAGER_TIMEOUT: Duration = Duration::from_secs(90);
/// Variables that a service manager sets for one process: those of ours are not for the supervisor.
const OF_THIS_PROCESS: [&str; 8] = [
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// A supervisor that was started.
#[derive(Debug)]
pub(super) enum Launch {
    /// By the user's service manager, which has its log.
    Unit,
    /// As a child, which outlives this process.
    Child { child: Child, log: LogFile },
    /// Another client was first, and its supervisor is waited for.
    Elsewhere,
}

impl Launch {
    /// Starts `talon serve --for-user` with the configuration that this command line names.
    pub(super) async fn start(global: &Global) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::failed(format!("cannot find this program: {error}; start `talon serve` by hand"))
        })?;
        let args = serve_args(global);
        if has_user_manager() && run_unit(&program, &args).await {
            return Ok(Self::Unit);
        }
        let (log, file) = LogFile::create()?;
        let mut command = Command::new(program);
        for name in OF_THIS_PROCESS {
            command.env_remove(name);
        }
        // A group of its own: Ctrl-C at this terminal is not for it.
        let child = command
            .args(args)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|error| {
                Failure::failed(format!("cannot start a supervisor: {error}; try `talon serve`"))
            })?;
        Ok(Self::Child { child, log })
    }

    /// What it is, for people.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Unit => format!("systemd unit {UNIT}"),
            Self::Child { child, log } => format!("pid {}, log {}", child.id(), log.path().display()),
            Self::Elsewhere => "by another client".to_owned(),
        }
    }

    /// Looks whether it has failed.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        let Self::Child { child, .. } = self else { return Ok(()) };
        match child.try_wait() {
            Ok(None) => Ok(()),
            // Another one has the runtime directory, and will answer.
            Ok(Some(status)) if status.code() == Some(exit::BUSY.into()) => {
                *self = Self::Elsewhere;
                Ok(())
            }
            Ok(Some(status)) => Err(self.failure(&format!("it ended ({status})"))),
            Err(error) => Err(self.failure(&format!("it cannot be watched ({error})"))),
        }
    }

    /// Why there is no supervisor after all.
    pub(super) fn failure(&self, why: &str) -> Failure {
        let where_to_look = match self {
            Self::Unit => format!("see `journalctl --user -u {UNIT}`"),
            Self::Child { log, .. } => match log.end().trim() {
                "" => format!("see {}, or start `talon serve` by hand", log.path().display()),
                end => format!("its last words, in {}:\n{end}", log.path().display()),
            },
            Self::Elsewhere => "another client started it: see `talon status`".to_owned(),
        };
        Failure::new(
            exit::UNREACHABLE,
            format!("a supervisor was started for you, and {why}; {where_to_look}"),
        )
    }
}

fn serve_args(global: &Global) -> Vec<OsString> {
    let mut args = Vec::new();
    if let Some(config) = &global.config {
        args.extend(["--config".into(), config.clone().into()]);
    }
    args.extend(["serve", "--for-user"].map(OsString::from));
    args
}

/// Whether this user has a service manager: its private socket is where systemd puts it.
fn has_user_manager() -> bool {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.is_some_and(|dir| dir.join("systemd/private").exists())
}

/// Runs it as a transient unit; `false` if that was not possible, for whatever reason: a child is as good.
async fn run_unit(program: &Path, args: &[OsString]) -> bool {
    let mut command = tokio::process::Command::new("systemd-run");
    command
        .args(["--user", "--quiet", "--collect", "--same-dir"])
        .arg(format!("--unit={UNIT}"))
        // Delegate: its plugins get cgroups.
        .args(["--property=Type=notify", "--property=Delegate=yes"])
        .args(passed_variables(std::env::vars_os().map(|(name, _)| name)))
        .arg("--")
        .arg(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    matches!(timeout(MANAGER_TIMEOUT, command.status()).await, Ok(Ok(status)) if status.success())
}

/// Our environment, as a child has it: the configuration may name any variable. Values are not on the command line.
fn passed_variables(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let is_name = |name: &String| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    let names = names.filter_map(|name| name.into_string().ok());
    let names = names.filter(|name| is_name(name) && !OF_THIS_PROCESS.contains(&name.as_str()));
    names.map(|name| format!("--setenv={name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_gets_our_variables_without_their_values() {
        let names = ["HOME", "NOTIFY_SOCKET", "BASH_FUNC_x%%", "A_KEY", "1X"].map(OsString::from);
        assert_eq!(passed_variables(names.into_iter()), ["--setenv=HOME", "--setenv=A_KEY"]);
    }
}
