//! The supervisor's side of the state service: it starts `talon-state`, and passes it the sockets of plugins
//! and the connections of operators. It neither opens a database nor reads stored data.
//!
//! ```text
//! plugin ─ k ─────────────┐ listening socket, passed on       operator ─ host.sock ─ host::state_proxy ─ pair, passed on ─┐
//!                         ▼                                                                                          ▼
//!  StateSupervisor ══ control: Open, AttachPlugin, DetachPlugin, AttachOperator ⇒ Ready, Refused, Availability ══► talon-state
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `supervisor` | the handle that other modules use |
//! | `control` | the control protocol: desired state, what the process has received, and its messages |
//! | `health` | health checks |
//! | `open_request` | which database it opens |
//! | `program`, `service` | where its program is, and how it is run |
//! | `import` | state that could be imported |

mod control;
mod health;
mod import;
mod open_request;
mod program;
mod service;
mod supervisor;

pub use health::watch;
pub use import::{IMPORTED_FILE, to_import};
pub use open_request::{AGENT_DIR, AGENT_FILE, STATE_DIR, STATE_FILE, agents, plugins};
pub use program::{ProgramNotFoundError, find as find_program};
pub use service::service;
pub use supervisor::{StateOpenError, StateSupervisor};
