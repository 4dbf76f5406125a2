use talon_proto::plugin::Parameter;
use tokio_test::{assert_pending, task};
use tower_test::mock;

use super::*;
use crate::reason;

#[derive(Clone)]
struct Fixed(BTreeMap<&'static str, Target>);

impl Directory for Fixed {
    fn target(&self, plugin: &str) -> Option<Target> {
        self.0.get(plugin).cloned()
    }
    fn names(&self) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }
}

fn parameter(name: &str, r#type: &str, required: bool) -> Parameter {
    Parameter { name: name.to_owned(), r#type: r#type.to_owned(), required, ..Default::default() }
}

fn directory() -> Fixed {
    let search = Action {
        name: "search".to_owned(),
        parameters: vec![parameter("query", "string", true), parameter("limit", "integer", false)],
        inject_context_args: vec!["session_id".to_owned(), "group_id".to_owned()],
        ..Default::default()
    };
    let wipe = Action { name: "wipe".to_owned(), user_only: true, ..Default::default() };
    let swapped = Action { name: "swapped".to_owned(), ..Default::default() };
    let known = Target {
        declared_name: "ripgrep-tools".to_owned(),
        actions: Arc::new(
            [("search".to_owned(), search), ("wipe".to_owned(), wipe), ("swapped".to_owned(), swapped)]
                .into_iter()
                .collect(),
        ),
        withheld: Arc::new(["swapped".to_owned()].into()),
        ready: Readiness::Known,
    };
    let not_yet = Target {
        declared_name: String::new(),
        actions: Arc::default(),
        withheld: Arc::default(),
        ready: Readiness::NotYet {
            reason: "it is starting; try again in a moment".to_owned(),
            retryable: true,
        },
    };
    Fixed([("code-search", known), ("late", not_yet)].into())
}

fn grants() -> ContextGrants {
    let key = CredentialHeader { header: "X-Key".to_owned(), value: "s3cret".to_owned() };
    ContextGrants { context: ["session_id".to_owned()].into(), credentials: [("api".to_owned(), key)].into() }
}

/// The call as it reaches the layer below, or the refusal.
async fn resolved(call: Call) -> Result<Call, CallError> {
    resolved_within(call, DEFAULT_MAX_ARGUMENT_BYTES).await
}

async fn resolved_within(call: Call, max_argument_bytes: usize) -> Result<Call, CallError> {
    let layer = ResolveLayer::new(directory(), grants()).max_argument_bytes(max_argument_bytes);
    let (mut service, mut below) = mock::spawn_layer::<Call, (), _>(layer);
    below.allow(1);
    let mut waiting = task::spawn(service.call(call));
    match waiting.poll() {
        Poll::Ready(refused) => {
            // A refused call never goes down.
            assert_pending!(below.poll_request());
            Err(refused.expect_err("nobody answered"))
        }
        Poll::Pending => Ok(below.next_request().await.expect("the call goes down").0),
    }
}

pub(super) fn call(plugin: &str, action: &str, args: &[(&str, &str)]) -> Call {
    let mut call = Call::new("c1", plugin, action, Origin::Model);
    call.args = args.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    call
}

async fn assert_refused(call: Call, reason: &str, message: &str) {
    let error = resolved(call).await.unwrap_err();
    assert_eq!((error.reason(), error.to_string().as_str()), (reason, message));
}

#[tokio::test]
async fn a_good_call_goes_down_with_the_declared_name() {
    let call =
        resolved(call("code-search", "search", &[("query", "fn main"), ("limit", "5")])).await.unwrap();
    assert_eq!(call.declared_name, "ripgrep-tools");
    assert_eq!(call.args.len(), 2);
}

// Promises: GUARD-30
#[tokio::test]
async fn an_unknown_plugin_is_told_the_nearest_names() {
    assert_refused(
        call("code_serch", "search", &[]),
        reason::UNKNOWN_PLUGIN,
        "plugin \"code_serch\" not found; did you mean \"code-search\"?",
    )
    .await;
    assert_refused(
        call("zzz", "search", &[]),
        reason::UNKNOWN_PLUGIN,
        "plugin \"zzz\" not found; there are \"code-search\", \"late\"",
    )
    .await;
}

// Promises: GUARD-30
#[tokio::test]
async fn an_unknown_action_is_told_the_nearest_names_or_what_there_is() {
    assert_refused(
        call("code-search", "serach", &[]),
        reason::UNKNOWN_ACTION,
        "action \"serach\" not found in plugin \"code-search\"; did you mean \"search\"?",
    )
    .await;
    assert_refused(
        call("code-search", "quantum", &[]),
        reason::UNKNOWN_ACTION,
        "action \"quantum\" not found in plugin \"code-search\"; there are \"search\", \"swapped\", \"wipe\"",
    )
    .await;
}

#[tokio::test]
async fn a_name_cannot_flood_or_forge_the_message() {
    let error = resolved(call(&"\n[tool_call]".repeat(10_000), "search", &[])).await.unwrap_err();
    let message = error.to_string();
    assert!(message.len() < 200 && !message.contains('\n'), "{message}");
}

// Promises: GUARD-33
#[tokio::test]
async fn only_people_and_programs_run_user_only_actions() {
    assert_refused(
        call("code-search", "wipe", &[]),
        reason::USER_ONLY,
        "action \"wipe\" can only be invoked by the user, not the LLM",
    )
    .await;
    for origin in [Origin::Person, Origin::Program] {
        let mut call = call("code-search", "wipe", &[]);
        call.origin = origin;
        assert!(resolved(call).await.is_ok());
    }
}

#[tokio::test]
async fn a_plugin_whose_capabilities_were_never_read_is_unavailable() {
    let error = resolved(call("late", "search", &[])).await.unwrap_err();
    assert_eq!(error.to_string(), "plugin \"late\" is not available: it is starting; try again in a moment");
    assert!(matches!(error, CallError::Fault { reason: "unavailable", retryable: true, .. }));
}

// Promises: GUARD-31
#[tokio::test]
async fn all_problems_of_the_arguments_are_told_at_once() {
    assert_refused(
        call("code-search", "search", &[("qurey", "x"), ("limit", "many")]),
        reason::BAD_ARGUMENTS,
        "bad arguments for action \"search\" of plugin \"code-search\": argument \"limit\" must be an integer, such \
         as 5; argument \"qurey\" is unknown, did you mean \"query\"?; argument \"query\" is missing. It takes \
         \"query\" (string, required), \"limit\" (integer)",
    )
    .await;
}

// Promises: GUARD-11
#[tokio::test]
async fn arguments_are_limited_with_a_reason_of_their_own() {
    let fits = call("code-search", "search", &[("query", "12345")]);
    assert!(resolved_within(fits, 10).await.is_ok());
    let error = resolved_within(call("code-search", "search", &[("query", "123456")]), 10).await.unwrap_err();
    assert_eq!(error.reason(), "arguments_too_large");
    assert!(error.to_string().contains("11 bytes of at most 10"), "{error}");
}

#[tokio::test]
async fn injected_arguments_count_against_the_limit() {
    let mut call = call("code-search", "search", &[("query", "1")]);
    call.context.insert("session_id".to_owned(), "s".repeat(100));
    assert_eq!(resolved_within(call, 50).await.unwrap_err().reason(), "arguments_too_large");
}

// Promises: GUARD-35
#[tokio::test]
async fn a_plugin_gets_of_the_context_what_it_declares_and_the_operator_grants() {
    let mut call = call("code-search", "search", &[("query", "x")]);
    for (name, value) in [("session_id", "s1"), ("group_id", "g1"), ("entity_id", "e1")] {
        call.context.insert(name.to_owned(), value.to_owned());
    }
    let call = resolved(call).await.unwrap();
    // group_id is declared and not granted, entity_id neither.
    let names: Vec<&str> = call.args.keys().map(String::as_str).collect();
    assert_eq!(names, ["query", "session_id"]);
    assert_eq!(call.args["session_id"], "s1");
}

#[tokio::test]
async fn an_empty_context_value_is_not_injected() {
    let mut call = call("code-search", "search", &[("query", "x")]);
    call.context.insert("session_id".to_owned(), String::new());
    assert!(!resolved(call).await.unwrap().args.contains_key("session_id"));
}

// Promises: GUARD-36
#[tokio::test]
async fn a_caller_cannot_fill_what_is_the_hosts() {
    // Whether granted or not, for every caller.
    for name in ["session_id", "group_id"] {
        let mut call = call("code-search", "search", &[("query", "x"), (name, "forged")]);
        call.origin = Origin::Person;
        let error = resolved(call).await.unwrap_err();
        assert_eq!(error.reason(), "bad_arguments");
        assert!(error.to_string().contains("is filled by the host, leave it out"), "{error}");
    }
}

// Promises: GUARD-37
#[tokio::test]
async fn credentials_come_from_the_operator_only() {
    let mut call = call("code-search", "search", &[("query", "x")]);
    call.declared_name = "forged".to_owned();
    call.credentials.insert("mine".to_owned(), CredentialHeader::default());
    let call = resolved(call).await.unwrap();
    assert_eq!(call.declared_name, "ripgrep-tools");
    assert_eq!(call.credentials.keys().collect::<Vec<_>>(), ["api"]);
    assert_eq!(call.credentials["api"].value, "s3cret");
}

// Promises: GUARD-37
#[test]
fn debug_shows_no_credential() {
    assert!(!format!("{:?}", grants()).contains("s3cret"));
}

#[tokio::test]
async fn an_action_that_is_not_what_was_approved_is_refused() {
    assert_refused(
        call("code-search", "swapped", &[]),
        reason::CHANGED,
        "action \"swapped\" of plugin \"code-search\" is refused: what the plugin declares of it changed since it was \
         approved; an operator looks at it with `talon plugin show code-search` and approves it with \
         `talon plugin approve code-search`",
    )
    .await;
    resolved(call("code-search", "search", &[("query", "x")])).await.expect("the others are as they were");
}

/// Grants `code-search.search` and what begins with `zz`.
struct Few;

impl crate::Grant for Few {
    fn covers(&self, plugin: &str, action: &str) -> bool {
        plugin == "code-search" && action.starts_with("sea") || plugin.starts_with("zz")
    }
    fn covers_any_action(&self, plugin: &str) -> bool {
        plugin == "code-search" || plugin.starts_with("zz")
    }
}

fn granted(plugin: &str, action: &str) -> Call {
    let mut call = call(plugin, action, &[("query", "x")]);
    call.granted = Some(crate::ArcById::new(Arc::new(Few)));
    call
}

#[tokio::test]
async fn what_is_not_granted_is_refused_whether_there_is_such_a_thing_or_not() {
    resolved(granted("code-search", "search")).await.expect("it is granted");
    for (plugin, action) in [("code-search", "wipe"), ("late", "x"), ("nobody", "x"), ("code-search", "gone")]
    {
        let said = format!(
            "action \"{action}\" of plugin \"{plugin}\" is not granted to you: ask the operator to add it to `allow` of \
             your entry under host.peers"
        );
        assert_refused(granted(plugin, action), reason::NOT_GRANTED, &said).await;
    }
}

/// Grants nothing, and knows who could.
struct Narrow;

impl crate::Grant for Narrow {
    fn covers(&self, _: &str, _: &str) -> bool {
        false
    }
    fn covers_any_action(&self, _: &str) -> bool {
        false
    }
    fn remedy(&self, _: &str, _: &str) -> &'static str {
        "ask Alice"
    }
}

