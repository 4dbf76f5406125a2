//! Assembles one question.

use std::borrow::Cow;
use std::ops::Range;

use talon_guard::Sanitizer;
use talon_llm::model::{Message, ToolSpec};

use super::{
    ContextPlan, HistoryMessage, Pressure, Sections, Stats, Summary, UsedTools, Window, WindowStatus, choose,
    count_messages, history, images,
};
use crate::prompt::{Prompt, PromptMessages, language_of, reduced_safety_rules, safety_rules};
use crate::tokens::TokenCounter;
use crate::tools::{Offer, SEARCH_PLUGIN, Tool};

/// The share of the tools' section that the index of all tools may have, as a divisor.
const INDEX_SHARE: usize = 2;

/// What is added where something was shortened: the line that says what is left out, and the tool that reads
/// on.
const SHORTENED_TOKENS: usize = 160;

/// The plugin and action that read on in what is shown shortened.
const READ_MORE_TOOL: (&str, &str) = ("talon", "read_more");

/// The parts of a question.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    /// The prompt.
    pub prompt: &'a Prompt,
    /// The summary of what is no longer in `history`.
    pub summary: &'a Summary,
    /// The messages that are not summarized yet, oldest first, including the current turn.
    pub history: &'a [HistoryMessage],
    /// The tools that may be called.
    pub offer: &'a Offer,
    /// The tools that are used.
    pub used: &'a UsedTools,
    /// The person's request in this turn.
    pub request: &'a str,
    /// The most bytes of images.
    pub image_bytes: u32,
    /// The model's window.
    pub window: Window,
    /// How the window is divided.
    pub plan: &'a ContextPlan,
}

/// A question, ready to be asked unless its window is full.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembledRequest {
    /// The transcript: system messages first, the safety rules before all else.
    pub messages: Vec<Message>,
    /// How many of the first messages are the same in each question of the session.
    pub stable_messages: usize,
    /// The tools.
    pub tools: Vec<ToolSpec>,
    /// The messages that have to be summarized; if there are any, summarize them and assemble the question
    /// again. If no summary is available, the question can be asked as it is: it says what is missing.
    pub to_summarize: Vec<Range<usize>>,
    /// How full the window is. A [`WindowStatus::Full`] question must not be asked.
    pub status: WindowStatus,
    /// Its composition.
    pub stats: Stats,
    /// The budgets that it was assembled with.
    pub sections: Sections,
    /// The names of the tools that are not offered, because not all fit.
    pub tools_left_out: Vec<String>,
    /// The workspace's files that are not shown whole.
    pub files_cut: Vec<&'static str>,
}

/// Assembles a question.
#[must_use]
pub fn assemble(
    material: &Material<'_>,
    counter: &dyn TokenCounter,
    sanitizer: &Sanitizer,
) -> AssembledRequest {
    let window = material.window;
    let safety = safety_rules_for(material);
    let mut sections = material.plan.sections(window, counter.count(&safety));
    let PromptMessages { mut messages, files_cut } =
        material.prompt.with_rules(&safety, sections.system, counter);
    let (system, system_messages) = (count_messages(&messages, counter), messages.len());
    let mut tools =
        choose::choose(material.offer.tools(), material.request, material.used, sections.tools, counter);

    let mut stable_messages = material.prompt.stable_messages();
    let search = material.offer.hidden().find(|tool| tool.plugin == SEARCH_PLUGIN);
    if let (false, Some(search)) = (tools.left_out.is_empty(), search) {
        let index = choose::index(material.offer.tools(), sections.tools / INDEX_SHARE, counter);
        let spent = counter.count(&index) + choose::tokens(&search.spec, counter);
        let left = sections.tools.saturating_sub(spent);
        tools = choose::choose(material.offer.tools(), material.request, material.used, left, counter);
        tools.tokens += spent;
        tools.specs.push(search.spec.clone());
        tools.specs.sort_by(|a, b| a.name.cmp(&b.name));
        // Before what changes with each request.
        messages.insert(stable_messages, Message::System { text: index });
        stable_messages += 1;
    }

    let mut summary = 0;
    if !material.summary.text.is_empty() {
        let message = material.summary.message(sections.summary, counter);
        summary = count_messages(std::slice::from_ref(&message), counter);
        messages.push(message);
    }
    if let Pressure::WhenFull { .. } = sections.pressure {
        // The turns get what the other sections do not need.
        let room = material.plan.used(window).comfortable();
        let left = room.saturating_sub(system + summary + tools.tokens + SHORTENED_TOKENS);
        sections.recent = sections.recent.min(left);
    }
    let (history, images_left_out) =
        images::within_budget(material.history, sections.recent, material.image_bytes, counter);
    let shown = history::select(&history, &sections, counter, sanitizer);
    let left_out = shown.left_out.iter().map(ExactSizeIterator::len).sum();
    if left_out > 0 {
        let text = format!("[{left_out} earlier messages are left out here and not summarized yet.]");
        messages.push(Message::System { text });
    }
    messages.extend(shown.messages);
    if shown.cut > 0 {
        let reads_on = |tool: &&Tool| (tool.plugin.as_str(), tool.action.as_str()) == READ_MORE_TOOL;
        for tool in material.offer.hidden().filter(reads_on) {
            tools.tokens += choose::tokens(&tool.spec, counter);
            tools.specs.push(tool.spec.clone());
        }
        tools.specs.sort_by(|a, b| a.name.cmp(&b.name));
    }

    // The index is a message and counts with the tools.
    let said = if stable_messages > material.prompt.stable_messages() {
        count_messages(&messages, counter) - index_tokens(&messages, stable_messages, counter)
    } else {
        // The first ones are counted already.
        system + count_messages(&messages[system_messages..], counter)
    };
    let total = said + tools.tokens;
    let status = window.status(total);
    let stats = Stats {
        accuracy: counter.accuracy(),
        window,
        fit: status,
        system,
        summary,
        recent: shown.recent_tokens,
        tool_results: shown.result_tokens,
        tools: tools.tokens,
        total,
        turns: shown.turns,
        messages_left_out: left_out,
        results_cut: shown.cut,
        result_tokens_cut: shown.cut_tokens,
        images_left_out,
        profile: material.plan.profile,
        tools_offered: tools.specs.iter().filter(|spec| !material.offer.is_hidden(&spec.name)).count(),
        tools_left_out: tools.left_out.len(),
        compression_ratio: material.summary.ratio(counter),
    };
    AssembledRequest {
        messages,
        stable_messages,
        tools: tools.specs,
        tools_left_out: tools.left_out,
        to_summarize: shown.left_out,
        status,
        stats,
        sections,
        files_cut,
    }
}

/// All safety rules, or those that a small window has room for.
fn safety_rules_for(material: &Material<'_>) -> Cow<'static, str> {
    match material.plan.has_all_safety_rules(material.window) {
        true => safety_rules().into(),
        false => reduced_safety_rules(language_of(material.request)).into(),
    }
}

/// The tokens of the index of all tools, without those of its message.
fn index_tokens(messages: &[Message], stable_messages: usize, counter: &dyn TokenCounter) -> usize {
    match messages.get(stable_messages - 1) {
        Some(Message::System { text }) => counter.count(text),
        _ => 0,
    }
}
