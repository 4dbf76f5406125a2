//! `plugins.lua`: scripts of the operator's own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use talon_extensions::{Effect, FailurePolicy};

/// Lua scripts that look at messages and answers: [scripts](lua.md).
///
/// This block alone is the grant: every `.lua` file in `scripts_dir` is a filter, request hook or response hook by the functions
/// that it defines, without an entry under `extensions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LuaScripts {
    /// The directory with the scripts, each named by its file. Nobody but root and the supervisor's user may write to it.
    ///
    /// The scripts see none of it: `talon-lua` reads it inside its jail. Without the directory nothing changes, and this is said.
    #[schemars(extend("format" = "path"), example = &"./scripts")]
    pub scripts_dir: PathBuf,
    /// Whether a saved script takes the place of the one that runs without being asked to, and a new one is registered.
    #[serde(default = "yes")]
    pub watch: bool,
    /// The model of `ctx.llm` where a script names none.
    #[schemars(example = &"small")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// Libraries of the language beside `string`, `table`, `math` and `os.time`, for all scripts.
    ///
    /// None unless named here: each makes what a script can do larger.
    #[schemars(example = serde_json::json!(["utf8"]))]
    #[serde(default)]
    pub libraries: Vec<LuaLibrary>,
    /// What each script may use.
    #[serde(default)]
    pub limits: LuaLimits,
    /// The scripts that come first, in this order; the others follow in the order of their names.
    #[schemars(example = serde_json::json!(["secrets", "classify"]))]
    #[serde(default)]
    pub order: Vec<String>,
    /// What differs for one script, by its name.
    #[schemars(extend("x-key" = "script"), example = serde_json::json!({ "classify": { "may": ["annotate"] } }))]
    #[serde(default)]
    pub scripts: BTreeMap<String, LuaScript>,
    /// How many processes inside the jail run scripts.
    ///
    /// 2: a script that has to be ended together with its process interrupts no more than half of the others.
    #[schemars(range(min = 1, max = 16))]
    #[serde(default = "two")]
    pub workers: u64,
}

/// A library of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LuaLibrary {
    /// Texts by characters instead of bytes.
    Utf8,
    /// Blocks of bytes.
    Buffer,
    /// Operations on bits.
    Bit32,
    /// Functions that pause.
    Coroutine,
}

/// The limits of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LuaLimits {
    /// The most memory of one script, in MB. A script that needs more fails, and starts again from nothing.
    #[schemars(range(min = 1, max = 4096))]
    pub memory_mb: u64,
    /// How long one call may run, in seconds, without the time that it waits for a model.
    ///
    /// 5: a rule takes microseconds, and a person waits for all of them.
    #[schemars(range(min = 1, max = 300))]
    pub timeout_seconds: u64,
    /// How long a model may take to answer, in seconds.
    #[schemars(range(min = 1, max = 300))]
    pub llm_timeout_seconds: u64,
    /// How often one call may ask a model.
    #[schemars(range(max = 100))]
    pub llm_max_calls: u64,
}

impl Default for LuaLimits {
    fn default() -> Self {
        Self { memory_mb: 64, timeout_seconds: 5, llm_timeout_seconds: 10, llm_max_calls: 3 }
    }
}

/// What differs for one script.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LuaScript {
    /// Its limits, where they differ. One that is left out keeps the value of all.
    pub limits: LuaScriptLimits,
    /// Its libraries, in place of those of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub libraries: Option<Vec<LuaLibrary>>,
    /// What its verdict may do, as `may` of an entry of `extensions`.
    #[schemars(extend("x-default" = "[annotate, replace, drop]"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may: Option<Vec<Effect>>,
    /// What happens if it fails, as `on_failure` of an entry of `extensions`.
    #[schemars(extend("x-default" = "closed"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<FailurePolicy>,
}

/// The limits of one script, where they differ from `plugins.lua.limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LuaScriptLimits {
    /// As `plugins.lua.limits.memory_mb`.
    #[schemars(range(min = 1, max = 4096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// As `plugins.lua.limits.timeout_seconds`.
    #[schemars(range(min = 1, max = 300))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// As `plugins.lua.limits.llm_timeout_seconds`.
    #[schemars(range(min = 1, max = 300))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm_timeout_seconds: Option<u64>,
    /// As `plugins.lua.limits.llm_max_calls`.
    #[schemars(range(max = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm_max_calls: Option<u64>,
}

fn yes() -> bool {
    true
}

fn two() -> u64 {
    2
}

impl LuaScripts {
    /// The settings of `talon-lua`: where the scripts are, and what each may use.
    #[must_use]
    pub fn program_settings(&self) -> serde_json::Value {
        let scripts = self.scripts.iter().map(|(name, script)| {
            let settings = json!({ "limits": script.limits, "libraries": script.libraries });
            (name.clone(), settings)
        });
        json!({
            "scripts_dir": self.scripts_dir,
            "watch": self.watch,
            "default_model": self.default_model,
            "libraries": self.libraries,
            "limits": self.limits,
            "scripts": serde_json::Map::from_iter(scripts),
            "workers": self.workers,
        })
    }

    /// The limits of one script.
    #[must_use]
    pub fn limits_of(&self, script: &str) -> LuaLimits {
        let own = self.scripts.get(script).map(|script| script.limits).unwrap_or_default();
        LuaLimits {
            memory_mb: own.memory_mb.unwrap_or(self.limits.memory_mb),
            timeout_seconds: own.timeout_seconds.unwrap_or(self.limits.timeout_seconds),
            llm_timeout_seconds: own.llm_timeout_seconds.unwrap_or(self.limits.llm_timeout_seconds),
            llm_max_calls: own.llm_max_calls.unwrap_or(self.limits.llm_max_calls),
        }
    }
}

impl LuaLimits {
    /// How long a call may take with all its questions to a model, in seconds.
    #[must_use]
    pub fn deadline_seconds(&self) -> u64 {
        self.timeout_seconds.saturating_add(self.llm_max_calls.saturating_mul(self.llm_timeout_seconds))
    }
}
