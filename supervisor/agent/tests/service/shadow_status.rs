//! What operators see of the shadow loop, and what is stored of secrets that a watcher left.

use std::collections::BTreeMap;

use talon_proto::agent::{
    GetGhostRequest, GetMetricsRequest, GetStatusRequest, Observation, ObserveRequest, PauseShadowRequest,
    ShadowStatus,
};

use crate::shadow::{decide, finding, ghost, ghosts, log, observe, settled, stats, watching};
use crate::support::{Client, TestDirectory};

/// The metrics of the loop, by their names and labels.
async fn metrics(operator: &mut Client) -> BTreeMap<String, f64> {
    let families = operator.get_metrics(GetMetricsRequest {}).await.unwrap().into_inner().families;
    let samples = families.into_iter().flat_map(|family| {
        let name = family.name.strip_prefix("talon_agent_shadow_").unwrap_or_default().to_owned();
        family.samples.into_iter().map(move |sample| {
            let labels: Vec<String> = sample.labels.into_values().collect();
            (format!("{name} {}", labels.join(" ")).trim().to_owned(), sample.value)
        })
    });
    samples.collect()
}

async fn status(client: &mut Client) -> ShadowStatus {
    client.get_status(GetStatusRequest {}).await.unwrap().into_inner().shadow.unwrap_or_default()
}

// Promises: SHADOW-33
#[tokio::test]
async fn what_the_loop_does_is_counted() {
    let place = TestDirectory::new();
    let (agent, mut client) = watching(&place, "model: small, expires_after: 1h").await;
    let mut operator = agent.client_with("root", "operate", "person").await;
    let before = metrics(&mut operator).await;
    for zero in [
        "held_back_total repeated",
        "postponed_total token_budget",
        "ghosts_total made",
        "questions_total failed",
    ] {
        assert_eq!(before.get(zero), Some(&0.0), "{zero}: {before:?}");
    }
    assert!(!before.contains_key("watcher_seen_seconds"), "nobody was heard");
    let waiting = ghost(&mut client, "o1").await;
    decide(&mut client, &waiting.id, "dismiss").await;
    let second = Observation { trigger: "large_file".to_owned(), ..finding("o2", "silence") };
    observe(
        &mut client,
        vec![finding("o1", "o1"), second, Observation { kind: "smell".to_owned(), ..finding("o3", "x") }],
    )
    .await;
    let answered = settled(&mut client, "o2", "nothing").await;
    let again = Observation { id: "o4".to_owned(), ..finding("o1", "o1") };
    let request = ObserveRequest { observations: vec![again], dropped: 7, ..ObserveRequest::default() };
    client.observe(request).await.unwrap();
    let after = metrics(&mut operator).await;
    for (name, value) in [
        ("observations_total command taken", 3.0),
        ("observations_total command known", 1.0),
        ("observations_total (other) invalid", 1.0),
        ("held_back_total repeated", 1.0),
        ("questions_total ghost", 1.0),
        ("questions_total nothing", 1.0),
        ("ghosts_total made", 1.0),
        ("ghosts_total dismissed", 1.0),
        ("ghosts_waiting", 0.0),
        ("dropped_total", 7.0),
        ("watchers", 1.0),
        ("budget_spent", 0.0),
        ("redactions_total", 0.0),
    ] {
        assert_eq!(after.get(name), Some(&value), "{name}: {after:?}");
    }
    let stats = stats(&mut client).await;
    let tokens = after["tokens_total input"] + after["tokens_total output"];
    assert_eq!(tokens, stats.tokens_today as f64);
    let dollars = stats.cost_today_pico_usd as f64 / 1e12;
    assert!((after["cost_usd_total"] - dollars).abs() < 1e-9 && dollars > 0.0, "{after:?}");
    assert!(answered.cost_pico_usd > 0 && after["watcher_seen_seconds"] > 1e9, "{after:?}");
}

// Promises: SHADOW-33, SHADOW-35
#[tokio::test]
async fn a_budget_that_is_spent_and_a_watcher_with_limits_are_told_to_operators() {
    let place = TestDirectory::new();
    // An hour that is not now.
    let hour = chrono::Timelike::hour(&chrono::Local::now());
    let quiet = format!("{:02}:00-{:02}:00", (hour + 2) % 24, (hour + 3) % 24);
    let keys = format!("budget: {{ tokens_per_day: 3001 }}, quiet_hours: '{quiet}'");
    let (agent, mut client) = watching(&place, &keys).await;
    let mut operator = agent.client_with("root", "operate", "person").await;
    let none = status(&mut operator).await;
    assert_eq!((none.watchers, none.watcher_seen_unix_ms, none.budget_spent), (0, None, 0));
    assert_eq!((none.quiet_hours.as_str(), none.problem.as_str()), (quiet.as_str(), ""));
    assert!(none.local_time.contains(':'), "{none:?}");
    let limits = vec!["raise fs.inotify.max_user_watches\u{1b}[2J".to_owned()];
    client.observe(ObserveRequest { limits, ..ObserveRequest::default() }).await.unwrap();
    ghost(&mut client, "o1").await;
    // The first question took some tokens, and another one no longer fits.
    observe(&mut client, vec![finding("o2", "o2")]).await;
    let mut told = status(&mut operator).await;
    assert_eq!((told.watchers, told.watchers_connected, told.budget_spent, told.waiting), (1, 1, 1, 1));
    assert!(told.limits.is_empty(), "its last request had none");
    assert_eq!(metrics(&mut operator).await["postponed_total token_budget"], 1.0);
    let limits = vec!["raise fs.inotify.max_user_watches\u{1b}[2J".to_owned()];
    client.observe(ObserveRequest { limits, ..ObserveRequest::default() }).await.unwrap();
    client.pause_shadow(PauseShadowRequest { paused: true, ..PauseShadowRequest::default() }).await.unwrap();
    told = status(&mut operator).await;
    assert_eq!((told.limits.len(), told.paused), (1, 1));
    assert!(
        told.limits[0].contains("fs.inotify.max_user_watches") && !told.limits[0].contains('\u{1b}'),
        "{told:?}"
    );
    let own = stats(&mut client).await;
    assert_eq!(own.watcher_limits, told.limits);
    assert!(own.watcher_seen_unix_ms.is_some());
}

