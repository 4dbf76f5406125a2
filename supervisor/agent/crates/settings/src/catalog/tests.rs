use super::*;

fn providers() -> BTreeSet<String> {
    ["openai", "anthropic", "openrouter", "ollama"].map(str::to_owned).into()
}

fn keys(yaml: &str) -> CatalogKeys {
    serde_saphyr::from_str(yaml).expect("the keys of a catalog")
}

fn problems(yaml: &str) -> Vec<String> {
    let problems = Catalog::new(&keys(yaml), &providers()).expect_err("it has problems");
    problems.0.iter().map(ToString::to_string).collect()
}

const GOOD: &str = "
openai/gpt-4o-mini:
  { alias: small, tier: cheap, context_window: 128000, max_output_tokens: 16384, tools: true, vision: true,
    cost: { input: 0.15, cached_input: 0.075, output: 0.60 }, weight: 120 }
openrouter/anthropic/claude-sonnet-4:
  { tier: premium, context_window: 200000, tools: true, cost: { input: 3, output: 15.0 } }
ollama/qwen3:8b: { tier: cheap, context_window: 40960, tools: true, free: true }
ollama/gpt-4o-mini: { tier: cheap, context_window: 8192, free: true }
";

#[test]
fn a_good_catalog_is_read_whole() {
    let catalog = Catalog::new(&keys(GOOD), &providers()).expect("a good catalog");
    assert_eq!(catalog.entries().len(), 4);
    let routed = catalog.find("openrouter/anthropic/claude-sonnet-4").expect("there is one");
    assert_eq!(
        (routed.id.provider.as_str(), routed.id.name.as_str()),
        ("openrouter", "anthropic/claude-sonnet-4")
    );
    assert_eq!(routed.model.weight, 100);
    assert_eq!(routed.model.prices().output.to_string(), "15.00");
    assert_eq!(routed.model.output_limit(), 200_000);
    let small = catalog.find("small").expect("an alias");
    assert_eq!(small.model.output_limit(), 16_384);
    assert_eq!(catalog.get(&small.id), Some(small));
    assert_eq!(catalog.find("qwen3:8b").expect("a name that one provider has").id.provider, "ollama");
    for entry in catalog.entries() {
        assert_eq!(catalog.get(&entry.id), Some(entry));
        assert_eq!(catalog.find(&entry.id.to_string()), Ok(entry));
    }
}

#[test]
fn keys_are_written_as_they_are_read() {
    let keys = keys(GOOD);
    let json = serde_json::to_string(&keys).expect("keys");
    assert_eq!(serde_json::from_str::<CatalogKeys>(&json).expect("keys"), keys);
}

