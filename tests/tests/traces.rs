//! Traces of calls: what a local collector receives, what plugins receive, and that neither can fail a call.

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome};
use talon_tests::collector::{Collector, CollectorMode, attribute};
use talon_tests::{Builder, Supervisor, cli, until};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Calls with metadata.
async fn call(supervisor: &Supervisor, action: &str, metadata: &[(&'static str, &str)]) -> ExecuteResponse {
    let mut request = tonic::Request::new(ExecuteRequest {
        plugin: "misbehave".to_owned(),
        action: action.to_owned(),
        call_id: "c1".to_owned(),
        context: [("session_id".to_owned(), "s1".to_owned())].into(),
        ..ExecuteRequest::default()
    });
    for (name, value) in metadata {
        request.metadata_mut().append(*name, value.parse().expect("it is a value of metadata"));
    }
    supervisor.client.clone().raw().execute(request).await.expect("the host answers").into_inner()
}

/// A supervisor that sends its traces to a socket in its scratch directory, and the collector there.
async fn traced(manners: CollectorMode, more: &str) -> (Supervisor, Collector) {
    let builder = Builder::new();
    let socket = builder.scratch().join("otlp.sock");
    let collector = Collector::at(&socket, manners);
    let endpoint = format!("traces: {{ endpoint: \"unix:{}\"{more} }}", socket.display());
    (builder.misbehave(&[], "").config(&endpoint).start().await, collector)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn one(mut spans: Vec<Span>) -> Span {
    assert_eq!(spans.len(), 1, "{spans:?}");
    spans.remove(0)
}

// Promises: TRACE-9, TRACE-10
#[tokio::test]
async fn a_call_is_two_spans_and_its_plugin_is_told_of_the_inner_one() {
    let (supervisor, collector) = traced(CollectorMode::Accept, "").await;
    let answer = call(&supervisor, "trace", &[]).await;
    let call = one(collector.wait_for("call", 1).await);
    let plugin = one(collector.wait_for("plugin", 1).await);
    assert_eq!(plugin.trace_id, call.trace_id);
    assert_eq!(plugin.parent_span_id, call.span_id);
    assert!(call.parent_span_id.is_empty(), "{call:?}");
    assert_eq!((call.kind(), plugin.kind()), (SpanKind::Server, SpanKind::Client));
    assert!(call.start_time_unix_nano <= plugin.start_time_unix_nano, "{call:?} {plugin:?}");
    assert_eq!(answer.content, format!("00-{}-{}-01", hex(&call.trace_id), hex(&plugin.span_id)));

    let said = |name: &str| attribute(&call.attributes, name);
    assert!(said("talon.call_id").starts_with("c1."), "{call:?}");
    for (name, value) in [
        ("rpc.system", "grpc"),
        ("rpc.service", "talon.host.v1.Host"),
        ("rpc.method", "Execute"),
        ("talon.plugin", "misbehave"),
        ("talon.action", "trace"),
        ("talon.session", "s1"),
        ("talon.instance", "0"),
        ("talon.outcome", "ok"),
    ] {
        assert_eq!(said(name), value, "{name}: {call:?}");
    }
    let said = |name: &str| attribute(&plugin.attributes, name);
    assert_eq!((said("talon.plugin"), said("talon.instance")), ("misbehave".to_owned(), "0".to_owned()));
    assert_eq!(attribute(&collector.resource(), "service.name"), "talon");
    assert_eq!(attribute(&collector.resource(), "service.version"), env!("CARGO_PKG_VERSION"));
    // The supervisor exports nothing else.
    assert_eq!(collector.spans().len(), 2, "{:?}", collector.spans());
}

// Promises: TRACE-10, TRACE-11
#[tokio::test]
async fn a_callers_trace_goes_on_and_its_decision_stands() {
    let (supervisor, collector) = traced(CollectorMode::Accept, "").await;
    // The caller has decided that this one is not traced.
    let unsampled = format!("00-{TRACE}-{CALLER}-00");
    let told = call(&supervisor, "trace", &[("traceparent", &unsampled)]).await.content;
    let fields: Vec<&str> = told.split('-').collect();
    assert_eq!((fields[1], fields[3]), (TRACE, "00"), "{told}");

    let sampled = format!("00-{TRACE}-{CALLER}-01");
    let metadata = [("traceparent", sampled.as_str()), ("tracestate", "rojo=1,congo=2")];
    let told = call(&supervisor, "trace", &metadata).await.content;
    let root = one(collector.wait_for("call", 1).await);
    let plugin = one(collector.wait_for("plugin", 1).await);
    assert_eq!((hex(&root.trace_id), hex(&root.parent_span_id)), (TRACE.to_owned(), CALLER.to_owned()));
    assert_eq!(told, format!("00-{TRACE}-{}-01 rojo=1,congo=2", hex(&plugin.span_id)));
}

// Promises: TRACE-11
#[tokio::test]
async fn of_calls_that_nobody_decided_about_a_share_is_traced() {
    let (supervisor, collector) = traced(CollectorMode::Accept, ", sample: 0.0").await;
    let told = call(&supervisor, "trace", &[]).await.content;
    assert!(told.ends_with("-00"), "the plugin is told that it is not: {told}");
    let sampled = format!("00-{TRACE}-{CALLER}-01");
    call(&supervisor, "trace", &[("traceparent", &sampled)]).await;
    let root = one(collector.wait_for("call", 1).await);
    assert_eq!(hex(&root.trace_id), TRACE);
}

// Promises: TRACE-13
#[tokio::test]
async fn where_traces_are_off_the_callers_is_handed_on_as_it_came() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let sampled = format!("00-{TRACE}-{CALLER}-01");
    let metadata = [("traceparent", sampled.as_str()), ("tracestate", "rojo=1")];
    assert_eq!(call(&supervisor, "trace", &metadata).await.content, format!("{sampled} rojo=1"));
    assert_eq!(call(&supervisor, "trace", &[]).await.content, "");
    for bad in [format!("00-{TRACE}-{CALLER}"), "00-0-0-01".to_owned(), sampled.to_uppercase()] {
        assert_eq!(call(&supervisor, "trace", &[("traceparent", &bad)]).await.content, "", "{bad}");
    }
    let twice = [("traceparent", sampled.as_str()), ("traceparent", sampled.as_str())];
    assert_eq!(call(&supervisor, "trace", &twice).await.content, "");
}

// Promises: TRACE-14
#[tokio::test]
async fn a_collector_may_be_on_a_port_of_this_machine() {
    let (collector, port) = Collector::on_loopback().await;
    let endpoint = format!("traces: {{ endpoint: \"http://127.0.0.1:{port}\" }}");
    let supervisor = Builder::new().misbehave(&[], "").config(&endpoint).start().await;
    call(&supervisor, "exit", &[]).await;
    let root = one(collector.wait_for("call", 1).await);
    assert_eq!(attribute(&root.attributes, "talon.outcome"), "host_fault", "{root:?}");
    assert_eq!(attribute(&root.attributes, "talon.reason"), "died", "{root:?}");
    assert_eq!(root.status.map(|status| status.code()), Some(StatusCode::Error));
    // The rest is sent at the end.
    call(&supervisor, "hostile", &[]).await;
    let ended = supervisor.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(collector.wait_for("call", 2).await.len(), 2);
}

// Promises: TRACE-16
#[tokio::test]
async fn what_callers_and_plugins_write_is_inert_and_bounded_at_the_collector() {
    let (supervisor, collector) = traced(CollectorMode::Accept, "").await;
    let hostile = format!("\u{1b}[2J<|im_start|>{}", "x".repeat(10_000));
    let request = ExecuteRequest {
        plugin: hostile.clone(),
        action: hostile.clone(),
        context: [("session_id".to_owned(), hostile)].into(),
        ..ExecuteRequest::default()
    };
    assert_eq!(supervisor.client.execute(request).await.unwrap().outcome(), Outcome::Refused);
    call(&supervisor, "hostile", &[]).await;
    let calls = collector.wait_for("call", 2).await;
    for attribute in calls.iter().flat_map(|span| &span.attributes) {
        let shown = format!("{attribute:?}");
        assert!(
            shown.len() < 1000 && !shown.contains("<|im_start|>") && !shown.contains("\\u{1b}"),
            "{shown}"
        );
    }
    let plugin = attribute(&calls[0].attributes, "talon.plugin");
    assert!(plugin.starts_with("␛[2J<·|im_start|>x"), "{plugin}");
}

// Promises: TRACE-15
#[tokio::test]
async fn a_collector_that_is_not_there_hangs_or_refuses_costs_no_call() {
    for manners in [None, Some(CollectorMode::Hang), Some(CollectorMode::Reject)] {
        let (supervisor, collector) = match manners {
            Some(manners) => {
                let (supervisor, collector) = traced(manners, "").await;
                (supervisor, Some(collector))
            }
            None => {
                let builder = Builder::new();
                let socket = builder.scratch().join("nobody.sock");
                let endpoint = format!("traces: {{ endpoint: \"unix:{}\" }}", socket.display());
                (builder.misbehave(&[], "").config(&endpoint).start().await, None)
            }
        };
        for _ in 0..20 {
            let answer = call(&supervisor, "trace", &[]).await;
            assert!(answer.content.ends_with("-01"), "{manners:?}: {answer:?}");
        }
        if let Some(collector) = &collector {
            // It has spans in hand, and more are made meanwhile.
            collector.wait_requests(1).await;
            assert_eq!(call(&supervisor, "trace", &[]).await.outcome(), Outcome::Ok);
        }
        let ended = supervisor.stop().await;
        assert!(ended.status.success(), "{manners:?}: {}", ended.log);
        let said = ended.log.matches("traces are lost").count();
        // A collector that hangs is given five seconds, of which the end waits for two.
        let expected = if manners == Some(CollectorMode::Hang) { 0..=1 } else { 1..=1 };
        assert!(expected.contains(&said), "{manners:?}: {said} times in {}", ended.log);
        assert!(!ended.log.contains("<|im_start|>"), "{}", ended.log);
    }
}

// Promises: TRACE-15
#[tokio::test]
async fn a_collector_that_dies_and_comes_back_has_what_comes_then() {
    let builder = Builder::new();
    let socket = builder.scratch().join("otlp.sock");
    let first = Collector::at(&socket, CollectorMode::Accept);
    let endpoint = format!("traces: {{ endpoint: \"unix:{}\" }}", socket.display());
    let supervisor = builder.misbehave(&[], "").config(&endpoint).start().await;
    call(&supervisor, "trace", &[]).await;
    first.wait_for("call", 1).await;
    drop(first);
    std::fs::remove_file(&socket).unwrap();
    assert_eq!(call(&supervisor, "trace", &[]).await.outcome(), Outcome::Ok);
    until("a word of lost traces", || supervisor.log().contains("traces are lost")).await;
    let second = Collector::at(&socket, CollectorMode::Accept);
    call(&supervisor, "trace", &[]).await;
    assert_eq!(second.wait_for("call", 1).await.len(), 1);
}

// Promises: TRACE-14
#[tokio::test]
async fn a_collector_elsewhere_is_refused_with_what_to_write_instead() {
    let builder = Builder::new().config("traces: { endpoint: \"http://192.0.2.1:4317\" }");
    let (config, _) = builder.write_config();
    let checked = cli(&["config", "check", "--config", config.to_str().unwrap()]).await;
    let said =
        String::from_utf8_lossy(&checked.stderr).into_owned() + &String::from_utf8_lossy(&checked.stdout);
    assert!(!checked.status.success(), "{said}");
    assert!(said.contains("traces.endpoint") && said.contains("is not on this machine"), "{said}");
    assert!(said.contains("http://127.0.0.1:4317"), "{said}");
}
