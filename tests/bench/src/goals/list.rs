//! The table of goals.

use super::{Bound, FigureRef, Formula, Goal};

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

const GATEWAY: &str = "gateway";
const GATEWAY_WHOLE: &str = "gateway/completions";
const GATEWAY_STREAMS: &str = "gateway/streams";
const ANSWERS: &str = "answers";
const LITELLM: &str = "LiteLLM";
const WATCH: &str = "talon-watch";

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
    Goal {
        id: "gateway-rate",
        what: "the gateway, chat completions of a model that answers at once, 16 callers: answers a second over LiteLLM",
        formula: Formula::Ratio(
            FigureRef(GATEWAY_WHOLE, GATEWAY, ANSWERS),
            FigureRef(GATEWAY_WHOLE, LITELLM, ANSWERS),
        ),
        bound: Bound::AtLeast(10.0),
        unit: "",
    },
    Goal {
        id: "gateway-streams",
        what: "the same, streamed in 20 pieces",
        formula: Formula::Ratio(
            FigureRef(GATEWAY_STREAMS, GATEWAY, ANSWERS),
            FigureRef(GATEWAY_STREAMS, LITELLM, ANSWERS),
        ),
        bound: Bound::AtLeast(10.0),
        unit: "",
    },
    Goal {
        id: "gateway-stored",
        what: "the gateway, turns that are stored, each in a new session: answers a second over those that are not",
        formula: Formula::Ratio(
            FigureRef(GATEWAY_WHOLE, "gateway, stored", ANSWERS),
            FigureRef(GATEWAY_WHOLE, GATEWAY, ANSWERS),
        ),
        bound: Bound::Unbounded,
        unit: "",
    },
    Goal {
        id: "gateway-stored-rival",
        what: "those stored turns: answers a second over LiteLLM, which stores nothing",
        formula: Formula::Ratio(
            FigureRef(GATEWAY_WHOLE, "gateway, stored", ANSWERS),
            FigureRef(GATEWAY_WHOLE, LITELLM, ANSWERS),
        ),
        bound: Bound::Unbounded,
        unit: "",
    },
    Goal {
        id: "gateway-added",
        what: "at half of the gateway's rate: what it adds to the p99 of the same question on agent.sock",
        formula: Formula::Value(FigureRef("gateway/added", GATEWAY, "added p99")),
        bound: Bound::AtMost(2.0),
        unit: "ms",
    },
    Goal {
        id: "gateway-memory",
        what: "the gateway's resident memory, idle",
        formula: Formula::Value(FigureRef("gateway/memory", GATEWAY, "idle")),
        // 40 megabytes.
        bound: Bound::AtMost(38.1),
        unit: "MiB",
    },
    Goal {
        id: "gateway-memory-streams",
        what: "the same, after load and with 1,000 streams at once",
        formula: Formula::Value(FigureRef("gateway/memory", GATEWAY, "1,000 streams")),
        bound: Bound::Unbounded,
        unit: "MiB",
    },
    Goal {
        id: "gateway-ready",
        what: "the gateway, from the start of its process until it serves",
        formula: Formula::Value(FigureRef("gateway/start", GATEWAY, "ready")),
        bound: Bound::AtMost(100.0),
        unit: "ms",
    },
    Goal {
        id: "pages-control-paint",
        what: "the Control UI in Chromium with a cold cache: until something of it is painted",
        formula: Formula::Value(FigureRef("pages/first paint", "Control UI", "first contentful paint")),
        bound: Bound::AtMost(300.0),
        unit: "ms",
    },
    Goal {
        id: "pages-chat-paint",
        what: "WebChat in Chromium with a cold cache: until something of it is painted",
        formula: Formula::Value(FigureRef("pages/first paint", "WebChat", "first contentful paint")),
        bound: Bound::AtMost(300.0),
        unit: "ms",
    },
    Goal {
        id: "pages-typing",
        what: "WebChat with 1,000 messages: from a key to its letter on the screen, the slowest of 100",
        formula: Formula::Value(FigureRef("pages/typing, 1,000 messages", "WebChat", "slowest")),
        bound: Bound::AtMost(100.0),
        unit: "ms",
    },
    Goal {
        id: "pages-hour",
        what: "WebChat after as many pieces as an hour of streaming has: its JavaScript heap",
        formula: Formula::Value(FigureRef("pages/an hour of streaming", "WebChat", "heap after")),
        bound: Bound::Unbounded,
        unit: "MiB",
    },
    Goal {
        id: "watch-memory",
        what: "talon watch with a tree of 100,000 files: its resident memory",
        formula: Formula::Value(FigureRef("watch/100,000 files", WATCH, "memory")),
        // 30 megabytes.
        bound: Bound::AtMost(28.6),
        unit: "MiB",
    },
    Goal {
        id: "watch-idle",
        what: "the same while nothing happens: its CPU",
        formula: Formula::Value(FigureRef("watch/100,000 files", WATCH, "idle CPU")),
        bound: Bound::AtMost(1.0),
        unit: "% of a core",
    },
];
