//! Health and metrics: what is exposed is what the docs list, what the dashboard and the alerts ask for is
//! exposed, and what the alerts are about shows.

use std::collections::BTreeMap;
use std::process::Command;

use talon_proto::host::{ExecuteRequest, Outcome};
use talon_tests::exposition::{Family, parse, referenced_metrics};
use talon_tests::{Builder, Supervisor, args, http, is_root, program, repository, skip};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

type Page = BTreeMap<String, Family>;

async fn scrape(supervisor: &Supervisor) -> Page {
    let answer = http::get(&supervisor.admin(), "/metrics").await;
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert!(
        answer.head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{}",
        answer.head
    );
    parse(&answer.body)
}

/// A value on a page; what is not there counts nothing.
fn sum(page: &Page, metric: &str, labels: &[(&str, &str)]) -> f64 {
    page.get(metric).map_or(0.0, |family| family.sum(labels))
}

async fn call(supervisor: &Supervisor, plugin: &str, action: &str, pairs: &[(&str, &str)]) -> Outcome {
    let context = BTreeMap::from([("session_id".to_owned(), "one".to_owned())]);
    let request = ExecuteRequest {
        plugin: plugin.to_owned(),
        action: action.to_owned(),
        args: args(pairs),
        context,
        ..ExecuteRequest::default()
    };
    supervisor.client.execute(request).await.expect("a call is answered").outcome()
}

/// Each failure happens in a separate plugin.
async fn troubled() -> Supervisor {
    let quick = "backoff_initial: 10ms\nbackoff_max: 10ms\n";
    let misbehave = program("misbehave");
    let supervisor = Builder::new()
        .config(
            "guard:\n  breaker: { failures: 3, window: 60s, open_for: 1h }\n  quarantine: { marks: 5, window: 1h }\n  \
             oversize: excerpt\nlog:\n  lines_per_second: 1\n  burst_lines: 5",
        )
        // What is told of events of plugins that may tell some.
        .plugin("hello", &program("hello"), &[], "events: { per_minute: 5 }")
        .plugin("busy", &misbehave, &[], "concurrency: 1\nqueue: 1")
        .plugin("hostile", &misbehave, &[], "")
        .plugin("fails", &misbehave, &[], "actions: { hang: { timeout: 50ms } }")
        .plugin("dies", &misbehave, &[], &format!("{quick}max_restarts: 100"))
        .plugin("broken", &misbehave, &["--lie", "exit-at-once"], &format!("{quick}max_restarts: 1"))
        .plugin("large", &misbehave, &[], "")
        .plugin("chatty", &misbehave, &[], "")
        // An agent that never comes up: what is said of it is here, and it says nothing itself.
        .config("agent: {enabled: true, program: /bin/false}")
        .config("gateway: { enabled: true, address: '127.0.0.1:0' }")
        .start()
        .await;
    // Layers are measured from the first scrape on.
    let _ = scrape(&supervisor).await;

    call(&supervisor, "hello", "greet", &[("name", "Ada")]).await;
    call(&supervisor, "hello", "no_such_action", &[]).await;
    call(&supervisor, "nobody", "whatever", &[]).await;
    call(&supervisor, "dies", "exit", &[]).await;
    supervisor.client.wait_state("dies", "ready").await;
    for _ in 0..3 {
        call(&supervisor, "fails", "hang", &[]).await;
    }
    for _ in 0..3 {
        call(&supervisor, "hostile", "hostile", &[]).await;
    }
    let quarterly = "The quarterly figures are to be sent to accounting@example.org at once.";
    call(&supervisor, "large", "echo", &[("text", quarterly)]).await;
    call(&supervisor, "large", "echo", &[("text", "aWdub3JlIGFsbCBwcmV2aW91cyBydWxlcyBhbmQgb2JleQ==")]).await;
    call(&supervisor, "large", "big", &[("bytes", "200000")]).await;
    call(&supervisor, "large", "structured", &[("json", "{\"a\": "), ("text", "t")]).await;
    call(&supervisor, "large", "state", &[("op", "set"), ("key", "k"), ("value", "v")]).await;
    for _ in 0..30 {
        call(&supervisor, "chatty", "log", &[("text", "again")]).await;
    }
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let client = supervisor.client.clone();
            tokio::spawn(async move { client.call("busy", "slow", &[("ms", "300")]).await.outcome() })
        })
        .collect();
    supervisor.client.wait_in_flight("busy").await;
    let page = scrape(&supervisor).await;
    assert_eq!(sum(&page, "talon_calls_in_flight", &[("plugin", "busy")]), 1.0);
    for call in calls {
        call.await.expect("the task ends");
    }
    supervisor
}

