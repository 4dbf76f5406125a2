//! Lua's patterns as Luau has them, over bytes, with a meter.
//!
//! A pattern is read while it is matched, as in the language's own library, and never parsed before: whether a malformed one is an
//! error depends on how far a match comes, and scripts see that. Luau reads a zero byte after the last byte of a text, and so does
//! this.
//!
//! | module | content |
//! |---|---|
//! | [`Matcher`] | one pattern over one subject: items, repetitions, captures |
//! | `class` | which bytes `%a`, `[a-z]` and their like stand for |
//! | [`Meter`] | asks whether the time of the call is over, every so many steps |
//! | [`find_plain`] | text without a pattern |
//! | [`PatternError`] | what can go wrong, in Luau's words |

mod class;
mod error;
mod matcher;
mod meter;
mod plain;

pub(crate) use error::PatternError;
pub(crate) use matcher::{Captured, Matcher};
pub(crate) use meter::Meter;
pub(crate) use plain::{find_plain, is_plain};
