//! What the logs of the supervisor and its child processes share.
//!
//! | module | contents |
//! |---|---|
//! | [`filter`] | the filter: its variable, its short names, its defaults |
//! | [`mod@panic`] | panics as log lines |
//! | `testing` | with the feature of that name: the check of what a program logs of a panic |

pub mod filter;
pub mod panic;
#[cfg(feature = "testing")]
pub mod testing;
