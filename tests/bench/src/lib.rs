//! Benchmarks of Talon against what it replaces, in one run: `make bench`.
//!
//! Absolute times describe a machine; a ratio between two contenders that took turns on it describes the
//! contenders. So everything here is measured in rounds in which all contenders have a turn (A B A B …). Each
//! round gives a ratio, and the tables show the median of the ratios with its spread.
//!
//! ```text
//!  talon-bench run ── suites ──► Figures (of every round) ──► Document (JSON) ──► table, docs/benchmarks.md
//!      │  one line in: a load, one line out: its result                └──► talon-bench compare A B
//!      ├── talon-bench-stock     raw, bare, relay: the system's allocator, unmodified tonic
//!      ├── talon-bench-guarded   in process, host.sock, guard, sanitizer, starts: Talon's own allocator and clients
//!      ├── talon-bench-counted   the guard under a counting allocator
//!      └── a host in Go          go-plugin as Debian packages it
//!              └── all of them call the same answers of the same sizes; go-plugin's host even the same plugin
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`load`], [`paced`] | a load and its result; the closed loop that runs it; calls at planned times |
//! | [`worker`], [`driver`] | the two sides of a load driver: its own process, and its parent |
//! | [`contenders`], [`load_command`] | the contenders of the call suites; one of them under load while a command runs |
//! | [`content`], [`rng`] | the text of the answers; random choice among many plugins |
//! | [`turns`] | a process that measures something other than a load, one turn at a time |
//! | [`layers`] | the guard's stack without IO, whole and layer by layer |
//! | [`samples`], [`figures`] | figures by round: medians and spreads |
//! | [`goals`] | the performance goals |
//! | [`machine`] | the machine of the run, and whether it was quiet |
//! | [`neighbours`] | processes that burn CPU, beside which the goals' ratios are measured once more |
//! | [`document`], [`table`], [`compare`] | the result of a run as a file and as tables, and the comparison of two |
//! | [`page`] | the tables of a page after a run of some suites |
//! | [`suites`] | what is measured |
//! | [`soak`], [`process_stats`] | a long run of everything at once, which looks for leaks; resource usage of a process |
//! | [`stock`], [`guarded`] | the contenders' processes |

pub mod compare;
pub mod contenders;
pub mod content;
pub mod document;
pub mod driver;
pub mod figures;
pub mod goals;
pub mod guarded;
pub mod layers;
pub mod load;
pub mod load_command;
pub mod machine;
pub mod neighbours;
pub mod paced;
pub mod page;
pub mod process_stats;
pub mod rng;
pub mod samples;
pub mod soak;
pub mod stock;
pub mod suites;
pub mod table;
pub mod turns;
pub mod worker;