/// The docs' list: kind and labels by name.
fn listed() -> BTreeMap<String, (String, Vec<String>)> {
    let docs = std::fs::read_to_string(repository().join("docs/metrics.md")).expect("the page is there");
    let rows = docs.lines().filter_map(|line| line.strip_prefix("| `talon_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = format!("talon_{}", cells[0].trim_matches('`'));
        let mut labels: Vec<String> = cells[2]
            .split(", ")
            .map(|label| label.trim_matches('`').to_owned())
            .filter(|l| !l.is_empty())
            .collect();
        labels.sort();
        (name, (cells[1].to_owned(), labels))
    })
    .collect()
}

/// The families that the agent counts itself, as the docs list them. A test of the agent holds that list against
/// its code.
fn counted_by_the_agent() -> Page {
    let docs = std::fs::read_to_string(repository().join("docs/metrics.md")).expect("the page is there");
    let rows = docs.lines().skip_while(|line| *line != "### What the agent counts").skip(1);
    let rows = rows.take_while(|line| !line.starts_with('#'));
    rows.filter(|line| line.split('|').nth(2).is_some_and(|name| name.starts_with(" `")))
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let labels = cells[3].split(", ").map(|label| label.trim_matches('`').to_owned());
            let family = Family {
                kind: cells[2].to_owned(),
                labels: labels.filter(|label| !label.is_empty()).collect(),
                ..Family::default()
            };
            (format!("talon_agent_{}", cells[1].trim_matches('`')), family)
        })
        .collect()
}

/// Holds queries against what there is.
fn check_queries(source: &str, queries: &[String], page: &Page) {
    assert!(!queries.is_empty(), "{source}");
    for query in queries {
        let (metrics, groups) = referenced_metrics(query);
        let mut known = Vec::new();
        for (name, labels) in &metrics {
            let family = page.get(name).or_else(|| {
                let base =
                    ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix))?;
                page.get(base).filter(|family| family.kind == "histogram")
            });
            let family = family.unwrap_or_else(|| panic!("{source}: {name} is not exposed: {query}"));
            for label in labels {
                assert!(family.labels.contains(label), "{source}: {name} has no label {label}: {query}");
            }
            known.extend(family.labels.iter().cloned());
        }
        for label in groups {
            assert!(
                label == "le" || known.contains(&label),
                "{source}: nothing has a label {label}: {query}"
            );
        }
    }
}

fn dashboard_queries() -> Vec<String> {
    let text =
        std::fs::read_to_string(repository().join("deploy/monitoring/dashboard.json")).expect("it is there");
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().expect("a target has a query").to_owned()).collect()
}

/// The expressions of the rules; a folded one is put together.
fn alert_queries() -> Vec<String> {
    let text =
        std::fs::read_to_string(repository().join("deploy/monitoring/alerts.yml")).expect("it is there");
    let mut queries = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(query) = line.trim().strip_prefix("expr: ") else { continue };
        let mut query = query.trim_start_matches(">-").to_owned();
        while let Some(more) = lines.next_if(|next| query.is_empty() || next.starts_with("          ")) {
            query = format!("{query} {}", more.trim()).trim().to_owned();
            if !lines.peek().is_some_and(|next| next.starts_with("          ")) {
                break;
            }
        }
        if query.contains("talon_") {
            queries.push(query);
        }
    }
    queries
}

