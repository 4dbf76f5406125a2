//! The agent: the time to the first token of an answer, beside the same question asked of the provider directly; what
//! hooks add to a turn; and the memory of its process with many sessions.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::json;
use talon_proto::agent::agent_client::AgentClient;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{AskRequest, Chunk};
use talon_tests::ask::with_agent;
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Supervisor, dial, program};
use tonic::Streaming;
use tonic::transport::Channel;

use super::{Bench, Plan};
use crate::figures::Unit;
use crate::process_stats::memory_mib;
use crate::samples::Samples;

const TALON: &str = "talon-agent";
const DIRECT: &str = "direct request";
const WITHOUT_HOOKS: &str = "without hooks";
const THREE_HOOKS: &str = "three hooks";
/// One for each stage, of the plugin `echo`; each lets everything pass.
const HOOKS: &str = "extensions:
  filters: [{ action: echo.filter }]
  request_hooks: [{ action: echo.look }]
  response_hooks: [{ action: echo.look_after }]
";
const QUESTION: &str = "What is the time?";

/// Sessions of which the memory is measured.
const SESSIONS: usize = 100;
/// Turns that run at once: as many as one user may have.
const TURNS: usize = 24;

/// A supervisor with an agent, and its client.
struct Talon {
    supervisor: Supervisor,
    agent: AgentClient<Channel>,
}

impl Talon {
    async fn start(provider: &Provider) -> Result<Self> {
        Self::with(provider, "").await
    }

    /// One whose configuration has these keys as well.
    async fn with(provider: &Provider, config: &str) -> Result<Self> {
        let builder = Builder::new().plugin("echo", &program("talon-bench-plugin"), &[], "").config(config);
        let supervisor = with_agent(builder, provider, "", "").start().await;
        let agent = AgentClient::new(dial(&supervisor.agent_socket()).await?);
        Ok(Self { supervisor, agent })
    }

    /// A question in a new session.
    async fn ask(&mut self) -> Result<Streaming<Chunk>> {
        let request = AskRequest { text: QUESTION.to_owned(), ..AskRequest::default() };
        Ok(self.agent.ask(request).await?.into_inner())
    }

    /// Milliseconds from a question to the first piece of its answer.
    async fn first_token(&mut self) -> Result<f64> {
        let began = Instant::now();
        let mut answer = self.ask().await?;
        let mut first = None;
        while let Some(chunk) = answer.message().await? {
            match chunk.kind {
                Some(Kind::Text(_)) => first = first.or(Some(began.elapsed())),
                Some(Kind::Error(error)) => bail!("a turn failed: {}", error.message),
                _ => {}
            }
        }
        Ok(first.context("an answer has a text")?.as_secs_f64() * 1e3)
    }

    /// Milliseconds from a question to the end of its turn.
    async fn turn(&mut self) -> Result<f64> {
        let began = Instant::now();
        let mut answer = self.ask().await?;
        while let Some(chunk) = answer.message().await? {
            match chunk.kind {
                Some(Kind::Done(_)) => return Ok(began.elapsed().as_secs_f64() * 1e3),
                Some(Kind::Error(error)) => bail!("a turn failed: {}", error.message),
                _ => {}
            }
        }
        bail!("a turn has no end")
    }

    async fn memory(&self) -> Result<f64> {
        memory_mib(self.supervisor.agent_status().await.pid)
    }
}

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let Plan { quick, loaded } = bench.plan;
    if loaded {
        // Its goals are times and memory, and no ratios.
        return Ok(());
    }
    let (rounds, questions) = if quick { (3, 10) } else { (10, 20) };
    first_token(bench, rounds, questions).await?;
    hooks(bench, rounds, questions).await?;
    memory(bench).await
}

