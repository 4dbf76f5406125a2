//! `agent`, `models` and `orchestrator` as parts of the configuration.

use talon_agent_settings::{ConfirmMode, KeySource, ProviderKind, TimeSpan};

use super::tests::Scene;
use super::*;

/// The example that people copy.
const EXAMPLE_WITH_AGENT: &str = include_str!("../../../deploy/talon.agent.example.yaml");

#[test]
fn everything_is_read_and_paths_start_at_the_file() {
    let scene = Scene::file(
        "agent:
  enabled: true
  trusted_plugins: [hello]
  turn: { iterations: 3, cost: 0.25, wall_time: 2m }
  confirm: { default: always, rules: [{ tool: 'files.*', ask: never }], patterns: ['(?i)drop\\s+table'] }
  allow: { senders: { alice: ['files.*'] }, subagents: { Poet: ['files.read'] } }
  subagents:
    cost: null
    agents:
      Poet: { description: Writes poems., prompt: Write one., model: small, schema: { type: object, properties: { n: { minimum: 1.5 } } } }
models:
  default: small
  thinking: low
  providers:
    local: { kind: ollama, timeouts: { total: 1h } }
    theirs:
      kind: openai
      base_url: https://api.example.org/v1
      api_keys: [{ env: KEY }, { file: keys/theirs }]
      ca_file: ca.pem
      headers: { x-team: hunter2 }
      proxy: direct
  catalog:
    local/qwen3:8b: { alias: small, tier: cheap, context_window: 32768, tools: true, free: true }
    theirs/big: { tier: premium, context_window: 200000, cost: { input: 3, cached_input: '0.30', output: 15.125 } }
  budget: { per_day: 5 }
orchestrator:
  rules: [Answer shortly.]
",
    );
    let Loaded { config, warnings, .. } = scene.load();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(config.runs_agent());
    assert_eq!((config.agent.turn.iterations, config.agent.turn.calls_at_once), (3, 10));
    assert_eq!(config.agent.turn.cost, "0.25".parse().ok());
    assert_eq!(config.agent.turn.wall_time, TimeSpan::from_secs(120));
    assert_eq!(config.agent.confirm.default, ConfirmMode::Always);
    assert_eq!(config.agent.subagents.cost, None);
    assert_eq!(config.agent.subagents.agents["Poet"].schema["properties"]["n"]["minimum"], 1.5);
    let theirs = &config.models.providers.0["theirs"];
    let here = &scene.options.environment.cwd;
    assert_eq!(theirs.kind, ProviderKind::Openai);
    assert_eq!(
        theirs.api_keys,
        [KeySource::Env("KEY".to_owned()), KeySource::File(here.join("keys/theirs"))]
    );
    assert_eq!(theirs.ca_file, Some(here.join("ca.pem")));
    let cost = config.models.catalog.0["theirs/big"].cost.expect("it costs");
    assert_eq!((cost.input, cost.output), ("3".parse().unwrap(), "15.125".parse().unwrap()));
    assert_eq!(config.models.budget.per_day, "5".parse().ok());
    assert_eq!(config.orchestrator.rules, ["Answer shortly."]);
}

// Promises: AGENT-115
#[test]
fn how_a_model_answers_is_read_and_checked() {
    let with = |answers: &str| {
        Scene::file(format!(
            "models:\n  providers: {{ local: {{ kind: llama.cpp }}, studio: {{ kind: lm-studio }} }}\n  catalog:\n    \
             local/m: {{ tier: mid, context_window: 1000, free: true, {answers} }}\n"
        ))
    };
    let config = with("temperature: 0.2, top_p: 1, max_tokens: 500, thinking: high").load().config;
    let model = &config.models.catalog.0["local/m"];
    let number = |number: Option<talon_agent_settings::SamplingNumber>| number.map(|number| number.get());
    assert_eq!((number(model.temperature), number(model.top_p)), (Some(0.2), Some(1.0)));
    assert_eq!((model.max_tokens, model.thinking.map(|level| level.word())), (Some(500), Some("high")));
    for (wrong, key) in [
        ("temperature: 2.5", "temperature"),
        ("temperature: warm", "temperature"),
        ("temperature: -1", "temperature"),
        ("top_p: 0", "top_p"),
        ("top_p: 1.5", "top_p"),
        ("max_tokens: 2000", "max_tokens"),
        ("thinking: much", "thinking"),
    ] {
        let errors = with(wrong).errors();
        assert!(errors.contains(key), "{wrong}: {errors}");
    }
}

