//! The supervisor's side of the agent: it starts `talon-agent`, and passes it its settings, the connections
//! of its clients and its own connection to the plugins. It reads none of the traffic on them.
//!
//! ```text
//! client ─ agent.sock ─ client_listener: identity and limits ─ pair, passed on ───────┐
//!                                                                                     ▼
//!  AgentSupervisor ══ control: Configure, AttachClient, HostConnection ⇒ Ready, Refused, NeedHost ══► talon-agent ──► models
//!                                                                                     │
//! plugins ◄─ guard ◄─ host service for one connection, with a peer that may only call ┘ pair, passed on
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `supervisor` | the handle that other modules use |
//! | `control` | the control protocol: desired state, what the process has received, and its messages |
//! | `configuration` | its settings, keys and files |
//! | `blocking_pool` | file access that may never return |
//! | `client_listener`, `forward` | `agent.sock`, and one connection of it |
//! | `endpoint` | its connection to the plugins |
//! | `health` | health checks |
//! | `program`, `service` | where its program is, and how it is run |

mod blocking_pool;
mod client_listener;
mod configuration;
mod control;
mod endpoint;
mod forward;
mod health;
mod program;
mod service;
mod supervisor;

pub use client_listener::{ClientListener, MAX_CLIENTS, MAX_CLIENTS_PER_UID, SOCKET_NAME};
pub(crate) use configuration::configure;
pub(crate) use control::{AgentReport, Provider};
pub(crate) use endpoint::{AgentEndpoint, ServeConnection};
pub use health::watch;
pub use program::{ProgramNotFoundError, find as find_program};
pub use service::{service_spec, workspace};
pub use supervisor::AgentSupervisor;
