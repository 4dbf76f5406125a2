use proptest::prelude::*;

use super::*;
use crate::scenes;

pub(crate) fn looking() -> Model {
    let mut model = Model::new(Duration::from_secs(2));
    let (before, now) = scenes::two_readings();
    model.apply(Update::Reading(Box::new(before)));
    model.apply(Update::Reading(Box::new(now)));
    model
}

fn selected(model: &Model) -> &str {
    model.selected.as_deref().unwrap_or_default()
}

#[test]
fn the_cursor_stays_on_its_plugin_while_others_move() {
    let mut model = looking();
    assert_eq!(selected(&model), "jira", "what is wrong stands first");
    model.execute(Command::Sort(SortKey::Name));
    assert_eq!((selected(&model), model.current().unwrap().0), ("jira", 3));
    model.execute(Command::Last);
    assert_eq!(selected(&model), "web-fetch");
    model.execute(Command::Move(-1));
    assert_eq!(selected(&model), "notes-of-everybody-in-the-office");
}

#[test]
fn a_filter_moves_the_cursor_only_where_it_has_to() {
    let mut model = looking();
    model.execute(Command::Filter);
    for typed in "jir".chars() {
        model.execute(Command::Type(typed));
    }
    assert_eq!(selected(&model), "jira");
    model.execute(Command::Type('x'));
    assert_eq!(model.current().map(|(at, _)| at), None);
    model.execute(Command::Close);
    assert!(!model.typing && model.filter.is_empty() && model.current().is_some());
}

#[test]
fn what_was_opened_last_closes_first_and_nothing_quits_by_it() {
    let mut model = looking();
    model.execute(Command::Open);
    model.execute(Command::Help);
    model.execute(Command::Close);
    assert!(model.open && !model.help);
    model.execute(Command::Close);
    model.execute(Command::Close);
    assert!(!model.open && !model.over);
}

#[test]
fn a_pause_holds_the_numbers_and_not_the_news_of_a_death() {
    let mut model = looking();
    model.execute(Command::Pause);
    let calls = model.rates.total.calls;
    let (_, mut later) = scenes::two_readings();
    later.plugins.clear();
    model.apply(Update::Reading(Box::new(later)));
    assert_eq!((model.rates.total.calls, model.shown().len()), (calls, 6));
    model.apply(Update::Gone("it went away".into()));
    assert!(matches!(model.connection, ConnectionState::Gone(_)));
}

#[test]
fn lines_of_a_plugin_that_was_left_are_not_shown_for_the_next() {
    let mut model = looking();
    model.apply(Update::PluginDetails("hello".into(), vec!["greet".into()]));
    let line = |plugin: &'static str| {
        Update::Line(TimelineEntry {
            unix_ms: 1,
            plugin: plugin.into(),
            kind: "stderr".into(),
            text: "text".into(),
            severity: crate::timeline::Severity::Plain,
        })
    };
    model.apply(line("hello"));
    model.apply(line("jira"));
    assert_eq!(model.lines.iter().count(), 1);
    model.apply(Update::PluginDetails("jira".into(), Vec::new()));
    assert_eq!(model.lines.iter().count(), 0);
}

#[test]
fn the_interval_stays_within_its_ends() {
    let mut model = looking();
    for _ in 0..20 {
        model.execute(Command::Faster);
    }
    assert_eq!(model.interval.as_millis(), 250);
    for _ in 0..20 {
        model.execute(Command::Slower);
    }
    assert_eq!(model.interval.as_millis(), 60_000);
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        (-3_isize..3).prop_map(Command::Move),
        any::<char>().prop_map(Command::Type),
        proptest::sample::select(order::ALL.to_vec()).prop_map(|(by, ..)| Command::Sort(by)),
        proptest::sample::select(vec![
            Command::First,
            Command::Last,
            Command::Open,
            Command::Close,
            Command::Help,
            Command::Pause,
            Command::NextSort,
            Command::Reverse,
            Command::Filter,
            Command::Erase,
            Command::Accept,
            Command::Faster,
            Command::Slower,
            Command::PageUp,
            Command::PageDown,
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    // Promises: CLI-30
    #[test]
    fn no_row_of_keys_breaks_the_screen(
        commands in proptest::collection::vec(command(), 0..40),
        width in 1_u16..160,
        height in 1_u16..60,
    ) {
        let mut model = looking();
        for command in commands {
            model.execute(command);
            prop_assert!(model.current().is_some() || model.shown().is_empty(), "{command:?}");
        }
        crate::view::tests::drawn(&model, width, height);
    }
}
