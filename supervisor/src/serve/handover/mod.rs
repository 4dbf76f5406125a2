//! One supervisor after the other, and the plugins run on.
//!
//! ```text
//!            freeze                       pack                     release
//! running ─► no new connections,  ─► a parcel of ─┬─► store: the service manager keeps it ─► exit 0
//!    ▲       calls finish,            all there is │                    ▼ the next start finds it
//!    │       state is closed                       └─► takeover: the other one gets it ── Taken ─► exit 0
//!    └─────────────── thaw: it came to nothing ──────────────┘ it failed, died or was too slow
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `document` | what is said, beside the descriptors |
//! | `freeze` | standing still, and going on |
//! | `store` | to the next supervisor through the service manager |
//! | `takeover` | to one that asked on `host.sock` |
//! | `meeting`, `wire` | where those two meet, and what they say |
//! | `arrive` | the successor's side of both |
//!
//! A parcel is opened by looking: one that nobody could use is whole for the next that tries. So a successor that fails takes
//! nothing with it: under a service manager the store still has the parcel, and without one the old supervisor never let go.

mod arrive;
mod document;
mod freeze;
mod meeting;
mod store;
mod takeover;
mod wire;

pub use arrive::TakeoverError;
pub(super) use arrive::{Arrival, arrive};
pub(super) use takeover::Outcome;
