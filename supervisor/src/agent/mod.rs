//! The supervisor's side of the agent: it starts `talon-agent`, hands it its settings, the connections of its clients and its own way
//! to the plugins. It reads nothing of what is said on them.
//!
//! ```text
//! client ─ agent.sock ─ clients: who it is, whether there is room ─ pair, handed over ┐
//!                                                                                     ▼
//!  Keeper ══ control: Configure, AttachClient, HostConnection ⇒ Ready, Refused, NeedHost ══► talon-agent ──► models
//!                                                                                     │
//! plugins ◄─ guard ◄─ host service for one connection, with a peer that may only call ┘ pair, handed over
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `keeper` | our hold on it, as everybody else has it |
//! | `told` | what it should have, held against what a process of it was given, and what it says |
//! | `hands` | what it is told of the configuration: settings, keys, files |
//! | `bounded` | work on files that may never end |
//! | `clients`, `carry` | `agent.sock`, and one connection of it |
//! | `doorway` | its way to the plugins |
//! | `health` | how it is asked whether it still answers |
//! | `program`, `service` | where its program is, and how it is run |

mod bounded;
mod carry;
mod clients;
mod doorway;
mod hands;
mod health;
mod keeper;
mod program;
mod service;
mod told;

pub use clients::{Clients, MAX_CLIENTS, MAX_CLIENTS_PER_UID, SOCKET_NAME};
pub(crate) use doorway::{Doorway, Serve};
pub(crate) use hands::hand_over;
pub use health::watch;
pub use keeper::Keeper;
pub use program::{NoProgram, find as find_program};
pub use service::{service, workspace};
pub(crate) use told::{Provider, Told};
