//! Jobs that plugins propose, until the operator decides.
//!
//! ```text
//! a plugin's declaration ─ Declarations ─► Declared ─► store: proposed ─ decide ─► accepted ─► JobTable
//!                           the supervisor      │                          ▲  └──► rejected
//!                                               └─► invalid: shown only    │
//!                                                     talon schedule accept, reject
//! ```
//!
//! - `source`: where declarations come from; `declared`: what they propose, checked and bounded. Pure.
//! - `registry`: compares the declarations with the store, and decides
//! - `watch`: looks again whenever a plugin may have changed what it declares
//!
//! A decision names the digest of the text that was seen, so that a plugin that changes its proposal meanwhile gains
//! nothing. What was accepted runs on with its text, whatever the plugin proposes later.

mod declared;
mod registry;
mod source;
mod watch;

pub(crate) use declared::{InvalidProposal, withdrawn};
pub(crate) use registry::{DecideError, KnownProposals, ProposalParts, ProposalRegistry};
pub(crate) use source::{Declaration, Declarations};
pub(crate) use watch::{wake_on_changes, watch_declarations};