/// Both ask in turns.
async fn first_token(bench: &mut Bench<'_>, rounds: usize, questions: usize) -> Result<()> {
    let provider = Provider::responding(|_| ScriptedReply::Text("noon".to_owned())).await;
    let mut talon = Talon::start(&provider).await?;
    // Not counted: connections, and the first pages of its database.
    talon.first_token().await?;
    for round in 0..rounds {
        bench.probe.run_once();
        bench.progress.set_message(format!("agent, round {} of {rounds}", round + 1));
        let (mut ours, mut direct) = (Vec::new(), Vec::new());
        for _ in 0..questions {
            ours.push(talon.first_token().await?);
            let url = provider.url();
            direct.push(tokio::task::spawn_blocking(move || direct_request(&url)).await??);
        }
        let median = |times| Samples(times).spread().map_or(f64::NAN, |spread| spread.median);
        let (ours, direct) = (median(ours), median(direct));
        let mut page = bench.book.case("agent/first token", Some(DIRECT));
        page.add(TALON, "first token", Unit::Milliseconds, ours);
        page.add(DIRECT, "first token", Unit::Milliseconds, direct);
        bench.book.case("agent/added", None).add(TALON, "added", Unit::Milliseconds, ours - direct);
    }
    talon.supervisor.stop().await;
    Ok(())
}

/// The same turn with a hook in each stage and without any, one after the other.
async fn hooks(bench: &mut Bench<'_>, rounds: usize, questions: usize) -> Result<()> {
    let provider = Provider::responding(|_| ScriptedReply::Text("noon".to_owned())).await;
    let mut plain = Talon::start(&provider).await?;
    let mut hooked = Talon::with(&provider, HOOKS).await?;
    // Not counted: connections, and the first pages of their databases.
    plain.turn().await?;
    hooked.turn().await?;
    for round in 0..rounds {
        bench.probe.run_once();
        bench.progress.set_message(format!("hooks, round {} of {rounds}", round + 1));
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..questions {
            without.push(plain.turn().await?);
            with.push(hooked.turn().await?);
        }
        let median = |times| Samples(times).spread().map_or(f64::NAN, |spread| spread.median);
        let (with, without) = (median(with), median(without));
        let mut page = bench.book.case("agent/turn with hooks", Some(WITHOUT_HOOKS));
        page.add(WITHOUT_HOOKS, "turn", Unit::Milliseconds, without);
        page.add(THREE_HOOKS, "turn", Unit::Milliseconds, with);
        bench.book.case("agent/hooks", None).add(TALON, "added", Unit::Milliseconds, with - without);
    }
    plain.supervisor.stop().await;
    hooked.supervisor.stop().await;
    Ok(())
}

/// Milliseconds until the first piece of an answer, by a connection of its own for each question, as the provider
/// closes them.
fn direct_request(url: &str) -> Result<f64> {
    let address =
        url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).context("an address")?;
    let body = json!({
        "model": "test", "stream": true, "messages": [{ "role": "user", "content": QUESTION }]
    })
    .to_string();
    let began = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    for line in BufReader::new(stream).lines() {
        if line?.contains("\"content\"") {
            return Ok(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    bail!("the provider answered nothing")
}

/// After a turn in each session, and while turns run.
async fn memory(bench: &mut Bench<'_>) -> Result<()> {
    bench.progress.set_message(format!("agent, {SESSIONS} sessions"));
    let provider = Provider::start((0..SESSIONS).map(|_| ScriptedReply::Text("noon".to_owned()))).await;
    let mut talon = Talon::start(&provider).await?;
    let idle = talon.memory().await?;
    for _ in 0..SESSIONS {
        talon.first_token().await?;
    }
    let with_sessions = talon.memory().await?;
    provider.extend_script((0..TURNS).map(|_| ScriptedReply::Hang));
    let mut running = Vec::new();
    for _ in 0..TURNS {
        running.push(talon.ask().await?);
    }
    provider.wait_questions(SESSIONS + TURNS).await;
    let with_turns = talon.memory().await?;
    drop(running);
    for (case, memory) in [
        ("agent/0 sessions".to_owned(), idle),
        (format!("agent/{SESSIONS} sessions"), with_sessions),
        (format!("agent/{SESSIONS} sessions, {TURNS} running turns"), with_turns),
    ] {
        bench.book.case(case, None).add(TALON, "memory", Unit::Mebibytes, memory);
    }
    talon.supervisor.stop().await;
    Ok(())
}
