//! The performance goals, and the ratios that are shown for comparison.

use crate::figures::{Figures, suffix};
use crate::samples::Samples;

/// A figure: its case, its contender, its metric.
#[derive(Debug, Clone, Copy)]
pub struct FigureRef(pub &'static str, pub &'static str, pub &'static str);

/// The value that a goal is about.
#[derive(Debug, Clone, Copy)]
pub enum Formula {
    /// The first divided by the second.
    Ratio(FigureRef, FigureRef),
    /// The overhead of the first over the third, divided by the overhead of the second over the third.
    OverheadRatio(FigureRef, FigureRef, FigureRef),
    /// The figure itself.
    Value(FigureRef),
}

/// A bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Not less than this.
    AtLeast(f64),
    /// Not more than this.
    AtMost(f64),
    /// No bound: the row is there to put the previous row into perspective.
    Unbounded,
}

/// One row of the table of goals.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// A stable id for programs.
    pub id: &'static str,
    /// A description for people.
    pub what: &'static str,
    /// The value that the bound is about.
    pub formula: Formula,
    /// The bound.
    pub bound: Bound,
    /// The unit of a figure that has the bound itself; empty for a ratio, which is written with ×.
    pub unit: &'static str,
}

impl Bound {
    /// Whether a value meets the bound, if there is one.
    #[must_use]
    pub fn holds(self, value: f64) -> Option<bool> {
        match self {
            Self::AtLeast(bound) => Some(value >= bound),
            Self::AtMost(bound) => Some(value <= bound),
            Self::Unbounded => None,
        }
    }
}

impl Goal {
    /// Whether its value is a ratio, and so comparable between a quiet and a busy machine.
    #[must_use]
    pub fn is_ratio(&self) -> bool {
        self.unit.is_empty()
    }

    /// The bound, for people: `≥ 1.20×`; empty if there is none.
    #[must_use]
    pub fn target(&self) -> String {
        let (sign, bound) = match self.bound {
            Bound::AtLeast(bound) => ("≥", bound),
            Bound::AtMost(bound) => ("≤", bound),
            Bound::Unbounded => return String::new(),
        };
        format!("{sign} {bound:.2}{}", suffix(self.unit))
    }
}

/// How many times worse than its quiet value a goal's ratio may be beside busy neighbours. That leaves room
/// for the noise of a loaded machine, and is far from what waiting costs that relies on idle cores: 3.3 for
/// one caller over `host.sock`.
pub const MAX_TIMES_WORSE: f64 = 1.3;

impl Bound {
    /// How many times worse `busy` is than `quiet`: 1 is the same, less is better. `None` if there is no
    /// bound, which says what is worse, or if one of them is no positive number.
    #[must_use]
    pub fn times_worse(self, quiet: f64, busy: f64) -> Option<f64> {
        let worse = match self {
            Self::AtLeast(_) => quiet / busy,
            Self::AtMost(_) => busy / quiet,
            Self::Unbounded => return None,
        };
        Some(worse).filter(|worse| worse.is_finite() && *worse > 0.0)
    }
}

/// The suites that ratios of goals need, in the order of the goals.
#[must_use]
pub fn suites_of_ratios() -> Vec<&'static str> {
    let mut suites: Vec<&str> = Vec::new();
    for goal in GOALS.iter().filter(|goal| goal.is_ratio()) {
        let (Formula::Ratio(FigureRef(case, ..), _)
        | Formula::OverheadRatio(FigureRef(case, ..), ..)
        | Formula::Value(FigureRef(case, ..))) = goal.formula;
        let suite = case.split_once('/').map_or(case, |(suite, _)| suite);
        if !suites.contains(&suite) {
            suites.push(suite);
        }
    }
    suites
}

impl Formula {
    /// The value in each round, if all its figures were measured. `condition` is what their cases' names end
    /// with: empty, or what [`Figures::set_condition`] was given.
    #[must_use]
    pub fn evaluate(self, book: &Figures, condition: &str) -> Option<Samples> {
        let samples = |FigureRef(case, contender, metric)| {
            book.samples(&format!("{case}{condition}"), contender, metric)
        };
        let found = match self {
            Self::Ratio(this, that) => samples(this)?.divided_by(samples(that)?),
            Self::OverheadRatio(this, that, both) => {
                let both = samples(both)?;
                samples(this)?.minus(both).divided_by(&samples(that)?.minus(both))
            }
            Self::Value(this) => samples(this)?.clone(),
        };
        // A ratio to zero is no figure, and JSON cannot express it.
        Some(found).filter(|found| !found.0.is_empty() && found.0.iter().all(|value| value.is_finite()))
    }
}

