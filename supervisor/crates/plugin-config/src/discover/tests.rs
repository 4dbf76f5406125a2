use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::spec::Dialect;

fn write(path: &Path, text: &str, mode: u32) {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).unwrap();
    }
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn script(path: &Path) {
    write(path, "#!/bin/sh\n", 0o755);
}

fn found(dir: &Path) -> ScanResult {
    scan(dir, &SpecDefaults::default())
}

fn names(discovered: &ScanResult) -> Vec<&str> {
    discovered.plugins.iter().map(|spec| spec.name.as_str()).collect()
}

fn reason<'d>(discovered: &'d ScanResult, name: &str) -> &'d str {
    let refused = discovered.refused.iter().find(|refused| refused.name == name);
    &refused.unwrap_or_else(|| panic!("{name} is not among {:?}", discovered.refused)).reason
}

// Promises: DISC-1
#[test]
fn executables_and_directories_with_a_manifest_are_plugins() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir.path().join("csv_query.py"));
    script(&dir.path().join("many/run"));
    write(&dir.path().join("many/plugin.yaml"), "command: ./run\nargs: [--fast]\n", 0o644);
    script(&dir.path().join(".hidden"));
    write(&dir.path().join("README.md"), "text", 0o644);
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    let discovered = found(dir.path());
    assert_eq!(names(&discovered), ["csv-query", "many"]);
    assert_eq!(discovered.refused, []);
    let many = &discovered.plugins[1];
    assert_eq!(many.program, dir.path().canonicalize().unwrap().join("many/run"));
    assert_eq!(many.directory, Some(dir.path().canonicalize().unwrap().join("many")));
    assert_eq!(many.args, ["--fast"]);
}

// Promises: OTHER-18
#[test]
fn a_descriptor_of_a_directory_lies_in_it() {
    let dir = tempfile::tempdir().unwrap();
    for (name, descriptor) in [("outside", "../kv.pb"), ("absolute", "/etc/passwd"), ("absent", "kv.pb")] {
        script(&dir.path().join(name).join("run"));
        let manifest = format!("command: run\nservice: proto.KV\ndescriptor: {descriptor}\n");
        write(&dir.path().join(name).join("plugin.yaml"), &manifest, 0o644);
    }
    script(&dir.path().join("useless/run"));
    write(&dir.path().join("useless/plugin.yaml"), "command: run\nmethods: { Get: get }\n", 0o644);
    let bridges = crate::spec::Bridges { service: Some("/bridge".into()), ..Default::default() };
    let discovered = scan(dir.path(), &SpecDefaults { bridges, ..SpecDefaults::default() });
    for (name, word) in [
        ("outside", "leaves the plugin's directory"),
        ("absolute", "leaves the plugin's directory"),
        ("absent", "absent/kv.pb"),
        ("useless", "set descriptor"),
    ] {
        assert!(reason(&discovered, name).contains(word), "{}", reason(&discovered, name));
    }
    // Without the bridge that is what is said.
    assert!(reason(&found(dir.path()), "absent").contains("talon-service-bridge"));
}

// Promises: DISC-10
#[test]
fn one_bad_plugin_never_stops_the_others() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir.path().join("good"));
    script(&dir.path().join("Bad Name"));
    write(&dir.path().join("loose"), "#!/bin/sh\n", 0o757);
    write(&dir.path().join("text"), "no program", 0o755);
    symlink("/nowhere", dir.path().join("dangling")).unwrap();
    write(&dir.path().join("typo/plugin.yaml"), "command: run\nargz: []\n", 0o644);
    write(&dir.path().join("absent/plugin.yaml"), "command: run\n", 0o644);
    let discovered = found(dir.path());
    assert_eq!(names(&discovered), ["good"]);
    for (name, expected) in [
        ("Bad Name", "is not a plugin name"),
        ("loose", "chmod o-w"),
        ("text", "neither an ELF program nor a script"),
        ("dangling", "cannot resolve"),
        ("typo", "plugin.yaml:2:1: argz: unknown key (did you mean args?)"),
        ("absent", "neither in"),
    ] {
        assert!(reason(&discovered, name).contains(expected), "{name}: {}", reason(&discovered, name));
    }
}

