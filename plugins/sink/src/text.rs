//! A notification as text, in a given markup, within a limit.
//!
//! The first line is what happened; then what it stands for, its fields, its details, or the events of a digest. All of an
//! event's texts are data: the markup escapes them, character by character, so that a cut never splits an escape.

use std::time::{Duration, UNIX_EPOCH};

use talon_sdk::Event;

/// What a cut text ends with.
const CUT: &str = "…";
/// How many fields are shown. An event has a handful.
const MAX_FIELDS: usize = 20;
/// The longest name, and the longest value, of a field that is shown.
const MAX_FIELD_UNITS: usize = 200;
/// Room for the line that says how many events of a digest are left out.
const LEFT_OUT_UNITS: usize = 40;
/// Times are shown up to here, the end of the year 9999: the last that the format of HTTP has.
const MAX_TIME_MS: u64 = 253_402_300_799_999;

/// How texts are written for a receiver.
pub trait Markup {
    /// Adds a character of a text in a line; `previous` is the one before it.
    fn push(&self, out: &mut String, c: char, previous: Option<char>);
    /// Adds a character of a text in a block.
    fn push_in_block(&self, out: &mut String, c: char, previous: Option<char>);
    /// What stands around the first line's head.
    fn strong(&self) -> (&'static str, &'static str);
    /// What stands around a block.
    fn block(&self) -> (&'static str, &'static str);
}

/// Text without markup.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

impl Markup for Plain {
    fn push(&self, out: &mut String, c: char, _: Option<char>) {
        out.push(if c.is_control() { ' ' } else { c });
    }

    fn push_in_block(&self, out: &mut String, c: char, _: Option<char>) {
        if c == '\n' || c == '\t' || !c.is_control() {
            out.push(c);
        }
    }

    fn strong(&self) -> (&'static str, &'static str) {
        ("", "")
    }

    fn block(&self) -> (&'static str, &'static str) {
        ("\n", "")
    }
}

/// Length as chat services count it: in UTF-16 units, which are never fewer than characters.
#[must_use]
pub fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The head of an event: its severity and its kind.
#[must_use]
pub fn head(event: &Event) -> String {
    format!("[{}] {}", event.severity.as_str(), event.kind)
}

/// A notification in this markup, in at most `limit` units; `events` is not empty for a digest.
#[must_use]
pub fn text(event: &Event, events: &[Event], markup: &impl Markup, limit: usize) -> String {
    let mut page = Page { out: String::new(), used: 0, limit, markup };
    let (open, close) = markup.strong();
    page.mark(open, close, |page| page.line(&head(event), MAX_FIELD_UNITS));
    page.line(": ", 2);
    page.line(&event.summary, limit);
    if events.is_empty() {
        page.about(event);
    } else {
        page.digest(events);
    }
    page.out
}

/// A text that grows up to its limit.
struct Page<'a, M> {
    out: String,
    used: usize,
    limit: usize,
    markup: &'a M,
}

impl<M: Markup> Page<'_, M> {
    fn room(&self) -> usize {
        self.limit - self.used
    }

    fn add(&mut self, text: &str) {
        self.used += units(text);
        self.out.push_str(text);
    }

    /// Adds what comes between two marks, and the marks; nothing, if they leave no room.
    fn mark(&mut self, open: &str, close: &str, between: impl FnOnce(&mut Self)) {
        let marks = units(open) + units(close);
        if self.room() <= marks + units(CUT) {
            return;
        }
        self.add(open);
        let reserved = units(close);
        self.limit -= reserved;
        between(self);
        self.limit += reserved;
        self.add(close);
    }

    /// Adds a text as data, in at most `most` units.
    fn escaped(&mut self, text: &str, most: usize, push: impl Fn(&M, &mut String, char, Option<char>)) {
        let most = most.min(self.room());
        let (mut added, mut used) = (String::new(), 0);
        // Where the mark of a cut would still fit.
        let mut cut = None;
        let mut previous = None;
        for c in text.chars() {
            let before = added.len();
            push(self.markup, &mut added, c, previous);
            previous = Some(c);
            let next = used + units(&added[before..]);
            if next > most {
                added.truncate(cut.unwrap_or(0));
                if most >= units(CUT) {
                    added.push_str(CUT);
                }
                break;
            }
            used = next;
            if used + units(CUT) <= most {
                cut = Some(added.len());
            }
        }
        self.add(&added);
    }

    fn line(&mut self, text: &str, most: usize) {
        self.escaped(text, most, M::push);
    }

    fn new_line(&mut self) -> bool {
        let fits = self.room() > units(CUT);
        if fits {
            self.add("\n");
        }
        fits
    }

    /// What there is to say about one event beside its summary.
    fn about(&mut self, event: &Event) {
        if event.count > 1 && self.new_line() {
            self.line(&format!("It stands for {} events.", event.count), MAX_FIELD_UNITS);
        }
        if let Some(time) = time(event)
            && self.new_line()
        {
            self.line(&format!("time: {time}"), MAX_FIELD_UNITS);
        }
        for (name, value) in event.fields.iter().take(MAX_FIELDS) {
            if self.new_line() {
                self.line(name, MAX_FIELD_UNITS);
                self.line(": ", 2);
                self.line(value, MAX_FIELD_UNITS);
            }
        }
        if event.details.is_empty() || !self.new_line() {
            return;
        }
        let (open, close) = self.markup.block();
        self.mark(open, close, |page| page.escaped(&event.details, page.limit, M::push_in_block));
    }

    /// One line for each event, as far as they fit, and how many do not.
    fn digest(&mut self, events: &[Event]) {
        for (index, event) in events.iter().enumerate() {
            let left = events.len() - index;
            let last = if left > 1 { LEFT_OUT_UNITS } else { 0 };
            // A line of which nothing but the head fits says too little.
            let least = units(&head(event)) + LEFT_OUT_UNITS + last;
            if self.room() < least || !self.new_line() {
                if self.new_line() {
                    self.line(&format!("… and {left} more"), LEFT_OUT_UNITS);
                }
                return;
            }
            self.limit -= last;
            let count = if event.count > 1 { format!(" ({} times)", event.count) } else { String::new() };
            self.line(&format!("• {}: {}{count}", head(event), event.summary), self.limit);
            self.limit += last;
        }
    }
}

/// When an event happened, as HTTP and mail write it.
fn time(event: &Event) -> Option<String> {
    let known = u64::try_from(event.time_unix_ms).ok().filter(|time| (1..=MAX_TIME_MS).contains(time))?;
    Some(httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(known)))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
