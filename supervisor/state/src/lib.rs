//! `talon-state`: serves kept state, in a process of its own without privileges.
//!
//! Whoever starts it (the supervisor; the command line, for a database that nobody serves) holds the other end of its
//! standard input, says which database to open, and hands over sockets: a listening one for each plugin, which is that
//! plugin's namespace, and connections for operators. It has no other way in.
//!
//! | module | what it is |
//! |---|---|
//! | `run` | the life of the process: opens, serves what is handed over, ends with its lifeline |
//! | `opening` | opens what the starter wants |
//! | `database` | the open store, what it is for, and whether it answers |
//! | `sockets` | the listening sockets of plugins and the connections of operators |
//! | `gate` | what every request passes: room, size, time |
//! | `plugin` | `talon.state.v1.State` for one plugin |
//! | `operator` | `talon.state.v1.Operator` |
//! | `failure` | the store's errors as those of gRPC |
//! | `limits` | every limit, with its reason |
//! | `exchange` | the founding layout: YAML files out of a store and into it |

mod database;
pub mod exchange;
mod failure;
mod gate;
pub mod limits;
mod opening;
mod operator;
mod plugin;
mod run;
mod sockets;

pub use run::run;
