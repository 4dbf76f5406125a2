//! The real `talon-state`, with a starter, plugins and operators that are the tests'.

#![expect(clippy::unwrap_used, reason = "a test: what cannot be unwrapped is its failure")]

mod crash;
mod exchange;
mod handed;
mod life;
mod limits;
mod operator;
mod plugin;
mod postgres;
mod refusals;
mod support;
