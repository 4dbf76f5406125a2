//! `talon config`: checks, shows and documents the configuration.

use clap::Subcommand;
use serde_json::json;
use talon_sanitize::sanitized;
use talon_supervisor::config::{self, Loaded};
use talon_supervisor::serve::{self, FoundNames};

use crate::exit;
use crate::failure::Failure;
use crate::generated::GeneratedText;
use crate::global::Global;
use crate::line::sanitized_line;
use crate::local::configuration;
use crate::output::Output;

/// Check, show and explain the configuration.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon config check --config ./talon.yaml
  talon config show
  talon config reference > configuration.md")]
pub(crate) enum ConfigVerb {
    /// Report everything that is wrong with the configuration.
    Check,
    /// Print the effective values and the source of each; secrets are omitted.
    Show,
    /// Print what every key means, as Markdown; with `--output json` as a JSON schema.
    Reference,
}

impl ConfigVerb {
    pub(crate) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::Check => check(global, out),
            Self::Show => show(global, out),
            Self::Reference => reference(out),
        }
    }
}

fn check(global: &Global, out: &mut Output) -> Result<u8, Failure> {
    let options = configuration::load_options(global);
    if out.is_json() {
        let loaded = config::load(&options);
        let texts =
            |problems: &[config::Problem]| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (file, problems, warnings) = match &loaded {
            Ok(loaded) => {
                (loaded.file.clone(), Vec::new(), [texts(&loaded.warnings), of_plugins(loaded)].concat())
            }
            Err(errors) => (None, texts(errors.problems()), Vec::new()),
        };
        out.json(&json!({ "file": file, "problems": problems, "warnings": warnings }));
        return Ok(if loaded.is_ok() { exit::OK } else { exit::CONFIG });
    }
    let loaded = configuration::load(&options)?;
    let warnings = loaded.warnings.iter().map(ToString::to_string).chain(of_plugins(&loaded));
    for warning in warnings {
        out.line(sanitized!("warning: {}", sanitized_line(warning)));
    }
    match &loaded.file {
        Some(file) => out.line(sanitized!("{}: fine", sanitized_line(file.display()))),
        None => out.line("no configuration file: the built-in defaults are fine"),
    }
    Ok(exit::OK)
}

/// What is to know about single plugins: those that a supervisor would refuse, and overrides of none. The
/// rest of the configuration holds all the same, and a program may be installed later.
fn of_plugins(loaded: &Loaded) -> Vec<String> {
    let found = serve::find_plugins(&loaded.config);
    let unknown = serve::unknown_overrides(loaded, &FoundNames::of(&found, &loaded.config));
    let refused = found.refused.iter().map(|one| format!("{} would be refused: {}", one.name, one.reason));
    refused.chain(unknown.iter().map(ToString::to_string)).collect()
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
