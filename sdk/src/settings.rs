//! The plugin's settings: what `Init` brought, and what the plugin built from it.

use std::any::{Any, TypeId, type_name};
use std::pin::Pin;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ToolError;
use crate::text::shorten;

/// The longest error about a config that is sent to the host, in bytes. gRPC carries it in a header, and
/// headers over 16 kB break connections.
const MAX_ERROR_BYTES: usize = 1024;

/// What `Init` produced for the calls: one value for each type.
#[derive(Default)]
pub(crate) struct Settings {
    values: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    ready: bool,
}

/// Why a value is missing. A bug of the plugin or the host, so it goes to the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("the host called the tool before Init, so there is no config yet")]
    BeforeInit,
    #[error(
        "the plugin has no `{0}`: declare it with Plugin::config or Plugin::init, in a test with Call::with"
    )]
    Undeclared(&'static str),
}

impl Settings {
    /// Settings after `Init` was answered, still without a value.
    pub(crate) fn after_init() -> Self {
        Self { values: Vec::new(), ready: true }
    }

    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.values.push((TypeId::of::<T>(), Arc::new(value)));
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, SettingsError> {
        let wanted = TypeId::of::<T>();
        let value = self.values.iter().rev().find(|(id, _)| *id == wanted);
        match value.and_then(|(_, value)| Arc::clone(value).downcast::<T>().ok()) {
            Some(value) => Ok(value),
            None if self.ready => Err(SettingsError::Undeclared(type_name::<T>())),
            None => Err(SettingsError::BeforeInit),
        }
    }
}

/// Why a config was refused, for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConfigRefused(String);

impl ConfigRefused {
    fn new(text: impl std::fmt::Display) -> Self {
        Self(shorten(&text.to_string(), MAX_ERROR_BYTES))
    }
}

type Insert = Box<dyn FnOnce(&mut Settings) + Send>;
type Step =
    dyn Fn(Value) -> Pin<Box<dyn Future<Output = Result<Insert, ConfigRefused>> + Send>> + Send + Sync;

/// What a plugin does with its config, in the order of declaration.
#[derive(Default)]
pub(crate) struct Init {
    steps: Vec<Box<Step>>,
}

impl Init {
    /// Adds a step: read the config as `C`, build an `S` from it, store that.
    pub(crate) fn add<C, S, F, Fut>(&mut self, make: F)
    where
        C: DeserializeOwned + Send + 'static,
        S: Send + Sync + 'static,
        F: Fn(C) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, ToolError>> + Send + 'static,
    {
        let make = Arc::new(make);
        self.steps.push(Box::new(move |config| {
            let make = Arc::clone(&make);
            Box::pin(async move {
                let config: C = serde_json::from_value(config)
                    .map_err(|e| ConfigRefused::new(format_args!("config: {e}")))?;
                let made = make(config).await.map_err(|error| {
                    let cause = error.chain().map(|chain| format!(": {chain}")).unwrap_or_default();
                    // An operator reads this, not a model, so the cause is included.
                    ConfigRefused::new(format_args!("{}{cause}", error.message()))
                })?;
                Ok(Box::new(move |settings: &mut Settings| settings.insert(made)) as Insert)
            })
        }));
    }

    /// Reads a config. An empty text counts as `{}`, because some hosts send that.
    pub(crate) async fn run(&self, config_json: &str) -> Result<Settings, ConfigRefused> {
        let text = if config_json.trim().is_empty() { "{}" } else { config_json };
        let config: Value = serde_json::from_str(text)
            .map_err(|e| ConfigRefused::new(format_args!("config is not JSON: {e}")))?;
        let Value::Object(fields) = &config else {
            return Err(ConfigRefused::new("config must be an object"));
        };
        if self.steps.is_empty()
            && let Some(key) = fields.keys().next()
        {
            let key = shorten(key, 64);
            return Err(ConfigRefused::new(format_args!("this plugin takes no config; remove `{key}`")));
        }
        let mut settings = Settings::after_init();
        for step in &self.steps {
            step(config.clone()).await?(&mut settings);
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Config {
        root: String,
    }

    fn init() -> Init {
        let mut init = Init::default();
        init.add(|config: Config| async move { Ok(config) });
        init.add(|config: Config| async move {
            if config.root == "bad" {
                return Err(ToolError::new("cannot open the root").because("it is bad"));
            }
            Ok(config.root.len())
        });
        init
    }

    #[tokio::test]
    async fn what_init_made_is_there_by_type() {
        let settings = init().run(r#"{"root":"/srv"}"#).await.expect("good");
        assert_eq!(settings.get::<Config>().expect("there").root, "/srv");
        assert_eq!(*settings.get::<usize>().expect("there"), 4);
        let missing = settings.get::<String>().expect_err("never declared").to_string();
        assert!(missing.contains("String") && missing.contains("Plugin::config"), "{missing}");
    }

    // Promises: SDK-15
    #[tokio::test]
    async fn a_bad_config_is_refused_with_its_reason() {
        for (config, says) in [
            ("", "missing field `root`"),
            ("{", "config is not JSON"),
            ("[]", "must be an object"),
            (r#"{"root":1}"#, "expected a string"),
            (r#"{"root":"/","rot":1}"#, "unknown field `rot`"),
            (r#"{"root":"bad"}"#, "cannot open the root: it is bad"),
        ] {
            let why = init().run(config).await.err().expect("refused").to_string();
            assert!(why.contains(says), "expected {says:?} in {why:?}");
        }
        let long = format!(r#"{{"root":"/","{}":1}}"#, "x".repeat(10_000));
        assert!(init().run(&long).await.err().expect("refused").to_string().len() < 1100);
    }

    #[tokio::test]
    async fn a_plugin_without_settings_refuses_some() {
        let none = Init::default();
        assert!(none.run("{}").await.is_ok());
        let why = none.run(r#"{"root":1}"#).await.err().expect("refused").to_string();
        assert_eq!(why, "this plugin takes no config; remove `root`");
    }

    #[test]
    fn before_init_there_is_nothing() {
        let why = Settings::default().get::<Config>().expect_err("nothing").to_string();
        assert!(why.contains("before Init"), "{why}");
    }
}
