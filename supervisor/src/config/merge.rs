//! Merges all sources into one [`Config`].

use figment::Figment;
use figment::providers::Serialized;
use serde_json::{Map, Value};
use talon_plugin_config::document::origin::{KeyPath, Origins};
use talon_plugin_config::document::problem::Problem;
use talon_plugin_config::document::remove_incomplete;
use talon_plugin_config::document::shape::Shape;
use talon_plugin_config::document::walk::WalkResult;

use super::types::Config;

/// The sources in order, weakest first, on top of the defaults.
pub(crate) struct Merge {
    figment: Figment,
    pub(crate) origins: Origins,
    pub(crate) problems: Vec<Problem>,
}

impl Merge {
    pub(crate) fn onto(defaults: &Config, origins: Origins) -> Self {
        Self { figment: Figment::from(Serialized::defaults(defaults)), origins, problems: Vec::new() }
    }

    /// Adds a source that is stronger than the earlier ones.
    pub(crate) fn add(&mut self, said: WalkResult) {
        self.figment = std::mem::take(&mut self.figment).merge(Serialized::defaults(said.values));
        self.origins.extend(said.origins);
        self.problems.extend(said.problems);
    }

    /// The effective values, without incomplete entries, which are reported. `None` is an internal error,
    /// which is reported, too.
    pub(crate) fn finish(&mut self, root: &Shape) -> Option<Config> {
        let config = self.figment.extract::<Map<String, Value>>().map_err(|error| error.to_string());
        let config = config.and_then(|mut values| {
            remove_incomplete(&mut values, root, &self.origins, &mut self.problems);
            serde_json::from_value::<Config>(Value::Object(values)).map_err(|error| error.to_string())
        });
        match config {
            Ok(config) => Some(config),
            Err(error) => {
                let problem = Problem::new(self.origins.nearest(&KeyPath::top()), KeyPath::top(), error);
                let help = "the checks above should have said this better; please report it";
                self.problems.push(problem.help(help));
                None
            }
        }
    }
}
