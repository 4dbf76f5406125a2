//! `talon config`: checks, shows and documents the configuration, and changes that of a running supervisor.

use clap::{Args, Subcommand};
use serde_json::json;
use talon_sanitize::sanitized;
use talon_supervisor::config::{self, Loaded};
use talon_supervisor::serve::{self, FoundNames};

use crate::client::config::{HistoryArgs, PatchArgs};
use crate::exit;
use crate::failure::Failure;
use crate::generated::GeneratedText;
use crate::global::Global;
use crate::host_socket::HostSocket;
use crate::line::sanitized_line;
use crate::local::configuration;
use crate::output::Output;
use crate::runtime::block_on;

/// Check, show, explain and change the configuration.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon config check --config ./talon.yaml
  talon config show
  talon config reference > configuration.md
  talon config patch agent.turn.iterations=36 --dry-run
  talon config history")]
pub(crate) enum ConfigVerb {
    /// Report everything that is wrong with the configuration, and the plugins that a supervisor would refuse.
    Check(CheckArgs),
    /// Print the effective values and the source of each; secrets are omitted.
    Show,
    /// Print what every key means, as Markdown; with `--output json` as a JSON schema.
    Reference,
    Patch(PatchArgs),
    History(HistoryArgs),
}

impl ConfigVerb {
    pub(crate) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::Check(args) => args.run(global, out),
            Self::Show => show(global, out),
            Self::Reference => reference(out),
            Self::Patch(args) => block_on(args.run(&HostSocket::new(global), out)),
            Self::History(args) => block_on(args.run(&HostSocket::new(global), out)),
        }
    }
}

/// Check the configuration, and its plugins on this machine.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Check the configuration alone: a supervisor starts without the plugins that it refuses.
    #[arg(long)]
    skip_plugins: bool,
}

/// What a check found.
#[derive(Default)]
struct Findings {
    problems: Vec<String>,
    warnings: Vec<String>,
}

impl CheckArgs {
    fn run(&self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let options = configuration::load_options(global);
        if out.is_json() {
            let loaded = config::load(&options);
            let (file, findings) = match &loaded {
                Ok(loaded) => (loaded.file.clone(), self.findings(loaded)),
                Err(errors) => (None, Findings { problems: texts(errors.problems()), ..Findings::default() }),
            };
            let Findings { problems, warnings } = findings;
            out.json(&json!({ "file": file, "problems": problems, "warnings": warnings }));
            return Ok(if problems.is_empty() { exit::OK } else { exit::CONFIG });
        }
        let loaded = configuration::load(&options)?;
        let Findings { problems, warnings } = self.findings(&loaded);
        for warning in warnings {
            out.line(sanitized!("warning: {}", sanitized_line(warning)));
        }
        for problem in &problems {
            out.line(sanitized!("problem: {}", sanitized_line(problem)));
        }
        if !problems.is_empty() {
            return Ok(exit::CONFIG);
        }
        match &loaded.file {
            Some(file) => out.line(sanitized!("{}: fine", sanitized_line(file.display()))),
            None => out.line("no configuration file: the built-in defaults are fine"),
        }
        Ok(exit::OK)
    }

    /// An entry that a supervisor would refuse is a problem. A refused file in the plugin directory is a warning, and
    /// so are overrides of no plugin, whose program may be installed later.
    fn findings(&self, loaded: &Loaded) -> Findings {
        let mut findings = Findings { problems: Vec::new(), warnings: texts(&loaded.warnings) };
        if self.skip_plugins {
            return findings;
        }
        let found = serve::find_plugins(&loaded.config);
        let unknown = serve::unknown_overrides(loaded, &FoundNames::of(&found, &loaded.config));
        for refused in &found.refused {
            let text = format!("{} would be refused: {}", refused.name, refused.reason);
            let configured = loaded.config.plugins.tools.plugins.contains_key(&refused.name);
            if configured { &mut findings.problems } else { &mut findings.warnings }.push(text);
        }
        findings.warnings.extend(texts(&unknown));
        findings
    }
}

fn texts(problems: &[config::Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn show(global: &Global, out: &mut Output) -> Result<u8, Failure> {
    let loaded = configuration::load(&configuration::load_options(global))?;
    if out.is_json() {
        out.generated(&GeneratedText::ConfigJson(&loaded))?;
    } else {
        out.generated(&GeneratedText::Config(&loaded))?;
    }
    Ok(exit::OK)
}

fn reference(out: &mut Output) -> Result<u8, Failure> {
    out.generated(if out.is_json() { &GeneratedText::Schema } else { &GeneratedText::Reference })?;
    Ok(exit::OK)
}
