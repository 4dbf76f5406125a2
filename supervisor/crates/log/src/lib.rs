//! What the logs of the supervisor and its child processes share.
//!
//! | module | contents |
//! |---|---|
//! | [`filter`] | the filter: its variable, its short names, its defaults |
//! | [`mod@panic`] | panics as log lines |

pub mod filter;
pub mod panic;
