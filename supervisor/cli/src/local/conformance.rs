//! `talon conformance`: tests a plugin from the outside.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use talon_conformance::{NamedAction, Options, Outcome, Progress, Report, Verdict, page, report, run};
use talon_plugin::Events;
use talon_plugin::probe::Prober;
use talon_plugin_config::spec::PluginSpec;
use talon_sanitize::sanitized;
use talon_supervisor::config::Config;
use talon_supervisor::serve::state_service;
use talon_supervisor::state;

use crate::arguments::{self, ArgumentError};
use crate::exit;
use crate::failure::Failure;
use crate::generated::GeneratedText;
use crate::global::Global;
use crate::line::{Line, sanitized_line};
use crate::local::scratch_environment::{self, JsonObjectError, ScratchEnvironment};
use crate::local::state::scratch;
use crate::output::Output;
use crate::runtime;
use crate::signals::termination_signal;
use crate::table::{Cell, Table};
use crate::transient_bar::TransientBar;
use crate::wrap::wrapped;

/// The report contains everything relevant. `TALON_LOG` overrides this.
const LOG_LEVEL: &str = "off";
/// How long the state service may take to stop. A person waits for it.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Test a plugin from the outside: its start, its answers, its exit.
///
/// The plugin is started in its jail as often as the checks need, and called as a host calls it: only actions
/// that are `read_only`, unless --action or --allow-calls says otherwise. `talon conformance --list` explains
/// what each check does, why, and how to fix what it finds.
///
/// Exits with 1 if a check failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon conformance ./target/debug/my-plugin
  talon conformance ./my-plugin --config talon.yaml --report junit > report.xml
  talon conformance ./my-plugin --only execute --action 'slow ms=500'
  talon conformance --plugin git --config talon.yaml --allow-calls
  talon conformance --list --output json | jq -r '.checks[].id'")]
pub(crate) struct ConformanceArgs {
    /// An executable file, or a directory with a plugin.yaml. If the configuration has an entry for it, that
    /// entry applies.
    #[arg(value_name = "PATH", required_unless_present_any = ["list", "plugin"])]
    path: Option<PathBuf>,
    /// The plugin with this name in the configuration, instead of a PATH.
    #[arg(long, value_name = "NAME", conflicts_with = "path")]
    plugin: Option<String>,
    /// List the checks instead of running them: their documentation, or with --output json a list for
    /// programs.
    #[arg(long, conflicts_with_all = ["path", "plugin", "report", "only", "skip"])]
    list: bool,
    /// The format of the result; --output json means the same as json here.
    #[arg(long, value_enum, value_name = "FORMAT")]
    report: Option<ReportFormat>,
    /// Run only this check, or the checks of this group, such as `execute`; may be given several times.
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Skip this check, or the checks of this group; may be given several times.
    #[arg(long, value_name = "ID")]
    skip: Vec<String>,
    /// An action that may be called, with arguments of a valid call: 'slow ms=500', or 'slow {"ms": 500}';
    /// may be given several times.
    #[arg(long = "action", value_name = "CALL", value_parser = parse_call)]
    actions: Vec<NamedAction>,
    /// Allow calls of every action, including those that change something.
    #[arg(long)]
    allow_calls: bool,
    /// The object that the plugin gets at initialisation; overrides its plugin.yaml and the configuration.
    #[arg(long, value_name = "JSON", value_parser = scratch_environment::object)]
    config_json: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// A table for people.
    Table,
    /// One JSON value.
    Json,
    /// JUnit XML, for build servers.
    Junit,
}