#[tokio::test]
async fn who_narrows_says_what_to_do_about_it() {
    let mut call = call("code-search", "search", &[]);
    call.granted = Some(crate::ArcById::new(Arc::new(Narrow)));
    let said = "action \"search\" of plugin \"code-search\" is not granted to you: ask Alice";
    assert_refused(call, reason::NOT_GRANTED, said).await;
}

#[tokio::test]
async fn names_that_are_not_granted_are_not_suggested() {
    assert_refused(
        granted("zz", "x"),
        reason::UNKNOWN_PLUGIN,
        "plugin \"zz\" not found; there is \"code-search\"",
    )
    .await;
    assert_refused(
        granted("code-search", "seatch"),
        reason::UNKNOWN_ACTION,
        "action \"seatch\" not found in plugin \"code-search\"; did you mean \"search\"?",
    )
    .await;
}

/// One plugin whose declaration is read anew now and then.
#[derive(Clone)]
pub(super) struct Reloaded(pub(super) Arc<parking_lot::Mutex<Arc<Actions>>>);

impl Directory for Reloaded {
    fn target(&self, _: &str) -> Option<Target> {
        Some(Target {
            declared_name: "p".to_owned(),
            actions: self.0.lock().clone(),
            withheld: Arc::default(),
            ready: Readiness::Known,
        })
    }
    fn names(&self) -> Vec<String> {
        vec!["p".to_owned()]
    }
}

