//! A YAML text held against the schema of the type it becomes: the config file and every `plugin.yaml`.
//!
//! | module | what it is |
//! |---|---|
//! | [`shape`] | the schema of a type, derived from it |
//! | [`yaml`] | text to a tree with lines and columns |
//! | [`walk`], `typed`, [`scalar`], [`names`], `complete` | the tree held against the schema |
//! | [`origin`], [`problem`], `findings` | where things stand, and what is wrong with them |
//!
//! Every problem is found before any is reported, each with its place and what to do.

mod complete;
mod findings;
pub mod names;
pub mod origin;
pub mod problem;
pub mod scalar;
pub mod shape;
mod typed;
pub mod walk;
pub mod yaml;

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use complete::complete;
pub use findings::Findings;

use origin::{KeyPath, Origins};
use problem::{Problem, Problems};
use shape::Shape;
use walk::{Ground, Said, Speaker, Walk};
use yaml::Mark;

/// Reads a whole text as a `T`, whose shape is `root`. Nothing in it is filled in, and paths stay as they are
/// written. Gives also where each value stands.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn read<T: DeserializeOwned>(text: &str, root: &Shape, path: &Path) -> Result<(T, Origins), Problems> {
    let speaker = Speaker::File(path.into());
    let said = match yaml::parse(text) {
        Ok(None) => Said::default(),
        Ok(Some(node)) => Walk::new(root, speaker.clone(), Ground::default()).document(&node),
        Err(refusal) => Said { problems: vec![refusal.problem(&speaker, KeyPath::top())], ..Said::default() },
    };
    let Said { mut values, origins, mut problems } = said;
    let unreadable = problems.iter().any(|problem| problem.key == KeyPath::top());
    if !unreadable {
        complete(&mut values, root, &origins, &mut problems);
    }
    if let Some(problems) = Problems::new(problems) {
        return Err(problems);
    }
    match serde_json::from_value(Value::Object(values)) {
        Ok(value) => Ok((value, origins)),
        Err(error) => {
            let problem = Problem::new(speaker.at(Mark::default()), KeyPath::top(), error.to_string());
            Err(Problems::one(
                problem.help("the checks above should have said this better; please report it"),
            ))
        }
    }
}

#[cfg(test)]
mod tests;
