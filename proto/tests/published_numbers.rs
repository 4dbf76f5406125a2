//! The field numbers of the plugin contract are published: programs that we have never seen speak them.

use std::collections::BTreeMap;

/// Message, then its fields as `name=number`.
const PUBLISHED: &[(&str, &[&str])] = &[
    ("PluginInitRequest", &["config_json=1"]),
    (
        "ToolCallRequest",
        &[
            "id=1",
            "plugin=2",
            "action=3",
            "args=4",
            "credential_headers=6",
            "arguments_json=1001",
            "takes_input_requests=1002",
            "input_response=1003",
        ],
    ),
    ("CredentialHeader", &["header=1", "value=2"]),
    (
        "ToolResultResponse",
        &["call_id=1", "content=2", "error=3", "structured_content=4", "media=1001", "input_request=1002"],
    ),
    (
        "PluginCapabilities",
        &[
            "name=1",
            "description=2",
            "actions=3",
            "system_prompt_addition=4",
            "glossary=5",
            "knowledge_articles=6",
            "supports_callbacks=7",
        ],
    ),
    ("GlossaryEntry", &["term=1", "definition=2", "category=3", "tags=4", "synonyms=5"]),
    ("KnowledgeArticle", &["id=1", "title=2", "content=3", "tags=4"]),
    (
        "Action",
        &[
            "name=1",
            "description=2",
            "parameters=3",
            "user_only=4",
            "inject_context_args=5",
            "always_include=6",
            "read_only=7",
            "destructive=1001",
            "output_schema=1002",
            "takes_further_arguments=1003",
            "media=1004",
            "roles=1005",
            "proposed_jobs=1006",
        ],
    ),
    ("JobProposal", &["name=1", "cron=2", "every=3", "timezone=4", "arguments_json=5"]),
    ("Parameter", &["name=1", "description=2", "type=3", "required=4", "schema=5"]),
];

// Promises: WIRE-1
#[test]
fn the_plugin_contract_keeps_its_published_numbers() {
    let root = env!("CARGO_MANIFEST_DIR");
    let compiled = protox::compile(["opentalon/plugin/v1/plugin.proto"], [root]).expect("it compiles");
    let file = compiled
        .file
        .iter()
        .find(|file| file.package.as_deref() == Some("opentalon.plugin.v1"))
        .expect("the package is there");
    let messages: BTreeMap<&str, Vec<String>> = file
        .message_type
        .iter()
        .map(|message| {
            let fields = message.field.iter().map(|field| format!("{}={}", field.name(), field.number()));
            (message.name(), fields.collect())
        })
        .collect();
    for (message, fields) in PUBLISHED {
        assert_eq!(
            messages.get(message).map(|f| f.iter().map(String::as_str).collect()),
            Some(fields.to_vec())
        );
    }
    let call = file.message_type.iter().find(|m| m.name() == "ToolCallRequest").expect("it is there");
    assert_eq!((call.reserved_range[0].start(), call.reserved_range[0].end()), (5, 6), "5 stays reserved");
    let methods: Vec<&str> = file.service[0].method.iter().map(|method| method.name()).collect();
    assert_eq!(methods, ["Init", "Execute", "Capabilities", "RefreshCapabilities", "ExecuteBidi"]);
}
