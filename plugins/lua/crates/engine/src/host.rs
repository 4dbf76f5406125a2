//! What a script may ask for.

use serde::{Deserialize, Serialize};

/// What a call may reach. Its functions may block. Their errors are texts that the script gets.
pub trait Host {
    /// `ctx.log(level, message)`: bounded already.
    fn log(&self, level: LogLevel, message: &str);

    /// `ctx.kv_get(key)`.
    ///
    /// # Errors
    /// Why it cannot be read; it is raised in the script.
    fn kv_get(&self, key: &str) -> Result<Option<KvValue>, String>;

    /// `ctx.kv_set(key, value)`.
    ///
    /// # Errors
    /// Why it cannot be written; it is raised in the script.
    fn kv_set(&self, key: &str, value: KvValue) -> Result<(), String>;

    /// `ctx.kv_delete(key)`: whether there was one.
    ///
    /// # Errors
    /// Why it cannot be deleted; it is raised in the script.
    fn kv_delete(&self, key: &str) -> Result<bool, String>;

    /// `ctx.llm(prompt, model)`. Without a model, the default one.
    ///
    /// # Errors
    /// Why there is no answer: the script's second value, after `nil`.
    fn llm(&self, prompt: &str, model: Option<&str>) -> Result<String, String>;
}

/// How much a line of a script's log matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For the author.
    Debug,
    /// Good to know.
    Info,
    /// Somebody should look at it.
    Warn,
    /// Something does not work.
    Error,
}

impl LogLevel {
    pub(crate) fn of(word: &str) -> Option<Self> {
        match word {
            "debug" => Some(Self::Debug),
            "info" => Some(Self::Info),
            "warn" | "warning" => Some(Self::Warn),
            "error" => Some(Self::Error),
            _ => None,
        }
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// A value under a key. It keeps its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum KvValue {
    /// `true` or `false`.
    Boolean(bool),
    /// A finite number.
    Number(f64),
    /// A text, in UTF-8.
    Text(String),
}
