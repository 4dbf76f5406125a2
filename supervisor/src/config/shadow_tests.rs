//! `shadow` as a part of the configuration.

use std::time::Duration;

use super::tests::Scene;

const MODELS: &str = "models:\n  providers: { local: { kind: ollama } }\n  catalog:\n    \
                      local/small: { tier: cheap, context_window: 8000, free: true }\n";

fn scene(shadow: &str) -> Scene {
    Scene::file(format!("{MODELS}shadow: {{ {shadow} }}\n"))
}

// Promises: SHADOW-7
#[test]
fn the_founding_spelling_is_read_from_the_config_file() {
    let founding = scene("enabled: true, cooldown: 45000, maxGhostsPerHour: 4").load();
    let ours = scene("enabled: true, cooldown: 45s, max_ghosts_per_hour: 4").load();
    assert_eq!(founding.config, ours.config);
    let keys = &founding.config.shadow;
    assert_eq!((keys.cooldown.get(), keys.max_ghosts_per_hour), (Duration::from_secs(45), 4));
    assert!(founding.config.runs_agent());
    assert!(!scene("").load().config.shadow.enabled);
    let twice = scene("maxGhostsPerHour: 4, max_ghosts_per_hour: 4").errors();
    assert!(twice.contains("shadow.max_ghosts_per_hour") && twice.contains("twice"), "{twice}");
}

#[test]
fn what_is_wrong_is_named_by_its_key() {
    for (wrong, key, said) in [
        ("cooldown: soon", "shadow.cooldown", "duration"),
        ("quiet_hours: night", "quiet_hours", "22:00-07:00"),
        ("model: smal", "shadow.model", "did you mean small?"),
        ("keep_days: 0", "shadow.keep_days", ""),
        ("watchers: {}", "shadow.watchers", ""),
    ] {
        let errors = scene(wrong).errors();
        assert!(errors.contains(key) && errors.contains(said), "{wrong}: {errors}");
    }
}