#[test]
fn variables_of_the_environment_reach_them() {
    let loaded = Scene::empty()
        .var("TALON_AGENT__ENABLED", "true")
        .var("TALON_MODELS__PROVIDERS__OPEN_ROUTER__KIND", "openai")
        .var("TALON_MODELS__PROVIDERS__OPEN_ROUTER__API_KEY_ENV", "OPENROUTER_API_KEY")
        .var("TALON_MODELS__PROVIDERS__OPEN_ROUTER__API_KEYS", "[{ file: /k }]")
        .var("TALON_MODELS__BUDGET__PER_DAY", "2.50")
        .var("TALON_MODELS__CATALOG", "{ open-router/x/y: { tier: mid, context_window: 1000, free: true } }")
        .var("TALON_AGENT__TURN__COST", "")
        .load();
    assert!(loaded.config.runs_agent());
    let provider = &loaded.config.models.providers.0["open-router"];
    assert_eq!(provider.api_key_env.as_deref(), Some("OPENROUTER_API_KEY"));
    assert_eq!(provider.api_keys, [KeySource::File("/k".into())]);
    assert_eq!(loaded.config.models.budget.per_day, "2.5".parse().ok());
    assert!(loaded.config.models.catalog.0.contains_key("open-router/x/y"));
    assert_eq!(loaded.config.agent.turn.cost, None);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

// Promises: CONF-17
#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let errors = Scene::file(
        "agent:
  program: /nonexistent/talon-agent
  turn: { iterations: 0, cost: 1 €, wall_time: 30h }
  context: { profile: frugl, shares: { system: 50, tools: 50 }, turns: 3, kept_turns: 4 }
  confirm: { rules: [{ tool: files, ask: nevr }, { tool: '*', ask: never }], patterns: ['(?=x)', ok], expires_after: 0s }
  allow:
    senders: { 'uid:0': ['files.*'], 'uid:x': [], alice: [files] }
    subagents: { ResearchAgnt: [] }
  subagents:
    agents:
      a b: { description: x, prompt: ' ', schema: [], model: smal }
  trusted_plugins: [Hello]
models:
  default: nothing
  providers:
    openai: { kind: openai, num_ctx: 512, base_url: 'https://u:hunter2@x', api_keys: [{ env: A, file: B }, {}, { text: C }] }
    scripted: { kind: ollama, timeouts: { connect: 2d } }
    'no name': { kind: ollama }
    empty: {}
  catalog:
    opnai/x: { tier: cheap, context_window: 1000, free: true }
    openai/y: { alias: small, tier: cheep, context_window: 1000 }
    openai/z: { tier: mid, context_window: 1000, cost: { input: -1, output: 0.0000001 } }
    openai/w: { tier: mid, context_window: 1000 }
  budget: { per_day: 2000000 }
  fallback: { silence: 20m, retries: 11 }
orchestrator:
  rules: ['']
",
    )
    .errors();
    for said in [
        "agent.program: /nonexistent/talon-agent is no file",
        "agent.turn.iterations: expected a whole number from 1 to 1000",
        "agent.turn.cost: expected an amount of dollars, found \"1 €\" (write it like 2, 0.15",
        "agent.turn.wall_time: has to be more than nothing and at most 1d",
        "agent.context.profile: expected \"frugal\", \"balanced\" or \"full\", found \"frugl\"",
        "agent.context.shares: the sections have 105 hundredths together",
        "agent.context.kept_turns: 4 turns are kept, and 3 are shown at most",
        "agent.confirm.rules[0].ask: expected \"always\", \"destructive\" or \"never\", found \"nevr\" (did you mean \"never\"?)",
        "agent.confirm.rules[0].tool: \"*\" is no pattern (write plugin.action",
        "agent.confirm.patterns[0]: is no expression: look-around",
        "agent.confirm.expires_after: has to be more than nothing",
        "uid 0 is root on this machine (write the user's name)",
        "is no uid",
        "agent.allow.senders.alice[0]: \"files\" is no pattern",
        "there is no such sub-agent (did you mean ResearchAgent?)",
        "is no name of a sub-agent",
        "prompt: is empty",
        "schema: is no schema of an object",
        "agent.trusted_plugins[0]:",
        "models.providers.openai.num_ctx: num_ctx is for kind: ollama alone",
        "models.providers.openai.base_url: base_url holds a user or a password",
        "models.providers.openai.api_keys[0]: expected a map with one of the keys env and file, found 2 of them (keep one of them)",
        "models.providers.openai.api_keys[1]: expected a map with one of the keys env and file, found 0 of them",
        "models.providers.openai.api_keys[2].text: unknown key",
        "models.providers.scripted: this name is kept for kind: scripted",
        "models.providers.scripted.timeouts.connect: has to be more than nothing and at most 1d",
        "is not the name of a provider",
        "models.providers.empty.kind: is missing",
        "no provider is called \"opnai\" (did you mean openai?)",
        "tier: expected \"cheap\", \"mid\" or \"premium\", found \"cheep\" (did you mean \"cheap\"?)",
        "cost.input: expected an amount of dollars, found \"-1\"",
        "cost.output: expected an amount of dollars, found \"0.0000001\" (write at most 6 decimals)",
        "models.catalog.\"openai/w\".cost: what it costs is not said",
        "models.budget.per_day: expected an amount of dollars, found \"2000000\" (write at most 1000000)",
        "models.fallback.silence: 20m is longer than patience (10m) (lower it, or raise patience)",
        "models.fallback.retries: expected a whole number from 0 to 10",
        "orchestrator.rules[0]: is empty",
    ] {
        assert!(errors.contains(said), "{said}\nis not in\n{errors}");
    }
    assert_eq!(errors.lines().count(), 38, "nothing else:\n{errors}");
    assert!(!errors.contains("hunter2") && !errors.contains("please report"), "{errors}");
}

