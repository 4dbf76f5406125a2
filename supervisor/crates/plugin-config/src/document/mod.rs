//! Reads YAML and checks it against the schema of its type: for the config file and every `plugin.yaml`.
//!
//! | module | responsibility |
//! |---|---|
//! | [`shape`] | the schema of a type, derived from it |
//! | [`yaml`] | parses text into a tree with lines and columns |
//! | [`walk`], `scalar_reader`, [`scalar`], [`names`], `completeness` | check the tree against the schema |
//! | [`origin`], [`problem`], `findings` | the positions of values, and the problems with them |
//!
//! All problems are collected before any is reported, each with its position and what to do.

mod completeness;
mod findings;
pub mod names;
pub mod origin;
pub mod problem;
pub mod scalar;
mod scalar_reader;
pub mod shape;
pub mod walk;
pub mod yaml;

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use completeness::remove_incomplete;
pub use findings::Findings;

use origin::{InputSource, KeyPath, Mark, Origins};
use problem::{Problem, Problems};
use shape::Shape;
use walk::{ResolveContext, SchemaWalker, WalkResult};

/// Reads a whole text as a `T`, whose shape is `root`. Variables are not expanded, and paths are not
/// resolved. Also returns the position of each value.
///
/// # Errors
/// All problems at once.
pub fn read<T: DeserializeOwned>(text: &str, root: &Shape, path: &Path) -> Result<(T, Origins), Problems> {
    let speaker = InputSource::File(path.into());
    let said = match yaml::parse(text) {
        Ok(None) => WalkResult::default(),
        Ok(Some(node)) => SchemaWalker::new(root, speaker.clone(), ResolveContext::default()).document(&node),
        Err(refusal) => WalkResult {
            problems: vec![refusal.into_problem(&speaker, KeyPath::top())],
            ..WalkResult::default()
        },
    };
    let WalkResult { mut values, origins, mut problems } = said;
    let unreadable = problems.iter().any(|problem| problem.key == KeyPath::top());
    if !unreadable {
        remove_incomplete(&mut values, root, &origins, &mut problems);
    }
    if let Some(problems) = Problems::new(problems) {
        return Err(problems);
    }
    match serde_json::from_value(Value::Object(values)) {
        Ok(value) => Ok((value, origins)),
        Err(error) => {
            let problem = Problem::new(speaker.at(Mark::default()), KeyPath::top(), error.to_string());
            Err(Problems::single(
                problem.help("the checks above should have said this better; please report it"),
            ))
        }
    }
}

#[cfg(test)]
mod tests;
