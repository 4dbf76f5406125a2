//! Jobs at planned times, with a real agent that is killed in the middle of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use talon_proto::agent::{
    DecideJobProposalRequest, GetSessionRequest, ListJobsRequest, ListOccurrencesRequest,
    ListSessionsRequest, Occurrence, PauseJobRequest, RunJobRequest,
};
use tonic::Code;

use crate::sink::Sink;
use crate::support::{Agent, Client, TestDirectory, answer, kills, refused};

/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a condition that nobody tells of.
const POLL: Duration = Duration::from_millis(10);

/// Sends a configuration with a schedule.
async fn configure(agent: &mut Agent, place: &TestDirectory, schedule: &str) {
    agent.configure_extensions(place, &format!("schedule: {schedule}")).await;
}

async fn scheduled(place: &TestDirectory, schedule: &str) -> (Agent, Client) {
    let agent = Agent::with_extensions(place, &format!("schedule: {schedule}")).await;
    let client = agent.client_with("ada", "operate", "person").await;
    (agent, client)
}

/// All occurrences, oldest first.
async fn history(client: &mut Client) -> Vec<Occurrence> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = ListOccurrencesRequest { page_token, ..ListOccurrencesRequest::default() };
        let page = client.list_occurrences(request).await.unwrap().into_inner();
        all.extend(page.occurrences);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            all.reverse();
            return all;
        }
    }
}

