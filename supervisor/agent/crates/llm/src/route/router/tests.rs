use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::route::catalog::CatalogKeys;

fn catalog(yaml: &str) -> Catalog {
    let keys: CatalogKeys = serde_saphyr::from_str(yaml).expect("the keys of a catalog");
    let providers: BTreeSet<String> = ["a", "b", "c"].map(str::to_owned).into();
    Catalog::new(&keys, &providers).expect("a good catalog")
}

const MODELS: &str = "
a/small: { alias: little, tier: cheap, context_window: 16000, tools: true, cost: { input: 0.15, output: 0.60 } }
a/blind: { tier: cheap, context_window: 128000, cost: { input: 0.10, output: 0.40 } }
b/small: { tier: cheap, context_window: 128000, tools: true, vision: true, cost: { input: 0.25, output: 1 } }
b/mid: { tier: mid, context_window: 200000, tools: true, vision: true, cost: { input: 0.80, output: 4 } }
c/mid: { tier: mid, context_window: 200000, tools: true, cost: { input: 0.80, output: 4 }, weight: 101 }
a/mid: { tier: mid, context_window: 200000, tools: true, cost: { input: 0.80, output: 4 } }
c/best: { tier: premium, context_window: 200000, tools: true, cost: { input: 3, output: 15 } }
";

// Promises: AGENT-116
#[test]
fn tools_are_offered_where_a_permitted_model_calls_them() {
    let catalog = |models: &str| {
        let keys: CatalogKeys = serde_saphyr::from_str(models).expect("a catalog");
        Catalog::new(&keys, &["a".to_owned(), "b".to_owned()].into()).expect("a good catalog")
    };
    let entry = |name: &str, tools: bool| {
        format!("{name}: {{ tier: mid, context_window: 1000, free: true, tools: {tools} }}\n")
    };
    let mixed = catalog(&(entry("a/plain", false) + &entry("b/able", true)));
    let plain = catalog(&entry("a/plain", false));
    let routing = Routing { local: ["a".to_owned()].into(), ..Routing::default() };
    let pinned = |name: &str| Pins { request: Some(name.to_owned()), ..Pins::default() };
    let local = Pins { local_only: true, ..Pins::default() };
    assert!(calls_tools(&mixed, &Pins::default(), &routing));
    assert!(!calls_tools(&mixed, &local, &routing), "the other one is not on this machine");
    assert!(!calls_tools(&mixed, &pinned("a/plain"), &routing));
    assert!(!calls_tools(&plain, &Pins::default(), &routing));
    // Errors of their own.
    assert!(calls_tools(&plain, &pinned("nobody"), &routing));
    assert!(calls_tools(&Catalog::default(), &Pins::default(), &routing));
}

fn needs(tools: bool) -> Requirements {
    Requirements { tools, vision: false, input_tokens: 1000, output_tokens: 500 }
}

fn question(task: Task, complexity: Complexity, needs: Requirements, pins: &Pins) -> RouteQuery<'_> {
    RouteQuery { task, complexity, needs, pins, routing: &NO_ROUTING }
}

/// Without a word of the operator about the order.
static NO_ROUTING: Routing = Routing { default: None, priorities: BTreeMap::new(), local: BTreeSet::new() };

fn all_ready(_: &ModelRef) -> Availability {
    Availability::Ready
}

fn names(route: &Route) -> Vec<String> {
    route.candidates.iter().map(|candidate| candidate.model.to_string()).collect()
}