// Promises: CONF-17
#[test]
fn a_model_that_is_not_there_is_named_with_the_nearest() {
    let errors = Scene::file(
        "models:
  default: smal
  providers: { a: { kind: ollama }, b: { kind: ollama } }
  catalog:
    a/x: { alias: small, tier: cheap, context_window: 1000, free: true }
    a/twin: { tier: cheap, context_window: 1000, free: true }
    b/twin: { tier: cheap, context_window: 1000, free: true }
agent:
  subagents:
    agents:
      Poet: { description: x, prompt: x, schema: { type: object }, model: twin }
      Lost: { description: x, prompt: x, schema: { type: object }, model: zzzzz }
",
    )
    .errors();
    for said in [
        "models.default: no model is called \"smal\" (did you mean small?)",
        "agents.Poet.model: several models are called \"twin\": a/twin, b/twin (write the provider with it)",
        "agents.Lost.model: no model is called \"zzzzz\" (list it under models.catalog)",
    ] {
        assert!(errors.contains(said), "{said}\nis not in\n{errors}");
    }
}

// Promises: CONF-17
#[test]
fn a_model_of_vectors_that_cannot_be_asked_is_named() {
    let with = |embeddings: &str, more: &str| {
        Scene::file(format!(
            "models:\n  providers: {{ o: {{ kind: ollama }}, a: {{ kind: anthropic }}, far: {{ kind: openai }} }}\n{more}  \
             embeddings: {{ {embeddings} }}\n"
        ))
    };
    for (embeddings, says) in [
        (
            "provider: p, model: m",
            "models.embeddings.provider: no provider is called \"p\" (list it under models.providers)",
        ),
        ("provider: a, model: m", "models.embeddings.provider: a makes no vectors of texts"),
        ("provider: o, model: ''", "models.embeddings.model: it names no model"),
        ("provider: o, model: m, dimensions: 9000", "models.embeddings.dimensions"),
    ] {
        let errors = with(embeddings, "").errors();
        assert!(errors.contains(says), "{says}\nis not in\n{errors}");
    }
    let warnings = |text: &str| {
        let warnings = with(text, "  local_only: true\n").load().warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let far = warnings("provider: far, model: m");
    assert!(far.contains("far is not on this machine, so with local_only it is never asked"), "{far}");
    assert!(!warnings("provider: o, model: m").contains("never asked"));
}

// Promises: CONF-17
#[test]
fn an_agent_with_nobody_to_ask_is_told_what_to_do() {
    let warnings = |text: &str| {
        let warnings = Scene::file(text).load().warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(warnings("agent: { enabled: false }"), "");
    let none = warnings("agent: { enabled: true }");
    assert!(none.contains("agent.enabled") && none.contains("ollama: { kind: ollama }"), "{none}");
    let empty = warnings("agent: { enabled: true }\nmodels: { providers: { ollama: { kind: ollama } } }");
    assert!(empty.contains("models.catalog"), "{empty}");
    let off = warnings("agent: { enabled: true }\nstate: { engine: off }");
    assert!(off.contains("nowhere to keep its sessions"), "{off}");
    let budget = warnings("models: { budget: { per_session: 2, per_day: 1 } }");
    assert!(budget.contains("models.budget.per_session"), "{budget}");
}

// Promises: CONF-24
#[test]
fn the_agent_runs_if_there_is_something_for_it_to_do() {
    let scene = |text: &str| Scene::file(text).load();
    let provider = "models: { providers: { ollama: { kind: ollama } } }\n";
    let extension = "plugins: { tools: { plugins: { a: { command: /bin/true } } } }\nextensions: { filters: [{ action: a.b }] }\n";
    for (text, runs) in
        [("", false), (provider, true), (extension, true), ("models: { budget: { per_day: 1 } }", false)]
    {
        assert_eq!(scene(text).config.runs_agent(), runs, "{text}");
        assert_eq!(scene(&format!("agent: {{ enabled: auto }}\n{text}")).config.runs_agent(), runs, "{text}");
        assert!(scene(&format!("agent: {{ enabled: true }}\n{text}")).config.runs_agent(), "{text}");
        assert!(!scene(&format!("agent: {{ enabled: false }}\n{text}")).config.runs_agent(), "{text}");
    }
    // It needs no model for its extensions, and says so only where one asked for it.
    assert_eq!(scene(extension).warnings.len(), 0, "{:?}", scene(extension).warnings);
    let off = scene(&format!("agent: {{ enabled: false }}\n{extension}"));
    assert!(off.warnings[0].to_string().contains("set agent.enabled: auto"), "{:?}", off.warnings);
    let quoted = Scene::file("agent: { enabled: \"true\" }").errors();
    assert!(quoted.contains("\"auto\", true or false") && quoted.contains("without quotes"), "{quoted}");
    let near = Scene::file("agent: { enabled: aut }").errors();
    assert!(near.contains("did you mean \"auto\"?"), "{near}");
}

// Promises: CONF-24
#[test]
fn a_reload_that_gives_the_agent_its_first_work_is_a_restart() {
    let running = Scene::file("").load().config;
    let provider = Scene::file("models: { providers: { ollama: { kind: ollama } } }").load().config;
    let applied = provider.applicable_to(&running);
    assert!(!applied.runs_agent());
    let keys = |found: std::collections::BTreeSet<KeyPath>| {
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(keys(running.differences(&applied)), ["models.providers.ollama"]);
    assert_eq!(keys(applied.differences(&provider)), ["agent.enabled"]);
    // Taken back, nothing waits any more; and `true` for what `auto` comes to anyway is no change.
    assert!(keys(running.applicable_to(&applied).differences(&running)).is_empty());
    let always = Scene::file("agent: { enabled: true }\nmodels: { providers: { ollama: { kind: ollama } } }")
        .load()
        .config;
    assert!(keys(provider.differences(&always)).is_empty());
}

// Promises: CONF-18
#[test]
fn secrets_are_shown_nowhere_and_compared_all_the_same() {
    let text = |secret: &str| {
        format!(
            "models:\n  providers:\n    a:\n      kind: openai\n      headers: {{ x-a: {secret}-header }}\n      \
             proxy: http://u:{secret}-proxy@p\n"
        )
    };
    let loaded = Scene::file(text("hunter2")).load();
    let shown = format!("{}{}{:?}", loaded.show_yaml(), loaded.show_json(), loaded.config);
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("[hidden]"), "{shown}");
    let other = Scene::file(text("hunter3")).load().config;
    let found: Vec<String> = loaded.config.differences(&other).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["models.providers.a.headers.x-a", "models.providers.a.proxy"]);
}

// Promises: CONF-18
#[test]
fn what_is_shown_reads_back_as_the_same() {
    let scene = Scene::file(EXAMPLE_WITH_AGENT);
    let loaded = scene.load();
    let again = Scene::file(loaded.show_yaml()).load();
    assert_eq!(again.config.agent, loaded.config.agent);
    assert_eq!(again.config.models, loaded.config.models);
    assert_eq!(again.config.orchestrator, loaded.config.orchestrator);
}

// Promises: CONF-20
#[test]
fn the_example_is_good_and_has_what_it_promises() {
    let Loaded { config, warnings, .. } = Scene::file(EXAMPLE_WITH_AGENT).load();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(config.runs_agent());
    let kinds: Vec<ProviderKind> = config.models.providers.0.values().map(|entry| entry.kind).collect();
    for kind in [ProviderKind::Ollama, ProviderKind::Openai, ProviderKind::Anthropic] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
    assert!(config.models.default.is_some() && config.models.budget.per_day.is_some());
}

// Promises: CONF-20
#[test]
fn a_reload_changes_what_the_agent_is_told_and_not_whether_it_is_there() {
    let before = Scene::file("").load().config;
    let text = "agent:\n  enabled: true\n  turn: { iterations: 3 }\n  allow: { senders: { alice: [] } }\nmodels:\n  \
                providers: { ollama: { kind: ollama } }\norchestrator: { rules: [x] }\n";
    let after = Scene::file(text).load().config;
    let running = after.applicable_to(&before);
    let keys = |found: std::collections::BTreeSet<KeyPath>| {
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        keys(before.differences(&running)),
        [
            "agent.allow.senders.alice",
            "agent.turn.iterations",
            "models.providers.ollama",
            "orchestrator.rules"
        ]
    );
    assert_eq!(keys(running.differences(&after)), ["agent.enabled"]);
}

#[test]
fn a_trusted_plugin_that_is_not_named_is_a_warning_where_plugins_are() {
    let loaded = |tools: &str| {
        Scene::file(format!(
            "agent: {{ trusted_plugins: [git, gti] }}\nplugins: {{ tools: {{ {tools} }} }}\n"
        ))
        .load()
    };
    let warned = |tools: &str| -> Vec<String> {
        let warnings = loaded(tools).warnings;
        let about = |text: &String| text.contains("trusted_plugins");
        warnings.iter().map(ToString::to_string).filter(about).collect()
    };
    assert!(warned("").is_empty());
    let warnings = warned("plugins: { git: { command: /bin/true } }");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("agent.trusted_plugins[1]") && warnings[0].contains("did you mean git?"));
}

