//! The details of one plugin: its facts and its timeline.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use unicode_width::UnicodeWidthStr as _;

use super::theme::Theme;
use super::units::{bytes, clock, micros, rate, short};
use super::wrap::wrapped;
use crate::model::Model;
use crate::reading::{Plugin, Reading};
use crate::timeline::{Severity, TimelineEntry};

/// From this width on facts and timeline are side by side.
const WIDE: u16 = 120;
/// The most of a low screen that facts may take, in percent, to leave room for the timeline.
const FACTS_PERCENT: usize = 60;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: Theme) {
    let Some(((_, plugin), reading)) = model.current().zip(model.reading.as_ref()) else { return };
    let title = Line::styled(format!(" {} ", plugin.name), theme.title());
    let block = Block::new().borders(Borders::TOP).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let (facts_area, past_area, facts) = if inner.width >= WIDE {
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(45), Constraint::Fill(1)]).spacing(1).areas(inner);
        (left, right, facts(plugin, reading, model, left.width, theme))
    } else {
        let facts = facts(plugin, reading, model, inner.width, theme);
        let most = usize::from(inner.height) * FACTS_PERCENT / 100;
        let height = u16::try_from(facts.len().min(most)).unwrap_or(u16::MAX);
        let [top, bottom] = Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(inner);
        (top, bottom, facts)
    };
    frame.render_widget(Paragraph::new(facts), facts_area);
    draw_timeline(frame, past_area, plugin, model, theme);
}

fn facts(plugin: &Plugin, reading: &Reading, model: &Model, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut fact = |name: &str, text: &str, style: Style| {
        const NAMES: usize = 13;
        let room = usize::from(width).saturating_sub(NAMES + 2);
        for (number, part) in wrapped(text, room).into_iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            lines.push(Line::from(vec![
                Span::styled(format!(" {name:<NAMES$}"), theme.dim()),
                Span::styled(part, style),
            ]));
        }
    };
    let plain = Style::new();
    let wanted = if plugin.desired == "up" { "" } else { ", wanted down" };
    fact("state", &format!("{}{wanted}", plugin.state), theme.state(&plugin.state));
    if !plugin.reason.is_empty() {
        fact("reason", &plugin.reason, theme.warning());
    }
    if !plugin.replacement_problem.is_empty() {
        fact("not replaced", &plugin.replacement_problem, theme.bad());
    }
    if plugin.quarantined {
        let text = format!(
            "its answers held too much control syntax: calls are refused until `talon plugin start {}`",
            plugin.name
        );
        fact("quarantine", &text, theme.bad());
    }
    if plugin.changed > 0 {
        let text = format!(
            "{} things are not what was approved: see `talon plugin show {}`",
            plugin.changed, plugin.name
        );
        fact("changed", &text, theme.warning());
    }
    let counters = &plugin.counters;
    let rates = model.rates.of(&plugin.name);
    let calls = format!(
        "{} ({}/s), {} errors ({}/s), {} in flight, {} waiting, breaker {}",
        counters.calls,
        rate(rates.calls),
        counters.errors,
        rate(rates.errors),
        plugin.in_flight,
        plugin.waiting,
        plugin.breaker
    );
    fact("calls", &calls, plain);
    fact("took", &format!("p50 {}, p99 {}", micros(counters.p50_us), micros(counters.p99_us)), plain);
    let dropped = counters.log_lines_dropped;
    let style = if dropped > 0 { theme.warning() } else { plain };
    fact(
        "log",
        &format!("{} lines ({}/s), {dropped} dropped", counters.log_lines, rate(rates.log_lines)),
        style,
    );
    for instance in &plugin.instances {
        let mut text = instance.state.as_str().to_owned();
        if instance.pid != 0 {
            text +=
                &format!(", pid {}, uid {}, {} in flight", instance.pid, instance.uid, instance.in_flight);
        }
        if instance.ready_since_unix_ms != 0 {
            let up = reading.unix_ms.saturating_sub(instance.ready_since_unix_ms);
            text += &format!(", up {}", short(Duration::from_millis(up)));
        }
        if let Some(usage) = instance.usage {
            text += &format!(
                ", {}, CPU {}, {} processes",
                bytes(Some(usage.memory_bytes)),
                short(Duration::from_micros(usage.cpu_us)),
                usage.processes
            );
        }
        if instance.taken_over {
            text += ", taken over";
        }
        fact(&format!("instance {}", instance.index), &text, theme.state(&instance.state));
    }
    if !plugin.restarts.is_empty() {
        let deaths: Vec<String> =
            plugin.restarts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        fact("died", &deaths.join(", "), theme.warning());
    }
    if model.about == plugin.name.as_str() && !model.actions.is_empty() {
        let actions: Vec<&str> = model.actions.iter().map(|action| action.as_str()).collect();
        fact("actions", &actions.join(", "), plain);
    } else {
        fact("actions", &plugin.actions.to_string(), plain);
    }
    for text in &plugin.not_enforced {
        fact("not enforced", text, theme.warning());
    }
    lines
}

/// Draws events and log lines in chronological order; the latest ones that fit.
fn draw_timeline(frame: &mut Frame<'_>, area: Rect, plugin: &Plugin, model: &Model, theme: Theme) {
    let own = plugin.name.as_str();
    let mut all: Vec<&TimelineEntry> = model.events.iter().filter(|one| one.plugin == own).collect();
    if model.about == own {
        all.extend(model.lines.iter());
    }
    all.sort_by_key(|happened| happened.unix_ms);
    let mut lines: Vec<Line<'static>> = Vec::new();
    for happened in all {
        let style = match happened.severity {
            Severity::Plain => Style::new(),
            Severity::Warning => theme.warning(),
            Severity::Bad => theme.bad(),
        };
        let head = format!(" {} {} ", clock(happened.unix_ms), happened.kind);
        let room = usize::from(area.width).saturating_sub(head.width());
        let rest = " ".repeat(head.width());
        for (number, part) in wrapped(&happened.text, room).into_iter().enumerate() {
            let before = if number == 0 { head.clone() } else { rest.clone() };
            lines.push(Line::from(vec![Span::styled(before, theme.dim()), Span::styled(part, style)]));
        }
    }
    let mut room = usize::from(area.height);
    let mut shown = Vec::new();
    let last = lines.len().saturating_sub(model.back.min(lines.len().saturating_sub(room.max(1))));
    let mut title = " what happened, and what it wrote ".to_owned();
    if last < lines.len() {
        title = format!(" what happened ({} newer lines below: PgDn) ", lines.len() - last);
    }
    let rule = "─".repeat(usize::from(area.width).saturating_sub(title.width() + 2));
    shown.push(Line::styled(format!("──{title}{rule}"), theme.dim()));
    room = room.saturating_sub(1);
    if let Some(why) = &model.withheld {
        shown.push(Line::styled(format!(" {}", why.as_str()), theme.warning()));
        room = room.saturating_sub(1);
    } else if lines.is_empty() {
        shown.push(Line::styled(" nothing since this was opened", theme.dim()));
    }
    let first = last.saturating_sub(room);
    shown.extend(lines.drain(..last).skip(first));
    frame.render_widget(Paragraph::new(shown), area);
}
