use std::time::Duration as Time;

use talon_wire::frames::FrameLimits;

use super::super::tests::Scene;
use super::*;

/// Plugins of a plugin directory, each with its manifest.
fn found(config: &Config, manifests: &[(&str, &str)]) -> discover::ScanResult {
    let dir = tempfile::tempdir().unwrap();
    for (name, manifest) in manifests {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        let path = dir.path().join(name).join(talon_plugin_config::spec::MANIFEST_FILE);
        std::fs::write(path, format!("command: /bin/true\n{manifest}")).unwrap();
    }
    discover::scan(dir.path(), &config.spec_defaults())
}

fn policies(config: &Config, manifests: &[(&str, &str)]) -> Vec<CallPolicy> {
    let found = found(config, manifests);
    assert_eq!(found.refused, []);
    found.plugins.iter().map(|spec| config.call_policy(spec.name.as_str(), spec)).collect()
}

// Promises: GUARD-3
#[test]
fn the_most_particular_word_counts() {
    let config = Scene::file(
        r#"
guard: { timeout: 10s, max_argument_bytes: 1KiB, concurrency: 2 }
plugins:
  tools:
    defaults: { timeout: 20s, max_response_bytes: 2KiB }
    overrides:
      gitlab: { timeout: 60s, actions: { clone: { timeout: 5m } }, queue: 3 }
"#,
    )
    .load()
    .config;

    let policies = policies(&config, &[("gitlab", ""), ("other", "")]);
    let [gitlab, plain] = policies.as_slice() else { panic!("{policies:?}") };
    assert_eq!(plain.timeouts.default, Time::from_secs(20));
    assert_eq!(plain.max_response_bytes, 2048);
    assert_eq!(plain.max_structured_bytes, 64 << 10);
    assert_eq!(plain.max_argument_bytes, 1024);
    assert_eq!(plain.admission, AdmissionSettings { concurrency: 2, queue: 64 });

    assert_eq!(gitlab.timeouts.default, Time::from_secs(60));
    assert_eq!(gitlab.timeouts.actions["clone"], Time::from_secs(300));
    assert_eq!(gitlab.admission.queue, 3);
}

// Promises: CONF-14
#[test]
fn a_manifest_wins_over_defaults_and_loses_to_overrides() {
    let config = Scene::file(
        "plugins: { tools: { defaults: { timeout: 20s, queue: 1 }, overrides: { strict: { timeout: 5s } } } }",
    )
    .load()
    .config;
    let manifest =
        "timeout: 2m\nactions: { build: { timeout: 10m } }\nmax_response_bytes: 10\nmax_argument_bytes: 7\n";
    let policies = policies(&config, &[("free", manifest), ("strict", manifest)]);
    let [free, strict] = policies.as_slice() else { panic!("{policies:?}") };
    assert_eq!(free.timeouts.default, Time::from_secs(120));
    assert_eq!(free.timeouts.actions["build"], Time::from_secs(600));
    assert_eq!((free.max_response_bytes, free.max_argument_bytes), (10, 7));
    assert_eq!(free.admission.queue, 1);

    assert_eq!(strict.timeouts.default, Time::from_secs(5));
    assert!(strict.timeouts.actions.is_empty(), "the author's action timeouts outlive the operator's word");
}

#[test]
fn an_author_does_not_loosen_what_the_operator_asks_for() {
    let config = Scene::file(
        r#"
sandbox: { limits: { nofile: 500 } }
plugins:
  tools:
    overrides:
      may: { sandbox: { mode: off }, limits: { nofile: 600 }, allow_tcp: true }
"#,
    )
    .load()
    .config;
    let manifest = "sandbox: { mode: off }\nlimits: { nofile: 501 }\nallow_tcp: true\n";
    let found = found(&config, &[("may", manifest), ("may-not", manifest)]);
    let [may] = found.plugins.as_slice() else { panic!("{found:?}") };
    assert_eq!((may.sandbox.mode, may.sandbox.limits.nofile), (talon_jail::Mode::Off, 600));
    assert!(may.allow_tcp);
    let [may_not] = found.refused.as_slice() else { panic!("{found:?}") };
    for key in ["sandbox.mode: off", "limits.nofile: 501", "allow_tcp: true"] {
        let allow = format!("plugins.tools.overrides.may-not.{key}");
        assert!(may_not.reason.contains(&allow), "{}", may_not.reason);
    }
}

