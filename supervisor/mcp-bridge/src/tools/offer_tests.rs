use serde_json::json;

use super::*;

#[test]
fn titles_hints_and_schemas_are_kept() {
    let tools = [
        json!({
            "name": "files.read", "title": "Read a file", "description": "Reads it.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            "outputSchema": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "integer"}}},
            "annotations": {"readOnlyHint": true, "destructiveHint": false},
        }),
        json!({"name": "wipe", "annotations": {"title": "Wipe all", "destructiveHint": true}}),
    ];
    let offers = offers(&tools, None, MAX_TOOLS);
    let (read, wipe) = (&offers[0].action, &offers[1].action);
    assert_eq!((read.name.as_str(), offers[0].tool.as_str()), ("files_-2eread", "files.read"));
    assert_eq!(read.description, "Read a file\nReads it.");
    assert_eq!((read.read_only, read.destructive), (true, Some(false)));
    assert_eq!(read.output_schema, r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#);
    assert_eq!(
        (wipe.description.as_str(), wipe.read_only, wipe.destructive),
        ("Wipe all", false, Some(true))
    );
    assert!(wipe.parameters.is_empty());
}

#[test]
fn only_the_tools_that_are_wanted_are_offered_and_none_twice() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let tools = [tool("a"), tool("b"), tool("a"), json!({}), json!(7), tool("c")];
    let names = |only: Option<&[String]>| {
        offers(&tools, only, MAX_TOOLS).into_iter().map(|o| o.tool).collect::<Vec<_>>()
    };
    assert_eq!(names(None), ["a", "b", "c"]);
    assert_eq!(names(Some(&["c".to_owned(), "none".to_owned()])), ["c"]);
}

#[test]
fn a_server_that_declares_too_much_offers_what_fits() {
    let properties: serde_json::Map<_, _> =
        (0..100).map(|i| (format!("p{i}"), json!({"type": "string", "enum": ["x".repeat(300)]}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let tool =
        |i: usize| json!({"name": format!("t{i}"), "description": "d".repeat(1000), "inputSchema": schema});
    let tools: Vec<_> = (0..2000).map(tool).collect();
    let offers = offers(&tools, None, MAX_TOOLS);
    let parameters: usize = offers.iter().map(|offer| offer.action.parameters.len()).sum();
    assert_eq!(offers.len(), MAX_TOOLS);
    assert!(parameters <= MAX_TOTAL_PARAMETERS, "{parameters}");
    let size = |action: &Action| {
        let parameters =
            action.parameters.iter().map(|p| p.schema.len() + p.description.len() + p.name.len());
        action.description.len() + parameters.sum::<usize>()
    };
    assert!(offers.iter().map(|offer| size(&offer.action)).sum::<usize>() <= MAX_TOTAL_BYTES);
    assert!(!offers[0].action.parameters[0].schema.is_empty(), "the first ones are whole");
    assert_eq!(offers[MAX_TOOLS - 1].action.parameters.len(), 1, "the last ones take one object");
}