// Promises: AGENT-83
#[test]
fn a_file_of_patterns_holds_to_its_examples_or_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("confirm.yaml");
    let config = format!("agent: {{ confirm: {{ pattern_file: {} }} }}", file.display());
    let scene = Scene::file(&config);
    let errors = || load(&scene.options).err().map(|errors| errors.to_string()).unwrap_or_default();
    assert!(errors().contains("cannot be read"), "{}", errors());
    for (text, said) in [
        ("patterns: [{ name: drop, pattern: 'drop table', match: [drop table t], no_match: [select] }]", ""),
        (
            "patterns: [{ name: drop, pattern: 'drop table', match: [DROP TABLE t] }]",
            "pattern 1 (\"drop\") does not find its example",
        ),
        ("patterns: [{ name: drop, pattern: 'drop', match: [drop], no_match: [drop] }]", "finds its example"),
        ("patterns: [{ name: drop, pattern: '(', match: [drop] }]", "expression"),
        ("patterns: [{ name: drop, patern: x, match: [drop] }]", "did you mean patterns[0].pattern?"),
        ("patterns: [", "agent.confirm.pattern_file"),
    ] {
        std::fs::write(&file, text).unwrap();
        let found = errors();
        assert_eq!(found.is_empty(), said.is_empty(), "{text}: {found}");
        assert!(found.contains(said), "{text}: {found}");
    }
}

