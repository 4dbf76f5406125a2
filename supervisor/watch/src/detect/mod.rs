//! The detectors: what is worth an observation. None asks a model, none reads anything but what it is given,
//! and the same events lead to the same findings.

pub(crate) mod conflict_markers;
pub(crate) mod failed_test;
pub(crate) mod large_file;
pub(crate) mod repeated_failure;
pub(crate) mod secret;
pub(crate) mod todo_comment;