// Promises: DISC-7
#[test]
fn two_with_one_name_are_both_refused_by_path() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir.path().join("a-tool.sh"));
    script(&dir.path().join("a_tool.py"));
    let discovered = found(dir.path());
    assert!(discovered.plugins.is_empty());
    assert_eq!(discovered.refused.len(), 2);
    for refused in &discovered.refused {
        assert!(refused.reason.contains("a-tool.sh") && refused.reason.contains("a_tool.py"));
    }
}

// Promises: DISC-8
#[test]
fn a_directory_that_is_no_plugin_directory_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let absent = found(&dir.path().join("absent"));
    assert!(absent.refused[0].reason.contains("does not exist"));
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    script(&dir.path().join("tool"));
    let open = found(dir.path());
    assert!(open.plugins.is_empty());
    assert!(open.refused[0].reason.contains("everybody"));
}

#[test]
fn a_directorys_script_lies_in_it_or_belongs_to_the_system() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    script(&elsewhere.path().join("script"));
    let text = format!("command: {}\n", elsewhere.path().join("script").display());
    write(&dir.path().join("outside/plugin.yaml"), &text, 0o644);
    write(&dir.path().join("system/plugin.yaml"), "command: sh\nargs: [run.sh]\n", 0o644);
    let discovered = found(dir.path());
    assert_eq!(names(&discovered), ["system"]);
    assert!(reason(&discovered, "outside").contains("move it into the directory"));
    assert_eq!(discovered.plugins[0].program, Path::new("/usr/bin/sh"));
}

// Promises: DISC-9
#[test]
fn digests_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir.path().join("tool/run"));
    let manifest = |digest: &str| {
        let text = format!("command: run\nsha256: {digest}\n");
        write(&dir.path().join("tool/plugin.yaml"), &text, 0o644);
    };
    let right = crate::files::digest::of_tree(&dir.path().join("tool"), None).unwrap();
    manifest(&right);
    assert_eq!(names(&found(dir.path())), ["tool"]);
    manifest(&"0".repeat(64));
    let discovered = found(dir.path());
    assert!(reason(&discovered, "tool").contains(&right), "{}", reason(&discovered, "tool"));
    manifest("abc");
    assert!(reason(&found(dir.path()), "tool").contains("64 hexadecimal digits"));
}

#[test]
fn a_link_is_what_it_leads_to() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    script(&elsewhere.path().join("v2"));
    symlink(elsewhere.path().join("v2"), dir.path().join("tool")).unwrap();
    let discovered = found(dir.path());
    assert_eq!(names(&discovered), ["tool"]);
    assert_eq!(discovered.plugins[0].program, elsewhere.path().canonicalize().unwrap().join("v2"));
}

// Promises: DISC-4
#[test]
fn a_whole_manifest_is_understood() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir.path().join("d/run"));
    let text = r#"
name: other-name
command: run
args: ["--port", "0"]
env: { LOG: debug }
dialect: opentalon
config: { root: /srv, depth: 3, nested: [1, null, true] }
cookie: { key: MAGIC, value: "1" }
app_versions: [3, 4]
allow_tcp: true
enabled: false
instances: 2
connections: 3
sandbox: { mode: enforce }
limits: { nofile: 99, fsize_bytes: 64MiB, data_bytes: 1073741824 }
actions: { clone: { timeout: 5m } }
timeout: 1m30s
max_response_bytes: 32KiB
max_message_bytes: 4MiB
concurrency: 4
queue: 0
max_structured_bytes: 1KiB
max_argument_bytes: 2KiB
start_timeout: 5s
restart_on_failure: false
max_restarts: 9
grace_period: 250ms
"#;
    write(&dir.path().join("d/plugin.yaml"), text, 0o644);
    let mut operator = SpecDefaults::default();
    operator.sandbox.mode = talon_jail::Mode::BestEffort;
    let leave = crate::entry::PluginSettings { allow_tcp: Some(true), ..Default::default() };
    operator.overrides.insert("other-name".to_owned(), leave);
    let discovered = scan(dir.path(), &operator);
    assert_eq!(discovered.refused, []);
    let spec = &discovered.plugins[0];
    assert_eq!(spec.name.as_str(), "other-name");
    assert_eq!(spec.dialect, Dialect::OpenTalon);
    assert_eq!(
        serde_json::to_string(&spec.config).unwrap(),
        r#"{"root":"/srv","depth":3,"nested":[1,null,true]}"#
    );
    assert_eq!((spec.cookie.key.as_str(), spec.cookie.value.as_str()), ("MAGIC", "1"));
    assert_eq!(spec.app_versions, [3, 4]);
    assert!(spec.allow_tcp && !spec.enabled);
    assert_eq!((spec.instances, spec.connections), (2, 3));
    assert_eq!(spec.sandbox.mode, talon_jail::Mode::Enforce);
    assert_eq!(spec.sandbox.limits.nofile, 99);
    assert_eq!(spec.sandbox.limits.fsize_bytes, 64 << 20);
    assert_eq!(spec.sandbox.limits.data_bytes, Some(1 << 30));
    assert_eq!(spec.calls.timeout, Some(std::time::Duration::from_secs(90)));
    assert_eq!(spec.calls.action_timeouts["clone"], std::time::Duration::from_secs(300));
    assert_eq!(spec.calls.max_response_bytes, Some(32 << 10));
    assert_eq!((spec.calls.max_structured_bytes, spec.calls.max_argument_bytes), (Some(1024), Some(2048)));
    assert_eq!(spec.max_message_bytes, 4 << 20);
    assert_eq!((spec.calls.concurrency, spec.calls.queue), (Some(4), Some(0)));
    assert_eq!(spec.lifecycle.start_timeout, std::time::Duration::from_secs(5));
    assert!(!spec.lifecycle.restart_on_failure);
    assert_eq!(spec.lifecycle.max_restarts, 9);
    assert_eq!(spec.lifecycle.grace_period, std::time::Duration::from_millis(250));
}

