//! The reasons for programs: why a call did not succeed.
//!
//! They are part of the wire contract (`ExecuteResponse.reason` of `talon.host.v1`) and label metrics, so the
//! set is closed: a host with additional errors uses the nearest reason.

/// No plugin has that name.
pub const UNKNOWN_PLUGIN: &str = "unknown_plugin";
/// The plugin has no action of that name.
pub const UNKNOWN_ACTION: &str = "unknown_action";
/// An argument is missing, unknown, of the wrong type, or one that only the host may set.
pub const BAD_ARGUMENTS: &str = "bad_arguments";
/// Only a person may run the action, and a model called it.
pub const USER_ONLY: &str = "user_only";
/// The action only plays roles of extensions, and a model called it.
pub const ROLE_ONLY: &str = "role_only";
/// The caller is not granted the action.
pub const NOT_GRANTED: &str = "not_granted";
/// The plugin's declaration of the action differs from the approved one, and the operator wants such calls
/// refused.
pub const CHANGED: &str = "changed";
/// The arguments are larger than the limit.
pub const ARGUMENTS_TOO_LARGE: &str = "arguments_too_large";
/// The plugin's answer is not a valid answer to this call.
pub const BAD_RESULT: &str = "bad_result";
/// The plugin's answer is larger than the transport takes.
pub const TOO_LARGE: &str = "too_large";
/// All permits are taken and the queue is full, or the time ran out in the queue.
pub const OVERLOADED: &str = "overloaded";
/// The plugin failed too often and gets no calls for a while.
pub const BREAKER_OPEN: &str = "breaker_open";
/// The plugin took longer than the call may last.
pub const TIMED_OUT: &str = "timed_out";
/// The plugin's process ended during the call.
pub const DIED: &str = "died";
/// The plugin is not there: stopped, failed, or not started yet.
pub const UNAVAILABLE: &str = "unavailable";
/// The plugin answered with a gRPC error instead of a result.
pub const PLUGIN_ERROR: &str = "plugin_error";
/// The plugin's answers held too much control syntax, and an operator has not lifted the quarantine.
pub const QUARANTINED: &str = "quarantined";
/// A defect of the host.
pub const INTERNAL: &str = "internal";
/// The tool reported an error.
pub const TOOL_ERROR: &str = "tool_error";

/// All reasons above.
pub const ALL: [&str; 19] = [
    UNKNOWN_PLUGIN,
    UNKNOWN_ACTION,
    BAD_ARGUMENTS,
    USER_ONLY,
    ROLE_ONLY,
    NOT_GRANTED,
    CHANGED,
    ARGUMENTS_TOO_LARGE,
    BAD_RESULT,
    TOO_LARGE,
    OVERLOADED,
    BREAKER_OPEN,
    TIMED_OUT,
    DIED,
    UNAVAILABLE,
    PLUGIN_ERROR,
    QUARANTINED,
    INTERNAL,
    TOOL_ERROR,
];

/// The reasons of refusals before the plugin: it never got the call. With every other reason it may have run.
pub const BEFORE_PLUGIN: [&str; 11] = [
    UNKNOWN_PLUGIN,
    UNKNOWN_ACTION,
    BAD_ARGUMENTS,
    USER_ONLY,
    ROLE_ONLY,
    NOT_GRANTED,
    CHANGED,
    ARGUMENTS_TOO_LARGE,
    OVERLOADED,
    BREAKER_OPEN,
    QUARANTINED,
];
