//! `check`: does a script load?

use std::path::PathBuf;

use clap::Args;
use talon_lua_engine::{Limits, Point, Script};

use super::files::{name, read, scripts};
use super::libraries::Libraries;

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Scripts, and directories of scripts.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    libraries: Libraries,
}

/// Whether all of them load.
pub(super) fn run(args: &CheckArgs) -> Result<bool, String> {
    let mut good = true;
    for path in scripts(&args.paths)? {
        let loaded = read(&path).and_then(|source| {
            Script::load(&name(&path), &source, &Limits::default(), &args.libraries.names)
                .map_err(|error| error.to_string())
        });
        match loaded {
            Ok(script) => {
                let points: Vec<&str> = script.points().iter().copied().map(Point::as_str).collect();
                println!("{}: {}", path.display(), points.join(", "));
            }
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                good = false;
            }
        }
    }
    Ok(good)
}
