//! The schema of [`Config`], derived from its types.

use std::sync::LazyLock;

use serde_json::Value;
use talon_plugin_config::document::shape::{Shape, file_schema};

use super::types::Config;

/// The shape of the whole configuration. Making it costs more than all that is done with it, so it is made once.
pub(crate) fn shared() -> &'static Shape {
    static SHAPE: LazyLock<Shape> = LazyLock::new(config);
    &SHAPE
}

/// The shape of the whole configuration.
pub(crate) fn config() -> Shape {
    Shape::of::<Config>()
}

/// The JSON Schema of the config file, for editors.
#[must_use]
pub fn json_schema() -> Value {
    file_schema::<Config>()
}

#[cfg(test)]
mod tests {
    use talon_plugin_config::document::shape::{KeyKind, ShapeKind};

    use super::*;

    #[test]
    fn the_schema_for_editors_asks_for_nothing_that_has_a_default() {
        let schema = json_schema();
        assert_eq!(schema.get("required"), None);
        assert_eq!(schema["additionalProperties"], false);
        let tools = &schema["properties"]["plugins"]["properties"]["tools"];
        assert_eq!(tools.get("required"), None);
        let entry = &tools["properties"]["plugins"]["additionalProperties"];
        // A command or a URL; the checks report which is missing.
        assert_eq!(entry.get("required"), None);
        assert_eq!(entry["additionalProperties"], false);
    }

    #[test]
    fn every_fixed_key_is_known_by_its_kind() {
        let root = config();
        let at = |path: &str| {
            let mut shape = &root;
            for step in path.split('.') {
                shape = &shape.field(step).unwrap_or_else(|| panic!("{path}")).shape;
            }
            shape.clone()
        };
        assert_eq!(at("guard.timeout").kind, ShapeKind::Duration);
        assert_eq!(
            at("plugins.tools.defaults.max_response_bytes"),
            Shape { kind: ShapeKind::Bytes, nullable: true }
        );
        assert_eq!(at("plugins.tools.plugin_dir"), Shape { kind: ShapeKind::Path, nullable: true });
        assert_eq!(at("plugins.tools.max_restarts").kind, ShapeKind::Integer { min: 0, max: 4096 });
        assert_eq!(at("sandbox.uid_range").kind, ShapeKind::UidRange);
        assert!(matches!(at("plugins.tools.overrides").kind, ShapeKind::Map { key: KeyKind::Plugin, .. }));
    }
}
