//! What becomes of `plugins.lua`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use talon_extensions::FailurePolicy;
use tempfile::TempDir;

use super::*;
use crate::config::{LoadOptions, Loaded, load};

fn options_for(file: PathBuf) -> LoadOptions {
    let mut options = LoadOptions { file: Some(file), ..LoadOptions::of_process() };
    // Whoever runs the tests may set variables of ours.
    options.environment.env.retain(|name, _| !name.starts_with("TALON_"));
    options
}

fn load_with(files: &[&str], yaml: &str) -> (TempDir, Result<Loaded, String>) {
    let dir = TempDir::new().expect("a directory");
    let scripts = dir.path().join("scripts");
    if !files.is_empty() {
        fs::create_dir(&scripts).expect("made");
        fs::set_permissions(&scripts, fs::Permissions::from_mode(0o755)).expect("set");
    }
    for file in files {
        fs::write(scripts.join(file), "function filter(ctx) end").expect("written");
    }
    let file = dir.path().join("talon.yaml");
    fs::write(&file, yaml).expect("written");
    let loaded = load(&options_for(file)).map_err(|errors| errors.to_string());
    (dir, loaded)
}

/// The founding block, verbatim.
const FOUNDING: &str = r#"
plugins:
  lua:
    scripts_dir: "./scripts"     # directory with .lua files
    watch: true                  # hot-reload on file change
    default_model: "small"       # model alias for ctx.llm() calls
    limits:
      memory_mb: 64
      timeout_seconds: 5
      llm_timeout_seconds: 10   # timeout for ctx.llm() calls
      llm_max_calls: 3          # max ctx.llm() calls per hook invocation
"#;

// Promises: LUA-40
#[test]
fn the_founding_block_alone_registers_every_script() {
    let files = ["b.lua", "a.lua", "a_test.lua", "not a name.lua", "notes.txt"];
    let (dir, loaded) = load_with(&files, FOUNDING);
    let config = loaded.expect("it is valid").config;
    let names = |hooks: &[HookEntry]| -> Vec<(String, String)> {
        hooks.iter().map(|hook| (hook.name().to_owned(), hook.action.clone())).collect()
    };
    let named = |action: &str| {
        ["a", "b"].map(|script| (format!("{script}.lua"), format!("lua.{script}-{action}"))).to_vec()
    };
    let extensions = &config.extensions;
    assert_eq!(names(&extensions.filters), named("filter"));
    assert_eq!(names(&extensions.request_hooks), named("pre_hook"));
    assert_eq!(names(&extensions.response_hooks), named("post_hook"));
    let hook = &extensions.request_hooks[0];
    assert_eq!(hook.may, [Effect::Annotate, Effect::Replace, Effect::Drop]);
    assert_eq!(hook.policy(Role::RequestHook), FailurePolicy::Closed);
    assert_eq!(hook.deadline().as_secs(), 35);
    assert!(!extensions.filters[0].may(Effect::Replace));
    assert!(config.runs_agent());
    let plugin = &config.plugins.tools.plugins[PLUGIN].plugin;
    let read = plugin.settings.sandbox.fs.read.as_deref().expect("granted");
    assert_eq!(read, [dir.path().join("scripts")]);
    assert_eq!(plugin.settings.config["default_model"], "small");
    let models = config.model_grant(PLUGIN).expect("the default model is granted");
    assert_eq!((models.allow.as_slice(), models.max_calls), (["small".to_owned()].as_slice(), 3));
    assert_eq!(models.timeout.get().as_secs(), 10);
}

// Promises: LUA-80
#[test]
fn what_is_shown_can_be_read_as_the_same_configuration() {
    let (dir, loaded) = load_with(&["a.lua"], FOUNDING);
    let loaded = loaded.expect("it is valid");
    let shown = loaded.show_yaml();
    assert!(!shown.contains("talon-lua") && shown.contains("default_model: small"), "{shown}");
    let file = dir.path().join("shown.yaml");
    fs::write(&file, shown).expect("written");
    let again = load(&LoadOptions { file: Some(file), ..LoadOptions::of_process() }).expect("it is valid");
    assert_eq!(again.config, loaded.config);
}

