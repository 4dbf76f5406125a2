//! Starts each attack in each column, and reports the result as one line of JSON for each attack.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::process::set_child_subreaper;
use talon_jail::{Groups, Stage};

use crate::aftermath::{Baseline, DYING};
use crate::attack::{ATTACK_TIME, Running, first_line};
use crate::choice::Choice;
use crate::column::{Column, Confinement, Side};
use crate::expected::{self, Attack, Expectation, Verdict};
use crate::jails::Jails;
use crate::listeners::knock;
use crate::neighbour::Questions;
use crate::outer::attack_program;
use crate::record::{Line, Record};
use crate::targets::{ATTACKER, LISTEN_ABSTRACT, LISTEN_PORT, OWN, SECRET, environment};
use crate::verdict;

/// How long an attack on its own end may run before it is stopped: some end before.
const UNDISTURBED_TIME: Duration = Duration::from_millis(150);

/// Long enough for a working jail to end the processes.
const SETTLE_TIME: Duration = Duration::from_millis(300);

/// What the attacks of one column share.
struct ColumnRun<'c> {
    column: &'c Column,
    jails: Option<Jails>,
    environment: Vec<(String, String)>,
    questions: Questions,
    /// Kept so that they live as long as the column.
    stand_in: Child,
    neighbour: Option<Running>,
}

pub(crate) fn run(side: &str, choice: &Choice) -> anyhow::Result<()> {
    let side = Side::parse(side)?;
    // All processes that an attack leaves behind are reparented to us.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let expected = expected::load()?;
    // Before anything else is started, as a supervisor does. If there are no groups, each jail's report says
    // why.
    let groups = Groups::open(&format!("hostile-{}", side.name())).ok();
    let mut parts = Some((Stage::from_current_exe()?, groups));
    for column in choice.columns().iter().filter(|column| column.side == side) {
        if column.held == Confinement::Bubblewrap && Command::new("bwrap").arg("--version").output().is_err()
        {
            send(&Line::Skipped {
                column: column.name.clone(),
                reason: "bwrap is not installed (install the package bubblewrap)".into(),
            })?;
            continue;
        }
        let own = parts.take().context("they are put back below")?;
        let mut stand = ColumnRun::set_up(column, own).with_context(|| format!("column {}", column.name))?;
        for attack in expected.attacks().filter(|attack| choice.wants(&attack.name)) {
            // Whether a group limits its memory does not matter for this.
            if attack.expectation(column, true) == Expectation::Skip {
                continue;
            }
            let record =
                stand.attempt(attack).with_context(|| format!("{} in {}", attack.name, column.name))?;
            if choice.verbose {
                eprintln!(
                    "{:10} {:26} {:?} {} {} {:?} {} answers, slowest {} ms",
                    record.column,
                    record.attack,
                    record.verdict,
                    record.by,
                    record.detail,
                    record.trouble,
                    record.answers,
                    record.slowest_ms
                );
            }
            send(&Line::Record(record))?;
        }
        parts = Some(stand.take_down()?);
    }
    Ok(())
}

fn send(line: &Line) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, line)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

impl<'c> ColumnRun<'c> {
    fn set_up(column: &'c Column, (stage, groups): (Stage, Option<Groups>)) -> anyhow::Result<Self> {
        let mut environment = environment();
        let (stand_in, things) = stand_in(column.side)?;
        environment.push(("HOST_PID".into(), stand_in.id().to_string()));
        let mut things = things.split_whitespace();
        for name in ["KEY_ID", "SHM_KEY"] {
            environment.push((name.into(), things.next().unwrap_or("0").to_owned()));
        }
        let net = match column.held {
            Confinement::Jailed(net) => net,
            Confinement::Unconfined | Confinement::Bubblewrap => crate::column::Net::None,
        };
        let jails = Jails::new(stage, groups, column.side, net);
        let (neighbour, socket) = if let Confinement::Jailed(_) = column.held {
            let (neighbour, lines, socket) = jails.neighbour()?;
            send(&Line::Report { column: column.name.clone(), lines })?;
            (neighbour, socket)
        } else {
            plain_neighbour()?
        };
        environment.push(("PEER_PID".into(), neighbour.pid().to_string()));
        let questions = Questions::start(socket);
        Ok(Self { column, jails: Some(jails), environment, questions, stand_in, neighbour: Some(neighbour) })
    }

