//! The process `talon-agent`: its control socket and its parts.
//!
//! | file | content |
//! |---|---|
//! | `lifecycle` | from the first message to the end |
//! | `configure` | reads the configuration that the supervisor sends |
//! | `connector` | connections to the host, requested from the supervisor |
//! | `background` | periodic tasks: probes of providers, idle sessions, room for writes |

mod background;
mod configure;
mod connector;
mod lifecycle;

pub use lifecycle::run;
