//! The first lines: the state of the supervisor, and totals.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::theme::Theme;
use super::units::{NONE, bytes, clock, rate, short};
use crate::model::{ConnectionState, Model};
use crate::reading::{Reading, Usage};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: Theme) {
    let lines = match &model.reading {
        Some(reading) => {
            vec![identity(reading, theme), totals(reading, model, theme), details(reading, model, theme)]
        }
        None => vec![Line::styled(" talon top", theme.title())],
    };
    frame.render_widget(Paragraph::new(lines), area);
    if let Some(mark) = warnings(model, theme) {
        // Covers the right end of the first line, because it is more important.
        let width = u16::try_from(mark.width()).unwrap_or(u16::MAX).min(area.width);
        let at = Rect { x: area.right().saturating_sub(width), width, height: area.height.min(1), ..area };
        frame.render_widget(Clear, at);
        frame.render_widget(Paragraph::new(mark).alignment(Alignment::Right), at);
    }
    if let (ConnectionState::Gone(why), true) = (&model.connection, area.height > 2) {
        let at = Rect { y: area.y + 2, height: 1, ..area };
        frame.render_widget(Clear, at);
        frame.render_widget(Paragraph::new(Line::styled(format!(" {}", why.as_str()), theme.bad())), at);
    }
}

/// Warnings about the screen itself, such as a lost connection or a pause.
fn warnings(model: &Model, theme: Theme) -> Option<Line<'static>> {
    let mut spans = Vec::new();
    if let ConnectionState::Gone(_) = model.connection {
        spans.push(Span::styled(
            " the supervisor is gone; trying again ",
            theme.bad().patch(theme.selected()),
        ));
    }
    if model.paused {
        spans.push(Span::styled(" paused ", theme.warning().patch(theme.selected())));
    }
    (!spans.is_empty()).then(|| Line::from(spans))
}

fn identity(reading: &Reading, theme: Theme) -> Line<'static> {
    let supervisor = &reading.supervisor;
    let up = Duration::from_millis(reading.unix_ms.saturating_sub(supervisor.started_unix_ms));
    // The least important come last, where a narrow screen cuts them off.
    let mut spans = vec![
        Span::raw(" "),
        Span::styled(supervisor.state.as_str().to_owned(), theme.state(&supervisor.state)),
        Span::raw(format!("  {} plugins: ", reading.plugins.len())),
    ];
    for (number, (state, count)) in reading.by_state().into_iter().enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        spans.push(Span::raw(format!("{comma}{count} ")));
        spans.push(Span::styled(state.as_str().to_owned(), theme.state(&state)));
    }
    spans.push(Span::styled(
        format!("  up {}  pid {}  talon {}", short(up), supervisor.pid, supervisor.version),
        theme.dim(),
    ));
    Line::from(spans)
}

fn totals(reading: &Reading, model: &Model, theme: Theme) -> Line<'static> {
    let total = &model.rates.total;
    let (mut busy, mut waiting) = (0_u64, 0_u64);
    for plugin in &reading.plugins {
        busy += u64::from(plugin.in_flight);
        waiting += u64::from(plugin.waiting);
    }
    let used: Vec<Usage> = reading.plugins.iter().filter_map(|plugin| plugin.usage()).collect();
    let memory = used.iter().map(|usage| usage.memory_bytes).reduce(u64::saturating_add);
    let errors = rate(total.errors);
    let style = if total.errors.is_some_and(|errors| errors > 0.0) { theme.warning() } else { theme.good() };
    let own = reading.supervisor.usage;
    Line::from(vec![
        Span::raw(format!(" calls {}/s  errors ", rate(total.calls))),
        Span::styled(format!("{errors}/s"), style),
        Span::raw(format!(
            "  in flight {busy}+{waiting}  CPU {}%  memory {}",
            rate(total.cpu),
            bytes(memory)
        )),
        Span::styled(
            format!(
                "  own {}% {}",
                rate(model.rates.supervisor_cpu),
                bytes(own.map(|usage| usage.memory_bytes))
            ),
            theme.dim(),
        ),
    ])
}

fn details(reading: &Reading, model: &Model, theme: Theme) -> Line<'static> {
    let supervisor = &reading.supervisor;
    let mut spans = vec![Span::raw(" ")];
    let mut word = |name: &str, word: &str| {
        let word = if word.is_empty() { NONE } else { word };
        spans.push(Span::styled(format!("{name} "), theme.dim()));
        spans.push(Span::styled(format!("{word}  "), theme.state(word)));
    };
    word("audit", &supervisor.audit);
    word("state", &supervisor.state_store);
    let tier = if supervisor.tier.is_empty() { NONE } else { supervisor.tier.as_str() };
    spans.push(Span::styled(format!("sandbox {tier}  every {}", seconds(model.interval)), theme.dim()));
    let mut wrong = Vec::new();
    if !supervisor.config_problem.is_empty() {
        wrong.push("the last config was refused".to_owned());
    }
    if supervisor.refused > 0 {
        wrong.push(format!("{} refused", supervisor.refused));
    }
    if supervisor.audit_lost > 0 {
        wrong.push(format!("{} audit records lost", supervisor.audit_lost));
    }
    if supervisor.log_lines_dropped > 0 {
        wrong.push(format!("{} own log lines lost", supervisor.log_lines_dropped));
    }
    if !wrong.is_empty() {
        spans.push(Span::styled(format!("  {}: see `talon status`", wrong.join(", ")), theme.warning()));
    }
    if let Some(unix_ms) = model.restarted_unix_ms {
        spans.push(Span::styled(format!("  restarted, seen {}", clock(unix_ms)), theme.warning()));
    }
    if supervisor.taken_over > 0 {
        spans.push(Span::styled(format!("  took over {}", supervisor.taken_over), theme.dim()));
    }
    Line::from(spans)
}

fn seconds(interval: Duration) -> String {
    if interval.subsec_millis() == 0 {
        format!("{}s", interval.as_secs())
    } else {
        format!("{}ms", interval.as_millis())
    }
}
