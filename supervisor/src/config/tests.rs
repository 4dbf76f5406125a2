//! Loading as a whole: what a file, an environment and flags give together, and what is said about bad ones.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

/// A supervisor's environment in a separate directory, with an optional config file.
pub(super) struct Scene {
    dir: tempfile::TempDir,
    pub(super) options: LoadOptions,
}

impl Scene {
    pub(super) fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let surroundings = Environment {
            env: BTreeMap::new(),
            uid: 1000,
            home: Some("/home/somebody".into()),
            cwd: dir.path().to_owned(),
            assigns_uids: false,
        };
        Self {
            options: LoadOptions {
                file: None,
                overrides: Vec::new(),
                environment: surroundings,
                overlay: OverlayUse::Read,
            },
            dir,
        }
    }

    pub(super) fn file(text: impl AsRef<[u8]>) -> Self {
        let mut scene = Self::empty();
        fs::write(scene.dir.path().join("talon.yaml"), text).unwrap();
        // Messages name the file as it was named to us, which keeps them the same on every machine.
        scene.options.file = Some("talon.yaml".into());
        scene
    }

    pub(super) fn var(mut self, name: &str, value: &str) -> Self {
        self.options.environment.env.insert(name.to_owned(), value.into());
        self
    }

    fn flag(mut self, flag: &str, key: &str, value: &str) -> Self {
        self.options = self.options.with(flag, key, value);
        self
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn load(&self) -> Loaded {
        load(&self.options).unwrap_or_else(|errors| panic!("{errors}"))
    }

    pub(super) fn errors(&self) -> String {
        match load(&self.options) {
            Ok(_) => panic!("loaded without an error"),
            Err(errors) => errors.to_string(),
        }
    }
}

