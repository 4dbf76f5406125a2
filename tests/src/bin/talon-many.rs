//! `make bench`: what many plugins cost. A real `talon serve` with as many jailed `hello` plugins as are asked for,
//! beside a bare spawner of the same program in the same run: a process that starts them, reads their handshakes and
//! holds a tonic connection to each.
//!
//! Absolute times depend on the machine and its noise; the ratios are what to read.
//!
//! ```text
//! talon-many [N…]        compares, for each N (1, 10, 100 and 500 without any)
//! talon-many --bare N    the spawner itself: holds N plugins until its standard input ends
//! ```

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use talon_proto::plugin::ToolCallRequest;
use talon_proto::plugin::plugin_service_client::PluginServiceClient;
use talon_tests::{Builder, Scratch, Supervisor, args, dial, example};
use tokio::io::AsyncBufReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tonic::transport::Channel;

/// How many plugins are compared, unless others are asked for.
const COUNTS: [usize; 4] = [1, 10, 100, 500];

/// How long nothing is asked of anybody while their time on the cores is counted.
const IDLE: Duration = Duration::from_secs(10);

/// Calls whose times are counted, one after the other, of the plugins in turn.
const CALLS: usize = 2000;

/// Uids for the plugins of a supervisor that is root's: nobody else's on this machine.
const FIRST_UID: u32 = 200_000;

/// Starts at a time, of either side: what a supervisor does by default.
fn at_once() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get() * 2)
}

/// What one side took.
#[derive(Debug, Default)]
struct Took {
    ready: Duration,
    memory_kib: u64,
    /// Of one core, in the idle time.
    idle_percent: f64,
    call_p50: Duration,
    call_p99: Duration,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, count] = &arguments[..]
        && flag == "--bare"
    {
        return hold(count.parse()?).await;
    }
    let counts: Vec<usize> = match arguments.is_empty() {
        true => COUNTS.to_vec(),
        false => arguments.iter().map(|count| count.parse()).collect::<Result<_, _>>()?,
    };
    println!(
        "{:>4} {:<6} {:>12} {:>9} {:>11} {:>9} {:>9}",
        "n", "", "all ready", "memory", "idle CPU", "call p50", "call p99"
    );
    for count in counts {
        let bare = bare(count).await?;
        show(count, "bare", &bare);
        let talon = supervised(count).await?;
        show(count, "talon", &talon);
        println!(
            "{:>4} {:<6} {:>11.2}x {:>8.2}x",
            count,
            "ratio",
            talon.ready.as_secs_f64() / bare.ready.as_secs_f64(),
            talon.memory_kib as f64 / bare.memory_kib as f64,
        );
    }
    Ok(())
}

fn show(count: usize, side: &str, took: &Took) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{count:>4} {side:<6} {:>9.0} ms {:>5.1} MiB {:>9.3} % {:>6.3} ms {:>6.3} ms",
        ms(took.ready),
        took.memory_kib as f64 / 1024.0,
        took.idle_percent,
        ms(took.call_p50),
        ms(took.call_p99),
    );
}

/// The supervisor's side.
async fn supervised(count: usize) -> Result<Took> {
    let last_uid = FIRST_UID + u32::try_from(count)? + 1;
    let mut builder = Builder::new().uids(FIRST_UID..=last_uid).env("TALON_LOG", "warn");
    for index in 0..count {
        builder = builder.plugin(&format!("hello-{index}"), &example("hello"), &[], "");
    }
    let begin = Instant::now();
    let supervisor = builder.without_waiting().start().await;
    let ready = all_ready(&supervisor, count, begin).await?;
    let pid = supervisor.pid();
    let idle_percent = idle(pid).await?;
    let memory_kib = memory_kib(pid)?;
    let mut times = Vec::with_capacity(CALLS);
    for call in 0..CALLS {
        let plugin = format!("hello-{}", call % count);
        let begin = Instant::now();
        let answer = supervisor.client.call(&plugin, "greet", &[("name", "World")]).await;
        times.push(begin.elapsed());
        ensure!(answer.content.contains("World"), "{plugin} answered {:?}", answer.content);
    }
    for child in talon_tests::descendants(pid) {
        if let Ok(name) = std::fs::read_to_string(format!("/proc/{child}/comm"))
            && !matches!(name.trim(), "hello" | "talon-monitor")
        {
            println!("{:>4} beside it: {} with {} KiB", "", name.trim(), memory_kib_of(child));
        }
    }
    supervisor.stop().await;
    Ok(with_calls(Took { ready, memory_kib, idle_percent, ..Took::default() }, times))
}

/// Waits until all plugins are ready; the supervisor's events tell when to look.
async fn all_ready(supervisor: &Supervisor, count: usize, begin: Instant) -> Result<Duration> {
    let mut events = supervisor.client.events("").await;
    loop {
        let plugins = supervisor.client.list().await;
        let ready = plugins.iter().filter(|plugin| plugin.state == "ready").count();
        if ready == count {
            return Ok(begin.elapsed());
        }
        let bad = plugins.iter().find(|plugin| matches!(plugin.state.as_str(), "failed" | "refused"));
        ensure!(bad.is_none(), "a plugin did not come up: {bad:?}");
        // One look for as many as are left would miss none, and one for each would ask too often.
        for _ in 0..(count - ready).div_ceil(4) {
            while events.message().await?.context("the events go on")?.kind != "plugin_ready" {}
        }
    }
}

