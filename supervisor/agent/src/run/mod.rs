//! The process `talon-agent`: its control socket and its parts.
//!
//! | file | content |
//! |---|---|
//! | `lifecycle` | from the first message to the end |
//! | `configure` | reads the configuration that the supervisor sends |
//! | `setup` | builds models, host client, tools and workspace from a configuration |
//! | `agent` | the shared state on which requests work |
//! | `connector` | connections to the host, requested from the supervisor |
//! | `background` | periodic tasks: probes of providers, idle sessions |

mod agent;
mod background;
mod configure;
mod connector;
mod lifecycle;
mod setup;

pub(crate) use agent::Agent;
pub(crate) use setup::Setup;

pub use lifecycle::run;
