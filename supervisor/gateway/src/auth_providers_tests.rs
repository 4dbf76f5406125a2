use http::HeaderValue;

use super::*;
use crate::backends::{ConnectBackend, SocketPaths};
use crate::problem::{Problem, ProblemKind};

fn entry(scheme: &str) -> AuthEntry {
    let entry = serde_json::json!({
        "action": "oidc.authenticate", "name": "corp", "scheme": scheme, "scopes": {"staff": ["chat", "operate"]},
    });
    serde_json::from_value(entry).unwrap()
}

fn presented(text: &str) -> Option<PresentedCredential> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_str(text).unwrap());
    PresentedCredential::of_request(&headers, "192.0.2.1".parse().unwrap())
}

fn subject(expires_unix_ms: Option<i64>) -> AuthenticatedSubject {
    let reply = serde_json::json!({
        "outcome": "accepted", "subject": "ada lovelace", "scopes": ["staff"], "expires_unix_ms": expires_unix_ms,
    });
    AuthReply::parse(&reply).unwrap().judge(&entry("bearer"), 0).unwrap()
}

// Promises: GW-145
#[test]
fn a_credential_is_one_header_of_a_scheme_that_a_provider_takes() {
    let providers = AuthProviders::new(vec![entry("bearer")]);
    let takes = |text: &str| presented(text).is_some_and(|presented| providers.take(&presented));
    assert!(takes("Bearer eyJ.x.y") && takes("bEARER a b"));
    for none in ["Basic YTpi", "Bearer", "Bearer ", "eyJ"] {
        assert!(!takes(none), "{none}");
    }
    assert!(presented(&format!("Bearer {}", "x".repeat(MAX_CREDENTIAL_BYTES + 1))).is_none());
    let mut twice = HeaderMap::new();
    twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer a"));
    twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer b"));
    assert!(PresentedCredential::of_request(&twice, "192.0.2.1".parse().unwrap()).is_none());
    assert!(!format!("{:?}", presented("Bearer hunter2")).contains("hunter2"));
}

// Promises: GW-145
#[tokio::test(start_paused = true)]
async fn an_answer_holds_for_a_minute_or_until_it_expires() {
    let providers = AuthProviders::new(vec![entry("bearer")]);
    let (one, other) = (presented("Bearer a").unwrap().key(), presented("Bearer b").unwrap().key());
    let ada = caller(&entry("bearer"), &subject(None)).unwrap();
    assert_eq!(ada.subject.as_str(), "gw:corp/ada%20lovelace");
    assert_eq!(ada.origin(), "program");
    providers.keep(one, Verdict::Accepted(ada.clone()), ANSWER_HOLDS);
    providers.keep(other, Verdict::Accepted(ada.clone()), Duration::from_secs(5));
    assert_eq!(providers.kept(&one), Some(Verdict::Accepted(ada.clone())));
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!((providers.kept(&one).is_some(), providers.kept(&other)), (true, None));
    tokio::time::advance(ANSWER_HOLDS).await;
    assert_eq!(providers.kept(&one), None);
    let Via::Provider { until, .. } = ada.via else { panic!("{ada:?}") };
    assert!(until > Instant::now(), "what is open lasts longer");
}

// Promises: GW-147
#[tokio::test(start_paused = true)]
async fn a_provider_that_cannot_be_asked_rejects_nobody_and_a_rejection_holds_for_seconds() {
    let connector: Arc<dyn ConnectBackend> =
        Arc::new(SocketPaths { host: "/nonexistent".into(), agent: "/nonexistent".into() });
    let backends = Backends::new(&connector);
    let providers = AuthProviders::new(vec![entry("bearer")]);
    let credential = presented("Bearer a").unwrap();
    let unasked = providers.caller(&backends, &credential).await.unwrap_err();
    assert!(matches!(unasked, AuthenticateError::NoProvider), "{unasked:?}");
    assert_eq!(Problem::from(unasked).kind(), ProblemKind::Unavailable);

    // While a rejection holds, nobody is asked.
    providers.keep(credential.key(), Verdict::Rejected, REJECTION_HOLDS);
    let rejected = providers.caller(&backends, &credential).await.unwrap_err();
    assert!(matches!(rejected, AuthenticateError::Invalid), "{rejected:?}");
    tokio::time::advance(REJECTION_HOLDS).await;
    assert_eq!(providers.kept(&credential.key()), None);
}

// Promises: GW-147
#[test]
fn what_the_credential_itself_brings_about_is_a_rejection() {
    let is_unanswered = |outcome: Outcome, reason: &str| {
        super::is_unanswered(&ExecuteResponse {
            outcome: outcome.into(),
            reason: reason.to_owned(),
            ..ExecuteResponse::default()
        })
    };
    for reason in ["timed_out", "died", "unavailable", "internal"] {
        assert!(is_unanswered(Outcome::HostFault, reason), "{reason}");
    }
    assert!(is_unanswered(Outcome::Refused, "breaker_open") && is_unanswered(Outcome::Refused, "overloaded"));
    assert!(!is_unanswered(Outcome::Refused, "bad_arguments"));
    assert!(!is_unanswered(Outcome::ToolError, "tool_error") && !is_unanswered(Outcome::Ok, ""));
}

#[tokio::test(start_paused = true)]
async fn answers_are_bounded_and_the_oldest_goes() {
    let providers = AuthProviders::new(vec![entry("bearer")]);
    let ada = caller(&entry("bearer"), &subject(None)).unwrap();
    let key = |number: usize| presented(&format!("Bearer {number}")).unwrap().key();
    for number in 0..=MAX_ANSWERS {
        providers.keep(key(number), Verdict::Accepted(ada.clone()), ANSWER_HOLDS);
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert_eq!(providers.0.answers.lock().len(), MAX_ANSWERS);
    assert!(providers.kept(&key(0)).is_none() && providers.kept(&key(MAX_ANSWERS)).is_some());
}

#[test]
fn an_expiry_ends_what_is_open() {
    let soon = i64::try_from(now_unix_ms()).unwrap() + 10_000;
    let Via::Provider { until, .. } = caller(&entry("bearer"), &subject(Some(soon))).unwrap().via else {
        panic!("a provider's")
    };
    assert!(until <= Instant::now() + Duration::from_secs(10));
}

#[test]
fn no_credential_reaches_the_log() {
    let request = presented("Bearer hunter2").unwrap().request;
    for error in [
        AuthReply::parse(&serde_json::json!({"outcome": "hunter2"})).unwrap_err(),
        AuthError::Rejected("hunter2 is too short".to_owned()),
    ] {
        let logged = for_log(&error, &request);
        assert!(!logged.contains("hunter2"), "{logged}");
    }
}
