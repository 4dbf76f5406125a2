//! A real watcher over real directories and repositories, in a dry run.

mod files;
mod git;
mod harness;
mod start;
