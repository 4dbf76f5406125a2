//! `talon-bench`: see the crate's own documentation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use talon_bench::document::Document;
use talon_bench::figures::Figures;
use talon_bench::machine::{Probe, RunOrigin};
use talon_bench::suites::{self, Bench, Plan, SUITES};
use talon_bench::{compare, goals, load_command, page, soak, table};

/// Measures Talon beside what it replaces, and shows the ratios.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measure everything, or some suites.
    Run(Run),
    /// Say what got worse from one run to another; exit code 1 if anything did.
    Compare {
        /// The JSON of the run before.
        before: PathBuf,
        /// The JSON of the run after.
        after: PathBuf,
    },
    /// Load one contender of the calls for as long as a command runs, which may look at its processes.
    Load(load_command::Options),
    /// Use everything at once for a long time, and say whether what it takes stays the same; exit code 1 if
    /// not.
    Soak(soak::Options),
}

#[derive(Debug, Args)]
struct Run {
    /// Under four minutes: fewer cases, fewer and shorter rounds.
    #[arg(long)]
    quick: bool,
    /// Measure the ratios of the goals once more beside busy neighbours: processes that burn CPU.
    #[arg(long)]
    loaded: bool,
    /// These suites alone. In the file of `--markdown` all that they do not measure stays as it is.
    #[arg(long, value_name = "SUITE", value_parser = clap::builder::PossibleValuesParser::new(SUITES))]
    only: Vec<String>,
    /// Write all figures to this file, for `talon-bench compare`.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write all tables to this file; what stands before its first table of goals stays.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// The marker above the tables of a file.
const HEAD: &str = "<!-- Written by `make bench`; what stands above this line stays. -->\n";

fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Run(run) => run.run(),
        Verb::Compare { before, after } => compared(&before, &after),
        Verb::Load(options) => runtime().and_then(|runtime| runtime.block_on(options.run())),
        Verb::Soak(options) => runtime().and_then(|runtime| runtime.block_on(Box::pin(options.run()))),
    };
    done.unwrap_or_else(|error| {
        eprintln!("talon-bench: {error:#}");
        ExitCode::from(2)
    })
}

impl Run {
    fn run(self) -> Result<ExitCode> {
        let (mut book, mut probe, begin) = (Figures::default(), Probe::new(SUITES[0]), Instant::now());
        let mut neighbour_cores = BTreeMap::new();
        let progress =
            ProgressBar::new_spinner().with_style(ProgressStyle::with_template("{elapsed:>5} {msg}")?);
        progress.enable_steady_tick(Duration::from_secs(1));
        let ratios = goals::suites_of_ratios();
        runtime()?.block_on(async {
            for suite in SUITES
                .iter()
                .filter(|suite| self.only.is_empty() || self.only.iter().any(|only| only == *suite))
            {
                let plan = Plan { quick: self.quick, loaded: false };
                probe.turn_to(Some(suite));
                let mut bench =
                    Bench { plan, book: &mut book, probe: &mut probe, progress: progress.clone() };
                Box::pin(suites::run(suite, &mut bench)).await.with_context(|| format!("suite {suite}"))?;
                if self.loaded && ratios.contains(suite) {
                    bench.plan.loaded = true;
                    let cores = Box::pin(suites::run_beside_neighbours(suite, &mut bench)).await;
                    let cores = cores.with_context(|| format!("suite {suite}, beside busy neighbours"))?;
                    neighbour_cores.insert((*suite).to_owned(), cores);
                }
            }
            anyhow::Ok(())
        })?;
        progress.finish_and_clear();
        let origin = RunOrigin::of_here(self.quick, begin.elapsed(), &probe);
        let document = Document::new(book, RunOrigin { neighbour_cores, ..origin });
        print!("{}\n{}", table::goals(&document), table::loaded(&document));
        if let Some(path) = &self.json {
            write(path, &document.to_json())?;
        }
        if let Some(path) = &self.markdown {
            let before = std::fs::read_to_string(path).unwrap_or_default();
            let (kept, tables) = before.split_once(HEAD).unwrap_or((&before, ""));
            let tables = if self.only.is_empty() || tables.is_empty() {
                table::whole(&document)
            } else {
                page::merged(tables.trim_start(), &document)
            };
            write(path, &format!("{kept}{HEAD}\n{tables}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The measuring process sleeps while others work; two threads are for the supervisors' logs that it reads.
fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

fn compared(before: &Path, after: &Path) -> Result<ExitCode> {
    let (before, after) = (Document::read(before)?, Document::read(after)?);
    ensure!(
        before.origin.quick == after.origin.quick,
        "one of them is a short run and the other a full one, which have other cases: compare two of a kind"
    );
    let changes = compare::compare(&before, &after);
    print!("{}", compare::show(&changes, &before, &after));
    Ok(ExitCode::from(u8::from(changes.iter().any(|change| change.told))))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