#[tokio::test]
async fn a_schema_is_parsed_once_for_many_calls_and_anew_once_the_plugin_declares_again() {
    let declared = |schema: &str| {
        let limit = Parameter { schema: schema.to_owned(), ..parameter("limit", "integer", true) };
        let action = Action { parameters: vec![limit], ..Default::default() };
        Arc::new([("a".to_owned(), action)].into_iter().collect::<Actions>())
    };
    let directory = Reloaded(Arc::new(parking_lot::Mutex::new(declared(r#"{"maximum": 10}"#))));
    let layer = ResolveLayer::new(directory.clone(), ContextGrants::default());
    let mut service = layer.layer(tower::service_fn(async |_: Call| Ok::<_, CallError>(())));
    let parsed = schema::parsed_on_this_thread;
    let before = parsed();
    for (limit, fits) in [("10", true), ("11", false), ("5", true), ("12", false)].repeat(10) {
        let answer = service.call(call("p", "a", &[("limit", limit)])).await;
        assert_eq!(answer.is_ok(), fits, "{limit}");
    }
    assert_eq!(parsed() - before, 1);

    *directory.0.lock() = declared(r#"{"maximum": 11}"#);
    for (limit, fits) in [("11", true), ("12", false)].repeat(10) {
        let answer = service.call(call("p", "a", &[("limit", limit)])).await;
        assert_eq!(answer.is_ok(), fits, "{limit}");
    }
    assert_eq!(parsed() - before, 2);
}
