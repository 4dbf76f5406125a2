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
//! | `pending_client` | a connection that waits to be passed on |
//! | `endpoint`, `host_connection` | its connection to the plugins |
//! | `report` | what it reports about itself |
//! | `health` | health checks |
//! | `program`, `service` | where its program is, and how it is run |

mod blocking_pool;
mod client_listener;
mod configuration;
mod control;
mod endpoint;
mod forward;
mod health;
mod host_connection;
mod model_sockets;
mod pending_client;
mod program;
mod report;
mod service;
mod supervisor;
mod trace;
mod visible_files;

pub use client_listener::{ClientListener, SOCKET_NAME};
pub(crate) use configuration::configure;
pub(crate) use endpoint::{AgentEndpoint, HostLink, ServeConnection};
pub use health::watch;
pub use host_connection::AgentConnection;
pub use program::{ProgramNotFoundError, find as find_program};
pub(crate) use report::{AgentReport, MemoryVectors, Provider};
pub use service::{WorkspaceError, service_spec, workspace};
pub use supervisor::AgentSupervisor;
