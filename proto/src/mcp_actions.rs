//! Actions by which a plugin offers resources, prompts and completions of MCP.
//!
//! `talon-mcp-bridge` declares them for a server that has such, and `talon mcp` serves its clients with them.
//! `_-` begins an escape in the names that bridges give to tools, and no escape goes on like these names, so no
//! tool of a server has one of them. They are declared `user_only`: a client program asks for them, and a model
//! gets them neither listed nor called.
//!
//! The lists take an optional `cursor`. Their structured content has the items under MCP's own name, `nextCursor`
//! if there are more, and `leftOut`, a number, if some cannot be listed.

/// Lists resources: `{resources}`.
pub const RESOURCES_LIST: &str = "_-resources_list";
/// Lists templates of resources: `{resourceTemplates}`.
pub const RESOURCES_TEMPLATES: &str = "_-resources_templates";
/// Reads the resource `uri`: its text as text, and its contents as media of the kind `resource`.
pub const RESOURCES_READ: &str = "_-resources_read";
/// Follows resources: from now on `subscriber`, a name that nobody else has, follows exactly `uris`, an array of addresses, for
/// `lease_seconds`, and the same call renews that; an empty array ends it. Its structured content is `{subscribed, refused}`,
/// both arrays of addresses; the text says why one is refused. When a resource changes that somebody follows, the plugin sends
/// the notice `ResourcesUpdated`.
pub const RESOURCES_SUBSCRIBE: &str = "_-resources_subscribe";
/// Lists prompts: `{prompts}`.
pub const PROMPTS_LIST: &str = "_-prompts_list";
/// Gets the prompt `name` with `arguments`, an object of texts: its messages as text, each after its role.
pub const PROMPTS_GET: &str = "_-prompts_get";
/// Completes an argument of a prompt or of a template of resources: `kind` is `prompt` or `resource`, `name` the prompt's
/// name or the template, `argument` the argument's name, `value` what is typed so far, `context` an object of the other
/// arguments' texts. Its structured content is MCP's `completion`: `{values, total, hasMore}`, with 100 values at most.
pub const COMPLETE: &str = "_-complete";