/// Why a word on the command line is no call.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("write it as 'NAME KEY=VALUE'")]
    Form,
    #[error(transparent)]
    Pair(#[from] ArgumentError),
    #[error(transparent)]
    Object(#[from] JsonObjectError),
}

/// `NAME`, `NAME KEY=VALUE …` or `NAME {…}`.
fn parse_call(text: &str) -> Result<NamedAction, CallError> {
    let (action, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    if action.is_empty() || action.contains('=') {
        return Err(CallError::Form);
    }
    let rest = rest.trim();
    let args: BTreeMap<String, String> = if rest.starts_with('{') {
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        scratch_environment::object(rest)?.into_iter().map(|(key, value)| (key, text(value))).collect()
    } else {
        rest.split_whitespace().map(arguments::key_value).collect::<Result<_, _>>()?
    };
    Ok(NamedAction { action: action.to_owned(), args })
}

impl ConformanceArgs {
    pub(crate) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        if self.list {
            match out.is_json() {
                true => out.json(&page::json()),
                false => out.generated(&GeneratedText::Checks)?,
            }
            return Ok(exit::OK);
        }
        let unknown = |error: talon_conformance::UnknownCheckError| Failure::usage(error.to_string());
        let options = Options {
            only: Options::select(&self.only).map_err(unknown)?,
            skip: Options::select(&self.skip).map_err(unknown)?,
            actions: self.actions.clone(),
            allow_calls: self.allow_calls,
        };
        let tried = ScratchEnvironment::load("talon conformance", global)?;
        let _flush = talon_telemetry::init(&global.telemetry(LOG_LEVEL))
            .map_err(|error| Failure::usage(error.to_string()))?;
        let spec = scratch_environment::single_run(self.spec(&tried)?, self.config_json.as_ref());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(runtime::not_started)?;
        let report = runtime::run(runtime, Box::pin(run_checks(tried.config.clone(), spec, &options)))?;
        match self.report {
            Some(ReportFormat::Junit) => out.generated(&GeneratedText::JUnit(&report))?,
            Some(ReportFormat::Json) => out.json(&report::json(&report)),
            None if out.is_json() => out.json(&report::json(&report)),
            None | Some(ReportFormat::Table) => table(&report, out),
        }
        Ok(if report.passed() { exit::OK } else { exit::TOOL_ERROR })
    }

    /// The plugin's entry in the configuration, if there is one; otherwise its specification from discovery.
    fn spec(&self, tried: &ScratchEnvironment) -> Result<PluginSpec, Failure> {
        match (&self.plugin, &self.path) {
            (Some(name), _) => tried.configured(name),
            (None, Some(path)) => match tried.names_of(path)?.as_slice() {
                [] => tried.discovered(path),
                [name] => tried.configured(name),
                [first, second, ..] => Err(Failure::usage(format!(
                    "the configuration runs {} as {first} and as {second}: choose one with --plugin",
                    path.display()
                ))),
            },
            (None, None) => {
                Err(Failure::usage("name a PATH, or a plugin of the configuration with --plugin"))
            }
        }
    }
}

/// Runs all checks; cleans up in every case before it returns.
async fn run_checks(config: Arc<Config>, spec: PluginSpec, options: &Options) -> Result<Report, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
    let terminated = termination_signal().map_err(|error| failed(&error))?;
    let stage = Arc::new(talon_jail::Stage::from_current_exe().map_err(|error| failed(&error))?);
    let events = Events::new();
    // Without the state service's program the plugin gets "no state", which it has to handle anyway.
    let keeper = state::find_program(config.state.program.as_deref())
        .ok()
        .and_then(|_| state_service::supervisor(&config, &events));
    let mut settings = state_service::settings(&config, keeper.as_ref(), None);
    settings.uid_range = settings.uid_range.map(|range| scratch::uids(&range, std::process::id()));
    // Do not write a log file for a test run.
    settings.log_dir = None;
    let uids = settings.uid_range.clone();
    let (prober, registry) = Prober::new(settings, stage, events).map_err(|error| failed(&error))?;
    if let Some(keeper) = &keeper {
        state_service::run(&config, uids, &registry, keeper, config.sandbox.mode.into())
            .map_err(|error| failed(&error))?;
    }
    let bar = TransientBar::new(None, "{pos}/{len} {msg}");
    bar.set_message("starting it");
    let mut progress = |progress: Progress<'_>| show_progress(&bar, &progress);
    let name = spec.source.clone();
    let result = tokio::select! {
        result = run(&prober, spec, options, &mut progress) => {
            result.map_err(|error| Failure::new(exit::HOST_FAULT, format!("{name}: {error}")))
        }
        () = terminated => Err(Failure::new(exit::HOST_FAULT, "interrupted")),
    };
    drop(bar);
    prober.wait_until_gone().await;
    registry.shutdown(STOP_GRACE).await;
    result
}

fn show_progress(bar: &TransientBar, progress: &Progress<'_>) {
    if let Progress::Started(check, number, of) = progress {
        bar.set_length(*of as u64);
        bar.set_position(*number as u64);
        bar.set_message(check.id);
    }
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Pass => AnsiColor::Green.on_default(),
        Verdict::Fail => AnsiColor::Red.on_default(),
        Verdict::Warn => AnsiColor::Yellow.on_default(),
        Verdict::Skip => Style::new().dimmed(),
    }
}

/// The report for people: one line per check, remedies for the failed ones, and the totals.
fn table(report: &Report, out: &mut Output) {
    let mut table = Table::new(&["CHECK", "OUTCOME", ""]);
    let widest = report.outcomes.iter().map(|outcome| outcome.check.id.len()).max().unwrap_or_default();
    // Two columns and their gaps precede the text; the second column's longest word is its title.
    let used = widest + "OUTCOME".len() + 4;
    for Outcome { check, verdict, detail, .. } in &report.outcomes {
        let text = if detail.is_empty() { check.title } else { detail.as_str() };
        for (number, line) in wrapped(text, used).into_iter().enumerate() {
            let first = number == 0;
            let verdict = Cell::styled(verdict.as_str(), style(*verdict));
            table.row(vec![
                if first { check.id } else { "" }.into(),
                if first { verdict } else { "".into() },
                line.into(),
            ]);
        }
    }
    out.table(&table);
    let wrong = |outcome: &&Outcome| matches!(outcome.verdict, Verdict::Fail | Verdict::Warn);
    for Outcome { check, verdict, .. } in report.outcomes.iter().filter(wrong) {
        out.line("");
        out.line(Line::styled(style(*verdict), check.id).and(" ").and(check.mend));
        out.line(sanitized!("  {}", sanitized_line(check.paragraph())));
    }
    let count = |verdict| report.count(verdict);
    out.line("");
    out.line(sanitized!(
        "{} passed, {} failed, {} warned, {} skipped in {} s; {}",
        count(Verdict::Pass),
        count(Verdict::Fail),
        count(Verdict::Warn),
        count(Verdict::Skip),
        report.took.as_secs(),
        report.called
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_name_and_arguments() {
        let args = |text: &str| {
            let named = parse_call(text).unwrap();
            let args: Vec<_> = named.args.into_iter().collect();
            (named.action, args)
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(args("slow"), ("slow".to_owned(), vec![]));
        assert_eq!(args(" slow  a=b=c d= "), ("slow".to_owned(), vec![pair("a", "b=c"), pair("d", "")]));
        let json = r#"slow {"ms": 5, "text": "a b", "list": [1]}"#;
        let expected = vec![pair("list", "[1]"), pair("ms", "5"), pair("text", "a b")];
        assert_eq!(args(json), ("slow".to_owned(), expected));
        for bad in ["", "=", "slow ms", "slow {"] {
            assert!(parse_call(bad).is_err(), "{bad}");
        }
    }
}
