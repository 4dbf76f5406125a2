//! Plays an answer as a provider would send it: in pieces, late, or only in part.

use std::future::pending;

use serde_json::{Map, Value};
use tokio::net::unix::pipe;
use tokio::time::{Instant, timeout_at};

use super::file::ScriptedAnswer;
use super::gates::Gates;
use super::matching::TranscriptPosition;
use crate::config::Timeouts;
use crate::model::{ErrorClass, Finish, Message, Request, Usage};
use crate::remote::{Assembly, Clock, Failure, Fragment};

/// The characters of a piece if the script does not say.
const PIECE_CHARS: usize = 12;
/// How much of a question or result is put into an answer. 2,000 characters: more would be no answer.
const MAX_INSERTED_CHARS: usize = 2000;
/// What a token has in characters, roughly and for English.
const CHARS_PER_TOKEN: usize = 4;

pub(super) async fn play(
    timeouts: &Timeouts,
    gates: &Gates,
    prepared: &ScriptedAnswer,
    request: &Request,
    place: &TranscriptPosition<'_>,
    assembly: &mut Assembly<'_>,
) -> Result<(), Failure> {
    let clock = Clock::new(timeouts, Instant::now() + timeouts.total.get());
    within(&clock, false, wait(gates, prepared)).await??;
    let piece = prepared.piece_chars.unwrap_or(PIECE_CHARS).max(1);
    for part in pieces(&fill_template(&prepared.think, place), piece) {
        assembly.add_thinking(&part)?;
        // The listener runs between two pieces, and may drop the answer there.
        tokio::task::yield_now().await;
    }
    let said = fill_template(&prepared.say, place);
    for part in pieces(&said, piece) {
        assembly.add_text(&part)?;
        tokio::task::yield_now().await;
    }
    let mut written = prepared.think.chars().count() + said.chars().count();
    for call in &prepared.call {
        let arguments = match &call.raw {
            Some(raw) => raw.clone(),
            None => Value::Object(fill_object(&call.arguments, place)).to_string(),
        };
        written += call.tool.chars().count() + arguments.chars().count();
        let index = Some(assembly.call_count());
        assembly.add_call(Fragment {
            index,
            id: "",
            name: &call.tool,
            arguments: &arguments,
            extra: None,
        })?;
        tokio::task::yield_now().await;
    }
    if prepared.hang {
        within(&clock, assembly.has_spoken(), pending::<()>()).await?;
    }
    if let Some(fault) = &prepared.fault {
        return Err(fault.failure());
    }
    assembly.set_usage(prepared.usage.unwrap_or_else(|| Usage {
        input_tokens: tokens(request_chars(request)),
        output_tokens: tokens(written),
        thinking_tokens: tokens(prepared.think.chars().count()),
        ..Usage::default()
    }));
    assembly.set_finish(prepared.finish.unwrap_or(Finish::Stop));
    Ok(())
}

/// Applies a real provider's timeouts.
async fn within<T>(clock: &Clock, spoke: bool, what: impl Future<Output = T>) -> Result<T, Failure> {
    let (deadline, late) = clock.deadline(spoke);
    timeout_at(deadline, what).await.map_err(|_| clock.timeout_failure(late))
}

async fn wait(gates: &Gates, prepared: &ScriptedAnswer) -> Result<(), Failure> {
    if let Some(name) = &prepared.wait_for {
        gates.wait(name).await;
    }
    if let Some(path) = &prepared.wait_for_pipe {
        let failed = |error: std::io::Error| {
            let message =
                format!("it cannot wait for the pipe {} ({error}): make one with mkfifo", path.display());
            Failure::new(ErrorClass::Request, message)
        };
        // Opened for writing too, so that the pipe has a writer: otherwise its end would be read before
        // anything is written.
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(path).map_err(failed)?;
        pipe.readable().await.map_err(failed)?;
    }
    Ok(())
}

fn pieces(text: &str, chars: usize) -> Vec<String> {
    let all: Vec<char> = text.chars().collect();
    all.chunks(chars).map(|chunk| chunk.iter().collect()).collect()
}

/// Replaces the placeholders of a text.
fn fill_template(text: &str, place: &TranscriptPosition<'_>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    // In one pass, so that replaced text is not replaced again.
    while let Some(start) = rest.find("{{") {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        let found = [("{{user}}", place.user), ("{{result}}", place.result())]
            .into_iter()
            .find_map(|(mark, value)| Some((rest.strip_prefix(mark)?, value)));
        match found {
            Some((after, value)) => {
                filled.extend(value.chars().take(MAX_INSERTED_CHARS));
                rest = after;
            }
            None => {
                filled.push_str("{{");
                rest = &rest[2..];
            }
        }
    }
    filled + rest
}

fn fill_object(object: &Map<String, Value>, place: &TranscriptPosition<'_>) -> Map<String, Value> {
    object.iter().map(|(key, value)| (key.clone(), fill_value(value, place))).collect()
}

fn fill_value(value: &Value, place: &TranscriptPosition<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(fill_template(text, place)),
        Value::Array(list) => list.iter().map(|item| fill_value(item, place)).collect(),
        Value::Object(object) => Value::Object(fill_object(object, place)),
        other => other.clone(),
    }
}

/// The characters of a question.
fn request_chars(request: &Request) -> usize {
    let message = |message: &Message| match message {
        Message::System { text } | Message::User { text } => text.chars().count(),
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| call.name.len() + format!("{:?}", call.arguments).len());
            text.chars().count() + calls.sum::<usize>()
        }
        Message::Tool { content, .. } => content.chars().count(),
        Message::Images { introduction, images } => {
            introduction.len() + images.iter().map(|image| image.tokens() * CHARS_PER_TOKEN).sum::<usize>()
        }
    };
    let tools = request.tools.iter().map(|tool| tool.description.len() + tool.parameters.to_string().len());
    request.messages.iter().map(message).sum::<usize>() + tools.sum::<usize>()
}

fn tokens(chars: usize) -> u64 {
    chars.div_ceil(CHARS_PER_TOKEN) as u64
}
