//! An answer is read the same however the network splits it.

use std::sync::Arc;

use talon_llm::Provider;
use talon_llm::config::{Dialect, ProviderEntry, ProviderKind};
use talon_llm::model::{Answer, Chunk};

use crate::server::{Reply, Server};
use crate::{ask, build, entry, fixture};

const STREAMS: &[(ProviderKind, &str)] = &[
    (ProviderKind::Openai, "openai/calls.sse"),
    (ProviderKind::Openai, "openai/text-crlf.sse"),
    (ProviderKind::Openai, "openai/text.sse"),
    (ProviderKind::Openai, "openrouter/reasoning.sse"),
    (ProviderKind::Anthropic, "anthropic/thinking-call.sse"),
    (ProviderKind::Anthropic, "anthropic/text.sse"),
    (ProviderKind::Gemini, "gemini/thinking-calls.sse"),
    (ProviderKind::Responses, "responses/thinking-call.sse"),
    (ProviderKind::Ollama, "ollama/text.ndjson"),
    (ProviderKind::Ollama, "ollama/thinking-calls.ndjson"),
];

fn reply(kind: ProviderKind, pieces: Vec<Vec<u8>>) -> Reply {
    let reply = if kind == ProviderKind::Ollama { Reply::lines("") } else { Reply::events("") };
    reply.pieces(pieces)
}

async fn read(provider: &Arc<dyn Provider>) -> (Answer, Vec<Chunk>) {
    let (answer, chunks) = ask(provider).await;
    (answer.expect("an answer"), chunks)
}

fn local(kind: ProviderKind, url: &str) -> ProviderEntry {
    // The dialect with the most state.
    let dialect = (kind == ProviderKind::Openai).then_some(Dialect::Openrouter);
    ProviderEntry { dialect, ..entry(kind, url) }
}

/// The distance between two splits of one answer. With one answer per offset, each byte is split before once.
const CUT_EVERY: usize = 17;

// Promises: AGENT-11
#[tokio::test]
async fn a_cut_before_every_byte_changes_nothing() {
    for (kind, path) in STREAMS {
        let whole = fixture(path).into_bytes();
        let mut replies = vec![reply(*kind, vec![whole.clone()])];
        replies.extend((1..=CUT_EVERY).map(|offset| {
            let (first, rest) = whole.split_at(offset);
            let rest = rest.chunks(CUT_EVERY).map(<[u8]>::to_vec);
            reply(*kind, std::iter::once(first.to_vec()).chain(rest).collect())
        }));
        let server = Server::start(replies).await;
        let provider = build(local(*kind, &server.url));
        let expected = read(&provider).await;
        for offset in 1..=CUT_EVERY {
            assert_eq!(read(&provider).await, expected, "{path}, cut from {offset}");
        }
    }
}

// Promises: AGENT-11
#[tokio::test]
async fn single_bytes_are_an_answer_as_well() {
    for (kind, path) in STREAMS {
        let whole = fixture(path).into_bytes();
        let bytes = whole.iter().map(|byte| vec![*byte]).collect();
        let server = Server::start(vec![reply(*kind, vec![whole.clone()]), reply(*kind, bytes)]).await;
        let provider = build(local(*kind, &server.url));
        assert_eq!(read(&provider).await, read(&provider).await, "{path}");
    }
}
