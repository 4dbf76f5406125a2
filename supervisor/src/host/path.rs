//! Paths of sockets: what binds `host.sock` and what connects to it share it.

pub use talon_listen::ShortPath;
