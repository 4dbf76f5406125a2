//! Talon beside what it replaces, in one run: `make bench`.
//!
//! Absolute times tell about a machine; a ratio between two things that took turns on it tells about the things. So
//! everything here is measured by rounds in which all contenders have a turn (A B A B …), each round gives a ratio, and
//! what is shown is the median of those with its spread.
//!
//! ```text
//!  talon-bench run ── suites ──► Book (figures of every round) ──► Document (JSON) ──► table, docs/benchmarks.md
//!      │  one line in: a load, one line out: what came of it                     └──► talon-bench compare A B
//!      ├── talon-bench-stock     raw, bare, relay: the system's allocator, tonic as it comes
//!      ├── talon-bench-guarded   in process, host.sock, guard, sanitizer, starts: Talon's own allocator and clients
//!      ├── talon-bench-counted   the guard under an allocator that counts
//!      └── a host in Go          go-plugin as Debian packages it
//!              └── all of them call the same answers of the same sizes; go-plugin's host the very same plugin
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`load`] | a load, and what came of it; the closed loop that makes it |
//! | [`worker`], [`driver`] | a process that makes loads when told to, and the one that tells it |
//! | [`contenders`], [`watched`] | who takes part in the calls; one of them under a load while somebody looks |
//! | [`content`], [`draw`] | the answers' text; which of many is called |
//! | [`turns`] | the same for what is no load: a process that measures when told to, a turn at a time |
//! | [`layers`] | the guard's stack without IO, whole and layer by layer |
//! | [`samples`], [`book`] | figures by round: medians and spreads |
//! | [`goals`] | where the ratios have to get to |
//! | [`machine`] | on what it was measured, and whether that was quiet |
//! | [`document`], [`table`], [`compare`] | what is written of it, shown of it, and how two of them differ |
//! | [`suites`] | what is measured |
//! | [`soak`], [`look`] | a long run of everything at once, and whether what it takes stays the same |
//! | [`stock`], [`guarded`] | the contenders |

pub mod book;
pub mod compare;
pub mod contenders;
pub mod content;
pub mod document;
pub mod draw;
pub mod driver;
pub mod goals;
pub mod guarded;
pub mod layers;
pub mod load;
pub mod look;
pub mod machine;
pub mod samples;
pub mod soak;
pub mod stock;
pub mod suites;
pub mod table;
pub mod turns;
pub mod watched;
pub mod worker;