// Promises: SHADOW-34
#[tokio::test]
async fn a_secret_that_a_watcher_left_is_neither_stored_nor_sent() {
    let place = TestDirectory::new();
    let (agent, mut client) = watching(&place, "").await;
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let left = Observation { excerpt: format!("fatal: {token} is not valid"), ..finding("o1", "o1") };
    observe(&mut client, vec![left]).await;
    let sent = settled(&mut client, "o1", "ghost").await;
    assert_eq!(sent.redactions, 1);
    let why = client.get_ghost(GetGhostRequest { id: sent.ghost_id }).await.unwrap().into_inner();
    let excerpt = why.source.unwrap().excerpt;
    assert_eq!(excerpt, "fatal: [redacted: github token] is not valid");
    assert_eq!(
        sent.sent.last().map(|part| part.bytes),
        Some(excerpt.len() as u64),
        "the log counts what was sent"
    );
    let mut operator = agent.client_with("root", "operate", "person").await;
    assert_eq!(metrics(&mut operator).await["redactions_total"], 1.0);
}

/// A day of work, as a seed has it, with a model on this machine. Of the findings some are labelled as of no use, and the model says so.
// Promises: SHADOW-49
#[tokio::test]
async fn ten_thousand_events_cost_nothing_without_a_finding_and_keep_to_the_limit_with_some() {
    const EVENTS: u64 = 10_000;
    const MOST: u32 = 12;
    let place = TestDirectory::new();
    let (agent, mut client) = watching(&place, "local_only: true").await;
    let mut seed = 7u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut event = move |n: u64| {
        let boundary = ["", "", "prompt", "idle", "commit", "test_end"][random(6) as usize].to_owned();
        let quiet = Observation { trigger: String::new(), boundary, ..finding(&format!("e{n}"), "") };
        if n < EVENTS / 2 || random(40) > 0 {
            return quiet;
        }
        let label = if random(5) < 2 { "silence" } else { "useful" };
        let (trigger, excerpt) = ("test_failed".to_owned(), format!("test {n} failed"));
        Observation { trigger, excerpt, finding: format!("{label} {n}"), ..quiet }
    };
    let request = |observations| ObserveRequest {
        observations,
        max_ghosts_per_hour: Some(MOST),
        ..ObserveRequest::default()
    };
    let mut found = 0;
    for first in (0..EVENTS).step_by(50) {
        let observations: Vec<Observation> = (first..first + 50).map(&mut event).collect();
        found += observations.iter().filter(|one| !one.trigger.is_empty()).count();
        let taken = client.observe(request(observations)).await.unwrap().into_inner();
        assert!(taken.verdicts.iter().all(|one| one.verdict == "taken"), "{taken:?}");
        if first == EVENTS / 2 - 50 {
            let quiet = stats(&mut client).await;
            assert!(
                quiet.tokens_today == 0 && quiet.triggers.is_empty() && log(&mut client).await.is_empty()
            );
        }
    }
    assert!(found > 80, "{found} findings");
    // Answers may have come too late for most boundaries: further ones come until the limit is reached.
    for n in 0.. {
        if stats(&mut client).await.ghosts_last_hour >= MOST {
            break;
        }
        assert!(n < 1000, "the limit is not reached");
        let more = finding(&format!("m{n}"), &format!("useful m{n}"));
        client.observe(request(vec![more])).await.unwrap();
        tokio::task::yield_now().await;
    }
    let limited = finding("late", "useful late");
    client.observe(request(vec![limited])).await.unwrap();
    let mut operator = agent.client_with("root", "operate", "person").await;
    assert!(metrics(&mut operator).await["postponed_total hourly_limit"] >= 1.0);
    let ended = stats(&mut client).await;
    assert_eq!(ended.ghosts_last_hour, MOST);
    let all = ghosts(&mut client).await;
    assert_eq!(all.len(), MOST as usize);
    for ghost in &all {
        let why = client.get_ghost(GetGhostRequest { id: ghost.id.clone() }).await.unwrap().into_inner();
        let (source, sent) = (why.source.unwrap(), why.sent.unwrap());
        assert!(source.finding.starts_with("useful") && sent.local, "{source:?}");
    }
    assert!(ended.tokens_today > 0 && ended.triggers[0].ghosts == u64::from(MOST), "{ended:?}");
}
