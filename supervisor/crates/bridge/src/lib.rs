//! The common part of the bridges, `talon-mcp-bridge`, `talon-framed-bridge` and `talon-service-bridge`.
//!
//! A bridge is a plugin that starts the program it translates for as its child, in the same jail.
//!
//! | module | contents |
//! |---|---|
//! | [`environment`] | the child's environment: ours, without the variables of our own handshake |
//! | [`process`] | how the child is started and ended |
//! | [`output`] | its output, passed on in bounded lines |
//! | [`program`] | a child with a handshake line and a socket |
//! | [`logging`] | lines for the supervisor's log |
//! | [`stop_signals`] | the signals that end a bridge |
//! | [`text`] | its texts, cut for messages |

pub mod environment;
pub mod logging;
pub mod output;
pub mod process;
pub mod program;
pub mod stop_signals;
pub mod text;