// Promises: DISC-5
#[test]
fn a_bad_value_names_its_line() {
    for (text, says) in [
        ("command: run\ntimeout: 30\n", "p.yaml:2:10: timeout: \"30\" has no unit: write \"30s\""),
        ("command: run\ntimeout: 0s\n", "p.yaml:2:10: timeout: must be longer than nothing"),
        ("command: run\n\ndialect: grpc\n", "p.yaml:3:10: dialect: expected \"auto\", \"go-plugin\""),
        ("args: [1]\n", "p.yaml:1:1: has no command (name the program"),
        ("comand: run\n", "p.yaml:1:1: comand: unknown key (did you mean command?)"),
        ("command: run\nsandbox:\n  mod: off\n", "p.yaml:3:3: sandbox.mod: unknown key"),
        ("command: run\nenabled: yes\n", "p.yaml:2:10: enabled: expected true or false"),
        ("command: run\nconfig: { mode: 0755 }\n", "p.yaml:2:17: config.mode: is a number that"),
        ("command: run\nhealth_check_timeout: 1h\n", "is longer than health_check_interval (30s)"),
        ("command: run\ncontext: [session_id]\n", "p.yaml:2:1: context: unknown key"),
        ("command: run\ncredentials: {}\n", "p.yaml:2:1: credentials: unknown key"),
        ("command: [\n", "p.yaml:1:10: is not valid YAML"),
        ("command: run\ncommand: again\n", "p.yaml:2:1: command: stands here a second time"),
        ("command: run\nenv: !!map {}\n", "p.yaml:2:12: tags are not supported"),
    ] {
        let error = Manifest::parse(text, Path::new("p.yaml"), &Default::default()).unwrap_err().to_string();
        assert!(error.contains(says), "{text:?}: {error}");
    }
}

#[test]
fn an_author_gets_nothing_of_the_operators_environment() {
    let text = "command: run\nenv: { P: '${PATH}' }\n";
    let manifest = Manifest::parse(text, Path::new("p.yaml"), &Default::default()).unwrap();
    assert_eq!(manifest.plugin.settings.env["P"], "${PATH}");
}

#[test]
fn overrides_are_for_what_is_found_too() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir.path().join("plain"));
    script(&dir.path().join("listed/run"));
    write(&dir.path().join("listed/plugin.yaml"), "command: run\nsandbox: { mode: off }\n", 0o644);
    let refused = found(dir.path());
    assert_eq!(names(&refused), ["plain"]);
    assert!(reason(&refused, "listed").contains("plugins.tools.overrides.listed.sandbox.mode"));

    let over: crate::entry::PluginSettings =
        serde_json::from_value(serde_json::json!({ "sandbox": { "mode": "off" }, "instances": 2 })).unwrap();
    let mut operator = SpecDefaults::default();
    operator.overrides.extend(["plain", "listed"].map(|name| (name.to_owned(), over.clone())));
    let discovered = scan(dir.path(), &operator);
    assert_eq!(names(&discovered), ["listed", "plain"]);
    for spec in &discovered.plugins {
        assert_eq!((spec.sandbox.mode, spec.instances), (talon_jail::Mode::Off, 2), "{}", spec.name);
    }
}

