//! What Talon is compared with: unmodified sockets and tonic, on one thread each, with the system's
//! allocator. One thread, because measured that is tonic's fastest configuration on a single core.

mod agent_socket;
mod bare;
pub(crate) mod completions;
mod flood;
mod listen;
mod mcp;
pub(crate) mod model;
mod part;
mod pipe;
mod raw;
mod relay;
mod spawner;
pub mod sqlite;
mod state;

pub use flood::FLOODS;
pub use part::Part;