#[test]
fn the_cheapest_that_can_do_it_comes_first_and_other_tiers_follow() {
    let (catalog, none) = (catalog(MODELS), Pins::default());
    let route_to = |task, complexity, needs| {
        route(&catalog, &question(task, complexity, needs, &none), all_ready).expect("a route")
    };
    let chat = route_to(Task::Chat, Complexity::Simple, needs(false));
    assert_eq!(names(&chat), ["a/blind", "a/small", "b/small", "c/mid", "a/mid", "b/mid", "c/best"]);
    let whys: Vec<SelectionReason> = chat.candidates.iter().map(|candidate| candidate.why).collect();
    assert_eq!(
        whys[..4],
        [
            SelectionReason::Cheapest,
            SelectionReason::InTier,
            SelectionReason::InTier,
            SelectionReason::OtherTier
        ]
    );
    assert_eq!(chat.candidates[0].estimate.to_string(), "0.0003");

    let with_tools = route_to(Task::Chat, Complexity::Simple, needs(true));
    assert_eq!(names(&with_tools)[0], "a/small");
    assert_eq!(
        with_tools.passed_over,
        [SkippedCandidate { model: "a/blind".parse().expect("a model"), why: RejectionReason::NoTools }]
    );

    // Up before down, and by weight and then by name where the cost is the same.
    let loops = route_to(Task::Orchestration, Complexity::Moderate, needs(true));
    assert_eq!(names(&loops), ["c/mid", "a/mid", "b/mid", "c/best", "a/small", "b/small"]);
    let thought = route_to(Task::Reasoning, Complexity::Simple, needs(true));
    assert_eq!(names(&thought), ["c/best", "c/mid", "a/mid", "b/mid", "a/small", "b/small"]);
    assert_eq!(thought.wanted, Tier::Premium);

    // The cheapest is the cheapest for this request: a/small has no room for it.
    let long = Requirements { tools: true, vision: false, input_tokens: 20_000, output_tokens: 500 };
    let subagent = route_to(Task::Subagent, Complexity::Complex, long);
    assert_eq!((subagent.wanted, names(&subagent)[0].as_str()), (Tier::Cheap, "b/small"));
    let pictures = Requirements { vision: true, ..needs(false) };
    assert_eq!(names(&route_to(Task::Chat, Complexity::Simple, pictures)), ["b/small", "b/mid"]);
}

#[test]
fn the_cheapest_is_found_by_what_is_asked_not_by_one_price() {
    let catalog = catalog(
        "
a/reads-cheaply: { tier: cheap, context_window: 100000, cost: { input: 0.1, output: 10 } }
b/writes-cheaply: { tier: cheap, context_window: 100000, cost: { input: 1, output: 1 } }
",
    );
    let first = |input_tokens, output_tokens| {
        let needs = Requirements { input_tokens, output_tokens, ..Requirements::default() };
        let pins = Pins::default();
        let route = route(&catalog, &question(Task::Chat, Complexity::Simple, needs, &pins), all_ready);
        names(&route.expect("a route"))[0].clone()
    };
    assert_eq!(first(50_000, 100), "a/reads-cheaply");
    assert_eq!(first(1000, 1000), "b/writes-cheaply");
}

#[test]
fn a_pin_is_the_only_candidate_and_the_requests_is_stronger() {
    let catalog = catalog(MODELS);
    let pins = |request: Option<&str>, session: Option<&str>| Pins {
        request: request.map(str::to_owned),
        session: session.map(str::to_owned),
        ..Pins::default()
    };
    let route_to = |pins: &Pins, needs| {
        route(&catalog, &question(Task::Chat, Complexity::Simple, needs, pins), all_ready)
    };
    let session = route_to(&pins(None, Some("c/best")), needs(true)).expect("a route");
    assert_eq!(
        (names(&session), session.candidates[0].why),
        (vec!["c/best".to_owned()], SelectionReason::PinnedBySession)
    );
    let both = route_to(&pins(Some("little"), Some("c/best")), needs(true)).expect("a route");
    assert_eq!(
        (names(&both), both.candidates[0].why),
        (vec!["a/small".to_owned()], SelectionReason::PinnedByRequest)
    );

    let error = route_to(&pins(Some("c/bets"), None), needs(true)).expect_err("a slip");
    assert!(error.to_string().contains("the nearest are c/best"), "{error}");
    let error = route_to(&pins(Some("blind"), None), needs(true)).expect_err("it calls no tools");
    let expected = "a/blind was asked for and cannot call tools: choose another model, or none, so that one is chosen for you";
    assert_eq!(error.to_string(), expected);
    // Of the same name at two providers neither is meant.
    let error = route_to(&pins(None, Some("mid")), needs(true)).expect_err("ambiguous");
    assert!(error.to_string().contains("a/mid, b/mid, c/mid"), "{error}");
}

