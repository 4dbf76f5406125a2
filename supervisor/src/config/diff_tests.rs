//! What differs, and what of it waits for a restart.

use super::*;
use crate::config::tests::Scene;

fn keys(found: &BTreeSet<KeyPath>) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

/// What differs between the defaults and this text, and what of that needs a restart.
fn changed(text: &str) -> (Vec<String>, Vec<String>) {
    let (before, after) = (Scene::file("").load().config, Scene::file(text).load().config);
    let running = after.applicable_to(&before);
    (keys(&before.differences(&running)), keys(&running.differences(&after)))
}

#[test]
fn nothing_differs_from_itself() {
    let config = Scene::file("guard:\n  timeout: 3s").load().config;
    assert!(config.differences(&config).is_empty());
    assert_eq!(config.applicable_to(&config), config);
}

// Promises: RELOAD-7
#[test]
fn single_keys_are_named_and_new_entries_as_a_whole() {
    let text = "guard:\n  timeout: 3s\nplugins:\n  tools:\n    max_restarts: 7\n    plugins:\n      a:\n        \
                command: /bin/true\n        credentials:\n          x: { header: A, value: secret }\nhost:\n  peers:\n    - { uid: 7, role: call }";
    let (live, later) = changed(text);
    assert_eq!(
        live,
        ["guard.timeout", "host.peers", "plugins.tools.max_restarts", "plugins.tools.plugins.a"]
    );
    assert_eq!(later, Vec::<String>::new());
}

// Promises: RELOAD-6
#[test]
fn what_is_opened_once_waits_for_a_restart() {
    let text = "state:\n  engine: off\nlog:\n  level: debug\n  ring_lines: 7\nplugins:\n  tools:\n    \
                start_concurrency: 3\n    env_allow_list: [A]\n    frames: { tiny_burst: 300 }\n\
                host:\n  frames: { control_burst: 300 }\n  limits: { requests: 300 }\naudit:\n  enabled: false\n\
                agent:\n  limits: { turns: 7, nofile: 4096, connections: 16 }\ngateway:\n  limits: { websockets: 8, credentials: 16 }\n";
    let (live, later) = changed(text);
    assert_eq!(live, ["agent.limits.turns", "gateway.limits.websockets", "log.level"]);
    assert_eq!(
        later,
        [
            "agent.limits.connections",
            "agent.limits.nofile",
            "audit.enabled",
            "gateway.limits.credentials",
            "host.frames.control_burst",
            "host.limits.requests",
            "log.ring_lines",
            "plugins.tools.env_allow_list",
            "plugins.tools.frames.tiny_burst",
            "plugins.tools.start_concurrency",
            "state.engine"
        ]
    );
}

// Promises: RELOAD-7
#[test]
fn another_secret_is_another_value() {
    let text = |value: &str| {
        format!(
            "plugins:\n  tools:\n    plugins:\n      a:\n        command: /bin/true\n        credentials:\n          x: {{ header: A, \
             value: {value} }}\n"
        )
    };
    let (one, two) = (Scene::file(text("one")).load().config, Scene::file(text("two")).load().config);
    assert_eq!(keys(&one.differences(&two)), ["plugins.tools.plugins.a.credentials.x.value"]);
    assert!(one.differences(&one).is_empty());
}

// Promises: RELOAD-7
#[test]
fn every_secret_of_the_schema_is_compared() {
    // `secrets` names them one by one: the two of `state`, those of a plugin's entry and of its override, and
    // the two of a provider.
    let schema = crate::config::json_schema().to_string();
    assert_eq!(
        schema.matches("\"x-secret\":true").count(),
        6,
        "a new kind of secret has to be compared, too"
    );
}
