//! `make bench`: what the guarded call costs, side by side with bare gRPC to the same plugin in the same run.
//!
//! Absolute times depend on the machine and its noise; the ratios are what to read. The two sides take turns
//! (A B A B …), so that a slow moment hits both.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_proto::plugin::ToolCallRequest;
use talon_proto::plugin::plugin_service_client::PluginServiceClient;
use talon_tests::{Builder, Scratch, args, dial, example};
use tonic::transport::Channel;

/// Rounds that are counted; each has `CALLS` of either side.
const ROUNDS: usize = 9;
const CALLS: usize = 400;
const RESTARTS: usize = 15;

#[tokio::main]
async fn main() -> Result<()> {
    let mut bare = Bare::start().await?;
    let supervisor = Builder::new()
        .plugin("hello", &example("hello"), &[], "backoff_initial: 1ms\nbackoff_max: 1ms\nmax_restarts: 1000")
        .start()
        .await;

    let (mut bare_p50, mut guarded_p50) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let mut bare_times = Vec::with_capacity(CALLS);
        let mut guarded_times = Vec::with_capacity(CALLS);
        for _ in 0..CALLS {
            bare_times.push(bare.call().await?);
            let begin = Instant::now();
            let answer = supervisor.client.call("hello", "greet", &[("name", "World")]).await;
            guarded_times.push(begin.elapsed());
            ensure!(answer.content.contains("World"), "hello answered {:?}", answer.content);
        }
        // The first round warms both sides up.
        if round > 0 {
            bare_p50.push(median(bare_times));
            guarded_p50.push(median(guarded_times));
        }
    }

    let mut known = Vec::new();
    let mut serving = Vec::new();
    let mut cold = Vec::new();
    let mut events = supervisor.client.events("hello").await;
    for _ in 0..RESTARTS {
        let instance = supervisor.client.wait_state("hello", "ready").await.instances[0].clone();
        cold.push(Duration::from_micros(instance.start_to_ready_us));
        let begin = Instant::now();
        kill(Pid::from_raw(instance.pid.cast_signed()), Signal::SIGKILL)?;
        while events.message().await?.context("the events go on")?.kind != "plugin_exited" {}
        known.push(begin.elapsed());
        let back = |p: &talon_proto::host::Plugin| p.state == "ready" && p.instances[0].pid != instance.pid;
        supervisor.client.wait_for("hello", "back", back).await;
        serving.push(begin.elapsed());
    }

    println!("commit {}, {} cores, {ROUNDS} rounds of {CALLS} calls, medians", commit(), cores());
    let (bare, guarded) = (median(bare_p50.clone()), median(guarded_p50.clone()));
    row("bare gRPC to the plugin, one hop, p50", bare, &bare_p50);
    row("guarded call through host.sock, two hops, p50", guarded, &guarded_p50);
    println!(
        "{:<52} {:>9.2}  (two bare hops would be 2.00)",
        "  ratio guarded / bare",
        guarded.as_secs_f64() / bare.as_secs_f64()
    );
    row("plugin start to ready, jailed", median(cold.clone()), &cold);
    row("SIGKILL of the plugin to the event that says so", median(known.clone()), &known);
    row("SIGKILL of the plugin to ready again", median(serving.clone()), &serving);
    println!(
        "{:<52} {:>9.2}",
        "  ratio ready again / start to ready",
        median(serving).as_secs_f64() / median(cold).as_secs_f64()
    );
    supervisor.stop().await;
    Ok(())
}

fn row(what: &str, value: Duration, all: &[Duration]) {
    let (low, high) = (all.iter().min(), all.iter().max());
    let milliseconds = |d: Option<&Duration>| d.map_or(0.0, |d| d.as_secs_f64() * 1e3);
    println!(
        "{what:<52} {:>6.3} ms  ({:.3} to {:.3})",
        value.as_secs_f64() * 1e3,
        milliseconds(low),
        milliseconds(high)
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn commit() -> String {
    let output = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    output.map_or_else(|_| "unknown".to_owned(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The same plugin without a supervisor: started by hand, called by a plain tonic client.
struct Bare {
    child: Child,
    client: PluginServiceClient<Channel>,
    _scratch: Scratch,
}

impl Bare {
    async fn start() -> Result<Self> {
        let scratch = Scratch::new();
        let mut child = Command::new(example("hello"))
            .env("TALON_PLUGIN_MAGIC_COOKIE", "d3a7c1f0-talon-plugin")
            .env("PLUGIN_PROTOCOL_VERSIONS", "1")
            .env("PLUGIN_UNIX_SOCKET_DIR", scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("stdout is piped")?).read_line(&mut line)?;
        let socket = line.split('|').nth(3).context("a handshake line has an address")?.to_owned();
        let channel = dial(Path::new(&socket)).await?;
        let mut client = PluginServiceClient::new(channel);
        client.init(talon_proto::plugin::PluginInitRequest { config_json: "{}".into() }).await.ok();
        Ok(Self { child, client, _scratch: scratch })
    }

    async fn call(&mut self) -> Result<Duration> {
        let request = ToolCallRequest {
            id: "bench".into(),
            plugin: "hello".into(),
            action: "greet".into(),
            args: args(&[("name", "World")]),
            ..ToolCallRequest::default()
        };
        let begin = Instant::now();
        let answer = self.client.execute(request).await?.into_inner();
        let took = begin.elapsed();
        ensure!(answer.content.contains("World"), "hello answered {:?}", answer.content);
        Ok(took)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // It is ours and about to be waited for; there is nobody to tell when that fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
