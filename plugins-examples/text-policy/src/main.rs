//! A filter, two request hooks and a response hook: rules for texts, without a model.

use std::collections::BTreeMap;
use std::process::ExitCode;

use talon_sdk::{Context, HookRequest, Plugin, ToolError, Verdict};

/// The plugin's settings.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rules {
    /// A message with one of these words is dropped.
    blocked: Vec<String>,
    /// What a message is about, by a word in it.
    categories: BTreeMap<String, String>,
    /// What the agent says instead of a word.
    vocabulary: BTreeMap<String, String>,
}

/// Drops messages with a blocked word.
#[talon_sdk::filter(read_only)]
async fn blocked_words(asked: HookRequest, cx: Context) -> Result<Verdict, ToolError> {
    let message = asked.message.to_lowercase();
    let rules = cx.config::<Rules>()?;
    let blocked = rules.blocked.iter().find(|word| message.contains(&word.to_lowercase()));
    Ok(match blocked {
        Some(word) => Verdict::drop(format!("it has the word {word}")),
        None => Verdict::pass(),
    })
}

/// Notes what a message is about.
#[talon_sdk::request_hook(read_only)]
async fn classify(asked: HookRequest, cx: Context) -> Result<Verdict, ToolError> {
    let message = asked.message.to_lowercase();
    let rules = cx.config::<Rules>()?;
    let found = rules.categories.iter().find(|(word, _)| message.contains(&word.to_lowercase()));
    Ok(match found {
        Some((_, category)) => Verdict::annotate("category", category),
        None => Verdict::pass(),
    })
}

/// Takes shouting out of a message.
#[talon_sdk::request_hook(read_only)]
async fn calm(asked: HookRequest) -> Result<Verdict, ToolError> {
    let shouts =
        asked.message.chars().any(char::is_alphabetic) && !asked.message.chars().any(char::is_lowercase);
    Ok(if shouts { Verdict::replace(asked.message.to_lowercase()) } else { Verdict::pass() })
}

/// Puts the company's words in place of others.
#[talon_sdk::response_hook(read_only)]
async fn vocabulary(asked: HookRequest, cx: Context) -> Result<Verdict, ToolError> {
    let words = &cx.config::<Rules>()?.vocabulary;
    let better = words.iter().fold(asked.message.clone(), |text, (word, better)| text.replace(word, better));
    Ok(if better == asked.message { Verdict::pass() } else { Verdict::replace(better) })
}

fn main() -> ExitCode {
    Plugin::new("text-policy")
        .description("Rules for messages and answers.")
        .config::<Rules>()
        .tools([blocked_words(), classify(), calm(), vocabulary()])
        .serve()
}
