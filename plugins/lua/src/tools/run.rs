//! `run`: one call of one function.

use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use talon_lua_engine::{CallError, Context, KvValue, Outcome, Phase, Point, Script};

use super::canned_host::CannedHost;
use super::check::Format;
use super::diff;
use super::files::{name, read};
use super::script_options::ScriptOptions;
use super::watchdog::Watchdog;

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The script.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The function: filter, pre_hook, post_hook, hook, on_event or task.
    #[arg(value_name = "FUNCTION", value_parser = point)]
    point: Point,
    /// The message.
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    message: String,
    /// What earlier hooks noted.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    /// What a model answers; the first for the first question.
    #[arg(long, value_name = "ANSWER", allow_hyphen_values = true)]
    llm: Vec<String>,
    /// What is stored already. A value that is a number or a boolean is one.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    kv: Vec<(String, String)>,
    /// The side of the model, for hook: pre or post.
    #[arg(long, default_value = "pre", value_parser = ["pre", "post"])]
    phase: String,
    /// How the result is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    options: ScriptOptions,
}

fn point(word: &str) -> Result<Point, String> {
    let known = Point::ALL.map(Point::as_str);
    Point::of(word).ok_or_else(|| format!("there are: {}", known.join(", ")))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    pair.map(|(key, value)| (key.to_owned(), value.to_owned())).ok_or_else(|| "write KEY=VALUE".to_owned())
}

fn value(text: String) -> KvValue {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => KvValue::Number(number),
        _ => match text.as_str() {
            "true" => KvValue::Boolean(true),
            "false" => KvValue::Boolean(false),
            _ => KvValue::Text(text),
        },
    }
}

/// Whether the call had an outcome.
pub(super) fn run(args: &RunArgs) -> Result<bool, String> {
    let source = read(&args.file)?;
    let watchdog = Watchdog::start()?;
    let limits = args.options.limits(&args.file);
    watchdog.begin(&name(&args.file), limits.execution);
    let script = Script::load(&name(&args.file), &source, &limits, &args.options.libraries(&args.file));
    let mut script = script.map_err(|error| error.to_string())?;
    let phase = if args.phase == "post" || args.point == Point::PostHook { Phase::Post } else { Phase::Pre };
    let context = Context {
        message: args.message.clone(),
        session_id: "sample".to_owned(),
        sender: "sample".to_owned(),
        channel: "cli".to_owned(),
        phase: Some(phase),
        metadata: args.metadata.iter().cloned().collect(),
        fields: sample_fields(args.point, &args.message),
    };
    let host = Rc::new(CannedHost::default());
    host.values.borrow_mut().extend(args.kv.iter().map(|(key, text)| (key.clone(), value(text.clone()))));
    host.answers.borrow_mut().extend(args.llm.iter().cloned());
    let before = host.values.borrow().clone();
    watchdog.begin(args.point.as_str(), limits.execution);
    let outcome = script.call(args.point, &context, host.clone());
    if args.format == Format::Json {
        println!("{:#}", as_json(&host, outcome.as_ref()));
        return Ok(outcome.is_ok());
    }
    for line in host.lines.borrow().iter() {
        println!("log {line}");
    }
    print!("{}", diff::values(&before, &host.values.borrow()));
    match outcome {
        Ok(outcome) => {
            print!("{}", shown(&context, &outcome));
            Ok(true)
        }
        Err(error) => {
            eprintln!("{}: {error}", error.kind.as_str());
            Ok(false)
        }
    }
}

/// The outcome as the engine has it, with what was logged and what is stored.
fn as_json(host: &CannedHost, outcome: Result<&Outcome, &CallError>) -> serde_json::Value {
    serde_json::json!({
        "outcome": outcome.ok(),
        "error": outcome.err(),
        "log": *host.lines.borrow(),
        "kv": *host.values.borrow(),
    })
}

/// What `on_event` and `task` get beside the message.
fn sample_fields(point: Point, summary: &str) -> serde_json::Map<String, serde_json::Value> {
    let sample = match point {
        Point::OnEvent => serde_json::json!({
            "event": {
                "id": "sample", "kind": "test", "severity": "info", "summary": summary, "details": "",
                "time_unix_ms": 0, "fields": {}, "count": 1,
            },
            "events": [],
            "attempt": 1,
        }),
        Point::Task => serde_json::json!({
            "run": { "id": "sample", "job": "sample", "planned_unix_ms": 0, "attempt": 1 },
            "args": {},
        }),
        Point::Filter | Point::PreHook | Point::PostHook | Point::Hook => {
            serde_json::json!({ "turn": 1, "subagent": "" })
        }
    };
    match sample {
        serde_json::Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    }
}

fn shown(context: &Context, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Drop { reason } => format!("dropped: {reason}\n"),
        Outcome::Continue { message, metadata } => {
            let after = message.as_ref().unwrap_or(&context.message);
            let changed =
                diff::message(&context.message, after) + &diff::metadata(&context.metadata, metadata);
            if changed.is_empty() { "unchanged\n".to_owned() } else { changed }
        }
        Outcome::Delivery { status, reason, after_seconds } => {
            let after =
                after_seconds.map(|seconds| format!(", in {seconds} s at the earliest")).unwrap_or_default();
            format!("{status:?}: {reason}{after}\n").to_lowercase()
        }
        Outcome::Text(text) => format!("{text}\n"),
    }
}
