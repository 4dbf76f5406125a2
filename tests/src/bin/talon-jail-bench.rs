//! `make bench`: what starting a program in the jail costs, side by side with no jail at all and with bubblewrap in
//! the same run.
//!
//! Each start is `/bin/true` from before its start to after it was reaped: what makes a jail has to be taken down as
//! well. Absolute times depend on the machine and its noise; the ratios are what to read. All take turns (A B C A B
//! C …), so that a slow moment hits all.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use talon_jail::{ExitStatus, Network, Profile};
use talon_tests::{InJail, ended, is_root};

/// Starts of each that are counted: the 90th percentile is then the tenth slowest.
const ROUNDS: usize = 100;

/// Rounds before that, which fill caches.
const WARM_UP: usize = 5;

/// What is started: it does nothing, so that the rest is the jail's.
const PROGRAM: &str = "/bin/true";

/// A uid that is nobody's on this machine, for the jails of root.
const UID: u32 = 91_100;

const BWRAP: &str = "/usr/bin/bwrap";

/// Starts the program and waits for its end. Says when it was known to run, where that is known.
type Start = Box<dyn Fn() -> Result<Option<Instant>>>;

/// One way to start a program, and what it took.
struct Way {
    name: String,
    start: Start,
    /// From the start until it runs.
    running: Vec<Duration>,
    /// From the start to the end.
    whole: Vec<Duration>,
}

impl Way {
    fn new(name: impl Into<String>, start: impl Fn() -> Result<Option<Instant>> + 'static) -> Self {
        Self { name: name.into(), start: Box::new(start), running: Vec::new(), whole: Vec::new() }
    }

    fn jail(profile: &'static str, network: &'static str, asked: Network) -> Self {
        let jail = InJail::new(UID, profile, asked, &[Path::new(PROGRAM)]);
        Self::new(format!("jail, profile {profile}, network {network}"), move || {
            let jailed = jail.start()?;
            let running = Instant::now();
            let status = ended(&jailed.monitor)?;
            ensure!(status == ExitStatus::Code(0), "{PROGRAM} ended with {status}");
            Ok(Some(running))
        })
    }
}

fn main() -> Result<()> {
    let mut ways = vec![Way::new("posix_spawn, no jail", || run(&mut Command::new(PROGRAM)))];
    if Path::new(BWRAP).exists() {
        ways.push(Way::new("bwrap --unshare-all", bubblewrap));
    } else {
        println!("SKIPPED bwrap: there is no {BWRAP} (apt-get install bubblewrap)");
    }
    for profile in Profile::names() {
        ways.push(Way::jail(profile, "none", Network::None));
        ways.push(Way::jail(profile, "loopback", Network::Loopback));
        ways.push(Way::jail(profile, "full", Network::Host { connect: None, bind: None }));
    }

    for round in 0..WARM_UP + ROUNDS {
        for way in &mut ways {
            let begin = Instant::now();
            let running = (way.start)().with_context(|| way.name.clone())?;
            if round >= WARM_UP {
                way.whole.push(begin.elapsed());
                way.running.extend(running.map(|running| running - begin));
            }
        }
    }
    show(&mut ways);
    Ok(())
}

fn run(command: &mut Command) -> Result<Option<Instant>> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let running = Instant::now();
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Some(running))
}

/// All of its namespaces, the host's files read-only, devices and processes of its own.
fn bubblewrap() -> Result<Option<Instant>> {
    let sight = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"];
    run(Command::new(BWRAP).args(["--unshare-all", "--die-with-parent"]).args(sight).arg(PROGRAM))?;
    // Nothing tells when the program itself was executed.
    Ok(None)
}

fn show(ways: &mut [Way]) {
    let who = if is_root() { "root" } else { "an ordinary user" };
    println!("start of {PROGRAM} to its end, as {who}, {ROUNDS} rounds; ratios are of the p50 to the end");
    println!(
        "{:<40} {:>11} {:>9} {:>9} {:>10} {:>8}",
        "", "running p50", "end p50", "end p90", "× no jail", "× bwrap"
    );
    for way in &mut *ways {
        way.running.sort();
        way.whole.sort();
    }
    let p50 = |way: &Way| way.whole[ROUNDS / 2].as_secs_f64();
    let bare = p50(&ways[0]);
    let bwrap = ways.iter().find(|way| way.name.starts_with("bwrap")).map(p50);
    let milliseconds = |time: Option<&Duration>| {
        time.map_or_else(|| "-".to_owned(), |time| format!("{:.2} ms", time.as_secs_f64() * 1e3))
    };
    for way in &*ways {
        println!(
            "{:<40} {:>11} {:>9} {:>9} {:>10.2} {:>8}",
            way.name,
            milliseconds(way.running.get(ROUNDS / 2)),
            milliseconds(way.whole.get(ROUNDS / 2)),
            milliseconds(way.whole.get(ROUNDS * 9 / 10)),
            p50(way) / bare,
            bwrap.map_or_else(|| "-".to_owned(), |bwrap| format!("{:.2}", p50(way) / bwrap)),
        );
    }
}