// Promises: CONF-1
#[test]
fn without_a_file_the_defaults_hold() {
    let scene = Scene::empty();
    let loaded = scene.load();
    assert_eq!(loaded.file, None);
    assert_eq!(loaded.config, Config::built_in(&scene.options.environment.default_paths()));
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn an_empty_file_changes_nothing() {
    for text in ["", "# nothing\n", "---\n", "plugins:\n  tools:\n", "\u{feff}guard:\n", "null\n"] {
        let scene = Scene::file(text);
        assert_eq!(
            scene.load().config,
            Config::built_in(&scene.options.environment.default_paths()),
            "{text:?}"
        );
    }
}

/// The configuration of the founding documents, as it stands there.
const FOUNDING: &str = r#"
plugins:
  tools:
    plugin_dir: "./plugins"           # auto-discover binaries from directory
    health_check_interval: "30s"
    restart_on_failure: true
    max_restarts: 3
    defaults:
      timeout: "30s"
      max_response_bytes: 65536       # 64KB
    overrides:
      gitlab:
        timeout: "60s"               # longer timeout for code analysis
      jira:
        timeout: "15s"
state:
  data_dir: /var/lib/opentalon   # or ${OPENTALON_DATA_DIR}
"#;

// Promises: CONF-2
#[test]
fn the_founding_configuration_reads_as_it_stands() {
    let scene = Scene::file(FOUNDING);
    let config = scene.load().config;
    let tools = &config.plugins.tools;
    assert_eq!(tools.plugin_dir.as_deref(), Some(scene.path().join("plugins").as_path()));
    assert_eq!(tools.lifecycle.max_restarts, 3);
    assert_eq!(tools.defaults.max_response_bytes.unwrap().get(), 65_536);
    assert_eq!(tools.overrides["gitlab"].settings.calls.timeout.unwrap().get(), Duration::from_secs(60));
    assert_eq!(config.state.data_dir, Path::new("/var/lib/opentalon"));
}

// Promises: CONF-3
#[test]
fn the_installed_example_is_a_sound_configuration() {
    let scene = Scene::file(EXAMPLE).var("GITLAB_TOKEN", "glpat-1");
    let config = scene.load().config;
    assert_eq!(
        config.plugins.tools.overrides["gitlab"].grants.credentials["gitlab"].value.expose(),
        "glpat-1"
    );
    assert_eq!(config.state.data_dir, Path::new("/var/lib/talon"));
    assert_eq!(config.guard.forbidden_patterns, [r"(?i)internal-only:\S+"]);
}

// Promises: CONF-4
#[test]
fn the_later_source_wins_key_by_key() {
    let scene = Scene::file("plugins: { tools: { max_restarts: 4, grace_period: 4s, ready_wait: 4s } }")
        .var("TALON_PLUGINS__TOOLS__MAX_RESTARTS", "5")
        .var("TALON_PLUGINS__TOOLS__GRACE_PERIOD", "5s")
        .flag("--max-restarts", "plugins.tools.max_restarts", "6");
    let loaded = scene.load();
    let life = &loaded.config.plugins.tools.lifecycle;
    assert_eq!(life.max_restarts, 6);
    assert_eq!(life.grace_period.get(), Duration::from_secs(5));
    assert_eq!(life.ready_wait.get(), Duration::from_secs(4));
    assert_eq!(life.start_timeout.get(), Duration::from_secs(30));
    let source = |key: &str| loaded.source(&KeyPath::of(&["plugins", "tools", key])).to_string();
    assert_eq!(source("max_restarts"), "--max-restarts");
    assert_eq!(source("grace_period"), "$TALON_PLUGINS__TOOLS__GRACE_PERIOD");
    assert_eq!(source("ready_wait"), "talon.yaml:1:68");
    assert_eq!(source("start_timeout"), "default");
}

// Promises: CONF-4
#[test]
fn maps_of_several_sources_are_merged_and_lists_replaced() {
    let scene = Scene::file(
        "plugins: { tools: { env_allow_list: [PATH, LANG, TZ], plugins: { web-fetch: { command: /bin/true, args: [a, b] } } } }",
    )
    .var("TALON_PLUGINS__TOOLS__PLUGINS__WEB_FETCH__INSTANCES", "2")
    .var("TALON_PLUGINS__TOOLS__PLUGINS__WEB_FETCH__ENV__Some_Name", "yes")
    .var("TALON_PLUGINS__TOOLS__PLUGINS__WEB_FETCH__CONFIG__LIMIT", "7")
    .var("TALON_PLUGINS__TOOLS__ENV_ALLOW_LIST", "[PATH]");
    let tools = scene.load().config.plugins.tools;
    let plugin = &tools.plugins["web-fetch"];
    assert_eq!(plugin.plugin.args.as_deref().unwrap(), ["a", "b"]);
    assert_eq!(plugin.plugin.settings.instances, Some(2));
    assert_eq!(plugin.plugin.settings.env["Some_Name"], "yes");
    assert_eq!(plugin.plugin.settings.config["limit"], 7);
    assert_eq!(tools.env_allow_list, ["PATH"]);
}

// Promises: CONF-5
#[test]
fn variables_are_filled_in_after_parsing() {
    let scene = Scene::file(
        r#"
plugins:
  tools:
    max_restarts: ${RESTARTS}
    plugins:
      p:
        command: ${BIN:-/bin}/p
        args: ["${INJECTED}", "$$HOME", "$HOME", "100$", "${EMPTY:-default}", "${EMPTY}"]
"#,
    )
    .var("RESTARTS", "7")
    .var("INJECTED", "x\", \"y]}\n# {{ & * !")
    .var("EMPTY", "");
    let tools = scene.load().config.plugins.tools;
    assert_eq!(tools.lifecycle.max_restarts, 7);
    let plugin = &tools.plugins["p"];
    assert_eq!(plugin.plugin.command.as_deref(), Some(Path::new("/bin/p")));
    assert_eq!(
        plugin.plugin.args.as_deref().unwrap(),
        ["x\", \"y]}\n# {{ & * !", "$HOME", "$HOME", "100$", "default", ""]
    );
}

// Promises: UNIT-9
#[test]
fn credentials_of_the_service_manager_are_filled_in() {
    let handed = tempfile::tempdir().unwrap();
    fs::write(handed.path().join("key_gitlab"), "hunter2\n").unwrap();
    let with = |text: &str| {
        let file = format!(
            "plugins: {{ tools: {{ overrides: {{ p: {{ credentials: {{ c: {{ header: H, value: \"{text}\" }} }} }} }} }} }}"
        );
        Scene::file(file).var("CREDENTIALS_DIRECTORY", handed.path().to_str().unwrap())
    };
    let value = |scene: &Scene| {
        let overrides = scene.load().config.plugins.tools.overrides;
        overrides["p"].grants.credentials["c"].value.expose().to_owned()
    };
    assert_eq!(value(&with("Bearer ${credential:key_gitlab}")), "Bearer hunter2");
    assert_eq!(value(&with("${credential:none:-other}")), "other");
    let shown = |scene: Scene| scene.errors();
    let missing = shown(with("${credential:key_jira}"));
    assert!(missing.contains("there is no credential key_jira: No such file"), "{missing}");
    assert!(missing.contains("LoadCredential=key_jira:/path"), "{missing}");
    // None of its names leads out of the directory.
    assert!(shown(with("${credential:../key_gitlab}")).contains("that is no name of one"));
    let nobody = Scene::file("log: { level: \"${credential:level}\" }");
    assert!(shown(nobody).contains("the service manager passed none"));
}

#[test]
fn texts_may_look_like_numbers_where_a_text_is_asked_for() {
    let scene =
        Scene::file("plugins: { tools: { overrides: { p: { env: { PORT: 8080, ON: true, V: 1.10 } } } } }");
    let env = &scene.load().config.plugins.tools.overrides["p"].settings.env;
    assert_eq!((&*env["PORT"], &*env["ON"], &*env["V"]), ("8080", "true", "1.10"));
}

#[test]
fn paths_start_where_they_were_written() {
    let mut scene = Scene::empty();
    fs::create_dir(scene.path().join("etc")).unwrap();
    let text = "{ state: { data_dir: ./data }, runtime_dir: ~/run, plugins: { tools: { plugins: { a: { command: sh }, b: { command: ../b } } } } }";
    fs::write(scene.path().join("etc/talon.yaml"), text).unwrap();
    scene.options.file = Some("etc/talon.yaml".into());
    let config = scene.load().config;
    assert_eq!(config.state.data_dir, scene.path().join("etc/data"));
    assert_eq!(config.runtime_dir, Path::new("/home/somebody/run"));
    assert_eq!(config.plugins.tools.plugins["b"].plugin.command, Some(scene.path().join("etc/../b")));
    let shell = config.plugins.tools.plugins["a"].plugin.command.as_deref().unwrap();
    assert!(shell.is_absolute() && shell.ends_with("bin/sh"), "{}", shell.display());
    let scene = scene.var("TALON_STATE__DATA_DIR", "data");
    assert_eq!(scene.load().config.state.data_dir, scene.path().join("data"));
}

// Promises: CONF-16
#[test]
fn places_follow_the_surroundings() {
    let places = |scene: &Scene| scene.options.environment.default_paths();
    let mut scene = Scene::empty();
    assert_eq!(places(&scene).runtime_dir.path, Path::new("/tmp/talon-1000"));
    assert_eq!(places(&scene).data_dir.path, Path::new("/home/somebody/.talon"));
    assert_eq!(places(&scene).config_file.unwrap(), Path::new("/home/somebody/.config/talon/talon.yaml"));
    scene = scene.var("XDG_RUNTIME_DIR", "/run/user/1000").var("XDG_CONFIG_HOME", "/cfg");
    assert_eq!(places(&scene).runtime_dir.path, Path::new("/run/user/1000/talon"));
    assert_eq!(places(&scene).config_file.unwrap(), Path::new("/cfg/talon/talon.yaml"));
    scene = scene.var("STATE_DIRECTORY", "/var/lib/a:/var/lib/b").var("RUNTIME_DIRECTORY", "/run/a:/run/b");
    assert_eq!(places(&scene).data_dir.path, Path::new("/var/lib/a"));
    assert_eq!(places(&scene).runtime_dir.path, Path::new("/run/a"));
    scene = scene.var("OPENTALON_DATA_DIR", "/srv/open");
    assert_eq!(places(&scene).data_dir.path, Path::new("/srv/open"));
    let loaded = scene.load();
    assert_eq!(loaded.source(&KeyPath::of(&["state", "data_dir"])).to_string(), "$OPENTALON_DATA_DIR");
    scene = Scene::empty();
    scene.options.environment.uid = 0;
    assert_eq!(places(&scene).runtime_dir.path, Path::new("/run/talon"));
    assert_eq!(places(&scene).data_dir.path, Path::new("/var/lib/talon"));
    assert_eq!(places(&scene).config_file.unwrap(), Path::new("/etc/talon/talon.yaml"));
}

// Promises: CONF-7, GUARD-23
#[test]
fn everything_that_is_wrong_is_reported_at_once() {
    let scene = Scene::file(
        r#"plugins:
  tools:
    plugin_dirr: ./plugins
    health_check_interval: 30
    restart_on_failure: yes
    max_restarts: "3"
    max_restarts: 4
    defaults:
      timeout: soon
      max_response_bytes: 64K
      concurrency: 0
    overrides:
      Git_Lab: { timeout: 60s }
      jira: { actions: { "a b": { timeout: 1s } }, instances: 100 }
    plugins:
      nameless: { args: [x] }
      web:
        command: /bin/web
        dialect: go-plugn
        sha256: abc
        env: { "A=B": x }
        args: { a: b }
guard:
  tiemout: 5s
  max_restarts: 5
  forbidden_patterns: ["a(", "x*"]
  breaker: 7
host:
  group: no-such-group-here
  peers:
    - { uid: 1, gid: 1, role: admin }
    - { role: boss }
    - { uid: -1, role: call }
sandbox:
  uid_range: 0-10
state: [a]
log:
  level: "info,=nonsense=,"
state2: {}
"#,
    );
    assert_snapshot!(scene.errors());
}

// Promises: CONF-9
#[test]
fn values_that_do_not_fit_together_are_reported_where_they_stand() {
    let scene = Scene::file(
        r#"plugins:
  tools:
    backoff_initial: 1m
    health_check_timeout: 0s
    start_timeout: 0s
    overrides:
      slow: { health_check_timeout: 31s, timeout: 0s, max_response_bytes: 0 }
      wide: { max_response_bytes: 9MiB, max_message_bytes: 1KiB }
      odd:
        credentials:
          a: { header: "not a header", value: "line\nbreak" }
guard:
  timeout: 2d
  max_message_bytes: 3GiB
"#,
    );
    assert_snapshot!(scene.errors());
}

#[test]
fn a_jail_that_cannot_be_is_reported_where_it_stands() {
    let scene = Scene::file(
        r#"sandbox:
  profile: ../strict
  allow: ["https://example.org"]
  tmp_bytes: 0
  fs: { read: [srv], execute: ["/"], write: ["/proc/1", "/srv/../etc"] }
  ports: { connect: [0], bind: [70000] }
  limits: { stack_bytes: 4KiB, memory_bytes: 1MiB, as_bytes: 0, cpu_seconds: 0, cpu_percent: 0, nice: 20 }
plugins:
  tools:
    overrides:
      web: { sandbox: { network: lan, ports: { connect: [443] } } }
      mail: { sandbox: { network: loopback, ports: { connect: [25] }, allow: ["mail.example.org:25"] } }
"#,
    );
    assert_snapshot!(scene.errors());
}

#[test]
fn a_jail_reads_as_it_is_written() {
    let scene = Scene::file(
        r#"sandbox:
  profile: ports
  profile_dir: profiles
  network: proxy
  ports: { connect: [443] }
  allow: ["*.example.org:443"]
  fs: { read: [code, /srv/data], write: ["~/index"] }
  tmp_bytes: 1GiB
  tmp_exec: true
  limits: { memory_bytes: 2GiB, cpu_percent: 150, nice: 0 }
plugins:
  tools:
    overrides:
      web: { sandbox: { network: full, fs: { write: [] } } }
"#,
    );
    let loaded = scene.load();
    let jail = loaded.config.spec_defaults().sandbox;
    assert_eq!((&*jail.profile, jail.profile_dir), ("ports", Some(scene.path().join("profiles"))));
    assert_eq!(jail.network, talon_plugin_config::spec::NetworkAccess::Proxy);
    assert_eq!((jail.ports.connect, jail.ports.bind), (Some(vec![443]), None));
    assert_eq!(jail.allow, ["*.example.org:443"]);
    assert_eq!(jail.fs.read.unwrap(), [scene.path().join("code"), "/srv/data".into()]);
    assert_eq!(jail.fs.write.unwrap(), [Path::new("/home/somebody/index")]);
    assert_eq!((jail.tmp_bytes, jail.tmp_exec), (1 << 30, true));
    assert_eq!(
        (jail.limits.memory_bytes, jail.limits.cpu_percent, jail.limits.nice),
        (2 << 30, Some(150), 0)
    );
    let web = &loaded.config.plugins.tools.overrides["web"].settings.sandbox;
    assert_eq!((&web.fs.write, &web.fs.read), (&Some(Vec::new()), &None));
    let shown = scene.load().show_yaml();
    assert!(shown.contains("allow: [\"*.example.org:443\"]"), "{shown}");
}

// Promises: CONF-8
#[test]
fn problems_of_the_environment_and_of_flags_name_them() {
    let scene = Scene::file("guard: { timeout: 5 }")
        .var("TALON_PLUGINS__TOOLS__MAX_RESTART", "5")
        .var("TALON_PLUGINS__TOOLS__MAX_RESTARTS", "many")
        .var("TALON_GUARD__BREAKER", "{ failures: 3, windw: 1s }")
        .var("TALON_GUARD__FORBIDDEN_PATTERNS", "[")
        .var("TALON_PLUGINS__TOOLS__PLUGINS__WEB_FETCH__ARGS", "[a]")
        .var("TALON_GUARD__TIMEOUT__X", "5s")
        .flag("--set", "guard.tiemout", "5s")
        .flag("--log-level", "log.level", "a=b=c");
    assert_snapshot!(scene.errors());
}

#[test]
fn other_variables_of_ours_are_no_keys() {
    let scene = Scene::empty()
        .var("TALON_LOG", "debug")
        .var("TALON_HOST_SOCKET", "/run/x")
        .var("TALON_PLUGIN_MAGIC_COOKIE", "x")
        .var("TALON_STATE_SOCKET", "x");
    assert!(scene.load().warnings.is_empty());
    // What a container platform adds for a service called "talon".
    let scene = Scene::empty().var("TALON_PORT", "tcp://10.0.0.1:80").var("TALON_SERVICE_HOST", "10.0.0.1");
    let warnings: Vec<String> = scene.load().warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("$TALON_PORT: port: unknown key"), "{warnings:?}");
}

