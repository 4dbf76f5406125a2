//! Follows one turn from its first chunk to its end, with approvals and cancellation.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use talon_client::{Agent, Turn, TurnEvent};
use talon_proto::agent::{Approval, CancelRequest, Chunk, DecideRequest, chunk};
use talon_sanitize::sanitized;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::approval::{ApprovalReply, decide_hint, is_pending, is_short};
use super::line_input::{self, LineInput};
use super::outcome::{StopReason, TurnEnd, TurnOutcome, TurnRecord};
use super::render::{DisplayFilter, Renderer};
use super::screen::Screen;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::single_line;
use crate::client::agent::json;
use crate::failure::Failure;
use crate::line::Line;
use crate::output::Output;

/// How long to wait for the end of a cancelled turn, which carries the partial answer. Tool calls are
/// cancelled over the wire, so this only bounds a hang.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Options for following a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FollowOptions {
    pub(crate) filter: DisplayFilter,
    /// Write each chunk as a line of JSON.
    pub(crate) chunks: bool,
    /// A person can be asked for approvals.
    pub(crate) prompts_approvals: bool,
    /// Keep following while a call waits for an approval from elsewhere.
    pub(crate) waits_for_approvals: bool,
    pub(crate) timeout: Option<Duration>,
}

/// Follows a turn to its end. The first Ctrl-C cancels it, the second one stops waiting for its end.
///
/// `waiting` holds the approvals that already pend when attaching to a turn.
pub(crate) async fn follow(
    mut turn: Turn,
    waiting: Vec<Approval>,
    reach: &AgentConnection,
    how: FollowOptions,
    out: &mut Output,
) -> Result<TurnOutcome, Failure> {
    // From here on Ctrl-C does not end this process.
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
    let mut followed = TurnFollower::new(&reach.agent, how, out);
    for approval in waiting {
        let chunk = Chunk { kind: Some(chunk::Kind::Approval(approval)) };
        if let Some(end) = followed.handle_chunk(chunk) {
            return Ok(followed.into_outcome(end));
        }
    }
    let deadline = how.timeout.map(|timeout| Instant::now() + timeout);
    let end = loop {
        let due = followed.next_deadline(deadline);
        let until = tokio::select! {
            biased;
            _ = interrupts.recv() => followed.cancel(StopReason::Interrupted, turn.session_id()),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                followed.cancel(StopReason::TimedOut, turn.session_id())
            }
            Some(decided) = followed.decisions.join_next() => followed.handle_decision(decided),
            line = read_line(&mut followed.input) => followed.handle_reply(line),
            heard = turn.next() => match heard {
                Ok(Some(TurnEvent::Chunk(chunk))) => followed.handle_chunk(chunk),
                Ok(Some(TurnEvent::Reconnected)) => followed.again(),
                // The last chunk has ended the loop already.
                Ok(None) => Some(TurnEnd::Stopped),
                Err(error) => Some(TurnEnd::Failed(reach.turn_failure(&error))),
            },
        };
        if let Some(end) = until {
            break end;
        }
    };
    Ok(followed.into_outcome(end))
}

/// Reads the reply; pends forever if there is no question.
async fn read_line(typed: &mut Option<LineInput>) -> std::io::Result<Option<String>> {
    match typed {
        Some(typed) => typed.line().await,
        None => std::future::pending().await,
    }
}

struct TurnFollower<'o> {
    agent: Agent,
    options: FollowOptions,
    screen: Screen<'o>,
    renderer: Renderer,
    record: TurnRecord,
    stop: Option<(StopReason, Instant)>,
    /// Approvals to ask about; the first is being asked.
    questions: VecDeque<Approval>,
    input: Option<LineInput>,
    decisions: JoinSet<Result<Approval, Status>>,
}

type DecisionResult = Result<Result<Approval, Status>, tokio::task::JoinError>;

impl<'o> TurnFollower<'o> {
    fn new(agent: &Agent, options: FollowOptions, out: &'o mut Output) -> Self {
        Self {
            agent: agent.clone(),
            options,
            screen: Screen::new(out),
            renderer: Renderer::new(options.filter),
            record: TurnRecord::default(),
            stop: None,
            questions: VecDeque::new(),
            input: None,
            decisions: JoinSet::new(),
        }
    }

    /// The next deadline: the caller's own limit, or the end of waiting for a cancelled turn.
    fn next_deadline(&self, deadline: Option<Instant>) -> Option<Instant> {
        self.stop.map_or(deadline, |(_, until)| Some(until))
    }

    /// Cancels the turn. On a second call it stops waiting.
    fn cancel(&mut self, why: StopReason, session_id: Option<&str>) -> Option<TurnEnd> {
        self.forget_questions();
        // Without a session the turn has not started: dropping the stream is enough.
        let Some(session_id) = session_id.filter(|_| self.stop.is_none()) else {
            self.stop.get_or_insert((why, Instant::now()));
            return Some(TurnEnd::Stopped);
        };
        self.stop = Some((why, Instant::now() + CANCEL_TIMEOUT));
        let (mut agent, session_id) = (self.agent.grpc(), session_id.to_owned());
        // The turn's end shows whether this worked.
        tokio::spawn(async move { agent.cancel(CancelRequest { session_id }).await });
        self.screen.show(self.renderer.finish());
        None
    }

