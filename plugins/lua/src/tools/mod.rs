//! The commands for authors: `check`, `run`, `test`. They run scripts in this process, with the limits that scripts have by default.

mod canned_host;
mod check;
mod diff;
mod run;
mod test;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use talon_lua_engine::{Library, MAX_SOURCE_BYTES};

/// What a script's file ends with, and a file with its tests.
const ENDING: &str = ".lua";
const TESTS_ENDING: &str = "_test.lua";

/// Check, run and test Lua scripts.
#[derive(Debug, Parser)]
#[command(name = "talon-lua", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile scripts, run their top level, and name the functions that are called.
    Check(check::CheckArgs),
    /// Call one function of a script, and show what it changed.
    Run(run::RunArgs),
    /// Run the functions `test_*` of the files NAME_test.lua, each beside its script.
    Test(test::TestArgs),
}

/// The libraries beside those of every script, as `plugins.lua.libraries` names them.
#[derive(Debug, clap::Args)]
struct Libraries {
    /// A library that the script has beside string, table, math and os.time.
    #[arg(long = "library", value_name = "NAME", value_parser = library)]
    names: Vec<Library>,
}

fn library(word: &str) -> Result<Library, String> {
    let known = Library::ALL.map(Library::as_str);
    Library::ALL
        .into_iter()
        .find(|library| library.as_str() == word)
        .ok_or_else(|| format!("there are: {}", known.join(", ")))
}

/// Runs the command of these arguments.
pub(crate) fn run() -> ExitCode {
    let done = match CommandLine::parse().command {
        Command::Check(args) => check::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Test(args) => test::run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The scripts of these paths, in order: files, and those in directories.
fn scripts(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let listed = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let scripts = listed.flatten().map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.ends_with(ENDING) && !name.ends_with(TESTS_ENDING)
        });
        found.extend(scripts);
    }
    found.sort();
    if found.is_empty() {
        return Err("there is no script: name a file, or a directory with files NAME.lua".to_owned());
    }
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let size = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.len();
    if size > MAX_SOURCE_BYTES as u64 {
        return Err(format!("{} has more than {MAX_SOURCE_BYTES} bytes", path.display()));
    }
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
