//! Providers that hang, disconnect, send something else, or never stop: each format against each of them.

use serde_json::json;
use talon_llm::config::{ProviderKind, TimeSpan};
use talon_llm::limits;
use talon_llm::model::{Answer, ErrorClass, Finish, ProviderError};

use crate::server::{BodyEnd, Reply, Server};
use crate::wires::{self, KINDS, call, end, frame, half, noise, stream, text, thinking};
use crate::{ask, build, entry, fixture, impatient, restless};

async fn asked(kind: ProviderKind, reply: Reply) -> Result<Answer, ProviderError> {
    let server = Server::start(vec![reply]).await;
    ask(&build(entry(kind, &server.url))).await.0
}

async fn failed(kind: ProviderKind, reply: Reply) -> ProviderError {
    asked(kind, reply).await.expect_err("no answer")
}

// Promises: AGENT-12, AGENT-166
#[tokio::test]
async fn half_a_stream_is_no_answer() {
    for kind in KINDS {
        for end in [BodyEnd::Whole, BodyEnd::Cut] {
            let error = failed(kind, stream(kind, half(kind)).ends(end)).await;
            assert_eq!(error.class, ErrorClass::Network, "{kind:?} {end:?}: {error}");
            assert!(error.message.contains("broke off"), "{kind:?} {end:?}: {error}");
        }
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn half_a_character_is_no_answer_and_a_broken_one_is_marked() {
    for kind in KINDS {
        let whole = [text(kind, "Half"), text(kind, "Zü")].concat();
        let cut = whole.find('ü').expect("it is not escaped") + 1;
        let error = failed(kind, stream(kind, &whole.as_bytes()[..cut])).await;
        assert_eq!(error.class, ErrorClass::Network, "{kind:?}: {error}");

        let mut broken = [text(kind, "a#b"), end(kind)].concat().into_bytes();
        let at = broken.iter().position(|byte| *byte == b'#').expect("it is there");
        broken[at] = 0xff;
        let answer = asked(kind, stream(kind, broken)).await.expect("an answer");
        assert_eq!(answer.text, "a\u{fffd}b", "{kind:?}");
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn silence_in_the_middle_of_an_answer_ends_it() {
    for kind in KINDS {
        let mut server = Server::start(vec![stream(kind, half(kind)).ends(BodyEnd::Hang)]).await;
        let error = ask(&build(restless(kind, &server.url))).await.0.expect_err("no answer");
        assert_eq!(error.class, ErrorClass::Timeout, "{kind:?}: {error}");
        assert!(error.message.contains("timeouts.between"), "{kind:?}: {error}");
        server.gone().await;
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn a_provider_that_says_nothing_is_not_waited_for() {
    for kind in KINDS {
        for reply in [Reply::mute(), stream(kind, noise(kind, 10)).ends(BodyEnd::Hang)] {
            let mut server = Server::start(vec![reply]).await;
            let error = ask(&build(impatient(kind, &server.url))).await.0.expect_err("no answer");
            assert_eq!(error.class, ErrorClass::Timeout, "{kind:?}: {error}");
            assert!(error.message.contains("timeouts.first_token"), "{kind:?}: {error}");
            server.gone().await;
        }
    }
}

// Promises: AGENT-12, AGENT-166
#[tokio::test]
async fn signs_of_life_are_no_answer() {
    for kind in KINDS {
        let server = Server::start(vec![stream(kind, noise(kind, 20)).ends(BodyEnd::Endless)]).await;
        let error = ask(&build(impatient(kind, &server.url))).await.0.expect_err("no answer");
        assert!(matches!(error.class, ErrorClass::Timeout | ErrorClass::Server), "{kind:?}: {error}");
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn the_whole_answer_has_a_limit_of_its_own() {
    for kind in KINDS {
        let mut entry = entry(kind, "");
        entry.timeouts.total = TimeSpan::from_millis(300);
        let mut server = Server::start(vec![stream(kind, half(kind)).ends(BodyEnd::Hang)]).await;
        entry.base_url = Some(server.url.clone());
        let error = ask(&build(entry)).await.0.expect_err("no answer");
        assert_eq!(error.class, ErrorClass::Timeout, "{kind:?}: {error}");
        assert!(error.message.contains("timeouts.total"), "{kind:?}: {error}");
        server.gone().await;
    }
}

#[tokio::test]
async fn a_whole_answer_without_its_end_is_one() {
    let recorded = fixture("openai/text.sse").replace("data: [DONE]\n\n", "");
    let gemini = [text(ProviderKind::Gemini, "Grüße"), end(ProviderKind::Gemini)].concat();
    for (kind, sent, said) in [
        (ProviderKind::Openai, recorded, "Grüße aus Zürich 😀."),
        // Its streams just end.
        (ProviderKind::Gemini, gemini, "Grüße"),
    ] {
        for end in [BodyEnd::Hang, BodyEnd::Cut, BodyEnd::Whole] {
            let server = Server::start(vec![stream(kind, sent.clone()).ends(end)]).await;
            let answer = ask(&build(restless(kind, &server.url))).await.0;
            assert_eq!(answer.expect("all was said").text, said, "{kind:?} {end:?}");
        }
    }
}

// Promises: AGENT-12, AGENT-166
#[tokio::test]
async fn a_web_page_is_named_as_one() {
    let page = "<!DOCTYPE html><html><head><title>Sign in to Corp WiFi</title></head>…</html>";
    for kind in KINDS {
        let error = failed(kind, Reply::new(200, "text/html; charset=utf-8", page)).await;
        assert_eq!(error.class, ErrorClass::Server, "{kind:?}: {error}");
        assert!(error.message.contains("web page"), "{kind:?}: {error}");
        assert!(error.message.contains("Sign in to Corp WiFi"), "{kind:?}: {error}");
        let error = failed(kind, Reply::new(404, "text/html", page)).await;
        assert_eq!(error.class, ErrorClass::Request, "{kind:?}: {error}");
        assert!(error.message.contains("check base_url"), "{kind:?}: {error}");
        let gateway = failed(kind, Reply::new(502, "text/html", "<html><h1>502</h1></html>")).await;
        assert_eq!((gateway.class, gateway.status), (ErrorClass::Server, Some(502)), "{kind:?}");
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn something_else_than_the_format_is_no_answer() {
    for kind in KINDS {
        for data in wires::unreadable(kind) {
            let error = failed(kind, stream(kind, frame(kind, data))).await;
            assert_eq!(error.class, ErrorClass::Server, "{kind:?} {data}: {error}");
            assert!(error.message.contains("cannot be read"), "{kind:?} {data}: {error}");
        }
        for body in ["{}", "[]", "nothing", "{\"choices\":[]}"] {
            let error = failed(kind, Reply::json(200, body)).await;
            assert_eq!(error.class, ErrorClass::Server, "{kind:?} {body}: {error}");
        }
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn fields_of_another_type_say_nothing_and_break_nothing() {
    for kind in KINDS {
        for wrong in wires::wrong_types(kind) {
            let wrong = frame(kind, &wrong.to_string());
            let sent = [text(kind, "a"), wrong.clone(), text(kind, "b"), end(kind)].concat();
            let answer = asked(kind, stream(kind, sent)).await;
            let answer = answer.unwrap_or_else(|error| panic!("{kind:?} {wrong}: {error}"));
            assert_eq!(
                (answer.text.as_str(), answer.calls.len(), answer.finish),
                ("ab", 0, Finish::Stop),
                "{kind:?} {wrong}"
            );
        }
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn an_error_in_the_middle_of_an_answer_is_its_end() {
    for kind in KINDS {
        for (error, says) in wires::errors(kind) {
            let sent = [text(kind, "Well"), frame(kind, &error.to_string()), text(kind, "!"), end(kind)];
            let error = failed(kind, stream(kind, sent.concat())).await;
            assert_eq!(error.class, ErrorClass::Server, "{kind:?}: {error}");
            let is_quoted_frame = error.message.contains("cannot be read");
            assert!(error.message.contains(says) && !is_quoted_frame, "{kind:?}: {error}");
        }
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn an_empty_answer_is_no_fault_of_its_provider() {
    for (kind, path) in [
        (ProviderKind::Openai, "openai/empty.sse"),
        (ProviderKind::Anthropic, "anthropic/empty.sse"),
        (ProviderKind::Ollama, "ollama/empty.ndjson"),
    ] {
        let answer = crate::answers::answer(kind, path).await;
        assert_eq!((answer.text.trim(), answer.calls.len(), answer.finish), ("", 0, Finish::Stop), "{path}");
    }
    for kind in KINDS {
        let answer = asked(kind, stream(kind, end(kind))).await.expect("an answer");
        assert_eq!((answer.text.as_str(), answer.finish), ("", Finish::Stop), "{kind:?}");
        let error = failed(kind, Reply::new(200, "", "")).await;
        assert_eq!(error.class, ErrorClass::Network, "no byte at all: {error}");
    }
}

/// The connection to a server that sends forever is closed at a limit.
async fn refused(kind: ProviderKind, reply: Reply) -> ProviderError {
    let mut server = Server::start(vec![reply.ends(BodyEnd::Endless)]).await;
    let error = ask(&build(entry(kind, &server.url))).await.0.expect_err("too large");
    server.gone().await;
    assert_eq!(error.class, ErrorClass::Server, "{kind:?}: {error}");
    error
}

fn names(error: &ProviderError, limit: usize) -> bool {
    error.message.contains(&limit.to_string())
}

// Promises: AGENT-12, AGENT-166
#[tokio::test]
async fn text_thoughts_and_events_without_end_are_not_taken() {
    for kind in KINDS {
        for (sent, limit) in [
            (text(kind, &"x".repeat(10_000)), limits::MAX_TEXT_BYTES),
            (thinking(kind, &"x".repeat(10_000)), limits::MAX_TEXT_BYTES),
            ("x".repeat(10_000), limits::MAX_EVENT_BYTES),
        ] {
            let error = refused(kind, stream(kind, sent)).await;
            assert!(names(&error, limit), "{kind:?}: {error}");
        }
    }
}

// Promises: AGENT-12, AGENT-166
#[tokio::test]
async fn fifty_megabytes_are_not_taken() {
    // One of events and one of lines: the others read the same frames. Nothing of this would be stored: only the
    // number of bytes is too large.
    for kind in [ProviderKind::Openai, ProviderKind::Ollama] {
        let error = refused(kind, stream(kind, noise(kind, 60_000))).await;
        assert!(names(&error, limits::MAX_ANSWER_BYTES), "{kind:?}: {error}");
    }
}

// Promises: AGENT-12, AGENT-166
#[tokio::test]
async fn a_document_without_end_is_not_taken() {
    // A document of Ollama's is its stream.
    for (kind, limit) in
        [(ProviderKind::Openai, limits::MAX_ANSWER_BYTES), (ProviderKind::Ollama, limits::MAX_EVENT_BYTES)]
    {
        let error = refused(kind, Reply::json(200, " ".repeat(60_000))).await;
        assert!(names(&error, limit), "{kind:?}: {error}");
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn what_is_kept_for_the_provider_itself_is_bounded() {
    let thought = json!({ "type": "response.output_item.done", "output_index": 0, "item": {
        "type": "reasoning", "summary": [], "encrypted_content": "x".repeat(60_000),
    } });
    let sent = frame(ProviderKind::Responses, &thought.to_string());
    let error = refused(ProviderKind::Responses, stream(ProviderKind::Responses, sent)).await;
    assert!(names(&error, limits::MAX_TEXT_BYTES), "{error}");

    let signed = json!({ "candidates": [{ "content": { "parts": [{
        "functionCall": { "name": "weather", "args": {} },
        "thoughtSignature": "x".repeat(limits::MAX_ARGUMENTS_BYTES),
    }] } }] });
    let sent = frame(ProviderKind::Gemini, &signed.to_string());
    let error = failed(ProviderKind::Gemini, stream(ProviderKind::Gemini, sent)).await;
    assert!(names(&error, limits::MAX_ARGUMENTS_BYTES), "{error}");
}

// Promises: AGENT-166
#[tokio::test]
async fn the_arguments_of_a_call_are_bounded() {
    for kind in KINDS {
        let comes_whole = matches!(kind, ProviderKind::Gemini | ProviderKind::Ollama);
        let bytes = if comes_whole { limits::MAX_ARGUMENTS_BYTES } else { 5000 };
        let error = refused(kind, stream(kind, call(kind, 0, &"x".repeat(bytes)))).await;
        assert!(names(&error, limits::MAX_ARGUMENTS_BYTES), "{kind:?}: {error}");
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn the_number_of_calls_is_bounded() {
    for kind in KINDS {
        // Far apart: the numbers are not indices of a list.
        let calls = (0..=limits::MAX_CALLS).map(|index| call(kind, index * 1_000_000_007, ""));
        let error = failed(kind, stream(kind, calls.collect::<String>())).await;
        assert!(error.message.contains("more than 128 calls"), "{kind:?}: {error}");
    }
}

// Promises: AGENT-166
#[tokio::test]
async fn an_endless_error_is_read_in_part() {
    for kind in KINDS {
        let endless = Reply::new(500, "text/plain", "x".repeat(60_000)).ends(BodyEnd::Endless);
        let mut server = Server::start(vec![endless]).await;
        let error = ask(&build(entry(kind, &server.url))).await.0.expect_err("an error");
        assert_eq!((error.class, error.status), (ErrorClass::Server, Some(500)), "{kind:?}");
        server.gone().await;
    }
}

// Promises: AGENT-12, AGENT-166
#[tokio::test]
async fn deep_json_is_refused_without_a_crash() {
    for kind in KINDS {
        let deep = frame(kind, &"[".repeat(500_000));
        let error = failed(kind, stream(kind, deep)).await;
        assert_eq!(error.class, ErrorClass::Server, "{kind:?}: {error}");
    }
}
