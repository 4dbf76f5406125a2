use talon_plugin::NewEvent;
use talon_plugin_config::PluginName;

use super::*;

/// The event as a subscriber of the supervisor's events gets it.
fn emitted(event: NewEvent) -> std::sync::Arc<Event> {
    let events = talon_plugin::Events::new();
    let mut listener = events.subscribe();
    events.emit(event);
    listener.try_recv().unwrap()
}

fn state_changed(plugin: &str, to: &str, deaths: u32) -> NewEvent {
    NewEvent::new(EventKind::StateChanged, "changed")
        .plugin(&PluginName::new(plugin).unwrap())
        .instance(0)
        .field("from", "ready")
        .field("to", to)
        .field("deaths", deaths)
        .field("reason", "killed by SIGSEGV")
}

fn service(state: &str, planned: bool) -> NewEvent {
    NewEvent::new(EventKind::Supervisor, STATE_SERVICE)
        .field("service", STATE_SERVICE)
        .field("state", state)
        .field("planned", planned)
        .field("problem", "no answer")
}

/// Kind and severity of what comes of each event.
fn told(classifier: &mut Classifier, events: Vec<NewEvent>) -> Vec<(&'static str, Severity)> {
    let told = events.into_iter().filter_map(|event| classifier.classify(&emitted(event)));
    told.map(|event| (event.kind.as_str(), event.severity)).collect()
}

// Promises: EXT-68
#[test]
fn a_plugin_that_fails_comes_back_and_gives_up_is_told_of() {
    let mut classifier = Classifier::default();
    let events = vec![
        state_changed("p", "ready", 0),
        state_changed("p", "backoff", 1),
        state_changed("p", "handshaking", 1),
        state_changed("p", "ready", 1),
        state_changed("p", "backoff", 2),
        state_changed("other", "ready", 0),
        state_changed("p", "failed", 3),
        state_changed("p", "ready", 0),
        state_changed("p", "ready", 0),
    ];
    assert_eq!(
        told(&mut classifier, events),
        [
            ("plugin.failed", Severity::Warning),
            ("plugin.ready", Severity::Info),
            ("plugin.restarting", Severity::Warning),
            ("plugin.failed", Severity::Critical),
            ("plugin.ready", Severity::Info),
        ]
    );
}

#[test]
fn a_stop_and_a_replacement_are_no_trouble() {
    let mut classifier = Classifier::default();
    let replacement = state_changed("p", "backoff", 1).field("replacement", "new");
    let events = vec![
        replacement,
        state_changed("p", "failed", 1),
        state_changed("p", "stopped", 0),
        state_changed("p", "ready", 0),
    ];
    assert_eq!(told(&mut classifier, events), [("plugin.failed", Severity::Critical)]);
}

// Promises: EXT-68
#[test]
fn the_state_service_is_told_of_when_it_goes_and_when_it_is_back() {
    let mut classifier = Classifier::default();
    let events = vec![
        service("starting", false),
        service("serving", false),
        service("unavailable", false),
        service("serving", false),
        service("backoff", false),
        service("starting", false),
        service("serving", false),
        service("backoff", true),
    ];
    let expected = [
        ("state.unavailable", Severity::Critical),
        ("state.available", Severity::Info),
        ("state.unavailable", Severity::Critical),
        ("state.available", Severity::Info),
    ];
    assert_eq!(told(&mut classifier, events), expected);
}

// Promises: EXT-180
#[test]
fn events_have_the_fields_that_are_documented() {
    let plugin = PluginName::new("p").unwrap();
    let script = |kind| {
        let event = NewEvent::new(kind, "its script a").plugin(&plugin).field("script", "a");
        event.field("sha256", "ab").field("reason", "a.lua:2: no")
    };
    let happened = [
        state_changed("p", "failed", 3),
        state_changed("p", "ready", 0),
        state_changed("p", "backoff", 2),
        NewEvent::new(EventKind::Quarantined, "quarantined: 9 places")
            .plugin(&plugin)
            .field("neutralised", 9),
        script(EventKind::ScriptRefused),
        script(EventKind::ScriptLoaded),
        service("unavailable", false),
        service("serving", false),
        NewEvent::new(EventKind::ConfigRefused, "refused: no such key").field("problems", 1),
    ];
    let mut classifier = Classifier::default();
    let mut seen = BTreeSet::from([HostEventKind::Gap]);
    for event in happened {
        let event = classifier.classify(&emitted(event)).expect("an event for an operator");
        let wire = <host::HostEvent as prost::Message>::decode(event.encode().as_slice()).unwrap();
        let documented: talon_extensions::EventKind = wire.kind.parse().expect("a documented kind");
        for name in documented.fields() {
            let value = wire.fields.get(*name).map(String::as_str).unwrap_or_default();
            assert!(!value.is_empty(), "{documented} has no field {name}: {wire:?}");
        }
        seen.insert(event.kind);
    }
    // The fields of a gap get their names in the agent.
    assert_eq!(seen, BTreeSet::from(HostEventKind::ALL));
}

