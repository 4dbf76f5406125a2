use talon_proto::model::model_server::ModelServer;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;

use super::*;
use crate::testing::CannedModel;

/// The models of a host that serves `canned` on a socket.
fn served(canned: &CannedModel, dir: &tempfile::TempDir) -> Model {
    let path = dir.path().join("m");
    let listener = UnixListener::bind(&path).unwrap();
    let server = tonic::transport::Server::builder()
        .serve_with_incoming(ModelServer::new(canned.clone()), UnixListenerStream::new(listener));
    tokio::spawn(server);
    ModelSource::at(Some(path)).open("call-1").unwrap()
}

#[tokio::test]
async fn a_request_arrives_as_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let canned = CannedModel::new(["fast", "deep"], |request| Ok(format!("<{}>", request.alias())));
    let model = served(&canned, &dir);
    let request = CompletionRequest::new("a")
        .message(PromptRole::Assistant, "b")
        .message(PromptRole::User, "c")
        .model("deep")
        .system("s")
        .max_tokens(7)
        .temperature(0.5)
        .stop("x");
    let completion = model.complete(request.clone()).await.unwrap();
    assert_eq!((completion.text.as_str(), completion.model.as_str()), ("<deep>", "canned/deep"));
    assert_eq!(completion.finish, FinishReason::Stop);
    assert_eq!(canned.requests(), [request]);
    let granted = model.granted().await.unwrap();
    assert_eq!(granted.aliases, ["fast", "deep"]);
    assert!(granted.own_budget);
}

#[tokio::test]
async fn every_error_keeps_its_kind_and_text_on_the_wire() {
    let message = || "the text".to_owned();
    let errors = [
        ModelError::Invalid { message: message() },
        ModelError::UnknownModel { message: message() },
        ModelError::NoCall { message: message() },
        ModelError::TooManyCalls { message: message() },
        ModelError::OverBudget { message: message() },
        ModelError::Busy { message: message() },
        ModelError::NoModel { message: message() },
        ModelError::TimedOut { message: message() },
        ModelError::Cancelled { message: message() },
    ];
    for error in errors {
        let dir = tempfile::tempdir().unwrap();
        let given = error.clone();
        let canned = CannedModel::new(["fast"], move |_| Err(given.clone()));
        let said = served(&canned, &dir).complete(CompletionRequest::new("a")).await.unwrap_err();
        assert_eq!(said, error);
        assert_eq!(said.to_string(), "the text");
    }
}

#[tokio::test]
async fn who_is_granted_nothing_is_told_what_to_do() {
    let error = ModelSource::at(None).open("c").unwrap_err();
    assert_eq!(error, ModelError::NotGranted);
    assert!(error.to_string().contains("the operator grants some under `models`"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let nobody = ModelSource::at(Some(dir.path().join("m"))).open("c").unwrap();
    let error = nobody.complete(CompletionRequest::new("a")).await.unwrap_err();
    assert_eq!(error.reason(), "unavailable", "{error}");
}
