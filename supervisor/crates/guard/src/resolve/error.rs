//! The texts of refusals. They are read by models, so each says what is wrong and what would be right.

use std::fmt;

use talon_arguments::ArgumentsError;
use talon_proto::plugin::Action;
use talon_sanitize::nearest;

use super::actions::Actions;
use super::arguments::{Problems, signature};
use crate::call::Call;
use crate::error::CallError;
use crate::reason;
use crate::text::Quoted;

/// Names listed in one message if no name is near.
const MAX_LISTED: usize = 10;

/// Why a call was refused.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ResolveError {
    /// No plugin has that name.
    #[error("plugin {} not found; {others}", Quoted(.plugin))]
    UnknownPlugin {
        /// The name that was asked for.
        plugin: String,
        /// The nearest names, or some names that exist.
        others: Suggestions,
    },
    /// The plugin's capabilities were never read.
    #[error("plugin {} is not available: {reason}", Quoted(.plugin))]
    NotAvailable {
        /// The plugin that was called.
        plugin: String,
        /// Why, as the directory says it.
        reason: String,
        /// Whether waiting helps.
        retryable: bool,
    },
    /// The plugin has no such action.
    #[error("action {} not found in plugin {}; {others}", Quoted(.action), Quoted(.plugin))]
    UnknownAction {
        /// The plugin that was called.
        plugin: String,
        /// The name that was asked for.
        action: String,
        /// The nearest names, or some names that it has.
        others: Suggestions,
    },
    /// The caller is not granted the action. The message does not reveal whether the action exists.
    #[error("action {} of plugin {} is not granted to you: {what_to_do}", Quoted(.action), Quoted(.plugin))]
    NotGranted {
        /// The plugin that was called.
        plugin: String,
        /// The action.
        action: String,
        /// What to do about it.
        what_to_do: &'static str,
    },
    /// The action differs from what was approved.
    #[error(
        "action {} of plugin {} is refused: what the plugin declares of it changed since it was approved; an operator \
         looks at it with `talon plugin show {plugin}` and approves it with `talon plugin approve {plugin}`",
        Quoted(.action), Quoted(.plugin)
    )]
    Changed {
        /// The plugin that was called.
        plugin: String,
        /// The action.
        action: String,
    },
    /// Only a person may run the action.
    #[error("action {} can only be invoked by the user, not the LLM", Quoted(.action))]
    UserOnly {
        /// The action.
        action: String,
    },
    /// The action is for extensions.
    #[error("action {} is no tool: it only plays roles of extensions (docs/extensions)", Quoted(.action))]
    RoleOnly {
        /// The action.
        action: String,
    },
    /// Names and values of all arguments together are too large.
    #[error(
        "the arguments of action {} are too large: {bytes} bytes of at most {limit}; \
         put large input into a file and pass its path",
        Quoted(.action)
    )]
    ArgumentsTooLarge {
        /// The action.
        action: String,
        /// The size of the arguments.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The arguments cannot be read, or their two forms are not the same.
    #[error("the arguments of action {} are refused: {error}", Quoted(.action))]
    UnusableArguments {
        /// The action.
        action: String,
        /// Why.
        error: ArgumentsError,
    },
    /// An argument is missing, unknown, of the wrong type, or one that only the host may set.
    #[error("bad arguments for action {} of plugin {}: {problems}. {signature}", Quoted(.action), Quoted(.plugin))]
    BadArguments {
        /// The plugin that was called.
        plugin: String,
        /// The action.
        action: String,
        /// What is wrong with which argument.
        problems: Problems,
        /// What the action takes.
        signature: String,
    },
}

impl ResolveError {
    pub(super) fn unknown_plugin(call: &Call, names: &[String]) -> Self {
        let may = |name: &&str| call.granted.as_ref().is_none_or(|granted| granted.covers_any_action(name));
        let others = Suggestions::for_name(&call.plugin, names.iter().map(String::as_str).filter(may));
        Self::UnknownPlugin { plugin: call.plugin.to_string(), others }
    }

    pub(super) fn unknown_action(call: &Call, actions: &Actions) -> Self {
        let may =
            |name: &&str| call.granted.as_ref().is_none_or(|granted| granted.covers(&call.plugin, name));
        Self::UnknownAction {
            plugin: call.plugin.to_string(),
            action: call.action.clone(),
            others: Suggestions::for_name(&call.action, actions.names().filter(may)),
        }
    }

    pub(super) fn not_granted(call: &Call) -> Self {
        let granted = call.granted.as_ref();
        let what_to_do = granted.map_or("", |granted| granted.remedy(&call.plugin, &call.action));
        Self::NotGranted { plugin: call.plugin.to_string(), action: call.action.clone(), what_to_do }
    }

    pub(super) fn changed(call: &Call) -> Self {
        Self::Changed { plugin: call.plugin.to_string(), action: call.action.clone() }
    }

    pub(super) fn bad_arguments(call: &Call, action: &Action, problems: Problems) -> Self {
        Self::BadArguments {
            plugin: call.plugin.to_string(),
            action: call.action.clone(),
            problems,
            signature: signature(action),
        }
    }
}

impl From<ResolveError> for CallError {
    fn from(error: ResolveError) -> Self {
        let message = error.to_string();
        match error {
            ResolveError::UnknownPlugin { .. } => Self::refused(reason::UNKNOWN_PLUGIN, message),
            ResolveError::NotAvailable { retryable, .. } => {
                Self::fault(reason::UNAVAILABLE, message).with_retryable(retryable)
            }
            ResolveError::UnknownAction { .. } => Self::refused(reason::UNKNOWN_ACTION, message),
            ResolveError::NotGranted { .. } => Self::refused(reason::NOT_GRANTED, message),
            ResolveError::Changed { .. } => Self::refused(reason::CHANGED, message),
            ResolveError::UserOnly { .. } => Self::refused(reason::USER_ONLY, message),
            ResolveError::RoleOnly { .. } => Self::refused(reason::ROLE_ONLY, message),
            ResolveError::ArgumentsTooLarge { .. } => Self::refused(reason::ARGUMENTS_TOO_LARGE, message),
            ResolveError::UnusableArguments { .. } | ResolveError::BadArguments { .. } => {
                Self::refused(reason::BAD_ARGUMENTS, message)
            }
        }
    }
}

/// Suggestions for a name that does not exist, bounded: the nearest names, or some names if none is near.
#[derive(Debug, Clone, Default)]
pub struct Suggestions {
    nearest: Vec<String>,
    listed: Vec<String>,
    total: usize,
}

impl Suggestions {
    /// The suggestions from `names` for `name`.
    #[must_use]
    pub fn for_name<'n>(name: &str, names: impl Iterator<Item = &'n str> + Clone) -> Self {
        let listed = names.clone().take(MAX_LISTED).map(str::to_owned).collect();
        Self { nearest: nearest(name, names.clone()), listed, total: names.count() }
    }
}

impl fmt::Display for Suggestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[String]| -> String {
            names.iter().map(|name| Quoted(name).to_string()).collect::<Vec<_>>().join(", ")
        };
        if !self.nearest.is_empty() {
            return write!(f, "did you mean {}?", list(&self.nearest));
        }
        if self.listed.is_empty() {
            return f.write_str("there is none");
        }
        let are = if self.total == 1 { "is" } else { "are" };
        write!(f, "there {are} {}", list(&self.listed))?;
        match self.total - self.listed.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
