//! The hostile suite: programs that try to escape, run without a jail, in bubblewrap's and in ours, and one
//! table with the results.
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
//! `--only PART,…` runs the attacks whose name contains one of them; `--column PART` those columns;
//! `--table FILE` writes the table there; `--attacks FILE` takes attacks that were compiled elsewhere
//! (`cc tests/jail/attacks/*.c`), for machines without a compiler.

mod aftermath;
mod attack;
mod choice;
mod column;
mod drive;
mod evidence;
mod expected;
mod jails;
mod judge;
mod listeners;
mod neighbour;
mod outer;
mod record;
mod table;
mod targets;
mod verdict;

use std::process::ExitCode;

use choice::Choice;

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
