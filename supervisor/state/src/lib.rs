//! `talon-state`: serves stored state from a separate, unprivileged process.
//!
//! The process that starts it (the supervisor; the command line, for a database that no process serves) holds
//! the other end of its standard input, says which database to open, and passes sockets to it: a listening
//! one for each plugin, which is that plugin's namespace, and connections for operators. There is no other
//! way to reach it.
//!
//! | module | contents |
//! |---|---|
//! | `run` | the lifecycle of the process: opens, serves the sockets that it gets, ends with its lifeline |
//! | `control_socket` | the control socket to the starter, and the messages to it |
//! | `opening` | opens the database that the starter asks for |
//! | `database` | the open store, the layers it was opened for, and whether it answers |
//! | `fullness` | whether the database refuses writes, since there is no room |
//! | `sockets` | the listening sockets of plugins and the connections of operators |
//! | `gate` | the limits of every request: number, size, time |
//! | `plugin` | `talon.state.v1.State` for one plugin |
//! | `plugin_engine` | the plugins' key-values in a storage backend: an action of a plugin |
//! | `operator` | `talon.state.v1.Operator` |
//! | `failure` | the store's errors as gRPC statuses |
//! | `limits` | every limit, with its reason |
//! | `exchange` | export and import of the founding layout: YAML files |

mod control_socket;
mod database;
pub mod exchange;
mod failure;
mod fullness;
mod gate;
pub mod limits;
mod opening;
mod operator;
mod plugin;
mod plugin_engine;
mod run;
mod sockets;

pub use run::run;
