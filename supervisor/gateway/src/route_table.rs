//! Which path is which route.

use std::sync::Arc;

use http::Method;
use talon_extensions::RouteEntry;

/// The routes of a configuration. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct PluginRoutes(Arc<[RouteEntry]>);

impl PluginRoutes {
    /// These, in their order.
    #[must_use]
    pub fn new(entries: Vec<RouteEntry>) -> Self {
        Self(entries.into())
    }

    /// The route of a request.
    ///
    /// # Errors
    /// The methods that there are for the path, if it is none of them; none if there is no such path.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Result<&RouteEntry, Vec<String>> {
        let there: Vec<&RouteEntry> = self.0.iter().filter(|route| route.covers(path)).collect();
        let found = there.iter().find(|route| route.method.to_string() == method.as_str()).copied();
        found.ok_or_else(|| there.iter().map(|route| route.method.to_string()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> PluginRoutes {
        let json = r#"[
            {"path": "/x/tickets", "method": "POST", "action": "jira.create", "scope": "chat"},
            {"path": "/x/tickets", "method": "GET", "action": "jira.list", "scope": "chat"},
            {"path": "/x/files/*", "action": "files.get", "scope": "operate"}
        ]"#;
        PluginRoutes::new(serde_json::from_str(json).expect("routes"))
    }

    // Promises: GW-219
    #[test]
    fn a_request_has_one_route_or_none() {
        let routes = routes();
        let name =
            |method: Method, path: &str| routes.find(&method, path).map(|entry| entry.name().to_owned());
        assert_eq!(name(Method::POST, "/x/tickets"), Ok("jira.create".to_owned()));
        assert_eq!(name(Method::GET, "/x/files/a/b"), Ok("files.get".to_owned()));
        assert_eq!(name(Method::DELETE, "/x/tickets"), Err(vec!["POST".to_owned(), "GET".to_owned()]));
        assert_eq!(name(Method::HEAD, "/x/files/a"), Err(vec!["GET".to_owned()]));
        assert_eq!(name(Method::GET, "/x/other"), Err(Vec::new()));
    }
}
