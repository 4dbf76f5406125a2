//! The shadow loop, with a real agent that is killed in the middle of it.

use std::collections::BTreeSet;
use std::time::Duration;

use talon_proto::agent::ghost_event::Kind;
use talon_proto::agent::{
    DecideGhostRequest, FollowGhostsRequest, ForgetSenderRequest, GetGhostRequest, GetSessionRequest,
    GetShadowStatsRequest, GetShadowStatsResponse, Ghost, ListGhostsRequest, ListShadowLogRequest,
    Observation, ObserveRequest, ObserveResponse, PauseShadowRequest, ShadowLogEntry,
};
use tonic::Code;

use crate::sink::Sink;
use crate::support::{Agent, Client, SETTINGS, TestDirectory, kills, refused};

/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a condition that nobody tells of.
const POLL: Duration = Duration::from_millis(20);

fn settings(shadow: &str) -> String {
    format!("{SETTINGS}\nshadow: {{ enabled: true, cooldown: 1ms, max_ghosts_per_hour: 1000, {shadow} }}\n")
}

pub(crate) async fn watching(place: &TestDirectory, shadow: &str) -> (Agent, Client) {
    let agent = Agent::with(place, &settings(shadow)).await.0;
    let client = agent.client("ada").await;
    (agent, client)
}

/// A test that failed, at the end of a test run.
pub(crate) fn finding(id: &str, found: &str) -> Observation {
    Observation {
        id: id.to_owned(),
        kind: "command".to_owned(),
        trigger: "test_failed".to_owned(),
        directory: "/home/ada/parser".to_owned(),
        repository: "/home/ada/parser".to_owned(),
        subject: "cargo test".to_owned(),
        finding: found.to_owned(),
        excerpt: "assertion `left == right` failed".to_owned(),
        language: "rust".to_owned(),
        occurred_unix_ms: 1_000,
        boundary: "test_end".to_owned(),
        exit_code: Some(101),
        ..Observation::default()
    }
}

pub(crate) async fn observe(client: &mut Client, observations: Vec<Observation>) -> ObserveResponse {
    let request = ObserveRequest { observations, ..ObserveRequest::default() };
    client.observe(request).await.unwrap().into_inner()
}

pub(crate) async fn ghosts(client: &mut Client) -> Vec<Ghost> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = ListGhostsRequest { page_size: 3, page_token, ..ListGhostsRequest::default() };
        let page = client.list_ghosts(request).await.unwrap().into_inner();
        all.extend(page.ghosts);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return all;
        }
    }
}

pub(crate) async fn log(client: &mut Client) -> Vec<ShadowLogEntry> {
    client.list_shadow_log(ListShadowLogRequest::default()).await.unwrap().into_inner().entries
}