// Promises: EXT-180
#[test]
fn a_long_reason_is_a_field_that_notifications_take_whole() {
    let event = state_changed("p", "failed", 3).field("reason", "ä".repeat(2000));
    let event = Classifier::default().classify(&emitted(event)).expect("an event for an operator");
    assert!((400..=512).contains(&event.fields["reason"].as_str().len()), "{event:?}");
    assert!(event.details.as_str().len() > 1000, "{event:?}");
}

#[test]
fn what_an_earlier_supervisor_recorded_counts() {
    let failed = emitted(state_changed("p", "failed", 3));
    let recorded = Classifier::default().classify(&failed).unwrap().encode();
    let recorded = <host::HostEvent as prost::Message>::decode(recorded.as_slice()).unwrap();
    let mut classifier = Classifier::default();
    classifier.resume(&recorded);
    assert_eq!(
        told(&mut classifier, vec![state_changed("p", "ready", 0)]),
        [("plugin.ready", Severity::Info)]
    );
    assert_eq!(told(&mut classifier, vec![state_changed("p", "ready", 0)]), []);
}

#[test]
fn quarantines_and_refused_configurations_are_told_of() {
    let mut classifier = Classifier::default();
    let quarantined = NewEvent::new(EventKind::Quarantined, "quarantined: 9 places")
        .plugin(&PluginName::new("p").unwrap())
        .field("neutralised", 9);
    let quarantined = classifier.classify(&emitted(quarantined)).unwrap();
    assert_eq!((quarantined.kind, quarantined.plugin.as_str()), (HostEventKind::PluginQuarantined, "p"));
    assert_eq!(quarantined.fields["neutralised"], "9");
    let refused = NewEvent::new(EventKind::ConfigRefused, format!("refused: {}", "ä".repeat(3000)));
    let refused = classifier.classify(&emitted(refused)).unwrap();
    let wire = <host::HostEvent as prost::Message>::decode(refused.encode().as_slice()).unwrap();
    assert_eq!((wire.kind.as_str(), wire.severity.as_str()), ("config.refused", "warning"));
    assert!(wire.summary.chars().count() <= 500 && wire.details.chars().count() > 1000);
    assert_eq!(wire.fields["count"], "1");
    assert_eq!(classifier.classify(&emitted(NewEvent::new(EventKind::Supervisor, "draining"))), None);
}

// Promises: LUA-72
#[test]
fn a_refused_script_is_told_of_and_the_good_one_after_it() {
    let script = |kind, name: &str| {
        NewEvent::new(kind, format!("its script {name}"))
            .plugin(&PluginName::new("lua").unwrap())
            .field("script", name)
            .field("reason", "a.lua:2: no")
    };
    let mut classifier = Classifier::default();
    let events = vec![
        script(EventKind::ScriptLoaded, "a"),
        script(EventKind::ScriptRefused, "a"),
        script(EventKind::ScriptLoaded, "b"),
        script(EventKind::ScriptLoaded, "a"),
        script(EventKind::ScriptLoaded, "a"),
        script(EventKind::ScriptRefused, "b"),
        script(EventKind::ScriptRemoved, "b"),
        script(EventKind::ScriptLoaded, "b"),
    ];
    let expected = [
        ("script.refused", Severity::Warning),
        ("script.loaded", Severity::Info),
        ("script.refused", Severity::Warning),
    ];
    assert_eq!(told(&mut classifier, events), expected);
    let refused = classifier.classify(&emitted(script(EventKind::ScriptRefused, "a"))).unwrap();
    assert_eq!((refused.fields["script"].as_str(), refused.details.as_str()), ("a", "a.lua:2: no"));
    // What an earlier supervisor recorded counts.
    let recorded = <host::HostEvent as prost::Message>::decode(refused.encode().as_slice()).unwrap();
    let mut classifier = Classifier::default();
    classifier.resume(&recorded);
    assert_eq!(
        told(&mut classifier, vec![script(EventKind::ScriptLoaded, "a")]),
        [("script.loaded", Severity::Info)]
    );
}
