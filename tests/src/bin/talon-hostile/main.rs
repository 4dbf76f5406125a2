//! The hostile suite: programs that try to escape, run without a jail, in bubblewrap's and in ours, and one table
//! with the results.
//!
//! ```text
//! talon-hostile                    judges; fails when anything differs from `tests/jail/expected.toml`
//!   └ unshare … talon-hostile outer    makes the environment that is attacked, in a throw-away namespace
//!       ├ talon-hostile drive root     starts each attack in each column, as root
//!       └ talon-hostile drive user     the same without any rights
//! ```
//!
//! A successful attack cannot damage the machine: the outer namespace has its own files
//! where it matters, its own network and its own processes, and dies with this program.
//!
//! `--only PART,…` runs the attacks whose name contains one of them; `--column PART` those columns; `--table FILE` writes
//! the table there; `--attacks FILE` takes attacks that were compiled elsewhere (`cc tests/jail/attacks/*.c`), for
//! machines without a compiler.

mod aftermath;
mod attack;
mod column;
mod drive;
mod expected;
mod jails;
mod judge;
mod listeners;
mod neighbour;
mod outer;
mod table;
mod targets;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

/// The options of a run.
#[derive(Debug, Default, Clone)]
pub(crate) struct Choice {
    /// Attacks whose name contains this text, or one of several separated by commas.
    pub(crate) only: Option<String>,
    /// Columns whose name contains it.
    pub(crate) column: Option<String>,
    /// Where the table goes.
    pub(crate) table: Option<PathBuf>,
    /// The compiled attacks; without it they are compiled here.
    pub(crate) attacks: Option<PathBuf>,
    /// Whether each result is printed as it comes.
    pub(crate) verbose: bool,
}

impl Choice {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut choice = Self::default();
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let mut value = || rest.next().cloned().with_context(|| format!("{option} needs a value"));
            match option.as_str() {
                "--only" => choice.only = Some(value()?),
                "--column" => choice.column = Some(value()?),
                "--table" => choice.table = Some(value()?.into()),
                "--attacks" => choice.attacks = Some(value()?.into()),
                "--verbose" => choice.verbose = true,
                other => {
                    anyhow::bail!(
                        "unknown option {other} (known: --only, --column, --table, --attacks, --verbose)"
                    )
                }
            }
        }
        Ok(choice)
    }

    /// The columns that were asked for.
    pub(crate) fn columns(&self) -> Vec<column::Column> {
        let wanted =
            |column: &column::Column| self.column.as_ref().is_none_or(|part| column.name.contains(part));
        column::all().into_iter().filter(wanted).collect()
    }

    /// Whether an attack was asked for.
    pub(crate) fn wants(&self, attack: &str) -> bool {
        self.only.as_ref().is_none_or(|parts| parts.split(',').any(|part| attack.contains(part)))
    }

    /// The same as arguments, for the child processes.
    fn arguments(&self) -> Vec<String> {
        let option = |name: &str, value: &Option<String>| {
            value.iter().flat_map(|value| [name.to_owned(), value.clone()]).collect::<Vec<_>>()
        };
        let mut all = option("--only", &self.only);
        all.extend(option("--column", &self.column));
        if let Some(file) = &self.attacks {
            all.extend(["--attacks".into(), file.display().to_string()]);
        }
        if self.verbose {
            all.push("--verbose".into());
        }
        all
    }
}

fn main() -> ExitCode {
    talon_jail::become_stage_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("outer") => Choice::parse(&arguments[1..]).and_then(|choice| outer::run(&choice)),
        Some("drive") if arguments.len() > 1 => {
            Choice::parse(&arguments[2..]).and_then(|choice| drive::run(&arguments[1], &choice))
        }
        _ => Choice::parse(&arguments).and_then(|choice| judge::run(&choice)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