/// The bare side: a process of its own, so that its memory is its own.
async fn bare(count: usize) -> Result<Took> {
    let mut spawner = Command::new(std::env::current_exe()?)
        .args(["--bare", &count.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let pid = spawner.id().context("it was just started")?;
    let mut lines = tokio::io::BufReader::new(spawner.stdout.take().context("its output is piped")?).lines();
    let ready = lines.next_line().await?.context("it says when all are ready")?.parse()?;
    let idle_percent = idle(pid).await?;
    let memory_kib = memory_kib(pid)?;
    let mut stdin = spawner.stdin.take().context("its input is piped")?;
    tokio::io::AsyncWriteExt::write_all(&mut stdin, b"calls\n").await?;
    let times = lines.next_line().await?.context("it says what calls took")?;
    let times =
        times.split(' ').map(|time| Ok(Duration::from_nanos(time.parse()?))).collect::<Result<_>>()?;
    drop(stdin);
    spawner.wait().await?;
    Ok(with_calls(
        Took { ready: Duration::from_nanos(ready), memory_kib, idle_percent, ..Took::default() },
        times,
    ))
}

fn with_calls(took: Took, mut times: Vec<Duration>) -> Took {
    times.sort();
    Took { call_p50: times[times.len() / 2], call_p99: times[times.len() * 99 / 100], ..took }
}

/// The bare spawner.
async fn hold(count: usize) -> Result<()> {
    let begin = Instant::now();
    let turns = Arc::new(Semaphore::new(at_once()));
    let starts: Vec<_> = (0..count)
        .map(|_| {
            let turns = turns.clone();
            tokio::spawn(async move {
                let _turn = turns.acquire().await?;
                Held::start().await
            })
        })
        .collect();
    let mut all = Vec::with_capacity(count);
    for start in starts {
        all.push(start.await??);
    }
    println!("{}", begin.elapsed().as_nanos());
    let mut asked = String::new();
    tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut asked)).await??;
    let mut times = Vec::with_capacity(CALLS);
    for call in 0..CALLS {
        let begin = Instant::now();
        all[call % count].call().await?;
        times.push(begin.elapsed().as_nanos().to_string());
    }
    println!("{}", times.join(" "));
    std::io::stdout().flush()?;
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}

/// One plugin of the bare spawner.
struct Held {
    client: PluginServiceClient<Channel>,
    _child: Child,
    _scratch: Scratch,
}

impl Held {
    async fn start() -> Result<Self> {
        let scratch = Scratch::new();
        let program: PathBuf = example("hello");
        let mut child = Command::new(program)
            .env("TALON_PLUGIN_MAGIC_COOKIE", "d3a7c1f0-talon-plugin")
            .env("PLUGIN_PROTOCOL_VERSIONS", "1")
            .env("PLUGIN_UNIX_SOCKET_DIR", scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("its output is piped")?;
        tokio::io::BufReader::new(stdout).read_line(&mut line).await?;
        let socket = line.split('|').nth(3).context("a handshake line has an address")?.to_owned();
        let mut client = PluginServiceClient::new(dial(Path::new(&socket)).await?);
        client.capabilities(()).await?;
        Ok(Self { client, _child: child, _scratch: scratch })
    }

    async fn call(&mut self) -> Result<()> {
        let request = ToolCallRequest {
            id: "bench".into(),
            plugin: "hello".into(),
            action: "greet".into(),
            args: args(&[("name", "World")]),
            ..ToolCallRequest::default()
        };
        let answer = self.client.execute(request).await?.into_inner();
        ensure!(answer.content.contains("World"), "hello answered {:?}", answer.content);
        Ok(())
    }
}

/// The share of a core that a process takes while nobody asks anything of it.
async fn idle(pid: u32) -> Result<f64> {
    // What the starts left to do is no idling.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (before, begin) = (on_cores(pid)?, Instant::now());
    tokio::time::sleep(IDLE).await;
    Ok((on_cores(pid)? - before).as_secs_f64() / begin.elapsed().as_secs_f64() * 100.0)
}

/// The time that a process was on a core, with the threads that have ended.
fn on_cores(pid: u32) -> Result<Duration> {
    const TICKS_PER_SECOND: u32 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").context("a process has a name in brackets")?;
    // The state is the first behind the name, and the third of all.
    let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(Duration::from_secs(1) * ticks / TICKS_PER_SECOND)
}

/// The proportional memory of a process: pages that it shares count in parts.
fn memory_kib(pid: u32) -> Result<u64> {
    let file = std::fs::File::open(format!("/proc/{pid}/smaps_rollup"))?;
    for line in BufReader::new(file).lines() {
        if let Some(size) = line?.strip_prefix("Pss:") {
            return Ok(size.trim().trim_end_matches(" kB").parse()?);
        }
    }
    anyhow::bail!("the kernel does not tell the memory of {pid}")
}

fn memory_kib_of(pid: u32) -> u64 {
    memory_kib(pid).unwrap_or(0)
}