#[test]
fn an_entry_may_name_a_directory_with_a_manifest() {
    let scene = Scene::file(
        "plugins: { tools: { overrides: { weather: { queue: 3 } }, plugins: { weather: { command: ./weather, instances: 2, timeout: 4s }, bare: { command: weather } } } }",
    );
    let dir = scene.options.environment.cwd.join("weather");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("plugin.yaml"), "command: /bin/true\ninstances: 9\nconnections: 3\nqueue: 1\n")
        .unwrap();
    let config = scene.load().config;
    let (plugins, refused) = config.configured_plugins();
    assert_eq!(refused, []);
    let [bare, weather] = plugins.as_slice() else { panic!("{plugins:?}") };
    assert_eq!((weather.instances, weather.connections), (2, 3));
    assert_eq!((bare.instances, bare.connections), (9, 3));
    assert_eq!(weather.directory.as_deref(), Some(&*dir.canonicalize().unwrap()));
    let policy = config.call_policy("weather", weather);
    assert_eq!((policy.timeouts.default, policy.admission.queue), (Time::from_secs(4), 3));
}

// Promises: DISC-6
#[test]
fn an_entry_becomes_a_spec() {
    let config = Scene::file(
        r#"
sandbox: { mode: best-effort, limits: { nofile: 100, nproc: 50 } }
plugins:
  tools:
    max_restarts: 9
    overrides:
      web: { instances: 3, env: { B: over }, config: { y: over } }
    plugins:
      web:
        command: /bin/true
        args: [a]
        dialect: opentalon
        env: { A: own, B: own }
        config: { x: own, y: own }
        limits: { nofile: 200, data_bytes: 1GiB }
        sandbox: { mode: off }
        timeout: 3s
        max_restarts: 1
        max_message_bytes: 1MiB
        context: [session_id]
        credentials: { c: { header: H, value: V } }
"#,
    )
    .load()
    .config;
    let (plugins, refused) = config.configured_plugins();
    assert!(refused.is_empty(), "{refused:?}");
    let [web] = plugins.as_slice() else { panic!("{plugins:?}") };
    assert_eq!(web.source, "plugins.tools.plugins.web");
    assert_eq!(web.args, ["a"]);
    assert_eq!(web.dialect, talon_plugin_config::spec::Dialect::OpenTalon);
    assert_eq!(web.instances, 3);
    assert_eq!((&*web.env["A"], &*web.env["B"]), ("own", "over"));
    assert_eq!((&web.config["x"], &web.config["y"]), (&"own".into(), &"over".into()));
    assert_eq!(web.sandbox.mode, talon_jail::Mode::Off);
    let limits = web.sandbox.limits;
    assert_eq!((limits.nofile, limits.nproc, limits.data_bytes), (200, 50, Some(1 << 30)));
    assert_eq!(web.lifecycle.max_restarts, 1);
    assert_eq!(web.max_message_bytes, 1 << 20);

    let policy = config.call_policy("web", web);
    assert_eq!(policy.timeouts.default, Time::from_secs(3));
    assert!(policy.grants.context.contains("session_id"));
    assert_eq!(policy.grants.credentials["c"].value, "V");
    assert_eq!(config.spec_defaults().sandbox.mode, talon_jail::Mode::BestEffort);
    assert_eq!(config.spec_defaults().lifecycle.max_restarts, 9);
}

// Promises: DISC-6
#[test]
fn a_plugin_that_fails_its_checks_is_refused_alone() {
    let config = Scene::file(
        "plugins: { tools: { plugins: { gone: { command: /no/such/program }, good: { command: /bin/true } } } }",
    )
    .load()
    .config;
    let (plugins, refused) = config.configured_plugins();
    assert_eq!(plugins.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["good"]);
    assert_eq!(refused.iter().map(|refused| &*refused.name).collect::<Vec<_>>(), ["gone"]);
}

// Promises: CONF-1
#[test]
fn our_defaults_are_those_of_the_crates_they_are_for() {
    let config = Scene::empty().load().config;
    let defaults = config.spec_defaults();
    let theirs = SpecDefaults::default();
    assert_eq!(defaults.lifecycle, theirs.lifecycle);
    assert_eq!(defaults.sandbox, theirs.sandbox);
    assert_eq!(defaults.max_message_bytes, theirs.max_message_bytes);
    assert_eq!(config.talon_plugin_settings().log_limits, LogLimits::default());
    assert_eq!(config.talon_plugin_settings().frames, FrameLimits::default());
    assert_eq!(FrameLimits::from(config.host.frames), FrameLimits::default());
    assert_eq!(config.talon_plugin_settings().env_allow_list, ["PATH", "LANG", "LC_*", "TZ"]);
    assert_eq!(talon_plugin_config::entry::MAX_CALL_TIMEOUT, talon_guard::deadline::MAX_TIMEOUT);
}