/// Waits until the question about an observation has ended so.
pub(crate) async fn settled(client: &mut Client, id: &str, outcome: &str) -> ShadowLogEntry {
    let found = async {
        loop {
            let mut entries = log(client).await.into_iter();
            if let Some(entry) = entries.find(|entry| entry.observation_id == id && entry.outcome == outcome)
            {
                return entry;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("in time")
}

pub(crate) async fn stats(client: &mut Client) -> GetShadowStatsResponse {
    client.get_shadow_stats(GetShadowStatsRequest::default()).await.unwrap().into_inner()
}

/// Looks at the ghosts until they are as wanted.
async fn until(client: &mut Client, wanted: impl Fn(&[Ghost]) -> bool) -> Vec<Ghost> {
    let found = async {
        loop {
            let all = ghosts(client).await;
            if wanted(&all) {
                return all;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("in time")
}

/// The ghost of a finding.
pub(crate) async fn ghost(client: &mut Client, id: &str) -> Ghost {
    assert_eq!(observe(client, vec![finding(id, id)]).await.verdicts[0].verdict, "taken");
    until(client, |all| all.first().is_some_and(|ghost| ghost.state == "waiting")).await.remove(0)
}

fn decision(id: &str, decision: &str) -> DecideGhostRequest {
    DecideGhostRequest { id: id.to_owned(), decision: decision.to_owned(), ..DecideGhostRequest::default() }
}

pub(crate) async fn decide(client: &mut Client, id: &str, word: &str) -> Ghost {
    client.decide_ghost(decision(id, word)).await.unwrap().into_inner()
}

/// What was said in a session, once its turn has an answer.
async fn said(client: &mut Client, session: &str) -> Vec<String> {
    let found = async {
        loop {
            let request =
                GetSessionRequest { session_id: session.to_owned(), ..GetSessionRequest::default() };
            if let Ok(found) = client.get_session(request).await {
                let messages = found.into_inner().messages;
                if messages.iter().any(|message| message.role == "assistant") {
                    return messages.into_iter().map(|message| message.content).collect();
                }
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("in time")
}

// Promises: SHADOW-10, SHADOW-11, SHADOW-13, SHADOW-14
#[tokio::test]
async fn a_finding_at_a_boundary_becomes_a_ghost_that_says_why_it_is_there() {
    let place = TestDirectory::new();
    let (_agent, mut client) = watching(&place, "model: small").await;
    let event = Observation { trigger: String::new(), ..finding("event", "an event alone") };
    let typing = Observation { boundary: String::new(), ..finding("typing", "while somebody types") };
    let taken = observe(&mut client, vec![event.clone(), event, typing]).await;
    let verdicts: Vec<&str> = taken.verdicts.iter().map(|one| one.verdict.as_str()).collect();
    assert_eq!(verdicts, ["taken", "known", "taken"]);
    assert!(taken.state.is_some_and(|state| state.enabled && state.model == "small"));
    assert!(log(&mut client).await.is_empty(), "no token without a finding at a boundary");
    let waiting = ghost(&mut client, "o1").await;
    assert_eq!(
        (waiting.trigger.as_str(), waiting.observation.as_str()),
        ("test_failed: cargo test", "A test fails.")
    );
    assert_eq!((waiting.proposal.as_str(), waiting.confidence.as_str()), ("Mend the failing test.", "high"));
    let actions: Vec<(&str, &str, &str)> = waiting
        .actions
        .iter()
        .map(|action| (action.label.as_str(), action.r#type.as_str(), action.payload_json.as_str()))
        .collect();
    let expected = [
        ("Do it", "approve", ""),
        ("Run tests", "custom", "{\"only\":\"parser\"}"),
        ("Dismiss", "dismiss", ""),
    ];
    assert_eq!(actions, expected);
    let short = waiting.id[..20].to_lowercase();
    let why = client.get_ghost(GetGhostRequest { id: short }).await.unwrap().into_inner();
    let (source, sent) = (why.source.unwrap(), why.sent.unwrap());
    assert_eq!((source.id.as_str(), source.finding.as_str()), ("o1", "o1"));
    assert!(why.passed.iter().any(|rule| rule.contains("a piece of work had ended")), "{:?}", why.passed);
    assert_eq!(
        (sent.models.as_slice(), sent.outcome.as_str()),
        (["scripted/small".to_owned()].as_slice(), "ghost")
    );
    let kinds: Vec<&str> = sent.sent.iter().map(|part| part.kind.as_str()).collect();
    assert_eq!(kinds, ["instructions", "trigger", "finding", "language", "excerpt"]);
    assert_eq!(sent.sent[4].bytes, 32);
    assert!(sent.local && sent.input_tokens > 0 && sent.output_tokens > 0 && sent.cost_pico_usd > 0);
    assert_eq!(log(&mut client).await, std::slice::from_ref(&sent));
    let stats = stats(&mut client).await;
    assert_eq!((stats.ghosts_last_hour, stats.tokens_today), (1, sent.input_tokens + sent.output_tokens));
    assert_eq!(stats.cost_today_pico_usd, sent.cost_pico_usd);
    let trigger = &stats.triggers[0];
    assert_eq!((trigger.observations, trigger.asked, trigger.ghosts, trigger.rate_percent), (2, 1, 1, 100));
}

// Promises: SHADOW-15, SHADOW-16
#[tokio::test]
async fn an_approved_ghost_is_an_ordinary_turn_in_a_session_of_its_own() {
    let place = TestDirectory::new();
    let (agent, mut client) = watching(&place, "").await;
    let waiting = ghost(&mut client, "o1").await;
    for origin in ["model", "program"] {
        let mut other = agent.client_with("ada", "call", origin).await;
        let denied = refused(other.decide_ghost(decision(&waiting.id, "approve")).await);
        assert_eq!(denied.code(), Code::PermissionDenied, "{origin}");
    }
    let mut stranger = agent.client("eve").await;
    assert_eq!(refused(stranger.decide_ghost(decision(&waiting.id, "approve")).await).code(), Code::NotFound);
    let approved = decide(&mut client, &waiting.id, "approve").await;
    assert_eq!((approved.state.as_str(), approved.decided_by.as_str()), ("approved", "ada"));
    let said = said(&mut client, &approved.session_id).await;
    assert!(said[0].starts_with("Mend the failing test.\n\n"), "{said:?}");
    assert!(said[0].contains("Directory: /home/ada/parser"), "{said:?}");
    assert_eq!(said.last().unwrap(), "It is mended.");
    let again = refused(client.decide_ghost(decision(&waiting.id, "dismiss")).await);
    assert_eq!(again.code(), Code::FailedPrecondition);
    assert_eq!(stats(&mut client).await.triggers[0].approved, 1);
}

// Promises: SHADOW-17
#[tokio::test]
async fn a_custom_action_begins_the_turn_with_its_label_and_its_payload_is_data() {
    let place = TestDirectory::new();
    let (_agent, mut client) = watching(&place, "").await;
    let waiting = ghost(&mut client, "o1").await;
    let unknown = DecideGhostRequest { label: "Delete all".to_owned(), ..decision(&waiting.id, "custom") };
    assert_eq!(refused(client.decide_ghost(unknown).await).code(), Code::InvalidArgument);
    let custom = DecideGhostRequest { label: "Run tests".to_owned(), ..decision(&waiting.id, "custom") };
    let approved = client.decide_ghost(custom).await.unwrap().into_inner();
    let said = said(&mut client, &approved.session_id).await;
    assert!(said[0].starts_with("Run tests\n\n") && said[0].contains("[payload]"), "{said:?}");
    assert_eq!(said.last().unwrap(), "They were run.");
}

// Promises: SHADOW-18
#[tokio::test]
async fn ghosts_are_dismissed_snoozed_and_expire() {
    let place = TestDirectory::new();
    let (mut agent, mut client) = watching(&place, "").await;
    let first = ghost(&mut client, "o1").await;
    assert_eq!(decide(&mut client, &first.id, "dismiss").await.state, "dismissed");
    assert_eq!(stats(&mut client).await.triggers[0].rate_percent, 60);
    // One of the next two passes: the rate is 60 %.
    observe(&mut client, vec![finding("o2", "o2"), finding("o3", "o3")]).await;
    let all = until(&mut client, |all| all.len() == 2).await;
    let later = DecideGhostRequest { snooze_ms: 3_600_000, ..decision(&all[0].id, "snooze") };
    let snoozed = client.decide_ghost(later).await.unwrap().into_inner();
    assert_eq!(snoozed.state, "snoozed");
    assert!(snoozed.snoozed_until_unix_ms.unwrap() >= snoozed.created_unix_ms + 3_600_000);
    let now = DecideGhostRequest { snooze_ms: 1, ..decision(&all[0].id, "snooze") };
    client.decide_ghost(now).await.unwrap();
    let back = until(&mut client, |all| all[0].state == "waiting").await.remove(0);
    assert!(back.sequence > snoozed.sequence && back.snoozed_until_unix_ms.is_none());
    let long = DecideGhostRequest { snooze_ms: 8 * 24 * 3_600_000, ..decision(&all[0].id, "snooze") };
    assert_eq!(refused(client.decide_ghost(long).await).code(), Code::InvalidArgument);
    decide(&mut client, &back.id, "dismiss").await;
    agent.configure(&place, &settings("expires_after: 1ms")).await;
    observe(&mut client, (4..14).map(|n| finding(&format!("o{n}"), &format!("o{n}"))).collect()).await;
    until(&mut client, |all| all[0].state == "expired").await;
    assert_eq!(stats(&mut client).await.triggers[0].expired, 1);
}

// Promises: SHADOW-12
#[tokio::test]
async fn a_ghost_whose_path_no_tool_can_see_offers_no_act() {
    let place = TestDirectory::new();
    let (_agent, mut client) = watching(&place, "visible: [/srv/code]").await;
    let waiting = ghost(&mut client, "o1").await;
    assert!(waiting.no_act.starts_with("no tool can see /home/ada/parser"), "{}", waiting.no_act);
    assert_eq!(waiting.actions.len(), 1, "it can be dismissed");
    for word in ["approve", "custom"] {
        let no = refused(client.decide_ghost(decision(&waiting.id, word)).await);
        assert_eq!(no.code(), Code::FailedPrecondition, "{no}");
    }
    assert_eq!(decide(&mut client, &waiting.id, "dismiss").await.state, "dismissed");
}

// Promises: SHADOW-19
#[tokio::test]
async fn while_it_is_off_or_rests_nothing_comes_of_observations() {
    let place = TestDirectory::new();
    let (mut agent, _) = Agent::with(&place, SETTINGS).await;
    let mut client = agent.client("ada").await;
    let request = ObserveRequest { observations: vec![finding("o1", "o1")], ..ObserveRequest::default() };
    let off = refused(client.observe(request).await);
    assert!(off.code() == Code::FailedPrecondition && off.message().contains("shadow.enabled"), "{off}");
    assert!(!observe(&mut client, Vec::new()).await.state.unwrap().enabled);
    agent.configure(&place, &settings("")).await;
    let pause = PauseShadowRequest { paused: true, ..PauseShadowRequest::default() };
    assert!(client.pause_shadow(pause.clone()).await.unwrap().into_inner().paused);
    observe(&mut client, vec![finding("o1", "o1")]).await;
    let repository = "/home/ada/parser".to_owned();
    let go_on = PauseShadowRequest { paused: false, ..pause.clone() };
    client.pause_shadow(go_on.clone()).await.unwrap();
    let mute = PauseShadowRequest { repository: repository.clone(), ..pause.clone() };
    let state = client.pause_shadow(mute).await.unwrap().into_inner();
    assert_eq!(state.muted_repositories, std::slice::from_ref(&repository));
    observe(&mut client, vec![finding("o2", "o2")]).await;
    let held = stats(&mut client).await.triggers.remove(0).held_back;
    assert_eq!(held, [("muted".to_owned(), 1), ("paused".to_owned(), 1)].into());
    client.pause_shadow(PauseShadowRequest { repository, ..go_on }).await.unwrap();
    ghost(&mut client, "o3").await;
    let mut program = agent.client_with("ada", "call", "program").await;
    assert_eq!(refused(program.pause_shadow(pause).await).code(), Code::PermissionDenied);
    let mut model = agent.client_with("ada", "call", "model").await;
    assert_eq!(refused(model.observe(ObserveRequest::default()).await).code(), Code::PermissionDenied);
}

// Promises: SHADOW-20, SHADOW-5
#[tokio::test]
async fn no_provider_elsewhere_is_asked_if_only_this_machine_may_be_and_no_budget_is_passed() {
    let place = TestDirectory::new();
    let elsewhere = settings("local_only: true").replace("kind: scripted,", "kind: scripted, local: false,");
    let (mut agent, _) = Agent::with(&place, &elsewhere).await;
    let mut client = agent.client("ada").await;
    observe(&mut client, vec![finding("o1", "o1")]).await;
    let entry = settled(&mut client, "o1", "failed").await;
    assert!(entry.models.is_empty() && entry.sent.is_empty(), "nothing left: {entry:?}");
    assert!(ghosts(&mut client).await.is_empty());
    // The money of a day pays for no question, and so for none at all.
    agent.configure(&place, &settings("budget: { per_day: 0.000001 }")).await;
    observe(&mut client, vec![finding("o2", "o2")]).await;
    let entry = settled(&mut client, "o2", "failed").await;
    assert!(entry.note.contains("budget"), "{entry:?}");
    assert_eq!(stats(&mut client).await.cost_today_pico_usd, 0);
    // Nor is one asked without the tokens for it.
    agent.configure(&place, &settings("budget: { tokens_per_day: 100 }")).await;
    observe(&mut client, vec![finding("o3", "o3")]).await;
    assert_eq!(stats(&mut client).await.triggers[0].asked, 2);
}

// Promises: SHADOW-21
#[tokio::test]
async fn followers_get_observations_and_each_change_of_a_ghost_once() {
    let place = TestDirectory::new();
    let (agent, mut client) = watching(&place, "").await;
    let follow = FollowGhostsRequest { events: true, ..FollowGhostsRequest::default() };
    let mut stream = client.follow_ghosts(follow).await.unwrap().into_inner();
    let mut stranger = agent.client("eve").await;
    let all = FollowGhostsRequest { everybody: true, ..FollowGhostsRequest::default() };
    assert_eq!(refused(stranger.follow_ghosts(all).await).code(), Code::PermissionDenied);
    let first = stream.message().await.unwrap().unwrap().kind.unwrap();
    assert!(matches!(first, Kind::CaughtUp(_)), "{first:?}");
    let silent = finding("o0", "silence");
    observe(&mut client, vec![silent]).await;
    let Some(Kind::Event(seen)) = stream.message().await.unwrap().unwrap().kind else {
        panic!("an event first")
    };
    assert_eq!((seen.sender.as_str(), seen.observation.unwrap().id.as_str()), ("ada", "o0"));
    settled(&mut client, "o0", "nothing").await;
    let waiting = ghost(&mut client, "o1").await;
    let mut kinds = Vec::new();
    while kinds.len() < 2 {
        kinds.push(stream.message().await.unwrap().unwrap().kind.unwrap());
    }
    assert!(matches!(&kinds[0], Kind::Event(_)), "{kinds:?}");
    assert!(matches!(&kinds[1], Kind::Ghost(ghost) if *ghost == waiting), "{kinds:?}");
    decide(&mut client, &waiting.id, "dismiss").await;
    let after = FollowGhostsRequest { after: waiting.sequence, ..FollowGhostsRequest::default() };
    let mut again = client.follow_ghosts(after).await.unwrap().into_inner();
    let Some(Kind::Ghost(changed)) = again.message().await.unwrap().unwrap().kind else {
        panic!("the change")
    };
    assert_eq!((changed.id.as_str(), changed.state.as_str()), (waiting.id.as_str(), "dismissed"));
    let end = again.message().await.unwrap().unwrap().kind.unwrap();
    assert!(matches!(end, Kind::CaughtUp(_)), "{end:?}");
}

// Promises: SHADOW-22
#[tokio::test]
async fn killed_in_the_middle_no_ghost_is_lost_and_none_is_shown_twice() {
    let (place, sink) = (TestDirectory::new(), Sink::new(100_000));
    let entries = "notifications: [{ on: [shadow.ghost], action: sink.send, name: ops }]";
    let settings = settings("budget: { tokens_per_day: 100000000 }");
    let kills = kills();
    for kill in 0..=kills {
        let mut agent = Agent::start(&place);
        agent.plugins.set_sink(sink.clone());
        agent.configure_with(&place, &settings, entries).await;
        let mut client = agent.client("ada").await;
        let (id, known) = (format!("o{kill}"), ghosts(&mut client).await.len());
        let found = finding(&id, &id);
        // A watcher sends again what was not answered.
        let request = ObserveRequest { observations: vec![found.clone()], ..ObserveRequest::default() };
        match kill % 4 {
            0 => {
                let _unanswered =
                    tokio::time::timeout(Duration::from_millis(1), client.observe(request)).await;
            }
            1 => drop(client.observe(request).await.unwrap()),
            2 => drop(until(&mut client, |_| true).await),
            _ => {
                client.observe(request).await.unwrap();
                until(&mut client, |all| all.len() > known).await;
            }
        }
        if kill < kills {
            agent.kill();
            continue;
        }
        let all: Vec<Observation> =
            (0..=kills).map(|n| finding(&format!("o{n}"), &format!("o{n}"))).collect();
        let expected = kills + 1;
        let mut number = 0;
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                observe(&mut client, all.clone()).await;
                number += 1;
                let idle = Observation {
                    trigger: String::new(),
                    kind: "boundary".to_owned(),
                    boundary: "idle".to_owned(),
                    ..finding(&format!("idle{number}"), "")
                };
                observe(&mut client, vec![idle]).await;
                let found = ghosts(&mut client).await;
                if found.len() >= expected {
                    return found;
                }
                tokio::time::sleep(POLL).await;
            }
        });
        let found = found.await.expect("in time");
        let mut sources = BTreeSet::new();
        for ghost in &found {
            let request = GetGhostRequest { id: ghost.id.clone() };
            sources.insert(client.get_ghost(request).await.unwrap().into_inner().source.unwrap().id);
        }
        assert_eq!((found.len(), sources.len()), (expected, expected), "{}", agent.log());
        let told = tokio::time::timeout(PATIENCE, async {
            loop {
                let told = sink.told();
                let ids =
                    |one: &serde_json::Value| one["event"]["fields"]["ghost"].as_str().map(str::to_owned);
                if told.iter().filter_map(ids).collect::<BTreeSet<_>>().len() >= expected {
                    return told;
                }
                tokio::time::sleep(POLL).await;
            }
        });
        let told = told.await.expect("each is told");
        let field =
            |one: &serde_json::Value, name: &str| one["event"]["fields"][name].as_str().map(str::to_owned);
        let ids: BTreeSet<String> = told.iter().filter_map(|one| field(one, "ghost")).collect();
        assert_eq!(ids, found.iter().map(|ghost| ghost.id.clone()).collect(), "each is told");
        let events: BTreeSet<&str> = told.iter().filter_map(|one| one["event"]["id"].as_str()).collect();
        assert_eq!(events.len(), expected, "a ghost is one notification, in however many attempts");
    }
}

// Promises: SHADOW-23
#[tokio::test]
async fn the_turn_of_an_approved_ghost_begins_although_the_agent_is_killed() {
    let place = TestDirectory::new();
    for kill in 0..4 {
        let (mut agent, mut client) = watching(&place, "").await;
        let id = format!("k{kill}");
        let waiting = ghost(&mut client, &id).await;
        let approved = decide(&mut client, &waiting.id, "approve").await;
        agent.kill();
        let (_agent, mut client) = watching(&place, "").await;
        assert_eq!(said(&mut client, &approved.session_id).await.last().unwrap(), "It is mended.");
    }
}

// Promises: SHADOW-24
#[tokio::test]
async fn forgetting_a_sender_forgets_ghosts_log_and_what_is_known() {
    let place = TestDirectory::new();
    let (mut agent, mut client) = watching(&place, "").await;
    ghost(&mut client, "o1").await;
    let forget = ForgetSenderRequest { sender: "ada".to_owned() };
    assert_eq!(client.forget_sender(forget).await.unwrap().into_inner().ghosts, 1);
    assert!(ghosts(&mut client).await.is_empty() && log(&mut client).await.is_empty());
    assert!(stats(&mut client).await.triggers.is_empty());
    agent.kill();
    let (_agent, mut client) = watching(&place, "").await;
    assert!(ghosts(&mut client).await.is_empty() && log(&mut client).await.is_empty());
    ghost(&mut client, "o1").await;
}

// Promises: SHADOW-25
#[tokio::test]
async fn an_answer_that_is_none_leads_to_nothing_and_is_in_the_log() {
    let place = TestDirectory::new();
    let (_agent, mut client) = watching(&place, "").await;
    for (id, found, outcome) in [("o1", "silence", "nothing"), ("o2", "nonsense", "failed")] {
        observe(&mut client, vec![finding(id, found)]).await;
        settled(&mut client, id, outcome).await;
    }
    assert!(ghosts(&mut client).await.is_empty());
    // What failed may come again; what led to nothing does not.
    observe(&mut client, vec![finding("o3", "silence"), finding("o4", "nonsense")]).await;
    let stats = stats(&mut client).await;
    assert_eq!((stats.triggers[0].asked, stats.triggers[0].held_back["repeated"]), (3, 1));
}

// Promises: SHADOW-8
#[tokio::test]
async fn what_is_beyond_its_bounds_is_refused_by_its_observation() {
    let place = TestDirectory::new();
    let (_agent, mut client) = watching(&place, "").await;
    let wrong = Observation { excerpt: "x".repeat(2049), ..finding("o1", "o1") };
    let answer = observe(&mut client, vec![wrong, finding("o2", "o2")]).await;
    let verdicts: Vec<&str> = answer.verdicts.iter().map(|one| one.verdict.as_str()).collect();
    assert_eq!(verdicts, ["invalid", "taken"]);
    assert!(answer.verdicts[0].reason.starts_with("excerpt:"), "{answer:?}");
    let many = ObserveRequest {
        observations: (0..65).map(|n| finding(&format!("m{n}"), "m")).collect(),
        ..ObserveRequest::default()
    };
    assert_eq!(refused(client.observe(many).await).code(), Code::InvalidArgument);
}

// Promises: SHADOW-1
#[tokio::test]
async fn the_stricter_of_what_agent_and_watcher_say_counts_while_the_watcher_says_it() {
    let place = TestDirectory::new();
    let (_agent, mut client) = watching(&place, "").await;
    let strict = ObserveRequest {
        observations: vec![finding("o1", "o1")],
        cooldown_ms: Some(3_600_000),
        max_ghosts_per_hour: Some(3),
        ..ObserveRequest::default()
    };
    client.observe(strict).await.unwrap();
    settled(&mut client, "o1", "ghost").await;
    let limits = stats(&mut client).await;
    assert_eq!((limits.cooldown_ms, limits.max_ghosts_per_hour), (3_600_000, 3));
    let strict = ObserveRequest {
        observations: vec![finding("o2", "o2")],
        cooldown_ms: Some(3_600_000),
        ..ObserveRequest::default()
    };
    client.observe(strict).await.unwrap();
    assert_eq!(stats(&mut client).await.triggers[0].asked, 1, "it is too early");
    // Without a word of the watcher's file the configuration counts.
    observe(&mut client, vec![finding("o3", "o3")]).await;
    settled(&mut client, "o3", "ghost").await;
    assert_eq!(stats(&mut client).await.max_ghosts_per_hour, 1000);
}
