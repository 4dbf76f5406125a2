//! The supervisor's side of kept state: it starts `talon-state`, and hands it the sockets of plugins and
//! connections of operators. It opens no database, and reads nothing of what is kept.
//!
//! ```text
//! plugin ─ k ─────────────┐ listening socket, handed over       operator ─ host.sock ─ host::operators ─ pair, handed over ┐
//!                         ▼                                                                                         ▼
//!  Keeper ══ control: Open, AttachPlugin, DetachPlugin, AttachOperator ⇒ Ready, Refused, Availability ══► talon-state
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `keeper` | our hold on it, as everybody else has it |
//! | `kept` | what it should have, held against what a process of it was given, and what it says |
//! | `health` | how it is asked whether it still answers |
//! | `opening` | what it is told to open |
//! | `program`, `service` | where its program is, and how it is run |
//! | `founding` | what could be imported |

mod founding;
mod health;
mod keeper;
mod kept;
mod opening;
mod program;
mod service;

pub use founding::{IMPORTED_FILE, to_import};
pub use health::watch;
pub use keeper::{Keeper, NotOpened};
pub use opening::{AGENT_DIR, AGENT_FILE, STATE_DIR, STATE_FILE, agents, plugins};
pub use program::{NoProgram, find as find_program};
pub use service::service;