    fn attempt(&mut self, attack: &Attack) -> anyhow::Result<Record> {
        let before = Baseline::capture();
        self.questions.begin();
        let (mut running, _terminal) = self.start(attack)?;
        let mut record = Record {
            column: self.column.name.clone(),
            attack: attack.name.clone(),
            verdict: Verdict::Untried,
            by: String::new(),
            detail: String::new(),
            trouble: Vec::new(),
            answers: 0,
            slowest_ms: 0,
        };
        let knocking = attack.name.starts_with("listen-");
        let line =
            if knocking { wait_for_knock(&running)? } else { first_line(running.stdout(), ATTACK_TIME)? };
        let end = running.wait(if attack.lifecycle { UNDISTURBED_TIME } else { ATTACK_TIME })?;
        let stopped = running.stop()?;
        // Without our jail, leftovers are expected: there is no need to wait for them.
        let ours = matches!(self.column.held, Confinement::Jailed(_));
        let left = before.leftovers(if ours || !attack.lifecycle { DYING } else { SETTLE_TIME });
        if attack.lifecycle {
            verdict::judge_lifecycle(&mut record, line.as_deref(), end.or(stopped), &left);
        } else {
            verdict::judge_reported(&mut record, line.as_deref(), end);
            if end.is_none() {
                record.trouble.push("it did not end".into());
            }
            record.trouble.extend(left.into_iter().map(|what| format!("left behind: {what}")));
        }
        let served = self.questions.served();
        record.answers = served.answers;
        record.slowest_ms = u64::try_from(served.slowest.as_millis()).unwrap_or(u64::MAX);
        record.trouble.extend(served.failures.first().map(|why| format!("the neighbour: {why}")));
        Ok(record)
    }

    /// Starts it in its confinement. The second value lives as long as the attack.
    fn start(&self, attack: &Attack) -> anyhow::Result<(Running, Option<std::os::fd::OwnedFd>)> {
        if let Confinement::Jailed(_) = self.column.held {
            let jails = self.jails.as_ref().context("it is there until the column is taken down")?;
            return jails.attack(&attack.name, &self.environment, attack.terminal);
        }
        let mut words: Vec<String> = Vec::new();
        if attack.terminal {
            words.extend([attack_program(), "--helper".into(), "with-terminal".into()]);
        }
        if self.column.held == Confinement::Bubblewrap {
            words.extend(BWRAP.iter().map(|word| (*word).to_owned()));
        }
        words.extend([attack_program(), attack.name.clone()]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().envs(self.environment.iter().cloned()).current_dir(OWN);
        command.envs([
            ("OWN_DIR", OWN.to_owned()),
            ("HOME", format!("{OWN}/h")),
            ("SOCKET_DIR", format!("{OWN}/s")),
            ("PROGRAM", attack_program()),
            ("HOLD_MS", "0".into()),
        ]);
        command.stdin(Stdio::null());
        Ok((Running::plain(command)?, None))
    }

    fn take_down(mut self) -> anyhow::Result<(Stage, Option<Groups>)> {
        drop(self.questions);
        if let Some(neighbour) = self.neighbour.take() {
            neighbour.stop()?;
        }
        // It ends at the end of its standard input.
        drop(self.stand_in.stdin.take());
        self.stand_in.wait()?;
        Ok(self.jails.take().context("they were there until now")?.into_parts())
    }
}

/// The options of a careful user: all namespaces, everything read-only except one directory.
const BWRAP: &[&str] = &[
    "bwrap",
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--bind",
    OWN,
    OWN,
];

/// An ordinary process of the host with the attack's own uid, which is the worst case; and the file it
/// created.
fn stand_in(side: Side) -> anyhow::Result<(Child, String)> {
    let mut command = Command::new(attack_program());
    command.args(["--helper", "stand-in"]).env_clear().env("SECRET", SECRET);
    if side == Side::Root {
        command.uid(ATTACKER).gid(ATTACKER);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut things = String::new();
    BufReader::new(child.stdout.take().context("its output is a pipe")?).read_line(&mut things)?;
    Ok((child, things))
}

/// A plugin that serves, without a jail.
fn plain_neighbour() -> anyhow::Result<(Running, PathBuf)> {
    let socket = format!("{OWN}/neighbour.sock");
    // The socket of the previous column.
    let _ = std::fs::remove_file(&socket);
    let mut command = Command::new(attack_program());
    command.args(["--helper", "serve", &socket]).env_clear().env("SECRET", SECRET).stdin(Stdio::null());
    let running = Running::plain(command)?;
    let word = first_line(running.stdout(), ATTACK_TIME)?;
    anyhow::ensure!(word.as_deref() == Some("serving"), "the neighbour does not serve: {word:?}");
    Ok((running, socket.into()))
}

/// Connects to the attack's port and abstract name until it has output.
fn wait_for_knock(running: &Running) -> anyhow::Result<Option<String>> {
    loop {
        let line = first_line(running.stdout(), Duration::from_millis(10))?;
        if line.is_some() {
            return Ok(line);
        }
        knock(LISTEN_PORT, LISTEN_ABSTRACT);
    }
}
