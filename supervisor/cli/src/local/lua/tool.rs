//! One command of `talon-lua` in its jail.

use std::ffi::OsString;
use std::io::{stderr, stdout};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use talon_jail::{Access, JailedProgram, Limits, Mode, Network, Profile};
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
}

impl Tool {
    /// The command without arguments. Fails if `talon-lua` is not installed.
    pub(super) fn new(command: &str) -> Result<Self, Failure> {
        let program = program_lookup::find(PROGRAM).map_err(|error| {
            Failure::new(NOT_FOUND, format!("{error}, or install the package of Talon, which has it"))
        })?;
        Ok(Self { argv: vec![program.into(), command.into()], read: Vec::new() })
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

    /// Adds these scripts and directories, or without any the directory that the configuration names, with its libraries.
    pub(super) fn scripts(
        &mut self,
        paths: &[PathBuf],
        has_libraries: bool,
        global: &Global,
    ) -> Result<(), Failure> {
        if !paths.is_empty() {
            return paths.iter().try_for_each(|path| self.script(path));
        }
        let (scripts_dir, libraries) = configured(global)?;
        for library in libraries.iter().filter(|_| !has_libraries) {
            self.option("library", library);
        }
        self.script(&scripts_dir)
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

/// The directory of `plugins.lua`, and the libraries of its scripts.
fn configured(global: &Global) -> Result<(PathBuf, Vec<String>), Failure> {
    let loaded = configuration::load(&configuration::load_options(global))?;
    let lua = loaded.config.plugins.lua.ok_or_else(|| {
        Failure::usage("the configuration has no plugins.lua: name scripts, or a directory of scripts")
    })?;
    let names = serde_json::to_value(&lua.libraries).and_then(serde_json::from_value);
    Ok((lua.scripts_dir, names.expect("libraries are written as their names")))
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