// Promises: CONF-13
#[test]
fn a_secret_is_in_no_message() {
    let scene = Scene::file(
        "plugins: { tools: { max_restarts: '${S}', overrides: { p: { timeout: '${S}', max_response_bytes: '${S}', restart_on_failure: '${S}', sandbox: { mode: '${S}' }, credentials: { c: { header: h, value: [hunter2] } } } } } }\nguard: { forbidden_patterns: ['${UNSET}'] }",
    )
    .var("S", "hunter2");
    let errors = scene.errors();
    assert!(!errors.contains("hunter2"), "{errors}");
    assert_snapshot!(errors);
}

// Promises: CONF-10
#[test]
fn files_that_are_no_configuration_are_refused() {
    let deep = "[".repeat(100);
    let many_levels = format!("plugins: {}1{}", "{ a: ".repeat(80), " }".repeat(80));
    let bomb = std::iter::once("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned())
        .chain((1..12).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", "))))
        .collect::<String>();
    let deep_by_aliases = std::iter::once("a0: &a0 [[[[[[[[[[x]]]]]]]]]]\n".to_owned())
        .chain((1..12).map(|n| format!("a{n}: &a{n} [[[[[[[[[[*a{}]]]]]]]]]]\n", n - 1)))
        .collect::<String>();
    let cases: [(&str, Vec<u8>); 14] = [
        ("not YAML", b"guard: [1, 2".to_vec()),
        ("tabs", b"guard:\n\ttimeout: 1s\n".to_vec()),
        ("a list", b"- a\n".to_vec()),
        ("a word", b"nonsense".to_vec()),
        ("not UTF-8", b"guard: \xff\xfe".to_vec()),
        ("too long", vec![b'#'; (1 << 20) + 1]),
        ("deep", deep.into_bytes()),
        ("many levels", many_levels.into_bytes()),
        ("an alias bomb", bomb.into_bytes()),
        ("deep by aliases", deep_by_aliases.into_bytes()),
        ("an alias inside of itself", b"guard: &a { breaker: *a }".to_vec()),
        ("a merge key", b"x: &x { a: 1 }\nguard:\n  <<: *x\n".to_vec()),
        ("a tag", b"guard: !!map {}\n".to_vec()),
        ("two documents", b"guard: {}\n---\nguard: {}\n".to_vec()),
    ];
    let said: Vec<String> =
        cases.iter().map(|(what, text)| format!("{what}:\n  {}", Scene::file(text).errors())).collect();
    assert_snapshot!(said.join("\n"));
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let mut scene = Scene::empty();
    scene.options.file = Some("missing.yaml".into());
    assert!(scene.errors().starts_with("missing.yaml: no such file"), "{}", scene.errors());
    let scene = Scene::empty().var("TALON_CONFIG", "also-missing.yaml");
    assert!(scene.errors().starts_with("also-missing.yaml: no such file"), "{}", scene.errors());
}