/// Looks at the history until it is as wanted.
async fn until(client: &mut Client, wanted: impl Fn(&[Occurrence]) -> bool) -> Vec<Occurrence> {
    let found = async {
        loop {
            let all = history(client).await;
            if wanted(&all) {
                return all;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("in time")
}

fn count(all: &[Occurrence], state: &str) -> usize {
    all.iter().filter(|occurrence| occurrence.state == state).count()
}

/// What was said in the conversation of a run, by role.
async fn said(client: &mut Client, session: &str) -> BTreeMap<String, Vec<String>> {
    let request = GetSessionRequest { session_id: session.to_owned(), all: true, ..Default::default() };
    let mut said = BTreeMap::<String, Vec<String>>::new();
    for message in client.get_session(request).await.unwrap().into_inner().messages {
        said.entry(message.role).or_default().push(message.content);
    }
    said
}

// Promises: EXT-38
#[tokio::test]
async fn a_job_asks_at_its_times_each_in_a_conversation_of_its_own() {
    let place = TestDirectory::new();
    let (_agent, mut client) = scheduled(&place, "[{ id: greet, every: 1s, ask: hello }]").await;
    let all = until(&mut client, |all| count(all, "done") >= 2).await;
    let done: Vec<&Occurrence> = all.iter().filter(|occurrence| occurrence.state == "done").collect();
    assert!(done.iter().all(|run| run.job == "greet" && run.attempt == 1 && run.planned_unix_ms % 1000 == 0));
    assert_ne!(done[0].session_id, done[1].session_id);
    let said = said(&mut client, &done[0].session_id).await;
    assert_eq!(
        (&said["user"][..], &said["assistant"][..]),
        (&["hello".to_owned()][..], &["Hello to you, too.".to_owned()][..])
    );
    let request = ListSessionsRequest { all: true, channel: "schedule".to_owned(), ..Default::default() };
    let sessions = client.list_sessions(request).await.unwrap().into_inner().sessions;
    assert!(sessions.iter().all(|session| session.sender == "schedule:greet"));
    let jobs = client.list_jobs(ListJobsRequest {}).await.unwrap().into_inner().jobs;
    assert_eq!((jobs[0].when.as_str(), jobs[0].timezone.as_str()), ("every 1s", "UTC"));
    assert!(jobs[0].next_unix_ms.is_some() && jobs[0].last.is_some());
}

// Promises: EXT-38
#[tokio::test]
async fn a_named_conversation_goes_on_from_run_to_run() {
    let place = TestDirectory::new();
    let schedule = "[{ id: greet, every: 1s, session: daily, ask: hello }]";
    let (_agent, mut client) = scheduled(&place, schedule).await;
    let all = until(&mut client, |all| count(all, "done") >= 2).await;
    let done: Vec<&Occurrence> = all.iter().filter(|occurrence| occurrence.state == "done").collect();
    assert_eq!(done[0].session_id, done[1].session_id);
    assert!(said(&mut client, &done[0].session_id).await["assistant"].len() >= 2);
}

// Promises: EXT-166
#[tokio::test]
async fn only_people_who_operate_decide_about_proposed_jobs_and_the_supervisor_is_told() {
    let place = TestDirectory::new();
    let (mut agent, _client) = scheduled(&place, "[{ id: greet, every: 1h, ask: hello }]").await;
    let decision =
        |accept| DecideJobProposalRequest { job: "files.tidy".to_owned(), hash: "a".repeat(64), accept };
    for (role, origin) in [("call", "person"), ("operate", "program"), ("admin", "model")] {
        let mut client = agent.client_with("eve", role, origin).await;
        let refused = refused(client.decide_job_proposal(decision(true)).await);
        assert_eq!(refused.code(), Code::PermissionDenied, "{role} {origin}");
    }
    for _ in 0..3 {
        let told = agent.operation().await.expect("it serves");
        assert_eq!((told.verb.as_str(), told.outcome.as_str()), ("accept_job", "denied"));
    }
    let mut client = agent.client_with("ada", "operate", "person").await;
    let refused = refused(client.decide_job_proposal(decision(false)).await);
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    let told = agent.operation().await.expect("it serves");
    let by = told.client.as_ref().expect("somebody decided");
    assert_eq!((by.uid, by.role.as_str(), by.origin.as_str()), (1000, "operate", "person"));
    let subject = format!("files.tidy sha256:{}", "a".repeat(64));
    assert_eq!((&*told.verb, &told.subject, &*told.outcome), ("reject_job", &subject, "failed"));
    assert!(told.problem.starts_with("there is no such thing"), "{told:?}");
}

// Promises: EXT-39
#[tokio::test]
async fn a_job_runs_by_hand_rests_and_goes_on() {
    let place = TestDirectory::new();
    let (_agent, mut client) =
        scheduled(&place, "[{ id: greet, at: '2199-01-01T00:00:00Z', ask: hello }]").await;
    let pause = |paused| PauseJobRequest { job: "greet".to_owned(), paused };
    let job = client.pause_job(pause(true)).await.unwrap().into_inner();
    assert!(job.paused && job.next_unix_ms.is_none());
    let run = client.run_job(RunJobRequest { job: "greet".to_owned() }).await.unwrap().into_inner();
    assert_eq!(run.kind, "manual");
    let all = until(&mut client, |all| count(all, "done") == 1).await;
    assert_eq!((all.len(), all[0].planned_unix_ms), (1, run.planned_unix_ms));
    let job = client.pause_job(pause(false)).await.unwrap().into_inner();
    assert!(!job.paused && job.next_unix_ms == Some(7_226_582_400_000));
    let unknown = refused(client.run_job(RunJobRequest { job: "gret".to_owned() }).await);
    assert_eq!(unknown.code(), Code::NotFound);
    assert!(unknown.message().contains("did you mean greet?"), "{unknown}");
    let history = ListOccurrencesRequest { job: "none".to_owned(), ..Default::default() };
    assert_eq!(refused(client.list_occurrences(history).await).code(), Code::NotFound);
}

// Promises: EXT-39
#[tokio::test]
async fn the_schedule_is_for_operators() {
    let place = TestDirectory::new();
    let (agent, _) = scheduled(&place, "[{ id: greet, every: 1h, ask: hello }]").await;
    let mut client = agent.client("alice").await;
    let job = || "greet".to_owned();
    let codes = [
        refused(client.list_jobs(ListJobsRequest {}).await).code(),
        refused(client.list_occurrences(ListOccurrencesRequest::default()).await).code(),
        refused(client.run_job(RunJobRequest { job: job() }).await).code(),
        refused(client.pause_job(PauseJobRequest { job: job(), paused: true }).await).code(),
    ];
    assert_eq!(codes, [Code::PermissionDenied; 4]);
}

// Promises: EXT-37
#[tokio::test]
async fn what_hangs_ends_at_its_deadline_and_is_tried_again() {
    let place = TestDirectory::new();
    let schedule =
        "[{ id: stuck, at: '2199-01-01T00:00:00Z', deadline: 1s, retries: 1, retry_after: 1s, ask: hang }]";
    let (_agent, mut client) = scheduled(&place, schedule).await;
    client.run_job(RunJobRequest { job: "stuck".to_owned() }).await.unwrap();
    let all = until(&mut client, |all| count(all, "failed") == 1).await;
    assert_eq!((all.len(), all[0].attempt), (1, 2));
    assert!(all[0].note.contains("deadline of 1000 ms"), "{all:?}");
    // It is one run: both attempts are in one conversation.
    assert_eq!(said(&mut client, &all[0].session_id).await["user"].len(), 2);
}

// Promises: EXT-38
#[tokio::test]
async fn a_changed_configuration_takes_jobs_away_and_brings_others() {
    let place = TestDirectory::new();
    let (mut agent, mut client) = scheduled(&place, "[{ id: one, every: 1s, ask: hello }]").await;
    until(&mut client, |all| count(all, "done") >= 1).await;
    configure(&mut agent, &place, "[{ id: two, every: 1s, ask: hello }]").await;
    until(&mut client, |all| all.iter().any(|run| run.job == "two" && run.state == "done")).await;
    let jobs = client.list_jobs(ListJobsRequest {}).await.unwrap().into_inner().jobs;
    assert_eq!(jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["two"]);
    // Its history stays.
    let request = ListOccurrencesRequest { job: "one".to_owned(), ..Default::default() };
    assert!(!client.list_occurrences(request).await.unwrap().into_inner().occurrences.is_empty());
    // The agent serves people all the same.
    answer(&mut client, "", "hello").await;
}

/// Kills the agent again and again, each time a little later in a run.
// Promises: EXT-37
#[tokio::test]
async fn killed_in_the_middle_of_runs_each_planned_time_runs_once() {
    let place = TestDirectory::new();
    // One answers at once; one calls a tool that takes its time, or never ends.
    let schedule = "
  - { id: quick, every: 1s, missed: all, missed_max: 100, overlap: queue, ask: hello }
  - { id: calls, every: 2s, missed: all, missed_max: 100, overlap: queue, ask: slow }
";
    let mut last_planned = 0;
    for kill in 0..kills() {
        let (mut agent, mut client) = scheduled(&place, schedule).await;
        agent.plugins.answers.add_permits(kill % 3);
        let word = if kill % 2 == 0 { "running" } else { "done" };
        let all = until(&mut client, |all| {
            all.iter().any(|run| run.planned_unix_ms > last_planned && run.state == word)
        })
        .await;
        last_planned = all.iter().map(|run| run.planned_unix_ms).max().unwrap();
        agent.kill();
    }
    let (agent, mut client) = scheduled(&place, schedule).await;
    agent.plugins.answers.add_permits(10_000);
    let over = |run: &Occurrence| {
        run.planned_unix_ms > last_planned || !["planned", "running"].contains(&run.state.as_str())
    };
    let all = until(&mut client, |all| all.iter().all(over)).await;
    for (job, every) in [("quick", 1000), ("calls", 2000)] {
        let runs: Vec<&Occurrence> =
            all.iter().filter(|run| run.job == job && run.planned_unix_ms <= last_planned).collect();
        assert!(runs.iter().any(|run| run.state == "done"), "{job}: {runs:?}");
        for pair in runs.windows(2) {
            assert_eq!(
                pair[1].planned_unix_ms - pair[0].planned_unix_ms,
                every,
                "no planned time is left out"
            );
        }
        for run in runs {
            match run.state.as_str() {
                // One question, whatever was killed meanwhile, and one end.
                "done" => {
                    let said = said(&mut client, &run.session_id).await;
                    assert_eq!(said["user"].len(), 1, "{run:?}: {said:?}");
                    let answers = said["assistant"].iter().filter(|text| !text.is_empty());
                    assert_eq!(answers.count(), 1, "{run:?}: {said:?}");
                }
                // Too many waited, on a slow machine: it has not begun.
                "missed" => assert!(run.session_id.is_empty() && run.attempt == 0, "{run:?}"),
                other => panic!("{other}: {run:?}\n{}", agent.log()),
            }
        }
    }
}

/// The runs for which `jobs.work` was called, by their ids, with their attempts.
fn called(agent: &Agent) -> Vec<(String, u64)> {
    let calls = agent.plugins.requests().into_iter().filter(|call| call.plugin == "jobs");
    let run = |call: talon_proto::host::ExecuteRequest| {
        assert_eq!((call.role.as_str(), call.action.as_str()), ("scheduled_task", "work"));
        let arguments: Value = serde_json::from_str(&call.arguments_json).unwrap();
        assert_eq!(arguments["to"], "ops");
        (arguments["run"]["id"].as_str().unwrap().to_owned(), arguments["run"]["attempt"].as_u64().unwrap())
    };
    calls.map(run).collect()
}

/// Kills the agent before, in and after calls.
// Promises: EXT-88
#[tokio::test]
async fn killed_in_the_middle_of_calls_no_action_is_called_twice_for_a_run() {
    let place = TestDirectory::new();
    let schedule = "
  - { id: work, every: 1s, missed: all, missed_max: 100, overlap: queue, action: jobs.work, args: { to: ops } }
";
    let (mut last_planned, mut all_calls) = (0, Vec::new());
    for kill in 0..kills() {
        let (mut agent, mut client) = scheduled(&place, schedule).await;
        // In every third life the action never answers.
        let word = if kill % 3 == 0 {
            *agent.plugins.held.lock() = "work";
            "running"
        } else {
            "done"
        };
        let all = until(&mut client, |all| {
            all.iter().any(|run| run.planned_unix_ms > last_planned && run.state == word)
        })
        .await;
        last_planned = all.iter().map(|run| run.planned_unix_ms).max().unwrap();
        agent.kill();
        all_calls.extend(called(&agent));
    }
    let (agent, mut client) = scheduled(&place, schedule).await;
    let over = |run: &Occurrence| {
        run.planned_unix_ms > last_planned || !["planned", "running"].contains(&run.state.as_str())
    };
    let all = until(&mut client, |all| all.iter().all(over)).await;
    all_calls.extend(called(&agent));
    let ids: BTreeSet<&String> = all_calls.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), all_calls.len(), "no run is called twice: {all_calls:?}");
    let runs: Vec<&Occurrence> = all.iter().filter(|run| run.planned_unix_ms <= last_planned).collect();
    for pair in runs.windows(2) {
        assert_eq!(pair[1].planned_unix_ms - pair[0].planned_unix_ms, 1000, "no planned time is left out");
    }
    for run in &runs {
        match run.state.as_str() {
            "done" => assert_eq!((run.result.as_str(), run.attempt), ("work : a line of text", 1), "{run:?}"),
            "failed" => assert!(run.note.contains("not known what it did"), "{run:?}"),
            "missed" => assert_eq!(run.attempt, 0, "{run:?}"),
            other => panic!("{other}: {run:?}\n{}", agent.log()),
        }
    }
    let count = |state: &str| runs.iter().filter(|run| run.state == state).count();
    assert!(count("done") > 0, "{runs:?}");
    // A call that was made and whose end is not known: at most one for each kill.
    assert!(count("failed") <= kills() && all_calls.len() >= count("done"), "{runs:?}");
}

// Promises: EXT-88
#[tokio::test]
async fn with_retries_a_run_that_was_interrupted_is_called_again_as_the_same_run() {
    let place = TestDirectory::new();
    let schedule = "[{ id: again, at: '2199-01-01T00:00:00Z', retries: 1, retry_after: 1s, action: jobs.work, args: { to: ops } }]";
    let (mut agent, mut client) = scheduled(&place, schedule).await;
    *agent.plugins.held.lock() = "work";
    client.run_job(RunJobRequest { job: "again".to_owned() }).await.unwrap();
    agent.plugins.wait_for(1).await;
    agent.kill();
    let first = called(&agent);
    let (agent, mut client) = scheduled(&place, schedule).await;
    let all = until(&mut client, |all| count(all, "done") == 1).await;
    assert_eq!((all.len(), all[0].attempt), (1, 2));
    let second = called(&agent);
    assert_eq!((first[0].1, second[0].1), (1, 2));
    assert_eq!(first[0].0, second[0].0, "it is the same run");
}

// Promises: EXT-92
#[tokio::test]
async fn an_answer_is_delivered_to_the_entry_that_its_job_names() {
    let place = TestDirectory::new();
    let extensions = "
notifications: [{ on: [plugin.failed], name: ops, action: sink.send }, { on: [answer], name: others, action: sink.send }]
schedule:
  - { id: greet, at: '2199-01-01T00:00:00Z', ask: hello, deliver: ops }
  - { id: work, at: '2199-01-01T00:00:00Z', action: jobs.work, args: { to: ops }, deliver: ops }
  - { id: quiet, at: '2199-01-01T00:00:00Z', ask: hello }
";
    let sink = Sink::new(100);
    let mut agent = Agent::start(&place);
    agent.plugins.set_sink(std::sync::Arc::clone(&sink));
    agent.configure_extensions(&place, extensions).await;
    let mut client = agent.client_with("ada", "operate", "person").await;
    for job in ["quiet", "greet", "work"] {
        client.run_job(RunJobRequest { job: job.to_owned() }).await.unwrap();
        until(&mut client, |all| all.iter().any(|run| run.job == job && run.state == "done")).await;
    }
    let mut told: Vec<Value> = sink.wait_for(2).await.into_iter().map(|told| told["event"].clone()).collect();
    told.sort_by_key(|event| event["fields"]["job"].as_str().unwrap().to_owned());
    let field = |event: &Value, name: &str| event["fields"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(told.len(), 2, "one entry gets each: {told:?}");
    for (event, job, text) in
        [(&told[0], "greet", "Hello to you, too."), (&told[1], "work", "work : a line of text")]
    {
        assert_eq!(
            (event["kind"].as_str(), event["details"].as_str()),
            (Some("answer"), Some(text)),
            "{event}"
        );
        assert_eq!(event["summary"], format!("{job}: {text}"));
        assert_eq!((field(event, "job"), field(event, "run").len()), (job.to_owned(), 26), "{event}");
        assert_eq!(!field(event, "session").is_empty(), job == "greet", "{event}");
    }
    // An entry that was taken away meanwhile: the run says that its answer went nowhere.
    let without = extensions.replace("name: ops,", "name: gone,");
    agent.configure_extensions(&place, &without).await;
    client.run_job(RunJobRequest { job: "greet".to_owned() }).await.unwrap();
    let all = until(&mut client, |all| count(all, "failed") == 1).await;
    let failed = all.iter().find(|run| run.state == "failed").unwrap();
    assert!(failed.note.contains("was not delivered to ops: there is no notification entry"), "{failed:?}");
}

// Promises: EXT-95
#[tokio::test]
async fn a_job_that_fails_for_good_is_told_once() {
    let place = TestDirectory::new();
    let extensions = "
notifications: [{ on: [schedule.*], name: ops, action: sink.send }]
schedule:
  - { id: stuck, at: '2199-01-01T00:00:00Z', deadline: 1s, retries: 1, retry_after: 1s, ask: hang }
  - { id: greet, at: '2199-01-01T00:00:00Z', ask: hello }
";
    let sink = Sink::new(100);
    let mut agent = Agent::start(&place);
    agent.plugins.set_sink(std::sync::Arc::clone(&sink));
    agent.configure_extensions(&place, extensions).await;
    let mut client = agent.client_with("ada", "operate", "person").await;
    for (job, state) in [("greet", "done"), ("stuck", "failed")] {
        client.run_job(RunJobRequest { job: job.to_owned() }).await.unwrap();
        until(&mut client, |all| count(all, state) == 1).await;
    }
    let told = sink.wait_for(1).await;
    let event = &told[0]["event"];
    assert_eq!((told.len(), event["kind"].as_str()), (1, Some("schedule.failed")), "{told:?}");
    let field = |name: &str| event["fields"][name].as_str().unwrap_or_default();
    // The run is named by its planned time.
    assert!(field("run").starts_with("20") && field("run").ends_with('Z'), "{event}");
    assert_eq!(field("job"), "stuck", "{event}");
    assert!(field("reason").contains("deadline of 1000 ms"), "{event}");
}
