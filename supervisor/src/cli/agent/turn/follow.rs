//! Follows one turn from its first chunk to its end, with approvals and cancellation.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use talon_client::{Agent, Heard, Turn};
use talon_proto::agent::{Approval, CancelRequest, Chunk, DecideRequest, chunk};
use talon_sanitize::inert;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::super::super::failure::Failure;
use super::super::super::line::Line;
use super::super::super::output::Out;
use super::super::json;
use super::super::reach::Reach;
use super::super::words::one;
use super::approval::{Reply, elsewhere, is_pending, is_short};
use super::render::{Renderer, Wanted};
use super::screen::Screen;
use super::told::{Collected, End, Stop, Told};
use super::typed::{self, Typed};

/// How long to wait for the end of a cancelled turn, which carries the partial answer. Tool calls are cancelled over
/// the wire, so this only bounds a hang.
const CANCELLED_WITHIN: Duration = Duration::from_secs(10);

/// Options for following a turn.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct How {
    pub(in crate::cli) wanted: Wanted,
    /// Write each chunk as a line of JSON.
    pub(in crate::cli) chunks: bool,
    /// A person can be asked for approvals.
    pub(in crate::cli) asks: bool,
    /// Keep following while a call waits for an approval from elsewhere.
    pub(in crate::cli) waits: bool,
    pub(in crate::cli) timeout: Option<Duration>,
}

/// Follows a turn to its end. The first Ctrl-C cancels it, the second one stops waiting for its end.
///
/// `waiting` holds the approvals that already pend when attaching to a turn.
pub(in crate::cli) async fn follow(
    mut turn: Turn,
    waiting: Vec<Approval>,
    reach: &Reach,
    how: How,
    out: &mut Out,
) -> Result<Told, Failure> {
    // From here on Ctrl-C does not end this process.
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
    let mut followed = Followed::new(&reach.agent, how, out);
    for approval in waiting {
        let chunk = Chunk { kind: Some(chunk::Kind::Approval(approval)) };
        if let Some(end) = followed.chunk(chunk) {
            return Ok(followed.told(end));
        }
    }
    let deadline = how.timeout.map(|timeout| Instant::now() + timeout);
    let end = loop {
        let due = followed.due(deadline);
        let until = tokio::select! {
            biased;
            _ = interrupts.recv() => followed.stops(Stop::Interrupted, turn.session_id()),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                followed.stops(Stop::TimedOut, turn.session_id())
            }
            Some(decided) = followed.deciding.join_next() => followed.decided(decided),
            line = line(&mut followed.typed) => followed.answered(line),
            heard = turn.next() => match heard {
                Ok(Some(Heard::Chunk(chunk))) => followed.chunk(chunk),
                Ok(Some(Heard::Again)) => followed.again(),
                // The last chunk has ended the loop already.
                Ok(None) => Some(End::Stopped),
                Err(error) => Some(End::Failed(reach.turn_failure(&error))),
            },
        };
        if let Some(end) = until {
            break end;
        }
    };
    Ok(followed.told(end))
}

/// Reads the reply; pends forever if there is no question.
async fn line(typed: &mut Option<Typed>) -> std::io::Result<Option<String>> {
    match typed {
        Some(typed) => typed.line().await,
        None => std::future::pending().await,
    }
}

struct Followed<'o> {
    agent: Agent,
    how: How,
    screen: Screen<'o>,
    renderer: Renderer,
    heard: Collected,
    stop: Option<(Stop, Instant)>,
    /// Approvals to ask about; the first is being asked.
    questions: VecDeque<Approval>,
    typed: Option<Typed>,
    deciding: JoinSet<Result<Approval, Status>>,
}

type Decided = Result<Result<Approval, Status>, tokio::task::JoinError>;

impl<'o> Followed<'o> {
    fn new(agent: &Agent, how: How, out: &'o mut Out) -> Self {
        Self {
            agent: agent.clone(),
            how,
            screen: Screen::new(out),
            renderer: Renderer::new(how.wanted),
            heard: Collected::default(),
            stop: None,
            questions: VecDeque::new(),
            typed: None,
            deciding: JoinSet::new(),
        }
    }

    /// The next deadline: the caller's own limit, or the end of waiting for a cancelled turn.
    fn due(&self, deadline: Option<Instant>) -> Option<Instant> {
        self.stop.map_or(deadline, |(_, until)| Some(until))
    }

    /// Cancels the turn. On a second call it stops waiting.
    fn stops(&mut self, why: Stop, session_id: Option<&str>) -> Option<End> {
        self.forget_questions();
        // Without a session the turn has not started: dropping the stream is enough.
        let Some(session_id) = session_id.filter(|_| self.stop.is_none()) else {
            self.stop.get_or_insert((why, Instant::now()));
            return Some(End::Stopped);
        };
        self.stop = Some((why, Instant::now() + CANCELLED_WITHIN));
        let (mut agent, session_id) = (self.agent.grpc(), session_id.to_owned());
        // The turn's end shows whether this worked.
        tokio::spawn(async move { agent.cancel(CancelRequest { session_id }).await });
        self.screen.show(self.renderer.ends());
        None
    }

