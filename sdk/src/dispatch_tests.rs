use talon_proto::plugin::CredentialHeader;
use tokio::sync::oneshot;

use super::*;
use crate::Context;

fn request(action: &str, args: &[(&str, &str)]) -> ToolCallRequest {
    ToolCallRequest {
        id: "call-1".to_owned(),
        plugin: "p".to_owned(),
        action: action.to_owned(),
        args: args.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ..Default::default()
    }
}

fn host() -> CallEnvironment {
    CallEnvironment {
        settings: Arc::default(),
        state: StateSource::from_env(None),
        model: ModelSource::at(None),
        board: Arc::default(),
        trace: Default::default(),
    }
}

async fn run(tool: Tool, request: ToolCallRequest) -> Result<ToolResultResponse, Status> {
    execute(&[tool], request, None, host()).await
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
    session_id: Option<String>,
}

fn greet() -> Tool {
    Tool::new("greet", "Greets.", |args: Greet, cx: Context| async move {
        if args.name.is_empty() {
            return Err(ToolError::new("greet whom?"));
        }
        let session = args.session_id.or_else(|| cx.injected("session_id").map(str::to_owned));
        Ok(format!("Hello, {}! {session:?} {:?}", args.name, cx.injected("user_id")))
    })
}

#[tokio::test]
async fn an_answer_carries_the_calls_id() {
    let answer = run(greet(), request("greet", &[("name", "Ada")])).await.expect("answered");
    assert_eq!((answer.call_id.as_str(), answer.error.as_str()), ("call-1", ""));
    assert_eq!(answer.content, "Hello, Ada! None None");
}

// Promises: SDK-7
#[tokio::test]
async fn a_tool_that_says_no_is_an_answer() {
    let answer = run(greet(), request("greet", &[("name", "")])).await.expect("answered");
    assert_eq!((answer.error.as_str(), answer.content.as_str()), ("greet whom?", ""));
}

#[tokio::test]
async fn bad_calls_are_answered_in_words() {
    for (action, args, says) in [
        ("meet", &[][..], "no action `meet`; this plugin has greet"),
        ("greet", &[], "argument `name` is missing"),
        ("greet", &[("nmae", "x")], "unknown argument `nmae`; greet takes name, session_id"),
    ] {
        let answer = run(greet(), request(action, args)).await.expect("answered");
        assert_eq!(answer.error, says);
    }
}

#[tokio::test]
async fn injected_values_reach_the_context_and_the_field_of_that_name() {
    let tool = greet().inject(["session_id", "user_id"]);
    assert_eq!(tool.action().parameters.len(), 1, "what the host injects is not offered to the caller");
    let args = [("name", "Ada"), ("session_id", "s1"), ("user_id", "u1")];
    let answer = run(tool, request("greet", &args)).await.expect("answered");
    assert_eq!(answer.content, "Hello, Ada! Some(\"s1\") Some(\"u1\")");
}

#[tokio::test]
async fn credentials_reach_the_context_and_hide_in_debug() {
    let tool = Tool::new("t", "T.", |(): (), cx: Context| async move {
        let credential = cx.credential("api").ok_or_else(|| ToolError::new("none"))?;
        Ok::<_, ToolError>(format!("{} {} {credential:?}", credential.header, credential.value))
    });
    let mut request = request("t", &[]);
    let header = CredentialHeader { header: "Authorization".to_owned(), value: "secret".to_owned() };
    request.credential_headers.insert("api".to_owned(), header);
    let answer = run(tool, request).await.expect("answered");
    assert_eq!(answer.content.matches("secret").count(), 1, "{}", answer.content);
}

// Promises: SDK-8
#[tokio::test]
async fn a_panic_ends_the_call_and_nothing_else() {
    let tool = Tool::new("t", "T.", |(): (), _: Context| async move {
        tokio::task::yield_now().await;
        if true {
            panic!("boom");
        }
        Ok::<_, ToolError>("")
    });
    let status = run(tool, request("t", &[])).await.expect_err("a fault");
    assert_eq!(status.code(), tonic::Code::Internal);
    assert!(!status.message().contains("boom"), "{}", status.message());
}

#[tokio::test]
async fn a_foreign_error_is_not_told() {
    let tool = Tool::new("t", "T.", |(): (), _: Context| async move {
        Ok::<_, ToolError>(std::fs::read_to_string("/nonexistent/secret")?)
    });
    let answer = run(tool, request("t", &[])).await.expect("answered");
    assert_eq!(answer.error, "the tool failed; the plugin's log says why");
}

#[tokio::test]
async fn an_answer_too_large_to_send_says_so() {
    let tool = Tool::new("t", "T.", |(): (), _: Context| async move {
        Ok::<_, ToolError>("x".repeat(MAX_RESULT_BYTES + 1))
    });
    let answer = run(tool, request("t", &[])).await.expect("answered");
    assert!(answer.error.contains("8323073 bytes"), "{}", answer.error);
    assert!(answer.content.is_empty());
}

// Promises: SDK-6
#[tokio::test]
async fn dropping_the_call_cancels_the_tool_and_its_threads() {
    let (started, has_started) = oneshot::channel();
    let (ended, has_ended) = oneshot::channel();
    let channels = parking_lot::Mutex::new(Some((started, ended)));
    let tool = Tool::new("t", "T.", move |(): (), cx: Context| {
        let (started, ended) = channels.lock().take().expect("called once");
        async move {
            let token = cx.token();
            tokio::spawn(async move {
                token.cancelled().await;
                ended.send(()).expect("test waits");
            });
            started.send(cx).expect("test waits");
            std::future::pending::<Result<&str, ToolError>>().await
        }
    });
    let call = tokio::spawn(run(tool, request("t", &[])));
    let cx = has_started.await.expect("started");
    assert!(!cx.is_cancelled());
    call.abort();
    has_ended.await.expect("the token was cancelled");
    assert!(cx.is_cancelled());
}

// Promises: SDK-6
#[tokio::test(start_paused = true)]
async fn the_deadline_is_known_to_the_tool() {
    use std::time::Duration;
    let tool = Tool::new("t", "T.", |(): (), cx: Context| async move {
        let before = cx.remaining();
        tokio::time::advance(Duration::from_secs(6)).await;
        Ok::<_, ToolError>(format!("{before:?} {:?} {}", cx.remaining(), cx.is_cancelled()))
    });
    let deadline = Some(Instant::now() + Duration::from_secs(5));
    let answer = execute(&[tool], request("t", &[]), deadline, host()).await.expect("answered");
    assert_eq!(answer.content, "Some(5s) Some(0ns) true");
}

/// Says, when it is dropped, in which span that is.
struct Dropped(Option<oneshot::Sender<Option<&'static str>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let span = tracing::Span::current().metadata().map(tracing::Metadata::name);
        let _ = self.0.take().expect("it is dropped once").send(span);
    }
}

#[tokio::test]
async fn what_a_tool_logs_when_its_caller_goes_away_names_the_call() {
    let _logged = tracing::subscriber::set_default(tracing_subscriber::registry());
    let (says, mut said) = oneshot::channel();
    let held = parking_lot::Mutex::new(Some(Dropped(Some(says))));
    let tool = Tool::new("wait", "Waits.", move |(): (), _: Context| {
        let held = held.lock().take();
        async move {
            let _held = held;
            std::future::pending::<Result<String, ToolError>>().await
        }
    });
    let mut call = Box::pin(run(tool, request("wait", &[])));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    drop(call);
    assert_eq!(said.try_recv(), Ok(Some("call")));
}
