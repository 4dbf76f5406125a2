use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::model::tests::looking;
use crate::model::{Command, Update};
use crate::scenes::NOON_MS;
use crate::timeline::{Severity, TimelineEntry};

/// The screen as text, one line a row.
pub(crate) fn drawn(model: &Model, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a buffer has room");
    terminal.draw(|frame| draw(frame, model, Theme { color: true })).expect("a buffer takes everything");
    terminal.backend().to_string()
}

fn opened(plugin: &str) -> Model {
    let mut model = looking();
    model.execute(Command::Sort(crate::order::SortKey::Name));
    model.execute(Command::First);
    while model.selected.as_deref() != Some(plugin) {
        model.execute(Command::Move(1));
    }
    model.execute(Command::Open);
    model.apply(Update::PluginDetails(
        talon_sanitize::Raw::from(plugin).line(),
        vec!["search".into(), "reindex".into()],
    ));
    let happened = |ms: u64, what: &'static str, text: &str, tone| TimelineEntry {
        unix_ms: NOON_MS + ms,
        plugin: talon_sanitize::Raw::from(plugin).line(),
        kind: what.into(),
        text: talon_sanitize::Raw::from(text).line(),
        severity: tone,
    };
    model.apply(Update::Event(happened(0, "state_changed", "/1 handshaking → ready", Severity::Plain)));
    model.apply(Update::Line(happened(
        400,
        "stderr",
        "\u{1b}[2J\u{1b}[31mindexed 41,000 files",
        Severity::Plain,
    )));
    model.apply(Update::Event(happened(
        900,
        "call_finished",
        "search: host_fault (timed_out)",
        Severity::Bad,
    )));
    model
}

// Promises: CLI-30
#[test]
fn eighty_by_twenty_four() {
    let mut model = looking();
    model.execute(Command::First);
    insta::assert_snapshot!("table_80x24", drawn(&model, 80, 24));
    insta::assert_snapshot!("detail_80x24", drawn(&opened("code-search"), 80, 24));
    model.execute(Command::Help);
    insta::assert_snapshot!("help_80x24", drawn(&model, 80, 24));
}

// Promises: CLI-30
#[test]
fn a_hundred_and_forty_by_forty() {
    let mut model = looking();
    model.execute(Command::First);
    insta::assert_snapshot!("table_140x40", drawn(&model, 140, 40));
    insta::assert_snapshot!("detail_140x40", drawn(&opened("csv-query"), 140, 40));
}

#[test]
fn a_supervisor_that_is_gone_a_pause_and_a_filter_are_said() {
    let mut model = looking();
    model.execute(Command::Pause);
    for typed in ["/", "c", "s"] {
        let key = crossterm::event::KeyEvent::from(crossterm::event::KeyCode::Char(
            typed.chars().next().expect("it has one"),
        ));
        model.execute(crate::keys::command(&model, &key).expect("a key of ours"));
    }
    model.apply(Update::Gone("no supervisor at /run/talon/host.sock; trying again in 2s".into()));
    insta::assert_snapshot!("gone_80x24", drawn(&model, 80, 24));
}

#[test]
fn numbers_that_are_not_there_are_dashes() {
    let mut status = crate::scenes::status(0);
    status.usage = None;
    status.audit = None;
    for plugin in &mut status.plugins {
        plugin.counters = None;
        plugin.instances.iter_mut().for_each(|instance| instance.usage = None);
    }
    let mut model = Model::new(std::time::Duration::from_secs(2));
    model.apply(Update::Reading(Box::new(crate::reading::Reading::of(
        &status,
        std::time::Instant::now(),
        NOON_MS,
    ))));
    insta::assert_snapshot!("dashes_80x24", drawn(&model, 80, 12));
}

// Promises: CLI-33
#[test]
fn no_text_of_a_plugin_acts_on_the_terminal() {
    let hostile = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\r\n\u{200b}<|im_start|>";
    let mut status = crate::scenes::status(1);
    let plugin = &mut status.plugins[0];
    for text in [&mut plugin.name, &mut plugin.state, &mut plugin.reason, &mut plugin.breaker] {
        text.push_str(hostile);
    }
    plugin.not_enforced = vec![hostile.to_owned()];
    plugin.restarts = [(hostile.to_owned(), 3)].into();
    plugin.instances[0].state = hostile.to_owned();
    status.version = hostile.to_owned();
    status.config_problem = hostile.to_owned();
    let mut model = Model::new(std::time::Duration::from_secs(2));
    model.apply(Update::Reading(Box::new(crate::reading::Reading::now(&status))));
    model.execute(Command::Sort(crate::order::SortKey::Name));
    model.execute(Command::First);
    model.execute(Command::Open);
    for height in [24, 60] {
        let screen = drawn(&model, 160, height);
        assert!(screen.chars().all(|c| c == '\n' || !c.is_control()), "{screen:?}");
        assert!(!screen.contains(['\u{202e}', '\u{200b}']), "{screen:?}");
    }
}
