//! One command of `talon-lua` in its jail.

use std::ffi::OsString;
use std::io::{stderr, stdout};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use talon_jail::{Access, JailedProgram, Limits, Mode, Network, Profile};
use talon_supervisor::config::{LuaLimits, LuaScripts};
use talon_supervisor::program_lookup;

use crate::failure::Failure;
use crate::global::Global;
use crate::local::configuration;
use crate::local::jail::command::{JailedCommand, RunningCommand};
use crate::local::jail::exit::{JAIL_FAILED, NOT_FOUND, code};
use crate::local::jail::grants::{Grants, absolute};
use crate::local::jail::relay::{self, SignalRelay};
use crate::output::Output;

/// The program.
const PROGRAM: &str = "talon-lua";
/// Its system calls: those of `plugins.lua`, which is a plugin without a profile of its own.
const PROFILE: &str = "strict";
/// What a script's file ends with, and a file with its tests.
const ENDING: &str = ".lua";
const TESTS_ENDING: &str = "_test.lua";

/// A command of `talon-lua`: its words, and the files that it may read.
pub(super) struct Tool {
    argv: Vec<OsString>,
    read: Vec<PathBuf>,
    /// How long a call of the script may take.
    execution: Duration,
}

impl Tool {
    /// The command without arguments. Fails if `talon-lua` is not installed.
    pub(super) fn new(command: &str) -> Result<Self, Failure> {
        let program = program_lookup::find(PROGRAM).map_err(|error| {
            Failure::new(NOT_FOUND, format!("{error}, or install the package of Talon, which has it"))
        })?;
        let execution = Duration::from_secs(LuaLimits::default().timeout_seconds);
        Ok(Self { argv: vec![program.into(), command.into()], read: Vec::new(), execution })
    }

    /// How long a call of the script may take, as far as its paths are known.
    pub(super) fn execution(&self) -> Duration {
        self.execution
    }

    /// Adds an option with its value, as one word: the value may begin with `-`.
    pub(super) fn option(&mut self, name: &str, value: &str) {
        self.argv.push(format!("--{name}={value}").into());
    }

    /// Adds a word that is no path.
    pub(super) fn word(&mut self, word: &str) {
        self.argv.push(word.into());
    }

    /// Adds a script, or a directory of scripts, and lets the jail see it with the tests of the script.
    pub(super) fn script(&mut self, path: &Path) -> Result<(), Failure> {
        let path = absolute(path).map_err(|error| {
            Failure::usage(format!(
                "cannot use {}: {error}; name a script, or a directory of scripts",
                path.display()
            ))
        })?;
        let tests = tests_of(&path).filter(|tests| tests.is_file());
        self.argv.push(path.clone().into());
        self.read.push(path);
        self.read.extend(tests);
        Ok(())
    }

    /// Adds these scripts and directories, or without any the directory that the configuration names. What is in that directory has
    /// the limits and libraries of the configuration.
    pub(super) fn scripts(&mut self, paths: &[PathBuf], global: &Global) -> Result<(), Failure> {
        let lua = match configured(global) {
            // What is named needs no configuration, unless one is named as well.
            Err(_) if !paths.is_empty() && global.config.is_none() => None,
            configured => configured?,
        };
        match (paths, &lua) {
            ([], None) => {
                return Err(Failure::usage(
                    "the configuration has no plugins.lua: name scripts, or a directory of scripts",
                ));
            }
            ([], Some(lua)) => self.script(&lua.scripts_dir)?,
            (paths, _) => paths.iter().try_for_each(|path| self.script(path))?,
        }
        if let Some(lua) = lua.filter(|lua| paths.iter().all(|path| is_within(path, &lua.scripts_dir))) {
            let script = paths.first().and_then(|path| path.file_stem()).unwrap_or_default();
            self.execution = Duration::from_secs(lua.limits_of(&script.to_string_lossy()).timeout_seconds);
            self.option("settings", &lua.program_settings().to_string());
        }
        Ok(())
    }

    /// Runs it to its end: its output is this program's, and so is its exit code.
    pub(super) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::new(JAIL_FAILED, error.to_string());
        out.flush();
        let signals = SignalRelay::install().map_err(|error| failed(&error))?;
        let JailedProgram { stdout: output, stderr: errors, monitor, .. } = self.start(None)?;
        let copies = relay::copy_text(output, stdout())
            .and_then(|copied| Ok([copied, relay::copy_text(errors, stderr())?]))
            .map_err(|error| failed(&error))?;
        let status = signals.finish(&monitor, copies).map_err(|error| failed(&error))?;
        code(status)
    }

    /// Starts it. Its input is empty unless there is a `stdin`.
    pub(super) fn start(self, stdin: Option<BorrowedFd<'_>>) -> Result<JailedProgram, Failure> {
        let profile = Profile::builtin(PROFILE).expect("it is built in");
        let profile =
            profile.compile(&Network::None).map_err(|error| Failure::new(JAIL_FAILED, error.to_string()))?;
        let command = JailedCommand {
            name: "lua",
            argv: self.argv,
            profile,
            network: Network::None,
            grants: Grants::default().and("the script", self.read, Access::Read),
            env: Vec::new(),
            uid: None,
            limits: Limits::default(),
            mode: Mode::Enforce,
            tmp_exec: false,
        };
        let RunningCommand { jailed, .. } = command.start(stdin)?;
        Ok(jailed)
    }
}

/// The file with the tests of a script.
fn tests_of(script: &Path) -> Option<PathBuf> {
    let name = script.file_name()?.to_str()?.strip_suffix(ENDING)?;
    Some(script.with_file_name(format!("{name}{TESTS_ENDING}")))
}

/// `plugins.lua` of the configuration.
fn configured(global: &Global) -> Result<Option<LuaScripts>, Failure> {
    let loaded = configuration::load(&configuration::load_options(global))?;
    Ok(loaded.config.plugins.lua)
}

/// Whether a path is this directory, or in it.
fn is_within(path: &Path, dir: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    match (real(path), real(dir)) {
        (Some(path), Some(dir)) => path.starts_with(dir),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_a_script_stand_beside_it() {
        assert_eq!(tests_of(Path::new("/s/a.lua")), Some(PathBuf::from("/s/a_test.lua")));
        assert_eq!(tests_of(Path::new("/s")), None);
    }
}