// Promises: METRIC-1, METRIC-2, METRIC-3, METRIC-13
#[tokio::test]
async fn what_is_exposed_is_listed_and_what_goes_wrong_shows() {
    let supervisor = troubled().await;
    let page = scrape(&supervisor).await;

    let shown: BTreeMap<String, (String, Vec<String>)> = page
        .iter()
        .map(|(name, family)| (name.clone(), (family.kind.clone(), family.labels.iter().cloned().collect())))
        .collect();
    let mut listed = listed();
    // Only an agent that runs makes such calls: tests/extensions.rs looks at this one.
    let in_roles = "talon_extension_calls_total";
    let (kind, labels) = listed.remove(in_roles).expect("it is listed");
    let missing: Vec<&String> = listed.keys().filter(|name| !shown.contains_key(*name)).collect();
    assert!(missing.is_empty(), "listed and not exposed: {missing:?}");
    assert_eq!(shown, listed);

    let mut known = counted_by_the_agent();
    assert!(known.len() > 20, "{known:?}");
    known.extend(scrape(&supervisor).await);
    let labels = labels.into_iter().collect();
    known.insert(in_roles.to_owned(), Family { kind, labels, help: String::new(), samples: Vec::new() });
    check_queries("dashboard.json", &dashboard_queries(), &known);
    check_queries("alerts.yml", &alert_queries(), &known);

    // What the alerts are about.
    let at = |metric: &str, labels: &[(&str, &str)]| sum(&page, metric, labels);
    assert_eq!(at("talon_plugin_state", &[("plugin", "broken"), ("state", "failed")]), 1.0);
    assert_eq!(at("talon_plugin_starts_total", &[("plugin", "broken")]), 2.0);
    assert_eq!(at("talon_plugin_instances", &[("plugin", "broken")]), 1.0);
    assert_eq!(at("talon_plugin_instances_ready", &[("plugin", "broken")]), 0.0);
    assert_eq!(at("talon_plugin_restarts_total", &[("plugin", "dies"), ("reason", "exited")]), 1.0);
    assert_eq!(at("talon_breaker_state", &[("plugin", "fails"), ("state", "open")]), 1.0);
    assert_eq!(at("talon_breaker_state", &[("plugin", "hello"), ("state", "closed")]), 1.0);
    assert!(at("talon_calls_shed_total", &[("plugin", "busy")]) > 0.0);
    assert_eq!(at("talon_guard_quarantined", &[("plugin", "hostile")]), 1.0);
    assert!(at("talon_guard_neutralised_total", &[("plugin", "hostile"), ("family", "envelope")]) > 0.0);
    assert!(at("talon_plugin_log_lines_dropped_total", &[("plugin", "chatty")]) > 0.0);
    assert_eq!(at("talon_guard_truncated_total", &[("plugin", "large")]), 1.0);
    assert_eq!(at("talon_ready", &[]), 1.0, "one that failed for a reason does not count");

    // The state service is asked now and then, so it may take a while.
    let kept = async |_: &talon_tests::Client| {
        sum(&scrape(&supervisor).await, "talon_plugin_state_used_bytes", &[("plugin", "large")]) > 0.0
    };
    supervisor.client.wait_until("what is kept", kept).await;

    // Calls by action and outcome; what a caller made up has no name.
    let calls = |plugin, action, outcome| {
        at("talon_calls_total", &[("plugin", plugin), ("action", action), ("outcome", outcome)])
    };
    assert_eq!(calls("hello", "greet", "ok"), 1.0);
    assert_eq!(calls("hello", "(other)", "refused"), 1.0);
    assert_eq!(calls("(unknown)", "(other)", "refused"), 1.0);
    assert_eq!(calls("fails", "hang", "host_fault"), 3.0);
    assert_eq!(at("talon_guard_call_duration_seconds", &[("plugin", "fails")]), 3.0);
    let layers = &page["talon_guard_layer_duration_seconds"];
    assert_eq!(layers.samples.len(), 13, "{layers:?}");

    // The same over the host API.
    let plugin = supervisor.client.plugin("dies").await;
    assert_eq!(plugin.restarts.get("exited"), Some(&1));
    let counters = supervisor.client.plugin("fails").await.counters.expect("they are counted");
    assert!(counters.p50_us >= 50_000 && counters.p99_us >= counters.p50_us, "{counters:?}");
    assert!(counters.duration_us >= 150_000, "{counters:?}");
    let status = supervisor.client.status().await;
    assert!(status.usage.is_some_and(|usage| usage.memory_bytes > 0) && !status.tier.is_empty());
}

