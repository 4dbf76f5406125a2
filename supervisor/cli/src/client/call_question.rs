//! A plugin's question to its caller, asked in the terminal.

use std::io::{BufRead as _, Read as _};

use anstyle::AnsiColor;
use talon_arguments::form::MAX_ANSWER_BYTES;
use talon_proto::plugin::{InputRequest, InputResponse};
use talon_sanitize::sanitized;

use super::form_filler::{FormFiller, FormStep};
use crate::failure::Failure;
use crate::line::{Line, sanitized_line};
use crate::output::Output;

/// Asks the question, which is the plugin's: every line of it is marked so.
pub(crate) fn ask(
    plugin: &str,
    question: &str,
    request: &InputRequest,
    out: &mut Output,
) -> Result<InputResponse, Failure> {
    let head = sanitized!("plugin {} asks, in its own words:", sanitized_line(plugin));
    out.err_line(Line::styled(AnsiColor::Yellow.on_default(), "talon:").and(" ").and(head));
    for line in question.lines() {
        out.err_line(sanitized!("> {}", sanitized_line(line)));
    }
    let mut filler = FormFiller::new(&request.schema)
        .map_err(|error| Failure::failed(format!("the plugin's question cannot be asked: {error}")))?;
    out.err_line("Answer it? [Y/n]");
    let (action, content_json) = loop {
        match filler.enter(line()?.as_deref()) {
            FormStep::Ask(lines) => lines.into_iter().for_each(|line| out.err_line(line)),
            FormStep::Accept(content) => break ("accept", content),
            FormStep::Decline => break ("decline", String::new()),
            FormStep::Cancel => break ("cancel", String::new()),
            FormStep::GiveUp => {
                out.err_line("Too many wrong answers: the question is cancelled.");
                break ("cancel", String::new());
            }
        }
    };
    Ok(InputResponse { id: request.id.clone(), action: action.to_owned(), content_json })
}

/// A line from the terminal, without its end; `None` at the end of the input.
fn line() -> Result<Option<String>, Failure> {
    let mut text = String::new();
    let read = std::io::stdin()
        .lock()
        .take(MAX_ANSWER_BYTES as u64)
        .read_line(&mut text)
        .map_err(|error| Failure::failed(format!("cannot read the answer: {error}")))?;
    Ok((read > 0).then(|| text.trim_end_matches(['\n', '\r']).to_owned()))
}