// Promises: GW-263
#[test]
fn a_request_may_name_a_tier_in_the_place_of_a_model() {
    let catalog = catalog(MODELS);
    let pins = |name: &str| Pins { request: Some(name.to_owned()), ..Pins::default() };
    let tiers = |name: &str| {
        let pins = pins(name);
        let query = question(Task::Chat, Complexity::Simple, needs(false), &pins);
        let routed = route(&catalog, &query, all_ready).expect("a route");
        routed.candidates.iter().map(|candidate| candidate.tier).collect::<Vec<_>>()
    };
    for tier in Tier::ALL {
        let routed = tiers(&format!("talon/{tier}"));
        assert_eq!(routed[0], tier);
        assert!(routed.len() > 1, "others follow");
    }
    let wrong = pins("talon/best");
    let query = question(Task::Chat, Complexity::Simple, needs(false), &wrong);
    assert!(matches!(route(&catalog, &query, all_ready), Err(RouteError::UnknownPin(_))));
    assert!(calls_tools(&catalog, &pins("talon/cheap"), &Routing::default()));
}

#[test]
fn what_is_out_is_left_out_and_what_recovers_comes_last() {
    let (catalog, none) = (catalog(MODELS), Pins::default());
    let failing = || Availability::Out(Outage::Failing { retry_in: Duration::from_millis(41_500) });
    let standing = |model: &ModelRef| match model.provider.as_str() {
        "a" => failing(),
        "c" => Availability::Recovering,
        _ => Availability::Ready,
    };
    let question = question(Task::Orchestration, Complexity::Simple, needs(true), &none);
    let routed = route(&catalog, &question, standing).expect("a route");
    assert_eq!(names(&routed), ["b/mid", "b/small", "c/mid", "c/best"]);
    assert_eq!(routed.candidates[2].why, SelectionReason::Recovering);

    let error = route(&catalog, &question, |_| failing()).expect_err("all are out");
    let text = error.to_string();
    assert!(
        text.starts_with("no model can answer this: a/blind cannot call tools; a/mid failed again and again"),
        "{text}"
    );
    assert!(text.contains("left alone for 42 s") && text.ends_with("; and 2 more"), "{text}");
    let error = route(&Catalog::default(), &question, all_ready).expect_err("nothing is configured");
    assert_eq!(error.to_string(), "no model is configured: list one under models.catalog");
}

#[test]
fn a_question_that_fills_the_window_is_refused() {
    let (catalog, none) =
        (catalog("a/x: { tier: cheap, context_window: 1000, free: true }"), Pins::default());
    let fits = |input_tokens, output_tokens| {
        let needs = Requirements { input_tokens, output_tokens, ..Requirements::default() };
        route(&catalog, &question(Task::Chat, Complexity::Simple, needs, &none), all_ready).is_ok()
    };
    assert!(fits(500, 500));
    assert!(!fits(501, 500));
    assert!(!fits(1000, 0));
    assert!(!fits(u64::MAX, u64::MAX));
}

#[test]
fn no_longer_answer_is_expected_than_a_model_can_give() {
    let terse = "a/terse: { tier: cheap, context_window: 1000, max_output_tokens: 100, free: true }";
    let (catalog, none) = (catalog(terse), Pins::default());
    let needs = Requirements { input_tokens: 900, output_tokens: 500, ..Requirements::default() };
    assert!(route(&catalog, &question(Task::Chat, Complexity::Simple, needs, &none), all_ready).is_ok());
}

fn a_model() -> impl Strategy<Value = (String, crate::route::catalog::Model)> {
    use crate::route::catalog::{Cost, Model};
    let tier = prop_oneof![Just(Tier::Cheap), Just(Tier::Mid), Just(Tier::Premium)];
    let price = || (0_u32..50).prop_map(|dollars| dollars.to_string().parse().expect("a price"));
    (0_usize..3, 0_u32..8, tier, 1_u64..5000, any::<bool>(), any::<bool>(), price(), price(), 1_u32..4)
        .prop_map(|(provider, name, tier, context_window, tools, vision, input, output, weight)| {
            let cost = Some(Cost { input, cached_input: None, cache_write: None, output });
            let model = Model {
                alias: None,
                tier,
                context_window,
                max_output_tokens: None,
                tools,
                vision,
                cost,
                free: false,
                weight,
                priority: None,
                temperature: None,
                top_p: None,
                max_tokens: None,
                thinking: None,
            };
            (format!("{}/{name}", ["a", "b", "c"][provider]), model)
        })
}

