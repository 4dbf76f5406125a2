use super::*;

/// Set to rewrite the page instead of comparing it.
const REWRITE: &str = "TALON_REWRITE_DOCS";

// Promises: CONF-15
#[test]
fn the_reference_page_is_as_the_schema_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let mut current = String::new();
    write_reference(&mut current).unwrap();
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(path, &current).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == current,
        "docs/configuration.md is stale: run `talon config reference > docs/configuration.md`, or this test with {REWRITE}=1"
    );
}

// Promises: CONF-15
#[test]
fn every_key_is_documented() {
    fn undocumented(shape: &Shape, path: &KeyPath, out: &mut Vec<String>) {
        match &shape.kind {
            ShapeKind::Object(fields) | ShapeKind::OneOf(fields) => {
                for field in fields {
                    let path = path.key(&field.name);
                    if field.doc.is_empty() {
                        out.push(path.to_string());
                    }
                    undocumented(&field.shape, &path, out);
                }
            }
            ShapeKind::Map { value: inner, .. } | ShapeKind::List(inner) => {
                undocumented(inner, &path.key("<>"), out)
            }
            ShapeKind::Choice(choices) => {
                out.extend(choices.iter().filter(|c| c.doc.is_empty()).map(|c| format!("{path}={}", c.word)));
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    undocumented(&schema::config(), &KeyPath::top(), &mut out);
    assert!(out.is_empty(), "{out:?}");
}

// Promises: CONF-15
#[test]
fn every_example_of_a_key_is_one() {
    fn check(shape: &Shape, root: &Shape, path: &KeyPath) {
        use talon_plugin_config::document::origin::InputSource;
        use talon_plugin_config::document::yaml;

        use crate::config::environment::Environment;
        use crate::config::layers::walk;

        let around = Environment {
            env: [("GITLAB_TOKEN".to_owned(), "x".into())].into(),
            uid: 1,
            home: None,
            cwd: "/".into(),
            assigns_uids: false,
        };
        match &shape.kind {
            ShapeKind::Object(fields) | ShapeKind::OneOf(fields) => {
                for field in fields {
                    let path = path.key(&field.name);
                    if let Some(example) = &field.example {
                        let node = yaml::parse(&yaml_inline(example)).unwrap().unwrap();
                        let walk = walk(root, InputSource::File(std::path::Path::new("x").into()), &around);
                        let said = walk.at_key(&node, &field.shape, &path);
                        assert!(said.problems.is_empty(), "{path}: {:?}", said.problems);
                    }
                    check(&field.shape, root, &path);
                }
            }
            ShapeKind::Map { value: inner, .. } | ShapeKind::List(inner) => {
                check(inner, root, &path.key("<>"))
            }
            _ => {}
        }
    }
    let root = schema::config();
    check(&root, &root, &KeyPath::top());
}