// Promises: EXT-120
#[test]
fn models_of_a_plugin_are_checked_against_the_catalog() {
    let text = |grant: &str, rest: &str| {
        format!(
            "plugins: {{ tools: {{ plugins: {{ a: {{ command: /bin/true, models: {grant} }} }} }} }}\n\
             models:\n  providers: {{ local: {{ kind: ollama }} }}\n  \
             catalog: {{ local/qwen: {{ alias: small, tier: cheap, context_window: 32768, free: true }} }}\n{rest}"
        )
    };
    let granted = Scene::file(text("{ allow: [auto, small], own_budget: { per_day: 0.5 } }", "")).load();
    assert!(granted.warnings.is_empty(), "{:?}", granted.warnings);
    let grant = granted.config.model_grant("a").expect("a grant");
    assert_eq!((grant.max_calls, grant.concurrency), (10, 4));
    assert_eq!(grant.own_budget.map(|own| own.calls_per_day), Some(1000));
    assert!(granted.config.spec_defaults().granted_models.contains("a"));
    for (grant, says) in [
        ("{ allow: [smal] }", "did you mean small?"),
        ("{ allow: [] }", "names no model"),
        ("{ allow: [auto, auto] }", "stands there twice"),
        ("{ allow: [auto], max_calls: 0 }", "max_calls"),
        ("{ allow: [auto], concurrency: 65 }", "concurrency"),
        ("{ allow: [auto], timeout: 0s }", "timeout"),
        ("{ allow: [auto], own_budget: { per_day: 1, calls_per_day: 0 } }", "calls_per_day"),
    ] {
        let errors = Scene::file(text(grant, "")).errors();
        assert!(errors.contains(says), "expected {says:?} in {errors}");
    }
    let off = Scene::file(text("{ allow: [auto] }", "agent: { enabled: false }")).load();
    assert!(off.warnings[0].to_string().contains("the plugin gets no socket"), "{:?}", off.warnings);
    assert!(off.config.spec_defaults().granted_models.is_empty());
}