proptest! {
    /// No candidate is incapable, out of service or not the one that was pinned; all others are accounted
    /// for, in the order of the rules; and the same question gets the same route.
    // Promises: AGENT-17
    #[test]
    fn a_route_keeps_its_promises(
        list in prop::collection::vec(a_model(), 0..12),
        tools: bool, vision: bool, input_tokens in 0_u64..6000, output_tokens in 0_u64..2000,
        standings in prop::collection::vec(0_u8..3, 3), task in 0_usize..5, complexity in 0_usize..3,
        pin in prop::option::of(0_usize..12),
    ) {
        let keys = CatalogKeys(list.into_iter().collect());
        let providers: BTreeSet<String> = ["a", "b", "c"].map(str::to_owned).into();
        let catalog = Catalog::new(&keys, &providers).expect("they are good ones");
        let standing = |model: &ModelRef| {
            let index = ["a", "b", "c"].iter().position(|name| *name == model.provider).expect("one of them");
            match standings[index] {
                0 => Availability::Ready,
                1 => Availability::Recovering,
                _ => Availability::Out(Outage::NoCredit { retry_in: Duration::from_secs(1) }),
            }
        };
        let pinned = pin.and_then(|index| catalog.entries().get(index)).map(|entry| entry.id.to_string());
        let pins = Pins { request: pinned.clone(), ..Pins::default() };
        let needs = Requirements { tools, vision, input_tokens, output_tokens };
        let asked = question(Task::ALL[task], Complexity::ALL[complexity], needs, &pins);
        let capable = |entry: &CatalogEntry| {
            (!tools || entry.model.tools) && (!vision || entry.model.vision)
                && input_tokens + output_tokens.min(entry.model.context_window) <= entry.model.context_window
                && input_tokens < entry.model.context_window
                && !matches!(standing(&entry.id), Availability::Out(_))
        };
        let routed = route(&catalog, &asked, standing);
        prop_assert_eq!(&routed, &route(&catalog, &asked, standing));
        let any = catalog.entries().iter().any(|entry| {
            capable(entry) && pinned.as_ref().is_none_or(|pin| *pin == entry.id.to_string())
        });
        prop_assert_eq!(routed.is_ok(), any);
        let Ok(routed) = routed else { return Ok(()) };
        for candidate in &routed.candidates {
            let entry = catalog.get(&candidate.model).expect("it is of the catalog");
            prop_assert!(capable(entry));
            prop_assert!(pinned.as_ref().is_none_or(|pin| *pin == candidate.model.to_string()));
        }
        if pinned.is_some() {
            prop_assert_eq!(routed.candidates.len(), 1);
            return Ok(());
        }
        prop_assert_eq!(routed.candidates.len() + routed.passed_over.len(), catalog.entries().len());
        let ladder = routed.wanted.ladder();
        let order: Vec<(bool, usize, Money)> = routed.candidates.iter().map(|one| {
            let rung = ladder.iter().position(|tier| *tier == one.tier).expect("all tiers are on it");
            (one.why == SelectionReason::Recovering, rung, one.estimate)
        }).collect();
        prop_assert!(order.is_sorted());
    }
}