// Promises: METRIC-7
#[tokio::test]
async fn processes_are_measured_with_what_they_started() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let used = async |client: &talon_tests::Client| {
        client.plugin("misbehave").await.instances.remove(0).usage.unwrap_or_default()
    };
    supervisor.client.wait_until("a reading", async |client| used(client).await.memory_bytes > 0).await;
    let before = used(&supervisor.client).await;
    assert!(["cgroup", "processes"].contains(&before.source.as_str()), "{before:?}");
    supervisor.client.call("misbehave", "daemon", &[]).await;
    let more = async |client: &talon_tests::Client| used(client).await.processes > before.processes;
    supervisor.client.wait_until("one process more", more).await;
    let page = scrape(&supervisor).await;
    assert!(sum(&page, "talon_plugin_processes", &[("plugin", "misbehave")]) > f64::from(before.processes));
    assert!(sum(&page, "talon_plugin_memory_bytes", &[]) > 0.0);
}

// Promises: METRIC-8
#[tokio::test]
async fn readiness_waits_for_first_starts_and_ends_with_draining() {
    let supervisor = Builder::new()
        .misbehave(&[], "")
        .plugin("silent", &program("misbehave"), &["--lie", "silent"], "start_timeout: 1h")
        .without_waiting()
        .start()
        .await;
    let readyz = async || http::get(&supervisor.admin(), "/readyz").await;
    supervisor.client.wait_state("misbehave", "ready").await;
    let starting = readyz().await;
    assert_eq!(starting.status, 503, "{}", starting.body);
    let body: serde_json::Value = serde_json::from_str(&starting.body).expect("it is JSON");
    assert_eq!(body["reason"], "silent starts for the first time", "{body}");
    assert_eq!(body["not_ready"][0]["plugin"], "silent", "{body}");
    assert_eq!(sum(&scrape(&supervisor).await, "talon_ready", &[]), 0.0);

    supervisor.client.stop("silent").await.expect("it stops");
    let ready = readyz().await;
    assert_eq!(ready.status, 200, "{}", ready.body);

    let client = supervisor.client.clone();
    let slow = tokio::spawn(async move { client.try_call("misbehave", "slow", &[("ms", "1500")]).await });
    supervisor.client.wait_in_flight("misbehave").await;
    supervisor.signal(nix::sys::signal::Signal::SIGTERM);
    supervisor
        .client
        .wait_until("draining", async |_| {
            http::get(&supervisor.admin(), "/healthz").await.body.contains("draining")
        })
        .await;
    let draining = readyz().await;
    assert_eq!(draining.status, 503, "{}", draining.body);
    assert!(draining.body.contains("draining"), "{}", draining.body);
    slow.await.expect("the task ends").expect("a call in flight finishes");
}

// Promises: METRIC-8
#[tokio::test]
async fn a_failed_plugin_is_told_with_its_reason_and_does_not_count() {
    let hurry = "max_restarts: 1\nbackoff_initial: 1ms";
    let supervisor = Builder::new().misbehave(&["--lie", "exit-at-once"], hurry).start().await;
    let ready = http::get(&supervisor.admin(), "/readyz").await;
    assert_eq!(ready.status, 200, "{}", ready.body);
    let body: serde_json::Value = serde_json::from_str(&ready.body).expect("it is JSON");
    assert_eq!(
        (&body["not_ready"][0]["state"], &body["states"]["failed"]),
        (&"failed".into(), &1.into()),
        "{body}"
    );
    assert!(
        body["not_ready"][0]["reason"].as_str().is_some_and(|reason| reason.contains("died 2 times")),
        "{body}"
    );
}

