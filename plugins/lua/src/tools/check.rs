//! `check`: does a script load?

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use talon_lua_engine::{Point, Script};

use super::files::{name, read, scripts};
use super::script_options::ScriptOptions;
use super::watchdog::Watchdog;

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Scripts, and directories of scripts.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How the result is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    options: ScriptOptions,
}

/// How `check` and `run` write their result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Lines.
    Text,
    /// One JSON value.
    Json,
}

/// Whether all of them load.
pub(super) fn run(args: &CheckArgs) -> Result<bool, String> {
    let watchdog = Watchdog::start()?;
    let mut good = true;
    let mut list = Vec::new();
    for path in scripts(&args.paths)? {
        watchdog.begin(&name(&path), args.options.limits(&path).execution);
        let loaded = points(&path, &args.options);
        good &= loaded.is_ok();
        let shown = path.display();
        match (args.format, loaded) {
            (Format::Text, Ok(points)) => println!("{shown}: {}", points.join(", ")),
            (Format::Text, Err(error)) => eprintln!("{shown}: {error}"),
            (Format::Json, Ok(points)) => {
                list.push(json!({ "path": shown.to_string(), "functions": points }));
            }
            (Format::Json, Err(error)) => list.push(json!({ "path": shown.to_string(), "error": error })),
        }
    }
    if args.format == Format::Json {
        println!("{:#}", json!({ "scripts": list }));
    }
    Ok(good)
}

/// The functions of a script that are called.
fn points(path: &Path, options: &ScriptOptions) -> Result<Vec<&'static str>, String> {
    let (limits, libraries) = (options.limits(path), options.libraries(path));
    let script =
        Script::load(&name(path), &read(path)?, &limits, &libraries).map_err(|error| error.to_string())?;
    Ok(script.points().iter().copied().map(Point::as_str).collect())
}