// Promises: AGENT-69
#[test]
fn the_operators_default_is_first_for_moderate_work_and_the_ladder_stands_behind_it() {
    let (catalog, none) = (catalog(MODELS), Pins::default());
    let routing = Routing { default: Some("little".to_owned()), ..Routing::default() };
    let route_to = |task, complexity| {
        let query = RouteQuery { routing: &routing, ..question(task, complexity, needs(true), &none) };
        route(&catalog, &query, all_ready).expect("a route")
    };
    for (task, complexity) in [
        (Task::Chat, Complexity::Moderate),
        (Task::Orchestration, Complexity::Simple),
        (Task::Orchestration, Complexity::Moderate),
    ] {
        let route = route_to(task, complexity);
        assert_eq!(names(&route), ["a/small", "c/mid", "a/mid", "b/mid", "c/best", "b/small"], "{task}");
        assert_eq!(route.candidates[0].why, SelectionReason::Default);
    }
    assert_eq!(names(&route_to(Task::Chat, Complexity::Complex))[0], "c/best");
    assert_eq!(names(&route_to(Task::Reasoning, Complexity::Simple))[0], "c/best");
    let cheap = Routing { default: Some("c/best".to_owned()), ..Routing::default() };
    for task in [Task::Chat, Task::Subagent, Task::Summarization] {
        let query = RouteQuery { routing: &cheap, ..question(task, Complexity::Simple, needs(true), &none) };
        assert_eq!(names(&route(&catalog, &query, all_ready).expect("a route"))[0], "a/small", "{task}");
    }
}

// Promises: AGENT-69
#[test]
fn priority_orders_the_models_of_a_tier_before_their_cost() {
    let yaml = "
a/one: { tier: mid, context_window: 100000, cost: { input: 1, output: 1 } }
b/two: { tier: mid, context_window: 100000, cost: { input: 2, output: 1 } }
c/three: { tier: mid, context_window: 100000, cost: { input: 3, output: 1 }, priority: 1 }
b/four: { tier: cheap, context_window: 100000, cost: { input: 0.1, output: 1 } }
";
    let (catalog, none) = (catalog(yaml), Pins::default());
    let routing = Routing { priorities: [("b".to_owned(), 2)].into(), ..Routing::default() };
    let query =
        RouteQuery { routing: &routing, ..question(Task::Chat, Complexity::Moderate, needs(false), &none) };
    let route = route(&catalog, &query, all_ready).expect("a route");
    assert_eq!(names(&route), ["c/three", "b/two", "a/one", "b/four"]);
}

// Promises: AGENT-70
// Promises: AGENT-146
#[test]
fn of_models_that_cost_the_same_the_one_that_answered_last_is_first() {
    let catalog = catalog(MODELS);
    let first = |active: Option<&str>| {
        let pins = Pins { active: active.map(str::to_owned), ..Pins::default() };
        let query = question(Task::Chat, Complexity::Moderate, needs(true), &pins);
        names(&route(&catalog, &query, all_ready).expect("a route"))[0].clone()
    };
    assert_eq!(first(None), "c/mid", "it has the weight");
    assert_eq!(first(Some("a/mid")), "a/mid");
    // Neither another tier nor one that is gone.
    assert_eq!((first(Some("c/best")), first(Some("a/gone"))), ("c/mid".to_owned(), "c/mid".to_owned()));
}

#[test]
fn with_local_only_no_other_model_is_a_candidate_not_even_a_pinned_one() {
    let catalog = catalog(MODELS);
    let routing = Routing { local: ["b".to_owned()].into(), ..Routing::default() };
    let ask = |pins: &Pins| {
        let query =
            RouteQuery { routing: &routing, ..question(Task::Chat, Complexity::Simple, needs(true), pins) };
        route(&catalog, &query, all_ready)
    };
    let local = Pins { local_only: true, ..Pins::default() };
    let found = ask(&local).expect("a route");
    assert_eq!(names(&found), ["b/small", "b/mid"]);
    assert!(found.passed_over.iter().all(|skipped| skipped.why == RejectionReason::NotLocal));
    let error = ask(&Pins { request: Some("c/best".to_owned()), ..local }).expect_err("it is elsewhere");
    assert!(error.to_string().contains("not on this machine"), "{error}");
}

#[test]
fn a_pin_is_stronger_than_the_model_that_is_named_for_a_task() {
    let named = "a/small".to_owned();
    let pinned = Pins { session: Some("b/mid".to_owned()), local_only: true, ..Pins::default() };
    assert_eq!(pinned.or_model(Some(&named)), pinned);
    let free = Pins { local_only: true, ..Pins::default() };
    assert_eq!(free.or_model(Some(&named)), Pins { request: Some(named), ..free.clone() });
    assert_eq!(free.or_model(None), free);
}
