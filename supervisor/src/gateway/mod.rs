//! The supervisor's side of the gateway: it starts `talon-gateway`, passes it its settings, its listener, and one connection each to
//! host and agent. It reads nothing of what goes over the listener.
//!
//! ```text
//!  GatewaySupervisor ══ control: Configure, Listener, HostConnection, AgentConnection
//!                               ⇒ Ready, Refused, Listening, NeedHost, NeedAgent ══► talon-gateway ◄── clients, TCP
//! ```
//!
//! The listener outlives the process: it comes from a service manager, or the gateway binds it once and hands it up. It is kept over
//! restarts of the gateway and goes on to the next supervisor, so that who connects meanwhile waits.
//!
//! | module | contents |
//! |---|---|
//! | `supervisor` | the handle that other modules use |
//! | `control` | the control protocol: desired state, what the process has received, and its messages |
//! | `configuration` | its settings and its certificate |
//! | `backend` | its connections to host and agent, and the ceiling of its role |
//! | `health` | health checks |
//! | `program`, `service` | where its program is, and how it is run |

mod backend;
mod configuration;
mod control;
mod health;
mod program;
mod service;
mod supervisor;

pub use health::watch;
pub use program::{ProgramNotFoundError, find as find_program};
pub use service::service_spec;
pub use supervisor::GatewaySupervisor;
