//! A real supervisor for the tests, the benchmarks and the demo: a scratch directory, a `talon serve` in it,
//! a client of its `host.sock`, and checks of what is left behind.
//!
//! Nothing of the supervisor is mocked. Each one has a separate uid range, so that its leftovers can be told
//! from the processes of others. The dependencies are few and light, because `make demo` builds them.

mod builder;
mod cli;
mod client;
mod processes;
mod scratch;
mod services;
mod spawn;
mod supervisor;
mod uids;

pub use builder::Builder;
pub use cli::{cli, cli_with};
pub use client::{Client, args, dial};
pub use processes::{alive, descendants, in_uid_range, is_root, peak_memory_kib, skip, until};
pub use scratch::{Scratch, example, program, repository, target};
pub use supervisor::{Leftovers, SiblingSupervisor, Stopped, Supervisor, sockets_below};