#[test]
fn a_name_that_no_model_has_is_answered_with_the_nearest() {
    let catalog = Catalog::new(&keys(GOOD), &providers()).expect("a good catalog");
    let error = catalog.find("openai/gpt4o-mini").expect_err("a slip");
    assert_eq!(error.nearest[0], "openai/gpt-4o-mini");
    assert!(error.to_string().contains("the nearest are openai/gpt-4o-mini"), "{error}");
    let error = catalog.find("gpt-4o-mini").expect_err("two providers have it");
    assert_eq!(error.ambiguous, ["ollama/gpt-4o-mini", "openai/gpt-4o-mini"]);
    assert!(error.to_string().ends_with("write the provider with it"), "{error}");
    let error = catalog.find(&"z".repeat(5000)).expect_err("none");
    assert!(error.to_string().len() < 200);
    assert!(error.to_string().contains("talon model list"), "{error}");
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let found = problems(
        "
opnai/gpt-4o: { tier: mid, context_window: 128000, free: true }
no-provider: { tier: mid, context_window: 128000, free: true }
openai/zero: { tier: mid, context_window: 0, max_output_tokens: 0, free: true }
openai/long: { tier: mid, context_window: 1000, max_output_tokens: 1001, free: true }
openai/priceless: { tier: mid, context_window: 1000 }
openai/both: { tier: mid, context_window: 1000, free: true, cost: { input: 1, output: 1 } }
openai/swapped: { tier: mid, context_window: 1000, cost: { input: 1, cached_input: 2, output: 1 } }
openai/heavy: { tier: mid, context_window: 1000, free: true, weight: 1001 }
openai/light: { tier: mid, context_window: 1000, free: true, weight: 0 }
openai/named: { alias: 'a b', tier: mid, context_window: 1000, free: true }
openai/one: { alias: same, tier: mid, context_window: 1000, free: true }
openai/two: { alias: same, tier: mid, context_window: 1000, free: true }
openai/three: { alias: two, tier: mid, context_window: 1000, free: true }
'openai/white space': { tier: mid, context_window: 1000, free: true }
",
    );
    let expected = [
        "models.catalog.no-provider: a model is written as its provider",
        "models.catalog.openai/both.free: it is free and costs something",
        "models.catalog.openai/heavy.weight: 1001 is not between 1 and 1000",
        "models.catalog.openai/light.weight: 0 is not between 1 and 1000",
        "models.catalog.openai/long.max_output_tokens: 1001 tokens are more than context_window (1000)",
        "models.catalog.openai/named.alias: this is no alias",
        "models.catalog.openai/priceless.cost: what it costs is not said; write cost:",
        "models.catalog.openai/swapped.cost.cached_input:",
        "models.catalog.openai/white space: this name is too long, or has white space",
        "models.catalog.openai/zero.context_window: a window of 0 tokens",
        "models.catalog.openai/zero.max_output_tokens: an answer of 0 tokens",
        "models.catalog.opnai/gpt-4o: no provider is called \"opnai\"; did you mean openai?",
        "models.catalog.openai/three.alias: \"two\" means openai/two already",
        "models.catalog.openai/two.alias: \"same\" means openai/one already",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\nis not\n{expected}");
    }
}

#[test]
fn what_no_key_takes_is_refused_with_its_name() {
    let refused = |yaml: &str| serde_saphyr::from_str::<CatalogKeys>(yaml).expect_err("refused").to_string();
    assert!(refused("a/b: { tier: mid, context_window: 10, free: true, colour: red }").contains("colour"));
    assert!(refused("a/b: { context_window: 10, free: true }").contains("tier"));
    assert!(refused("a/b: { tier: huge, context_window: 10, free: true }").contains("cheap"));
    assert!(
        refused("a/b: { tier: mid, context_window: 10, cost: { input: -1, output: 1 } }").contains("dollars")
    );
    assert!(refused("a/b: { tier: mid, context_window: 10, cost: { input: 1 } }").contains("output"));
    assert!(
        refused("a/b: { tier: mid, context_window: 10, cost: { input: 0.0000001, output: 1 } }")
            .contains("decimals")
    );
}

#[test]
fn a_catalog_without_providers_says_what_to_do() {
    let yaml = "openai/x: { tier: mid, context_window: 10, free: true }";
    let problems = Catalog::new(&keys(yaml), &BTreeSet::new()).expect_err("no provider");
    assert!(problems.to_string().ends_with("configure one under models.providers"), "{problems}");
}

#[test]
fn more_models_than_there_may_be_are_a_problem() {
    let model =
        || keys("openai/x: { tier: mid, context_window: 10, free: true }").0.remove("openai/x").expect("it");
    let many = CatalogKeys((0..=MAX_MODELS).map(|n| (format!("openai/{n}"), model())).collect());
    let problems = Catalog::new(&many, &providers()).expect_err("too many");
    assert_eq!(problems.0.len(), 1);
}

#[test]
fn the_schema_has_every_key() {
    let schema = schemars::schema_for!(CatalogKeys).to_value().to_string();
    for key in ["alias", "context_window", "max_output_tokens", "cached_input", "weight", "dollars"] {
        assert!(schema.contains(key), "{key}");
    }
}