// Promises: CONF-21
#[test]
fn what_is_no_regular_file_is_refused_without_a_wait() {
    let mut scene = Scene::empty();
    nix::unistd::mkfifo(&scene.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (path, what) in [("fifo", "a FIFO"), (".", "a directory"), ("/dev/zero", "a device")] {
        scene.options.file = Some(path.into());
        let errors = scene.errors();
        assert!(errors.contains(what) && errors.contains("name a file"), "{errors}");
    }
    let scene = Scene::file("log: { level: \"${credential:fifo}\" }");
    nix::unistd::mkfifo(&scene.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let dir = scene.path().to_str().unwrap().to_owned();
    assert!(scene.var("CREDENTIALS_DIRECTORY", &dir).errors().contains("a FIFO"));
}

#[test]
fn a_file_with_nothing_in_it_says_so() {
    for (text, has_values) in
        [("", false), ("# only this\n", false), ("guard:\n", false), ("plugins: {}", true)]
    {
        assert_eq!(Scene::file(text).load().file_has_values, has_values, "{text:?}");
    }
}

// Promises: CONF-11
#[test]
fn a_file_that_everybody_may_write_is_refused() {
    let scene = Scene::file("guard: {}");
    let path = scene.path().join("talon.yaml");
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(scene.errors().contains("everybody may write"), "{}", scene.errors());
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let scene = Scene::file("{ sandbox: { mode: off }, plugins: { tools: { plugin_dir: nowhere } } }");
    let warnings: Vec<String> = scene.load().warnings.iter().map(ToString::to_string).collect();
    let warnings = warnings.join("\n").replace(&scene.path().display().to_string(), "DIR");
    assert_snapshot!(warnings);
}

#[test]
fn a_null_takes_a_default_away() {
    let scene = Scene::file("log: { dir: /var/log/talon }").var("TALON_LOG__DIR", "null");
    assert_eq!(scene.load().config.log.dir, None);
}

#[test]
fn numbers_that_mean_several_things_are_refused() {
    for word in ["0755", "-007", ".inf", "-.Inf", ".nan", "1e999", "99999999999999999999999"] {
        let text = format!("plugins: {{ tools: {{ overrides: {{ p: {{ config: {{ v: {word} }} }} }} }} }}");
        assert!(Scene::file(text).errors().contains("is a number that"), "{word}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    // Promises: CONF-10
    #[test]
    fn no_text_panics(text in "[a-z:{}\\[\\],\"' \n\t&*#!|>%@`$0-9-]{0,200}") {
        let _ = load(&Scene::file(&text).options);
    }

    // Promises: CONF-10
    #[test]
    fn no_broken_example_panics(cut in 0..EXAMPLE.len(), junk in "[:{}\\[\\]\"'&*\n -]{0,4}") {
        let mut text = EXAMPLE.to_owned();
        text.insert_str(cut, &junk);
        let _ = load(&Scene::file(&text).var("GITLAB_TOKEN", "x").options);
    }

    // Promises: CONF-10
    #[test]
    fn no_variable_panics(name in "[A-Za-z_]{0,40}", value in ".{0,60}") {
        let scene = Scene::empty().var(&format!("TALON_{name}"), &value);
        let _ = load(&scene.options);
    }
}
