//! The paths of `PluginService`'s methods, built once for each process: a plugin may configure another
//! service name.

use http::uri::PathAndQuery;

use talon_plugin_config::spec::DEFAULT_SERVICE;

use crate::capability::ActionNames;

/// The path of each method. Cloning a path does not allocate.
#[derive(Debug, Clone)]
pub struct Methods {
    pub(super) execute: PathAndQuery,
    pub(super) init: PathAndQuery,
    pub(super) capabilities: PathAndQuery,
    pub(super) refresh_capabilities: PathAndQuery,
    /// What names the actions of this service may have.
    pub(super) action_names: ActionNames,
}

impl Methods {
    /// The methods of the service with that full name.
    pub fn for_service(service: &str) -> Self {
        if service == DEFAULT_SERVICE {
            return Self::default();
        }
        let path = |method| {
            PathAndQuery::from_maybe_shared(format!("/{service}/{method}"))
                .expect("discovery lets through letters, digits, '_' and dots alone")
        };
        Self {
            execute: path("Execute"),
            init: path("Init"),
            capabilities: path("Capabilities"),
            refresh_capabilities: path("RefreshCapabilities"),
            action_names: ActionNames::Strict,
        }
    }

    /// The same methods of a plugin whose actions may have such names.
    #[must_use]
    pub fn with_action_names(self, action_names: ActionNames) -> Self {
        Self { action_names, ..self }
    }
}

impl Default for Methods {
    fn default() -> Self {
        let path = PathAndQuery::from_static;
        Self {
            execute: path("/opentalon.plugin.v1.PluginService/Execute"),
            init: path("/opentalon.plugin.v1.PluginService/Init"),
            capabilities: path("/opentalon.plugin.v1.PluginService/Capabilities"),
            refresh_capabilities: path("/opentalon.plugin.v1.PluginService/RefreshCapabilities"),
            action_names: ActionNames::Strict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_of_another_name_has_the_same_methods() {
        let own = Methods::for_service("acme.tools.v1.PluginService");
        assert_eq!(own.execute, "/acme.tools.v1.PluginService/Execute");
        assert_eq!(own.init, "/acme.tools.v1.PluginService/Init");
        assert_eq!(own.capabilities, "/acme.tools.v1.PluginService/Capabilities");
        assert_eq!(own.refresh_capabilities, "/acme.tools.v1.PluginService/RefreshCapabilities");
    }

    #[test]
    fn the_service_of_most_plugins_needs_no_memory() {
        let (made, usual) = (Methods::for_service(DEFAULT_SERVICE), Methods::default());
        assert_eq!(made.execute, usual.execute);
        assert_eq!(usual.execute, format!("/{DEFAULT_SERVICE}/Execute").as_str());
    }
}