// Promises: LUA-41
#[test]
fn order_and_single_scripts_are_as_the_operator_says() {
    let yaml = "plugins: { lua: { scripts_dir: ./scripts, order: [c, a], scripts: { a: { may: [annotate], fail: open, \
                limits: { timeout_seconds: 1, llm_max_calls: 0 } } } } }";
    let (_dir, loaded) = load_with(&["a.lua", "b.lua", "c.lua"], yaml);
    let hooks = loaded.expect("it is valid").config.extensions.request_hooks;
    let names: Vec<&str> = hooks.iter().map(HookEntry::name).collect();
    assert_eq!(names, ["c.lua", "a.lua", "b.lua"]);
    assert_eq!(
        (hooks[1].may.as_slice(), hooks[1].on_failure),
        ([Effect::Annotate].as_slice(), Some(FailurePolicy::Open))
    );
    assert_eq!(hooks[1].deadline().as_secs(), 1);
}

// Promises: LUA-42
#[test]
fn without_the_directory_one_warning_and_nothing_else() {
    let (_dir, loaded) = load_with(&[], FOUNDING);
    let loaded = loaded.expect("it is valid");
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("no script runs"), "{warnings:?}");
    assert!(loaded.config.extensions.is_empty() && loaded.config.plugins.tools.plugins.is_empty());
}

// Promises: LUA-43
#[test]
fn what_is_wrong_is_said() {
    for (yaml, says) in [
        (
            "plugins: { lua: { scripts_dir: ./scripts }, tools: { plugins: { lua: { command: /bin/true } } } }",
            "name of the plugin that runs",
        ),
        ("plugins: { lua: { scripts_dir: ./scripts, limits: { llm_max_calls: 100 } } }", "1005 s together"),
        ("plugins: { lua: { scripts_dir: ./scripts, limits: { memory_mb: 0 } } }", "memory_mb"),
        ("plugins: { lua: { scripts_dir: ./scripts, libraries: [io] } }", "libraries"),
        ("plugins: { lua: { watch: true } }", "scripts_dir"),
        (
            "plugins: { lua: { scripts_dir: ./scripts, default_model: smal } }\nmodels: { providers: { p: { kind: openai, base_url: \"http://127.0.0.1:9\" } }, \
             catalog: { p/small: { tier: cheap, context_window: 8000, free: true } } }",
            "plugins.lua.default_model: no model is called \"smal\"",
        ),
    ] {
        let (_dir, loaded) = load_with(&["a.lua"], yaml);
        let error = loaded.expect_err("it is refused");
        assert!(error.contains(says), "expected {says:?} in {error}");
    }
    let (dir, loaded) = load_with(&["a.lua"], "plugins: { lua: { scripts_dir: ./scripts, order: [b] } }");
    let loaded = loaded.expect("it is valid");
    assert!(loaded.warnings.iter().any(|warning| warning.to_string().contains("there is no script b.lua")));
    let scripts = dir.path().join("scripts");
    fs::set_permissions(&scripts, fs::Permissions::from_mode(0o777)).expect("set");
    let error = load(&loaded.options).expect_err("it is refused").to_string();
    assert!(error.contains("everybody may write to it"), "{error}");
}

#[test]
fn a_directory_that_is_there_and_cannot_be_read_is_a_problem() {
    let dir = TempDir::new().expect("a directory");
    // A file in its place: root may read every directory.
    fs::write(dir.path().join("scripts"), "").expect("written");
    let file = dir.path().join("talon.yaml");
    fs::write(&file, "plugins: { lua: { scripts_dir: ./scripts } }").expect("written");
    let errors = load(&options_for(file)).expect_err("it is refused").to_string();
    assert!(errors.contains("is there and cannot be read"), "{errors}");
}