const BARE: &str = "bare tonic";
const RELAY: &str = "two bare hops";
const IN_PROCESS: &str = "in process";
const RECORDED: &str = "in process, recorded";
const HOST: &str = "host.sock";
const GO: &str = "Go host";

const AGENT: &str = "talon-agent";
const LUA: &str = "talon-lua";
const LUA_HOOK: &str = "lua/rule hook, 1 KiB";

const RATE: &str = "calls";
const P50: &str = "p50";
const P99: &str = "p99";

const SMALL_ALONE: &str = "calls/1 KiB/c1";
const SMALL_MANY: &str = "calls/1 KiB/c64";
const LARGE_MANY: &str = "calls/64 KiB/c64";

/// All of them, in the order of the table.
pub const GOALS: &[Goal] = &[
    Goal {
        id: "in-process-rate",
        what: "in process, 1 KiB, 64 callers: calls a second over bare tonic on one connection",
        formula: Formula::Ratio(FigureRef(SMALL_MANY, IN_PROCESS, RATE), FigureRef(SMALL_MANY, BARE, RATE)),
        bound: Bound::AtLeast(1.2),
        unit: "",
    },
    Goal {
        id: "in-process-recorded",
        what: "those calls where numbers are recorded and a log is kept, as in a supervisor",
        formula: Formula::Ratio(FigureRef(SMALL_MANY, RECORDED, RATE), FigureRef(SMALL_MANY, BARE, RATE)),
        bound: Bound::Unbounded,
        unit: "",
    },
    Goal {
        id: "in-process-p50",
        what: "in process, 1 KiB, one caller: p50 over bare tonic",
        formula: Formula::Ratio(FigureRef(SMALL_ALONE, IN_PROCESS, P50), FigureRef(SMALL_ALONE, BARE, P50)),
        bound: Bound::AtMost(1.10),
        unit: "",
    },
    Goal {
        id: "host-p50",
        what: "through host.sock, 1 KiB, one caller: p50 over two bare tonic hops",
        formula: Formula::Ratio(FigureRef(SMALL_ALONE, HOST, P50), FigureRef(SMALL_ALONE, RELAY, P50)),
        bound: Bound::AtMost(1.10),
        unit: "",
    },
    Goal {
        id: "host-rate",
        what: "through host.sock, 1 KiB, 64 callers: calls a second over one bare tonic hop",
        formula: Formula::Ratio(FigureRef(SMALL_MANY, HOST, RATE), FigureRef(SMALL_MANY, BARE, RATE)),
        bound: Bound::AtLeast(0.6),
        unit: "",
    },
    Goal {
        id: "large-rate",
        what: "in process, 64 KiB, 64 callers: calls a second over bare tonic as it comes",
        formula: Formula::Ratio(FigureRef(LARGE_MANY, IN_PROCESS, RATE), FigureRef(LARGE_MANY, BARE, RATE)),
        bound: Bound::AtLeast(2.0),
        unit: "",
    },
    Goal {
        id: "go-rate",
        what: "in process, 1 KiB, 64 callers: calls a second over go-plugin's host with the same plugin",
        formula: Formula::Ratio(FigureRef(SMALL_MANY, IN_PROCESS, RATE), FigureRef(SMALL_MANY, GO, RATE)),
        bound: Bound::AtLeast(2.0),
        unit: "",
    },
    Goal {
        id: "go-p99",
        what: "in process, 1 KiB, 64 callers: p99 over go-plugin's host with the same plugin",
        formula: Formula::Ratio(FigureRef(SMALL_MANY, IN_PROCESS, P99), FigureRef(SMALL_MANY, GO, P99)),
        bound: Bound::AtMost(0.5),
        unit: "",
    },
    Goal {
        id: "guard",
        what: "the whole guard without IO, clean 1 KiB",
        formula: Formula::Value(FigureRef("guard/prose, 1 KiB", "whole stack", "time")),
        bound: Bound::AtMost(3.0),
        unit: "µs",
    },
    Goal {
        id: "guard-recorded",
        what: "that guard where numbers are recorded and a log is kept, as in a supervisor",
        formula: Formula::Value(FigureRef("guard/prose, 1 KiB", "whole, recorded", "time")),
        bound: Bound::Unbounded,
        unit: "µs",
    },
    Goal {
        id: "sanitizer-prose",
        what: "sanitizer, clean 64 KiB of prose: over 60 passes one after another",
        formula: Formula::Ratio(
            FigureRef("sanitizer/prose, 64 KiB", "Talon", "speed"),
            FigureRef("sanitizer/prose, 64 KiB", "60 passes", "speed"),
        ),
        bound: Bound::AtLeast(5.0),
        unit: "",
    },
    Goal {
        id: "sanitizer-json",
        what: "sanitizer, clean 64 KiB of JSON: over 60 passes one after another",
        formula: Formula::Ratio(
            FigureRef("sanitizer/JSON, 64 KiB", "Talon", "speed"),
            FigureRef("sanitizer/JSON, 64 KiB", "60 passes", "speed"),
        ),
        bound: Bound::AtLeast(10.0),
        unit: "",
    },
    Goal {
        id: "sanitizer-html",
        what: "sanitizer, clean 64 KiB of HTML: over 60 passes one after another",
        formula: Formula::Ratio(
            FigureRef("sanitizer/HTML, 64 KiB", "Talon", "speed"),
            FigureRef("sanitizer/HTML, 64 KiB", "60 passes", "speed"),
        ),
        bound: Bound::AtLeast(20.0),
        unit: "",
    },
    Goal {
        id: "jail",
        what: "strict jail, start to ready: what it adds over what bwrap --unshare-all adds",
        formula: Formula::OverheadRatio(
            FigureRef("start/one", "strict jail", "ready"),
            FigureRef("start/one", "bwrap", "ready"),
            FigureRef("start/one", "no jail", "ready"),
        ),
        bound: Bound::AtMost(1.0),
        unit: "",
    },
    Goal {
        id: "killed-known",
        what: "SIGKILL of a plugin: until the supervisor knows",
        formula: Formula::Value(FigureRef("restart/one", "Talon", "known")),
        bound: Bound::AtMost(5.0),
        unit: "ms",
    },
    Goal {
        id: "killed-serving",
        what: "SIGKILL of a plugin: until it serves again, over its cold start",
        formula: Formula::Ratio(
            FigureRef("restart/one", "Talon", "serving"),
            FigureRef("restart/one", "Talon", "cold start"),
        ),
        bound: Bound::AtMost(2.0),
        unit: "",
    },
    Goal {
        id: "many-ready",
        what: "500 jailed plugins: until all are ready, over a bare spawner",
        formula: Formula::Ratio(
            FigureRef("many/500", "Talon", "all ready"),
            FigureRef("many/500", "bare spawner", "all ready"),
        ),
        bound: Bound::AtMost(5.0),
        unit: "",
    },
    Goal {
        id: "many-memory",
        what: "500 jailed plugins: the supervisor's memory over a bare client's",
        formula: Formula::Ratio(
            FigureRef("many/500", "Talon", "memory"),
            FigureRef("many/500", "bare spawner", "memory"),
        ),
        bound: Bound::AtMost(3.0),
        unit: "",
    },
    Goal {
        id: "many-memory-monitored",
        what: "that memory and that of the monitors beside the jails",
        formula: Formula::Ratio(
            FigureRef("many/500", "Talon", "with monitors"),
            FigureRef("many/500", "bare spawner", "with monitors"),
        ),
        bound: Bound::Unbounded,
        unit: "",
    },
    Goal {
        id: "many-idle",
        what: "500 jailed plugins: the supervisor's CPU while nobody calls, over a health check of each",
        formula: Formula::Value(FigureRef("many/500", "Talon", "idle CPU")),
        bound: Bound::AtMost(0.5),
        unit: "% of a core",
    },
    Goal {
        id: "many-idle-monitored",
        what: "that CPU and that of the monitors, where no cgroup limits memory",
        formula: Formula::Value(FigureRef("many/500", "Talon", "idle CPU with monitors")),
        bound: Bound::Unbounded,
        unit: "% of a core",
    },
    Goal {
        id: "many-p99",
        what: "500 jailed plugins: p99 of a call over that with one plugin",
        formula: Formula::Ratio(FigureRef("many/500", "Talon", P99), FigureRef("many/1", "Talon", P99)),
        bound: Bound::AtMost(2.0),
        unit: "",
    },
    Goal {
        id: "floods-plugins",
        what: "six plugins flood their connections at once: p99 of a neighbour's 64 callers over that without them",
        formula: Formula::Ratio(
            FigureRef("floods/c64", "six plugins flood", P99),
            FigureRef("floods/c64", "quiet", P99),
        ),
        bound: Bound::AtMost(3.0),
        unit: "",
    },
    Goal {
        id: "floods-clients",
        what: "six clients flood host.sock at once, and again when they are cut off: the same p99",
        formula: Formula::Ratio(
            FigureRef("floods/c64", "six clients flood", P99),
            FigureRef("floods/c64", "quiet", P99),
        ),
        bound: Bound::AtMost(3.0),
        unit: "",
    },
    Goal {
        id: "agent-first-token",
        what: "the agent: what it adds to the first token of an answer over a direct request to the same provider",
        formula: Formula::Value(FigureRef("agent/added", AGENT, "added")),
        bound: Bound::AtMost(25.0),
        unit: "ms",
    },
    Goal {
        id: "agent-hooks",
        what: "what a filter, a request hook and a response hook that let everything pass add to a turn",
        formula: Formula::Value(FigureRef("agent/hooks", AGENT, "added")),
        bound: Bound::AtMost(2.0),
        unit: "ms",
    },
    Goal {
        id: "agent-memory",
        what: "the agent's memory with 100 sessions",
        formula: Formula::Value(FigureRef("agent/100 sessions", AGENT, "memory")),
        // 80 megabytes.
        bound: Bound::AtMost(76.0),
        unit: "MiB",
    },
    Goal {
        id: "lua-machine",
        what: "a Lua rule hook on 1 KiB in the machine: its time over that of the same script in Lua 5.4",
        formula: Formula::Ratio(FigureRef(LUA_HOOK, LUA, "time"), FigureRef(LUA_HOOK, "lua5.4", "time")),
        bound: Bound::AtMost(2.0),
        unit: "",
    },
    Goal {
        id: "lua-machine-jit",
        what: "that time over that of the same script in LuaJIT",
        formula: Formula::Ratio(FigureRef(LUA_HOOK, LUA, "time"), FigureRef(LUA_HOOK, "luajit", "time")),
        bound: Bound::Unbounded,
        unit: "",
    },
    Goal {
        id: "lua-hook",
        what: "the whole Lua hook on 1 KiB through guard and jail: p99",
        formula: Formula::Value(FigureRef("lua/whole hook, 1 KiB", LUA, P99)),
        bound: Bound::AtMost(1.0),
        unit: "ms",
    },
    Goal {
        id: "lua-memory",
        what: "100 Lua scripts: the memory of each, of all processes of the plugin",
        formula: Formula::Value(FigureRef("lua/100 scripts", LUA, "memory each")),
        bound: Bound::Unbounded,
        unit: "MiB",
    },
    Goal {
        id: "lua-live",
        what: "a saved Lua script: until it answers",
        formula: Formula::Value(FigureRef("lua/saved file", LUA, "live")),
        bound: Bound::AtMost(250.0),
        unit: "ms",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Unit;

    #[test]
    fn each_goal_has_a_word_of_its_own() {
        let ids: std::collections::BTreeSet<&str> = GOALS.iter().map(|goal| goal.id).collect();
        assert_eq!(ids.len(), GOALS.len());
    }

    #[test]
    fn worse_follows_the_bound() {
        assert_eq!(Bound::AtLeast(1.0).times_worse(2.0, 1.0), Some(2.0));
        assert_eq!(Bound::AtMost(1.0).times_worse(2.0, 1.0), Some(0.5));
        assert_eq!(Bound::Unbounded.times_worse(2.0, 1.0), None);
        assert_eq!(Bound::AtLeast(1.0).times_worse(2.0, 0.0), None, "an infinite number is none in JSON");
    }

    #[test]
    fn ratios_name_the_suites_that_are_run_beside_neighbours() {
        assert_eq!(suites_of_ratios(), ["calls", "sanitizer", "start", "restart", "many", "floods", "lua"]);
        assert!(suites_of_ratios().iter().all(|suite| crate::suites::SUITES.contains(suite)));
    }

    #[test]
    fn what_was_not_measured_has_no_value() {
        let mut book = Figures::default();
        assert!(GOALS.iter().all(|goal| goal.formula.evaluate(&book, "").is_none()));
        let mut page = book.case("start/one", Some("no jail"));
        for (contender, ready) in [("no jail", 2.0), ("bwrap", 8.0), ("strict jail", 5.0)] {
            page.add(contender, "ready", Unit::Milliseconds, ready);
        }
        let jail = GOALS.iter().find(|goal| goal.id == "jail").expect("it is there");
        assert_eq!(jail.formula.evaluate(&book, "").expect("measured").0, [0.5]);
        assert_eq!([0.5, 1.1].map(|value| jail.bound.holds(value)), [Some(true), Some(false)]);
    }
}
