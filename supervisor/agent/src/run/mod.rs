//! The process `talon-agent`: what it is told over its control socket, and what it is made of.
//!
//! | file | what |
//! |---|---|
//! | `life` | from the first message to the end |
//! | `configure` | what the supervisor hands over, read |
//! | `setup` | what is made of a configuration: models, plugins' door, tools, workspace |
//! | `agent` | everything together, which requests work on |
//! | `link` | connections to the host, asked for and handed in |
//! | `chores` | what is done from time to time: probes of providers, idle sessions |

mod agent;
mod chores;
mod configure;
mod life;
mod link;
mod setup;

pub(crate) use agent::Agent;
pub(crate) use setup::Setup;

pub use life::run;