    fn handle_chunk(&mut self, chunk: Chunk) -> Option<TurnEnd> {
        let kind = chunk.kind?;
        if self.record.is_known(&kind) {
            return None;
        }
        self.record.add_chunk(&kind);
        if self.options.chunks {
            self.screen.out.json_line(&json::chunk(&kind));
        }
        self.screen.show(self.renderer.chunk(&kind, SystemTime::now()));
        match kind {
            chunk::Kind::Done(done) => {
                if self.options.filter.text && !self.record.has_streamed(&done.text) {
                    self.screen.show(self.renderer.answer(&done.text));
                }
                Some(TurnEnd::Done(Box::new(done)))
            }
            chunk::Kind::Error(error) => Some(TurnEnd::Error(Box::new(error))),
            chunk::Kind::Approval(approval) => self.handle_approval(approval),
            _ => None,
        }
    }

    fn again(&mut self) -> Option<TurnEnd> {
        let mut shown = self.renderer.finish();
        let note = "talon: reconnected to the agent; what happened in between was missed";
        shown.push(super::render::DisplayItem::Line(note.into()));
        self.record.streamed.clear();
        self.screen.show(shown);
        None
    }

    /// A call starts waiting for an approval, or stops waiting.
    fn handle_approval(&mut self, approval: Approval) -> Option<TurnEnd> {
        let known = self.questions.iter().position(|asked| asked.id == approval.id);
        if !is_pending(&approval) {
            if let Some(at) = known {
                self.questions.remove(at);
                if at == 0 {
                    self.input = None;
                    return self.prompt_next();
                }
            }
            return None;
        }
        if self.stop.is_some() || known.is_some() {
            return None;
        }
        if self.options.prompts_approvals && is_short(&approval) {
            self.questions.push_back(approval);
            return if self.questions.len() == 1 { self.prompt_next() } else { None };
        }
        if !self.options.prompts_approvals || !is_short(&approval) {
            self.screen.out.err_line(decide_hint(&approval));
        }
        (!self.options.waits_for_approvals).then(|| TurnEnd::Parked(Box::new(approval)))
    }

    /// Asks the first pending question.
    fn prompt_next(&mut self) -> Option<TurnEnd> {
        self.screen.stop_spinner();
        let approval = self.questions.front()?;
        line_input::discard_pending_input();
        let what = sanitized!("{}.{}", single_line(&approval.plugin), single_line(&approval.action));
        self.screen.out.err_line(sanitized!(
            "Run {}, exactly as shown ({})? [y/N, no REASON, later]",
            what,
            single_line(&approval.id)
        ));
        match LineInput::start() {
            Ok(typed) => self.input = Some(typed),
            Err(error) => return Some(TurnEnd::Failed(Failure::failed(format!("cannot ask: {error}")))),
        }
        None
    }

    fn handle_reply(&mut self, line: std::io::Result<Option<String>>) -> Option<TurnEnd> {
        self.input = None;
        let reply = match line {
            Ok(Some(line)) => ApprovalReply::parse(&line),
            // A closed or unreadable input decides nothing.
            Ok(None) | Err(_) => ApprovalReply::Later,
        };
        let approval = match reply {
            ApprovalReply::Unclear => {
                self.screen.out.err_line(
                    "y runs it, n denies it, `no REASON` tells the model why, later decides nothing",
                );
                return self.prompt_next();
            }
            _ => self.questions.pop_front()?,
        };
        let (approve, reason) = match reply {
            ApprovalReply::Approve => (true, String::new()),
            ApprovalReply::Deny(reason) => (false, reason),
            ApprovalReply::Later | ApprovalReply::Unclear => {
                self.screen.out.err_line(decide_hint(&approval));
                // Postponing one question postpones all of them.
                self.questions.clear();
                return (!self.options.waits_for_approvals).then(|| TurnEnd::Parked(Box::new(approval)));
            }
        };
        let mut agent = self.agent.grpc();
        let request = DecideRequest { id: approval.id, approve, digest: approval.digest, reason };
        self.decisions.spawn(async move { agent.decide(request).await.map(tonic::Response::into_inner) });
        self.prompt_next()
    }

    /// Handles the agent's response to a decision; the turn continues either way.
    fn handle_decision(&mut self, decided: DecisionResult) -> Option<TurnEnd> {
        if let Ok(Err(status)) = decided {
            let why = sanitized!("talon: not decided: {}", single_line(status.message()));
            self.screen.out.err_line(Line::from(why));
        }
        None
    }

    fn forget_questions(&mut self) {
        self.input = None;
        self.questions.clear();
    }

    fn into_outcome(mut self, end: TurnEnd) -> TurnOutcome {
        self.forget_questions();
        self.screen.show(self.renderer.finish());
        self.screen.stop_spinner();
        TurnOutcome { record: self.record, stop: self.stop.map(|(why, _)| why), end }
    }
}
