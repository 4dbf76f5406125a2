//! A real watcher over real directories and repositories, in a dry run.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod files;
mod git;
mod harness;
mod start;