#[test]
fn an_entry_may_name_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir.path().join("weather/run"));
    let text = "name: other\ncommand: run\nargs: [--fast]\ninstances: 2\nconfig: { a: 1, b: 1 }\n";
    write(&dir.path().join("weather/plugin.yaml"), text, 0o644);
    let configured = |command: &str, more: serde_json::Value| {
        let mut json = more;
        json["command"] = dir.path().join(command).to_str().unwrap().into();
        let entry: PluginEntry = serde_json::from_value(json).unwrap();
        let name = PluginName::new("storm").unwrap();
        super::from_config(&name, "plugins.tools.plugins.storm", &entry, &SpecDefaults::default())
    };
    let own = serde_json::json!({ "instances": 3, "config": { "b": 2 } });
    let spec = configured("weather", own).unwrap();
    let real = dir.path().canonicalize().unwrap().join("weather");
    assert_eq!((spec.name.as_str(), &*spec.source), ("storm", "plugins.tools.plugins.storm"));
    assert_eq!((&spec.program, spec.directory.as_deref()), (&real.join("run"), Some(&*real)));
    assert_eq!(spec.args, ["--fast"]);
    assert_eq!(spec.instances, 3);
    assert_eq!((&spec.config["a"], &spec.config["b"]), (&1.into(), &2.into()));

    let wrong = configured("weather", serde_json::json!({ "sha256": "0".repeat(64) })).unwrap_err();
    assert!(wrong.reason.contains("was asked for"), "{}", wrong.reason);
    std::fs::create_dir(dir.path().join("bare")).unwrap();
    let bare = configured("bare", serde_json::json!({})).unwrap_err();
    assert!(bare.name == "storm" && bare.reason.contains("without plugin.yaml"), "{}", bare.reason);
    write(&dir.path().join("weather/plugin.yaml"), "command: run\nallow_tcp: true\n", 0o666);
    let open = configured("weather", serde_json::json!({})).unwrap_err();
    assert!(open.reason.contains("cannot be trusted"), "{}", open.reason);
    write(&dir.path().join("weather/plugin.yaml"), "command: run\nallow_tcp: true\n", 0o644);
    let tcp = configured("weather", serde_json::json!({})).unwrap_err();
    assert!(tcp.reason.contains("plugins.tools.overrides.storm.allow_tcp"), "{}", tcp.reason);
    assert!(configured("weather", serde_json::json!({ "allow_tcp": true })).unwrap().allow_tcp);
}

// Promises: DISC-16
#[test]
fn settings_that_cannot_work_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir.path().join("tool"));
    let spec = found(dir.path()).plugins.remove(0);
    assert!(check(&spec).is_ok());
    let refused = |change: &dyn Fn(&mut PluginSpec), setting: &str| {
        let mut spec = spec.clone();
        change(&mut spec);
        let text = check(&spec).unwrap_err().to_string();
        assert!(text.starts_with(setting), "{text}");
    };
    refused(&|s| s.instances = 0, "instances");
    refused(&|s| s.connections = 99, "connections");
    refused(&|s| s.app_versions.clear(), "app_versions");
    refused(&|s| s.max_message_bytes = 1, "max_message_bytes");
    refused(&|s| s.program = "relative".into(), "command");
    refused(&|s| s.args.push("a\0b".to_owned()), "args");
    refused(&|s| _ = s.env.insert("PLUGIN_UNIX_SOCKET_DIR".to_owned(), "/tmp".to_owned()), "env");
    refused(&|s| _ = s.env.insert("TALON_PLUGIN_MAGIC_COOKIE".to_owned(), "x".to_owned()), "env");
    refused(&|s| _ = s.env.insert("A=B".to_owned(), "x".to_owned()), "env");
    refused(&|s| s.cookie.key = "PATH".to_owned(), "env");
    refused(
        &|s| s.lifecycle.health_check_timeout = std::time::Duration::from_secs(31),
        "health_check_timeout",
    );
    refused(&|s| s.lifecycle.backoff_initial = std::time::Duration::from_secs(31), "backoff_initial");
}
