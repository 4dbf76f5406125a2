//! The attributes of `talon-sdk`: [`macro@tool`] and [`macro@args`]. Use them through that crate, which
//! documents them beside what they expand to.

mod args;
mod options;
mod role;
mod tool;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Turns an `async fn` into a tool: a function of the same name, without parameters, that returns a
/// `talon_sdk::Tool` for `Plugin::tool`.
///
/// ```text
/// /// Greets somebody.                       ← the description a model reads; required
/// #[talon_sdk::tool(read_only)]
/// async fn greet(args: Greet, cx: Context) -> Result<String, ToolError> { … }
///
/// Plugin::new("hello").tool(greet())
/// ```
///
/// Both parameters are optional. `args` is a struct that implements `serde::Deserialize` and
/// `schemars::JsonSchema` ([`macro@args`] derives both); its fields are the action's parameters. The output
/// is anything that implements `talon_sdk::IntoOutput`, the error anything that becomes a
/// `talon_sdk::ToolError`.
///
/// Options, separated by commas:
///
/// | option | meaning |
/// |---|---|
/// | `read_only` | the action changes nothing |
/// | `user_only` | only a person may call it, never a model |
/// | `always_include` | a host that offers a model only some actions always offers this one |
/// | `name = "…"` | the action's name, instead of the function's: 1 to 64 of `a-z A-Z 0-9 _ -` |
/// | `description = "…"` | the description, instead of the doc comment |
/// | `role(request_hook, tool)` | roles that the action would like to play; with `tool` it is a tool as well |
/// | `inject(a, b)` | session-context values the action wants from the host; see `Context::injected` |
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(options.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Turns an `async fn` into an action that looks at every message first, and lets it pass, annotates or drops it: as
/// [`macro@tool`], with the role `filter`. It takes a `talon_sdk::HookRequest`, and a `Context` if it likes, and returns a
/// `talon_sdk::Verdict`. An operator's entry under `extensions.filters` makes it so.
#[proc_macro_attribute]
pub fn filter(options: TokenStream, item: TokenStream) -> TokenStream {
    role::expand("filter", options, item)
}

/// Turns an `async fn` into an action that looks at every message after the filters, and may refine it: as [`macro@filter`],
/// with the role `request_hook`, for `extensions.request_hooks`.
#[proc_macro_attribute]
pub fn request_hook(options: TokenStream, item: TokenStream) -> TokenStream {
    role::expand("request_hook", options, item)
}

/// Turns an `async fn` into an action that looks at every answer before the person gets it: as [`macro@filter`], with the role
/// `response_hook`, for `extensions.response_hooks`.
#[proc_macro_attribute]
pub fn response_hook(options: TokenStream, item: TokenStream) -> TokenStream {
    role::expand("response_hook", options, item)
}

/// Turns an `async fn` into an action that delivers events to people: as [`macro@tool`], with the role `notification_sink`. It
/// takes a `talon_sdk::Notification`, and a `Context` if it likes, and returns a `talon_sdk::Delivery`. An operator's entry
/// under `extensions.notifications` makes it so.
#[proc_macro_attribute]
pub fn notification_sink(options: TokenStream, item: TokenStream) -> TokenStream {
    role::expand("notification_sink", options, item)
}

/// Turns an `async fn` into an action that learns at which planned time it runs: as [`macro@tool`], with the role
/// `scheduled_task`. It takes a struct with a field `run: talon_sdk::ScheduledRun` and the job's own arguments beside it. An
/// operator's entry under `extensions.schedule` makes it so.
#[proc_macro_attribute]
pub fn scheduled_task(options: TokenStream, item: TokenStream) -> TokenStream {
    role::expand("scheduled_task", options, item)
}

/// Turns an `async fn` into an action that says whose a credential is: as [`macro@tool`], with the role `auth_provider`. It takes
/// a `talon_sdk::AuthRequest`, and a `Context` if it likes, and returns a `talon_sdk::Authentication`. An operator's entry
/// under `extensions.auth` makes it so.
#[proc_macro_attribute]
pub fn auth_provider(options: TokenStream, item: TokenStream) -> TokenStream {
    role::expand("auth_provider", options, item)
}

/// Turns an `async fn` into an action that answers HTTP requests: as [`macro@tool`], with the role `api_route`. It takes a
/// `talon_sdk::ApiRequest`, and a `Context` if it likes, and returns a `talon_sdk::ApiResponse`. An operator's entry under
/// `extensions.routes` makes it so.
#[proc_macro_attribute]
pub fn api_route(options: TokenStream, item: TokenStream) -> TokenStream {
    role::expand("api_route", options, item)
}

/// Turns an `async fn` into an action that sends the agent's answers to people: as [`macro@tool`], with the role `channel`. It takes a
/// `talon_sdk::channel::ChannelRequest`, and a `Context` if it likes, and returns a `talon_sdk::channel::ChannelReply`. An
/// operator's entry under `extensions.channels` makes it so.
#[proc_macro_attribute]
pub fn channel(options: TokenStream, item: TokenStream) -> TokenStream {
    role::expand("channel", options, item)
}

/// Turns an `async fn` into an action that keeps the plugins' key-values: as [`macro@tool`], with the role `storage_backend`. It
/// takes a `StorageRequest` and returns a `StorageReply`; docs/extensions/storage-backend.md has what each operation promises.
#[proc_macro_attribute]
pub fn storage_backend(options: TokenStream, item: TokenStream) -> TokenStream {
    role::expand("storage_backend", options, item)
}

/// Derives what a tool's arguments need, `serde::Deserialize` and `schemars::JsonSchema`, out of
/// `talon-sdk`'s own copies of those crates, so that a plugin depends on `talon-sdk` alone.
///
/// `#[serde(…)]` and `#[schemars(…)]` attributes work as with the derives. It fits structs and the enums and
/// structs inside them.
///
/// A struct gets `#[serde(deny_unknown_fields)]`, so that a misspelt key is an error answer and not lost; not
/// one with a `#[serde(flatten)]` field, to which serde does not let it be applied. Derive both yourself
/// where unknown keys are to be ignored.
#[proc_macro_attribute]
pub fn args(options: TokenStream, item: TokenStream) -> TokenStream {
    args::expand(options.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
