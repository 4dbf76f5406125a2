//! The common part of the bridges, `talon-mcp-bridge` and `talon-framed-bridge`.
//!
//! A bridge is a plugin that starts the program it translates for as its child, in the same jail.
//!
//! | module | contents |
//! |---|---|
//! | [`environment`] | the child's environment: ours, without the variables of our own handshake |
//! | [`process`] | how the child is started and ended |
//! | [`output`] | its output, passed on in bounded lines |
//! | [`names`] | names of tools as names of actions |
//! | [`text`] | its texts, cut for messages |

pub mod environment;
pub mod names;
pub mod output;
pub mod process;
pub mod text;
