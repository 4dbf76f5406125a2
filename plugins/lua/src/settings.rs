//! The plugin's settings, as the operator's `plugins.lua` says them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use talon_lua_engine::{Library, Limits};

/// The most workers. 16: more do not help, since scripts wait for models, not for processors.
const MAX_WORKERS: usize = 16;
/// The bounds of the limits: memory in MB, times in seconds, questions to a model.
const MEMORY_MB: std::ops::RangeInclusive<u64> = 1..=4096;
const SECONDS: std::ops::RangeInclusive<u64> = 1..=300;
const MAX_LLM_CALLS: u32 = 100;
/// How long a model may take by default: a small one answers in a second or two.
const DEFAULT_LLM_SECONDS: u64 = 10;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Where the scripts are.
    pub(crate) scripts_dir: PathBuf,
    /// Whether a changed file is loaded without being told to.
    #[serde(default = "yes")]
    pub(crate) watch: bool,
    /// The model of `ctx.llm` without a name.
    #[serde(default)]
    pub(crate) default_model: Option<String>,
    /// Libraries beside those of every script.
    #[serde(default)]
    pub(crate) libraries: Vec<Library>,
    #[serde(default)]
    pub(crate) limits: LimitSettings,
    /// What differs for one script, by its name.
    #[serde(default)]
    pub(crate) scripts: BTreeMap<String, ScriptSettings>,
    /// How many processes run scripts.
    #[serde(default = "two")]
    pub(crate) workers: NonZeroUsize,
}

/// The founding limits.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitSettings {
    memory_mb: Option<u64>,
    timeout_seconds: Option<u64>,
    llm_timeout_seconds: Option<u64>,
    llm_max_calls: Option<u32>,
}

/// What differs for one script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScriptSettings {
    limits: LimitSettings,
    libraries: Option<Vec<Library>>,
}

fn yes() -> bool {
    true
}

fn two() -> NonZeroUsize {
    const TWO: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);
    TWO
}

impl LimitSettings {
    fn or(self, wider: Self) -> Self {
        Self {
            memory_mb: self.memory_mb.or(wider.memory_mb),
            timeout_seconds: self.timeout_seconds.or(wider.timeout_seconds),
            llm_timeout_seconds: self.llm_timeout_seconds.or(wider.llm_timeout_seconds),
            llm_max_calls: self.llm_max_calls.or(wider.llm_max_calls),
        }
    }

    fn limits(self) -> Limits {
        let default = Limits::default();
        let memory =
            self.memory_mb.map_or(default.memory_bytes, |mb| usize::try_from(mb << 20).unwrap_or(usize::MAX));
        Limits {
            memory_bytes: memory,
            execution: self.timeout_seconds.map_or(default.execution, Duration::from_secs),
            llm_calls: self.llm_max_calls.unwrap_or(default.llm_calls),
        }
    }

    fn check(self) -> Result<(), String> {
        let within = |value: Option<u64>, name: &str, range: &std::ops::RangeInclusive<u64>| match value {
            Some(value) if !range.contains(&value) => {
                Err(format!("limits.{name} is a number from {} to {}", range.start(), range.end()))
            }
            _ => Ok(()),
        };
        within(self.memory_mb, "memory_mb", &MEMORY_MB)?;
        within(self.timeout_seconds, "timeout_seconds", &SECONDS)?;
        within(self.llm_timeout_seconds, "llm_timeout_seconds", &SECONDS)?;
        if self.llm_max_calls.is_some_and(|calls| calls > MAX_LLM_CALLS) {
            return Err(format!("limits.llm_max_calls is at most {MAX_LLM_CALLS}"));
        }
        Ok(())
    }
}

impl Settings {
    /// Whether all values are within their bounds.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.workers.get() > MAX_WORKERS {
            return Err(format!("workers is a number from 1 to {MAX_WORKERS}"));
        }
        self.limits.check()?;
        self.scripts.values().try_for_each(|script| script.limits.check())
    }

    /// The limits of one script.
    pub(crate) fn limits_of(&self, script: &str) -> Limits {
        let own = self.scripts.get(script).map(|script| script.limits).unwrap_or_default();
        own.or(self.limits).limits()
    }

    /// How long a model may take to answer one script.
    pub(crate) fn llm_timeout_of(&self, script: &str) -> Duration {
        let own = self.scripts.get(script).and_then(|script| script.limits.llm_timeout_seconds);
        Duration::from_secs(own.or(self.limits.llm_timeout_seconds).unwrap_or(DEFAULT_LLM_SECONDS))
    }

    /// The libraries of one script, beside those of every script.
    pub(crate) fn libraries_of(&self, script: &str) -> Vec<Library> {
        let own = self.scripts.get(script).and_then(|script| script.libraries.clone());
        own.unwrap_or_else(|| self.libraries.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Result<Settings, String> {
        let settings: Settings = serde_json::from_value(value).map_err(|error| error.to_string())?;
        settings.check().map(|()| settings)
    }

    #[test]
    fn the_founding_block_is_read_and_a_script_may_differ() {
        let settings = read(json!({
            "scripts_dir": "./scripts", "watch": true, "default_model": "small",
            "limits": {"memory_mb": 32, "timeout_seconds": 2, "llm_timeout_seconds": 10, "llm_max_calls": 1},
            "scripts": {"big": {"limits": {"memory_mb": 128}, "libraries": ["utf8"]}},
        }))
        .expect("it is valid");
        let (small, big) = (settings.limits_of("small"), settings.limits_of("big"));
        assert_eq!((small.memory_bytes, big.memory_bytes), (32 << 20, 128 << 20));
        assert_eq!((small.execution, big.llm_calls), (Duration::from_secs(2), 1));
        assert_eq!((settings.libraries_of("big").len(), settings.libraries_of("x").len()), (1, 0));
        let plain = read(json!({"scripts_dir": "x"})).expect("it is valid");
        assert_eq!((plain.limits_of("x"), plain.workers.get()), (Limits::default(), 2));
    }

    #[test]
    fn what_is_out_of_bounds_says_the_bounds() {
        for (value, says) in [
            (json!({"scripts_dir": "x", "limits": {"memory_mb": 0}}), "memory_mb is a number from 1 to 4096"),
            (
                json!({"scripts_dir": "x", "limits": {"timeout_seconds": 1000}}),
                "timeout_seconds is a number from 1 to 300",
            ),
            (
                json!({"scripts_dir": "x", "scripts": {"a": {"limits": {"llm_max_calls": 101}}}}),
                "at most 100",
            ),
            (json!({"scripts_dir": "x", "workers": 17}), "workers is a number from 1 to 16"),
            (json!({"scripts_dir": "x", "libraries": ["io"]}), "unknown variant `io`"),
            (json!({"scripts_dir": "x", "script": {}}), "unknown field `script`"),
        ] {
            let error = read(value).expect_err("it is refused");
            assert!(error.contains(says), "expected {says:?} in {error:?}");
        }
    }
}
