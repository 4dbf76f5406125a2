//! A process, its client, and the results of a start, as the driver uses them. The driver's tests implement
//! the traits without processes, under paused time.

pub(crate) mod client;
pub(crate) mod process;
pub(crate) mod start;
