//! The arguments of a call: a map of texts, as OpenTalon's contract has them, and beside it one JSON object
//! (`arguments_json`), which keeps the types.
//!
//! All who send, check or read arguments use the rules here and no others: command line, agent, `talon mcp`,
//! guard, SDK and bridges. So what the guard checks is what the plugin reads.
//!
//! | from | to | rule |
//! |---|---|---|
//! | JSON | texts | a string is its own text, `null` is left out, anything else is its JSON, without spaces: [`Arguments::texts`] |
//! | a text | JSON | what the parameter takes decides: [`read_text`], [`read_texts`] |
//!
//! [`form`] has what an action may ask its caller for, beyond its arguments.
//!
//! A request may carry either form, or both. Both have to agree by the first rule, so that nobody can show
//! the guard one call and the plugin another: [`Arguments::agree`].

pub mod form;
mod json;
mod kinds;
mod parameter;
mod secret_field;
mod text;
mod texts;

pub use json::{Arguments, ArgumentsError, member, set_member};
pub use kinds::Kinds;
pub use parameter::{ParameterKinds, has_default};
pub use talon_strict_json::MAX_DEPTH;
pub use text::{Reading, read_text};
pub use texts::{WrongKindError, read_texts};
