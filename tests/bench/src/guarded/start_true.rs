//! What a jail costs a program that does nothing: from before its start until it was reaped, because the jail
//! also has to be taken down.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use talon_jail::{ExitStatus, Network, Profile};
use talon_tests::{JailedFixture, ended};

use super::bubblewrap;
use crate::figures::Unit;
use crate::turns::{self, Measurement};

/// The program that is started.
const PROGRAM: &str = "/bin/true";

/// A uid that is unused on this machine, for the jails when run as root.
const UID: u32 = 91_100;

/// Starts the program and waits for its end. Returns when it began to run, if that is known.
type Start = Box<dyn Fn() -> Result<Option<Instant>>>;

/// One method to start it.
struct SpawnMethod {
    name: String,
    start: Start,
}

impl SpawnMethod {
    fn new(name: impl Into<String>, start: impl Fn() -> Result<Option<Instant>> + 'static) -> Self {
        Self { name: name.into(), start: Box::new(start) }
    }

    fn jail(profile: &'static str, network: &'static str, asked: Network) -> Self {
        let jail = JailedFixture::new(UID, profile, asked, &[Path::new(PROGRAM)]);
        Self::new(format!("{profile} jail, network {network}"), move || {
            let jailed = jail.start()?;
            let running = Instant::now();
            let status = ended(&jailed.monitor)?;
            ensure!(status == ExitStatus::Code(0), "{PROGRAM} ended with {status}");
            Ok(Some(running))
        })
    }
}

pub(super) async fn serve() -> Result<()> {
    let ways = spawn_methods();
    turns::serve_turns(async || {
        let mut told = Vec::new();
        for way in &ways {
            let begin = Instant::now();
            let running = (way.start)().with_context(|| way.name.clone())?;
            let ended = Instant::now();
            let mut tell = |metric, at: Instant| {
                let took = (at - begin).as_secs_f64() * 1e3;
                told.push(Measurement::new("start/true", &way.name, metric, Unit::Milliseconds, took));
            };
            tell("to its end", ended);
            if let Some(running) = running {
                tell("running", running);
            }
        }
        Ok(told)
    })
    .await
}

fn spawn_methods() -> Vec<SpawnMethod> {
    let mut ways = vec![SpawnMethod::new("no jail", || run(&mut Command::new(PROGRAM)))];
    if bubblewrap::is_installed() {
        ways.push(SpawnMethod::new("bwrap", || {
            run(&mut bubblewrap::wrap(Path::new(PROGRAM), None))?;
            // There is no notification of the exec.
            Ok(None)
        }));
    }
    for profile in Profile::names() {
        ways.push(SpawnMethod::jail(profile, "none", Network::None));
        ways.push(SpawnMethod::jail(profile, "loopback", Network::Loopback));
        ways.push(SpawnMethod::jail(profile, "full", Network::Host { connect: None, bind: None }));
    }
    ways
}

fn run(command: &mut Command) -> Result<Option<Instant>> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let running = Instant::now();
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Some(running))
}