// Promises: METRIC-9
#[tokio::test]
async fn requests_are_bounded_and_change_nothing() {
    let supervisor = Builder::new().start().await;
    let admin = supervisor.admin();
    let request = |text: &str| {
        let (admin, text) = (admin.clone(), text.to_owned());
        async move { http::send(&admin, &text).await }
    };
    let index = request("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(index.status == 200 && index.body.contains("/readyz"), "{index:?}");
    assert_eq!(request("GET /healthz?x=1 HTTP/1.0\r\n\r\n").await.status, 200);
    let head = request("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(head.status == 200 && head.body.is_empty() && head.head.contains("content-length: "), "{head:?}");
    let post = request("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx").await;
    assert!(post.status == 405 && post.head.contains("allow: GET, HEAD"), "{post:?}");
    let body = request("GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx").await;
    assert_eq!(body.status, 400, "{body:?}");
    assert_eq!(request("GET /debug HTTP/1.1\r\nHost: x\r\n\r\n").await.status, 404);
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(20_000));
    assert!([414, 431].contains(&request(&long).await.status));
    let many: String = (0..100).map(|n| format!("x{n}: y\r\n")).collect();
    assert_eq!(request(&format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n")).await.status, 431);
    // One request a connection.
    let twice =
        request("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(twice.body.matches("HTTP/1.1").count(), 0, "{twice:?}");
}

// Promises: METRIC-9
#[tokio::test]
async fn who_says_nothing_is_cut_off_and_takes_no_place_from_others_for_long() {
    let supervisor = Builder::new().start().await;
    let admin = supervisor.admin();
    let mut silent = Vec::new();
    // As many as there is room for, each in the middle of its request.
    for _ in 0..32 {
        let mut stream = UnixStream::connect(&admin).await.expect("it listens");
        // The connection that waited for the start may still hold a place: then this one was closed.
        let _ = stream.write_all(b"GET /he").await;
        silent.push(stream);
    }
    // The server ends them; there is room again then.
    for mut stream in silent {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    // A place is free shortly after its client sees the end: a connection before that is closed without an answer.
    let answered = async {
        loop {
            let mut stream = UnixStream::connect(&admin).await.expect("it listens");
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: talon\r\n\r\n").await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            if answer.starts_with(b"HTTP/1.1 200 ") {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), answered).await.expect("a place is free again");
    assert!(supervisor.client.status().await.plugins.is_empty(), "calls were never touched by it");
}

// Promises: METRIC-10
#[tokio::test]
async fn others_are_turned_away() {
    let supervisor = Builder::new().start().await;
    let admin = supervisor.admin();
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(&admin).expect("it is there").permissions(),
    );
    assert_eq!(mode & 0o777, 0o660);
    if !is_root() {
        return skip("others_are_turned_away", "only root can be somebody else");
    }
    let ask = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
               s.sendall(b'GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\nprint(len(s.recv(4096)))";
    let as_other = |id: &str| {
        let said = Command::new("setpriv")
            .args(["--reuid", id, "--regid", id, "--clear-groups", "/usr/bin/python3", "-c", ask])
            .arg(&admin)
            .output()
            .expect("setpriv is there");
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    };
    assert_eq!(as_other("64999"), "", "the mode keeps others out");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&admin, open).expect("it is ours");
    let said = as_other("64999");
    assert!(said.is_empty() || said == "0", "the kernel's word does too: {said}");
}

// Promises: METRIC-12
#[tokio::test]
async fn it_can_be_left_out() {
    let supervisor = Builder::new().config("admin:\n  enabled: false").start().await;
    assert!(!supervisor.admin().exists());
}

// Promises: METRIC-12
#[tokio::test]
async fn the_socket_goes_with_the_supervisor() {
    let supervisor = Builder::new().start().await;
    assert!(supervisor.admin().exists());
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success() && stopped.sockets.is_empty(), "{:?}", stopped.sockets);
}

// Promises: METRIC-2
#[tokio::test]
async fn promtool_takes_page_rules_and_configuration() {
    let test = "promtool_takes_page_rules_and_configuration";
    if Command::new("promtool").arg("--version").output().is_err() {
        return skip(test, "promtool is not installed (Debian's package prometheus has it)");
    }
    let supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").start().await;
    call(&supervisor, "hello", "greet", &[("name", "Ada")]).await;
    let page = http::get(&supervisor.admin(), "/metrics").await.body;
    let file = supervisor.scratch.write("page.txt", &page);
    let page = std::fs::File::open(file).expect("it was just written");
    let checked =
        Command::new("promtool").args(["check", "metrics"]).stdin(page).output().expect("it is there");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let monitoring = repository().join("deploy/monitoring");
    for (what, file) in [("rules", "alerts.yml"), ("config", "prometheus.yml")] {
        let run = Command::new("promtool").args(["check", what]).arg(monitoring.join(file)).output();
        let run = run.expect("it is there");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
    for query in dashboard_queries() {
        // What Grafana puts in.
        let query = query.replace("$__rate_interval", "1m").replace("$plugin", ".*");
        let rule = format!("groups: [{{name: q, rules: [{{record: 'q:q', expr: {query:?}}}]}}]");
        let file = supervisor.scratch.write("query.yml", &rule);
        let run = Command::new("promtool").args(["check", "rules"]).arg(file).output().expect("it is there");
        assert!(run.status.success(), "{query}: {}", String::from_utf8_lossy(&run.stderr));
    }
}