    fn chunk(&mut self, chunk: Chunk) -> Option<End> {
        let kind = chunk.kind?;
        if self.heard.knows(&kind) {
            return None;
        }
        self.heard.chunk(&kind);
        if self.how.chunks {
            self.screen.out.json_line(&json::chunk(&kind));
        }
        self.screen.show(self.renderer.chunk(&kind, SystemTime::now()));
        match kind {
            chunk::Kind::Done(done) => {
                if self.how.wanted.text && !self.heard.has_seen(&done.text) {
                    self.screen.show(self.renderer.answer(&done.text));
                }
                Some(End::Done(Box::new(done)))
            }
            chunk::Kind::Error(error) => Some(End::Error(Box::new(error))),
            chunk::Kind::Approval(approval) => self.parked(approval),
            _ => None,
        }
    }

    fn again(&mut self) -> Option<End> {
        let mut shown = self.renderer.ends();
        let note =
            "talon: reconnected to the agent; what happened in between was missed";
        shown.push(super::render::Shown::Line(note.into()));
        self.heard.streamed.clear();
        self.screen.show(shown);
        None
    }

    /// A call starts waiting for an approval, or stops waiting.
    fn parked(&mut self, approval: Approval) -> Option<End> {
        let known = self.questions.iter().position(|asked| asked.id == approval.id);
        if !is_pending(&approval) {
            if let Some(at) = known {
                self.questions.remove(at);
                if at == 0 {
                    self.typed = None;
                    return self.asks();
                }
            }
            return None;
        }
        if self.stop.is_some() || known.is_some() {
            return None;
        }
        if self.how.asks && is_short(&approval) {
            self.questions.push_back(approval);
            return if self.questions.len() == 1 { self.asks() } else { None };
        }
        if !self.how.asks || !is_short(&approval) {
            self.screen.out.say(elsewhere(&approval));
        }
        (!self.how.waits).then(|| End::Parked(Box::new(approval)))
    }

    /// Asks the first pending question.
    fn asks(&mut self) -> Option<End> {
        self.screen.still();
        let approval = self.questions.front()?;
        typed::forget();
        let what = inert!("{}.{}", one(&approval.plugin), one(&approval.action));
        self.screen.out.say(inert!(
            "Run {}, exactly as shown ({})? [y/N, no REASON, later]",
            what,
            one(&approval.id)
        ));
        match Typed::begin() {
            Ok(typed) => self.typed = Some(typed),
            Err(error) => return Some(End::Failed(Failure::failed(format!("cannot ask: {error}")))),
        }
        None
    }

    fn answered(&mut self, line: std::io::Result<Option<String>>) -> Option<End> {
        self.typed = None;
        let reply = match line {
            Ok(Some(line)) => Reply::of(&line),
            // A closed or unreadable input decides nothing.
            Ok(None) | Err(_) => Reply::Later,
        };
        let approval = match reply {
            Reply::Unclear => {
                self.screen
                    .out
                    .say("y runs it, n denies it, `no REASON` tells the model why, later decides nothing");
                return self.asks();
            }
            _ => self.questions.pop_front()?,
        };
        let (approve, reason) = match reply {
            Reply::Approve => (true, String::new()),
            Reply::Deny(reason) => (false, reason),
            Reply::Later | Reply::Unclear => {
                self.screen.out.say(elsewhere(&approval));
                // Postponing one question postpones all of them.
                self.questions.clear();
                return (!self.how.waits).then(|| End::Parked(Box::new(approval)));
            }
        };
        let mut agent = self.agent.grpc();
        let request = DecideRequest { id: approval.id, approve, digest: approval.digest, reason };
        self.deciding.spawn(async move { agent.decide(request).await.map(tonic::Response::into_inner) });
        self.asks()
    }

    /// Handles the agent's response to a decision; the turn continues either way.
    fn decided(&mut self, decided: Decided) -> Option<End> {
        if let Ok(Err(status)) = decided {
            let why = inert!("talon: not decided: {}", one(status.message()));
            self.screen.out.say(Line::from(why));
        }
        None
    }

    fn forget_questions(&mut self) {
        self.typed = None;
        self.questions.clear();
    }

    fn told(mut self, end: End) -> Told {
        self.forget_questions();
        self.screen.show(self.renderer.ends());
        self.screen.still();
        Told { heard: self.heard, stop: self.stop.map(|(why, _)| why), end }
    }
}
