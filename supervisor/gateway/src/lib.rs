//! The gateway: HTTP between the network and the agent.
//!
//! An unprivileged, jailed child of the supervisor. It reads what comes from the network, holds no model key and no database, and
//! is a client of host and agent over connections that are handed to it. Every request is made for a [`Caller`](identity::Caller).
//!
//! ```text
//! client ─ TCP ─► listener: limits, TLS ─► router: request id, site, rate, identity, body ─► api
//!                                                                                            │ backends: for this caller
//! talon serve ══ control: Configure, Listener, HostConnection, AgentConnection ══► gateway ──┴─► host, agent
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `run` | the life cycle of the process |
//! | `control` | the control socket to the supervisor |
//! | `settings` | what the operator set |
//! | [`listener`] | connections: accepted within limits, with TLS if set |
//! | `credentials` | whom the supervisor knows by a token |
//! | [`auth_providers`] | whom a plugin knows by a credential, as `extensions.auth` says |
//! | `role_call`, `role_answer` | the call of an action that plays a role, and its structured answer |
//! | [`backends`] | requests to host and agent, each for a caller |
//! | [`identity`] | who a request is for, and from which address it came |
//! | `access` | which caller may use which session, and what needs which scope |
//! | `input` | paths, queries and bodies of requests, within bounds |
//! | [`problem`] | errors as RFC 9457 has them, and the id of a request |
//! | `layers` | what every request passes: site, rates, identity, body |
//! | [`router`] | all layers and routes, as a list |
//! | [`api`] | the routes under `/api` |
//! | `ws` | the WebSocket |
//! | `pages` | the two pages for browsers, which are clients like any other |
//! | `sse` | events over HTTP |
//! | `openai` | the routes under `/v1`, in OpenAI's dialect |
//! | [`routes`] | the paths below `/x/`, which plugins answer |
//! | [`route_table`] | which path is which of them |
//! | `turn` | a turn as a sequence of events, and what came of it |
//! | `session_events` | the events of a caller's sessions, across restarts of the agent |
//! | `ghosts` | what the shadow loop says to a caller, likewise |
//! | `events` | what both carry: pure types, and what a message of the agent becomes |
//! | `clock`, `socket_counters` | the time of events; open WebSockets, and what became of them |
//! | [`app`] | what all routes share |
//! | `config_updates` | changes of the configuration, for clients that may read it |
//! | `task_updates` | runs of jobs, for clients that operate |
//! | `background` | places of turns that nobody waits for |
//! | [`testing`] | the router over given connections, without a supervisor |

mod access;
pub mod api;
pub mod app;
pub mod auth_providers;
pub mod backends;
mod background;
mod clock;
mod config_updates;
mod control;
mod credentials;
mod events;
mod ghosts;
pub mod identity;
mod input;
mod layers;
pub mod listener;
mod openai;
mod pages;
pub mod problem;
mod random;
mod role_answer;
mod role_call;
pub mod route_table;
pub mod router;
pub mod routes;
mod run;
mod session_events;
pub mod settings;
mod socket_counters;
mod sse;
mod task_updates;
pub mod testing;
mod turn;
mod ws;

pub use app::App;
pub use run::run;
