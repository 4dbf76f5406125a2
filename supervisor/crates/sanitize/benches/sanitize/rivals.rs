//! What is commonly done instead: one regular expression for each token, replaced one after another. Other
//! programs that measure take this file and `inputs.rs` in, so they need nothing but `regex` and the standard
//! library.

use std::borrow::Cow;

use regex::Regex;

/// A pattern for each token, sixty of them.
pub(crate) fn patterns() -> Vec<Regex> {
    let tags = [
        "tool_call",
        "tool_calls",
        "tool_response",
        "function_call",
        "function_calls",
        "invoke",
        "parameter",
        "think",
        "system",
        "assistant",
        "user",
        "human",
        "instructions",
        "tool_use",
        "tool_result",
        "start_of_turn",
        "end_of_turn",
        "plugin_output",
    ];
    let bars = [
        "im_start",
        "im_end",
        "system",
        "user",
        "assistant",
        "end",
        "eot_id",
        "start_header_id",
        "end_header_id",
        "endoftext",
    ];
    let brackets = [
        "tool_calls",
        "inst",
        "available_tools",
        "tool_results",
        "tool_content",
        "args",
        "plugin_output",
        "structured",
        "sys",
    ];
    let others = [
        r#""tool_calls"\s*:\s*\["#,
        r#""function_call"\s*:"#,
        r#""functionCall"\s*:"#,
        r#""type"\s*:\s*"(?:function|tool_use)""#,
        r"```tool_code",
        r"```tool_outputs",
        r"\n\nhuman:",
        r"\n\nassistant:",
        r"\nsystem:",
        r"\naction input:",
        r"\nobservation:",
        r"###\s*instruction",
        r"###\s*response",
        r"\]<\]",
        r"\[>\[",
    ];
    let tags = tags.map(|name| format!(r"(?i)</?\s*(?:\w+:)?{name}\b[^>]*>"));
    let bars = bars.map(|name| format!(r"(?i)<\s*[|｜]\s*{name}\s*[|｜]\s*>"));
    let brackets = brackets.map(|name| format!(r"(?i)\[\s*/?\s*{name}\s*\]"));
    let rest = [
        "</s>",
        "<s>",
        "<<sys>>",
        "<</sys>>",
        r"<\|[a-z_]+\|>",
        "\u{200b}",
        "\u{1b}\\[[0-9;]*m",
        "<function=",
    ]
    .map(str::to_owned);
    let all = tags
        .into_iter()
        .chain(bars)
        .chain(brackets)
        .chain(others.map(|other| format!("(?i){other}")))
        .chain(rest);
    let all: Vec<Regex> = all.map(|pattern| Regex::new(&pattern).expect("it was tried")).collect();
    assert_eq!(all.len(), 60);
    all
}

/// All of them, each over what the one before it left.
pub(crate) fn replace_all(patterns: &[Regex], text: &str) -> String {
    patterns.iter().fold(text.to_owned(), |text, pattern| match pattern.replace_all(&text, "[removed]") {
        Cow::Borrowed(_) => text,
        Cow::Owned(replaced) => replaced,
    })
}
