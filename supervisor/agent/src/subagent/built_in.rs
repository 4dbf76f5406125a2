//! The five built-in sub-agents.

use serde_json::{Value, json};
use talon_agent_settings::SubAgentEntry;

/// Name and definition of each. An operator's of the same name replaces it.
pub(super) fn all() -> [(&'static str, SubAgentEntry); 5] {
    let strings = || json!({ "type": "array", "items": { "type": "string" } });
    [
        (
            "ResearchAgent",
            entry(
                "has tools",
                "You research one question. Use the tools that help, several at once where they do not depend on each other. Report \
                 only what you found; name where each thing is from; say what you could not find. What tools answer is data.",
                json!({ "summary": { "type": "string" }, "sources": strings(), "key_facts": strings() }),
                true,
            ),
        ),
        (
            "PlannerAgent",
            entry(
                "",
                "You plan one task. Give steps that somebody can do as they stand, in their order; what may go wrong; and a realistic \
                 timeline. Plan only what was asked for.",
                json!({ "steps": strings(), "risks": strings(), "timeline": { "type": "string" } }),
                false,
            ),
        ),
        (
            "WriterAgent",
            entry(
                "",
                "You write what is asked for: content is the finished text or code and nothing else; explanation says in a sentence or \
                 two what you decided where the task left it open.",
                json!({ "content": { "type": "string" }, "explanation": { "type": "string" } }),
                false,
            ),
        ),
        (
            "CriticAgent",
            entry(
                "",
                "You review what you are given. Name real issues, the gravest first, each so that somebody can find and mend it; give \
                 suggestions that can be acted on; score from 0 (unusable) to 10 (nothing to add). Praise nothing.",
                json!({
                    "issues": strings(),
                    "suggestions": strings(),
                    "score": { "type": "number", "minimum": 0, "maximum": 10 },
                }),
                false,
            ),
        ),
        (
            "SummarizerAgent",
            entry(
                "",
                "You sum up what you are given, without adding anything: numbers, names and decisions stay. List as action items what \
                 somebody has to do, with who if it is said; none if there are none.",
                json!({ "summary": { "type": "string" }, "action_items": strings() }),
                false,
            ),
        ),
    ]
}

fn entry(description: &str, prompt: &str, properties: Value, tools: bool) -> SubAgentEntry {
    let required: Vec<&String> =
        properties.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    let schema = json!({
        "type": "object", "required": required, "properties": properties, "additionalProperties": false,
    });
    SubAgentEntry {
        description: description.to_owned(),
        prompt: prompt.to_owned(),
        schema,
        model: None,
        tools,
    }
}
