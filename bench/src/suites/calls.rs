//! One call after the other, from one caller to 256: raw frames, tonic bare and twice, go-plugin's host, and Talon in
//! process and through `host.sock`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use talon_tests::{Builder, Scratch, Supervisor, go_program, is_root, program};

use super::Bench;
use crate::book::Unit;
use crate::driver::Driver;
use crate::guarded::PLUGIN;
use crate::load::Load;

const BARE: &str = "bare tonic";

/// As many calls at once as the largest load, so that a queue is not what is measured.
const LIMITS: &str = "concurrency: 256\nqueue: 256";

struct Size {
    name: &'static str,
    bytes: usize,
}

const SIZES: [Size; 2] = [Size { name: "1 KiB", bytes: 1 << 10 }, Size { name: "64 KiB", bytes: 64 << 10 }];

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let quick = bench.plan.quick;
    let concurrencies: &[usize] = if quick { &[1, 64] } else { &[1, 8, 64, 256] };
    // One round more than is counted: the first fills caches, pools and windows.
    let (rounds, millis) = if quick { (5, 200) } else { (9, 400) };
    let mut contenders = contenders(bench).await?;
    for size in &SIZES {
        for concurrency in concurrencies {
            let case = format!("calls/{}/c{concurrency}", size.name);
            bench.progress.set_message(case.clone());
            let load = Load { content_bytes: size.bytes, concurrency: *concurrency, millis };
            for round in 0..=rounds {
                bench.probe.look();
                for driver in &mut contenders {
                    let made = driver.make(load)?;
                    if round == 0 {
                        continue;
                    }
                    let mut page = bench.book.page(&case, Some(BARE));
                    page.add(driver.name, "p50", Unit::Microseconds, made.outcome.p50_us);
                    page.add(driver.name, "p99", Unit::Microseconds, made.outcome.p99_us);
                    page.add(driver.name, "calls", Unit::PerSecond, made.outcome.calls_per_second);
                    page.add(driver.name, "CPU a call", Unit::Microseconds, made.cpu_us_per_call);
                }
            }
        }
    }
    Ok(())
}

async fn contenders(bench: &mut Bench<'_>) -> Result<Vec<Driver>> {
    bench.progress.set_message("starting the contenders of calls");
    let mut contenders = vec![raw()?, bare()?, relay()?, in_process()?, host().await?];
    match go()? {
        Some(go) => contenders.push(go),
        None => bench
            .book
            .note("go-plugin's host: there is no Go, or not all of its libraries (scripts/deps.sh test)"),
    }
    Ok(contenders)
}

/// A server process; killed when dropped.
struct Server {
    child: Child,
    socket: PathBuf,
    _scratch: Scratch,
}

impl Server {
    fn start(part: &str, more: &[&Path]) -> Result<Self> {
        let scratch = Scratch::new();
        let socket = scratch.join("server.sock");
        let mut command = stock(part);
        let mut child =
            command.arg(&socket).args(more).stdout(Stdio::piped()).spawn().context(part.to_owned())?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let server = Self { child, socket, _scratch: scratch };
        // It says so once it listens, and nothing else.
        ensure!(BufReader::new(stdout).read_line(&mut String::new())? > 0, "{part} ended; see above");
        Ok(server)
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is ours and about to be waited for; there is nobody to tell when that fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn stock(part: &str) -> Command {
    let mut command = Command::new(program("talon-bench-stock"));
    command.arg(part);
    command
}

fn guarded(part: &str) -> Command {
    let mut command = Command::new(program("talon-bench-guarded"));
    command.arg(part);
    command
}

fn raw() -> Result<Driver> {
    let server = Server::start("raw-server", &[])?;
    Driver::start("raw socket", stock("raw-driver").arg(&server.socket), vec![server.pid()], server)
}

fn bare() -> Result<Driver> {
    let server = Server::start("bare-server", &[])?;
    Driver::start(BARE, stock("bare-driver").arg(&server.socket), vec![server.pid()], server)
}

fn relay() -> Result<Driver> {
    let server = Server::start("bare-server", &[])?;
    let relay = Server::start("relay", &[&server.socket])?;
    let pids = vec![server.pid(), relay.pid()];
    Driver::start("two bare hops", stock("bare-driver").arg(&relay.socket), pids, (relay, server))
}

fn in_process() -> Result<Driver> {
    let scratch = Scratch::new();
    let mut config = format!(
        "runtime_dir: {0}/run\nstate:\n  engine: off\n  data_dir: {0}/data\n",
        scratch.path().display()
    );
    if is_root() {
        config.push_str("sandbox:\n  uid_range: 91200-91209\n");
    }
    let _ = write!(config, "plugins:\n  tools:\n    plugins:\n      {PLUGIN}:\n");
    let _ = writeln!(config, "        command: {:?}", program("talon-bench-plugin"));
    for line in LIMITS.lines() {
        let _ = writeln!(config, "        {line}");
    }
    let config = scratch.write("talon.yaml", &config);
    Driver::start("in process", guarded("in-process").arg(config), Vec::new(), scratch)
}

async fn host() -> Result<Driver> {
    let supervisor: Supervisor =
        Builder::new().plugin(PLUGIN, &program("talon-bench-plugin"), &[], LIMITS).start().await;
    let socket = supervisor.socket();
    let pids = vec![supervisor.pid()];
    Driver::start("host.sock", guarded("host").arg(socket), pids, supervisor)
}

/// HashiCorp's go-plugin as it comes, with all the threads that Go takes. Its host starts the plugin itself.
fn go() -> Result<Option<Driver>> {
    let Some(host) = go_program("talon-bench", "bench-host") else { return Ok(None) };
    let mut command = Command::new(host);
    Driver::start("Go host", command.arg(program("talon-bench-plugin")), Vec::new(), ()).map(Some)
}
