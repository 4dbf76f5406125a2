//! `talon jail run`: any command in the jail.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use talon_jail::{Access, CompiledProfile, JailedProgram, Limits, Network};
use talon_plugin_config::units::ByteSize;

use super::command::{JailedCommand, RunningCommand};
use super::exit::{JAIL_FAILED, code};
use super::grants::Grants;
use super::options::{ModeArg, NetworkArg, ProfileParser, profile};
use super::profile_recorder::ProfileRecorder;
use super::relay::SignalRelay;
use super::{relay, report};
use crate::failure::Failure;
use crate::output::Output;

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
        let is_reported = self.report;
        let command = self.jailed_command(network, compiled);
        let signals = SignalRelay::install().map_err(|error| failed(&error))?;
        let RunningCommand { jailed, uid } = command.start(None)?;
        if is_reported {
            report::print_start(&jailed, uid, out);
        } else {
            report::print_missing(&jailed.report, out);
        }
        let JailedProgram { stdout, stderr, monitor, learner, .. } = jailed;
        let relayed = relay::copy(stdout, std::io::stdout())
            .and_then(|copied| Ok([copied, relay::copy(stderr, std::io::stderr())?]))
            .map_err(|error| failed(&error))?;
        let status = signals.finish(&monitor, relayed).map_err(|error| failed(&error))?;
        if is_reported {
            report::print_end(status, out);
        }
        if let (Some(learning), Some(learner)) = (learning, learner) {
            learning.finish(&learner.finish())?;
        }
        code(status)
    }

    fn jailed_command(self, network: Network, profile: CompiledProfile) -> JailedCommand {
        let limits = Limits::default();
        JailedCommand {
            name: "jail run",
            argv: self.command,
            profile,
            network,
            grants: Grants::default()
                .and("--read", self.read, Access::Read)
                .and("--execute", self.execute, Access::Execute)
                .and("--write", self.write, Access::Write),
            env: self.env,
            uid: self.uid,
            limits: Limits { memory_bytes: self.memory.map_or(limits.memory_bytes, ByteSize::get), ..limits },
            mode: self.mode.into(),
            tmp_exec: self.tmp_exec,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_given_or_passed_on() {
        assert_eq!(variable("A=b=c").unwrap(), ("A".into(), "b=c".into()));
        assert_eq!(variable("PATH").unwrap().1, std::env::var_os("PATH").unwrap());
        assert!(variable("NO_SUCH_VARIABLE_HERE").unwrap_err().to_string().contains("=VALUE"));
        assert!(variable("=x").is_err());
    }
}
