//! Questions of a server to the user behind a call (MCP's elicitation).
//!
//! A question ends the caller's call with an input request, and what the call was doing is parked. The caller calls the
//! tool again with the user's answer, and the work continues. Servers before 2026-07-28 ask by a separate request,
//! which stays open meanwhile; later ones answer the call with what they need.
//!
//! ```text
//! tools/call ─► server ─ elicitation/create ─► client ─► questions ─► run: parked, input request ─► caller
//!                  ▲                                         ▲
//!                  └──────────── the user's answer ──────────┴── run: resumed ◄── the call again
//! ```

mod client;
mod parked;
mod question;
mod questions;

pub(crate) use client::BridgeClient;
pub(crate) use parked::{Parked, ParkedCalls};
pub(crate) use question::{Question, Refusal, result};
pub(crate) use questions::{AskedQuestion, CallPlace, Questions};
