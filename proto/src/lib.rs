//! Talon's wire contracts. The code is generated from the `.proto` files beside this crate and checked in;
//! `tests/generated.rs` makes it, and compares.
//!
//! | module | what speaks it |
//! |---|---|
//! | [`plugin`] | host → plugin: `opentalon.plugin.v1` |
//! | [`goplugin`] | go-plugin's own services beside it |
//! | [`notices`] | plugin → host, unasked: `talon.plugin.v1` |
//! | [`host`] | clients → supervisor: `talon.host.v1` |
//! | [`agent`] | clients → the agent, supervisor ↔ `talon-agent`: `talon.agent.v1` |
//! | [`gateway`] | supervisor ↔ `talon-gateway`: `talon.gateway.v1` |
//! | [`state`] | plugin → its own key-values, operators → all state, supervisor ↔ `talon-state`: `talon.state.v1` |
//! | [`model`] | plugin → completions of language models: `talon.model.v1` |
//! | [`mcp_actions`] | names of actions for MCP's resources and prompts |

#[expect(
    missing_docs,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::large_enum_variant,
    reason = "generated; the .proto files hold the docs"
)]
mod generated {
    pub mod opentalon {
        pub mod plugin {
            pub mod v1 {
                include!("generated/opentalon.plugin.v1.rs");
            }
        }
    }
    pub mod goplugin {
        include!("generated/plugin.rs");
    }
    pub mod talon {
        pub mod agent {
            pub mod v1 {
                include!("generated/talon.agent.v1.rs");
            }
        }
        pub mod gateway {
            pub mod v1 {
                include!("generated/talon.gateway.v1.rs");
            }
        }
        pub mod host {
            pub mod v1 {
                include!("generated/talon.host.v1.rs");
            }
        }
        pub mod model {
            pub mod v1 {
                include!("generated/talon.model.v1.rs");
            }
        }
        pub mod plugin {
            pub mod v1 {
                include!("generated/talon.plugin.v1.rs");
            }
        }
        pub mod state {
            pub mod v1 {
                include!("generated/talon.state.v1.rs");
            }
        }
    }
}

mod details;
mod lasting;
pub mod mcp_actions;
pub mod roles;

/// go-plugin's own services: `plugin.GRPCController`, `plugin.GRPCStdio`, `plugin.GRPCBroker`.
pub use generated::goplugin;
/// The contract between host and plugin: `opentalon.plugin.v1`.
pub use generated::opentalon::plugin::v1 as plugin;
/// The agent: `talon.agent.v1`, with a service for its clients, and what a supervisor and `talon-agent` say
/// to each other.
pub use generated::talon::agent::v1 as agent;
/// What a supervisor and `talon-gateway` say to each other: `talon.gateway.v1`.
pub use generated::talon::gateway::v1 as gateway;
/// The API of the supervisor: `talon.host.v1`.
pub use generated::talon::host::v1 as host;
/// Completions of language models for a plugin: `talon.model.v1`.
pub use generated::talon::model::v1 as model;
/// What a plugin may tell its host unasked: `talon.plugin.v1`.
pub use generated::talon::plugin::v1 as notices;
/// Kept state: `talon.state.v1`, with a service for plugins, one for operators, and what a supervisor and
/// `talon-state` say to each other.
pub use generated::talon::state::v1 as state;

/// The service that go-plugin asks for in health checks.
pub const HEALTH_SERVICE: &str = "plugin";
