//! Follows one turn from its first chunk to its end, with approvals and cancellation.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use talon_client::{Agent, Turn, TurnEvent};
use talon_proto::agent::{Approval, CancelRequest, Chunk, chunk};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::approval::{is_pending, is_short};
use super::line_input::LineInput;
use super::outcome::{StopReason, TurnEnd, TurnOutcome, TurnRecord};
use super::render::{DisplayFilter, Renderer};
use super::running_calls::RunningCalls;
use super::screen::Screen;
use super::typed_line::TypedAhead;
use super::typing_row::TypingRow;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::json;
use crate::client::form_filler::FormFiller;
use crate::failure::Failure;
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
    /// The person has a row to type in meanwhile.
    pub(crate) types_ahead: bool,
}

/// Follows a turn to its end. The first Ctrl-C cancels it, the second one stops waiting for its end.
///
/// `waiting` holds the approvals that already pend when attaching to a turn.
pub(crate) async fn follow(
    mut turn: Turn,
    waiting: Vec<Approval>,
    reach: &AgentConnection,
    how: FollowOptions,
    typed: TypedAhead,
    out: &mut Output,
) -> Result<TurnOutcome, Failure> {
    // From here on Ctrl-C does not end this process.
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
    let mut followed = TurnFollower::new(&reach.agent, how, typed, out);
    for approval in waiting {
        let chunk = Chunk { kind: Some(chunk::Kind::Approval(approval)) };
        if let Some(end) = followed.handle_chunk(chunk) {
            return Ok(followed.into_outcome(end));
        }
    }
    let deadline = how.timeout.map(|timeout| Instant::now() + timeout);
    let end = loop {
        let due = followed.next_deadline(deadline);
        followed.update_row();
        let until = tokio::select! {
            biased;
            _ = interrupts.recv() => followed.cancel(StopReason::Interrupted, turn.session_id()),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                followed.cancel(StopReason::TimedOut, turn.session_id())
            }
            Some(answered) = followed.requests.join_next() => followed.handle_response(answered),
            line = read_line(&mut followed.input) => followed.handle_reply(line),
            keys = followed.row.keys() => {
                followed.row.push(&keys);
                None
            }
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

/// A turn that is followed.
pub(super) struct TurnFollower<'o> {
    pub(super) agent: Agent,
    pub(super) options: FollowOptions,
    pub(super) screen: Screen<'o>,
    renderer: Renderer,
    record: TurnRecord,
    running: RunningCalls,
    pub(super) stop: Option<(StopReason, Instant)>,
    /// Approvals to ask about; the first is being asked.
    pub(super) questions: VecDeque<Approval>,
    pub(super) input: Option<LineInput>,
    /// The form of the first question, if a plugin asks it.
    pub(super) form: Option<FormFiller>,
    /// The reply to the question about a plan is on its way to the agent.
    pub(super) is_deciding_plan: bool,
    /// Where the person types while nothing is asked.
    pub(super) row: TypingRow,
    /// What the person decided or changed, on its way to the agent.
    pub(super) requests: JoinSet<Result<Response, Status>>,
}

/// The agent's response to what a person decided.
pub(super) enum Response {
    Decided(Box<Approval>),
    /// The changed plan comes as a chunk of the turn.
    PlanChanged,
}

pub(super) type ResponseResult = Result<Result<Response, Status>, tokio::task::JoinError>;

impl<'o> TurnFollower<'o> {
    fn new(agent: &Agent, options: FollowOptions, typed: TypedAhead, out: &'o mut Output) -> Self {
        Self {
            agent: agent.clone(),
            options,
            screen: Screen::new(out),
            renderer: Renderer::new(options.filter),
            record: TurnRecord::default(),
            running: RunningCalls::default(),
            stop: None,
            questions: VecDeque::new(),
            input: None,
            form: None,
            is_deciding_plan: false,
            row: TypingRow::new(options.types_ahead, typed),
            requests: JoinSet::new(),
        }
    }

    fn update_row(&mut self) {
        self.row.update(self.questions.is_empty() && self.stop.is_none());
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
            self.screen.out.exact_json_line(&json::chunk(&kind));
        }
        if !self.is_queued(&kind) {
            self.show(&kind);
        }
        match kind {
            chunk::Kind::Done(done) => {
                if self.options.filter.text && !self.record.has_streamed(&done.text) {
                    self.screen.show(self.renderer.answer(&done.text));
                }
                Some(TurnEnd::Done(Box::new(done)))
            }
            chunk::Kind::Error(error) => Some(TurnEnd::Error(Box::new(error))),
            chunk::Kind::Approval(approval) => self.handle_approval(approval),
            chunk::Kind::Plan(plan) => self.handle_plan(&plan),
            _ => None,
        }
    }

    pub(super) fn show(&mut self, kind: &chunk::Kind) {
        self.screen.show(self.renderer.chunk(kind, SystemTime::now()));
        self.running.update(kind);
        // A question is not drawn over.
        if self.options.filter.lines && self.questions.is_empty() {
            self.screen.show_calls(&self.running);
        }
    }

    /// Whether it is a call that is asked about after another one, or a plan that is asked about. It is shown then: what
    /// stands last on the screen is what the reply is about.
    fn is_queued(&self, kind: &chunk::Kind) -> bool {
        match kind {
            chunk::Kind::Approval(approval) => {
                !self.questions.is_empty() && is_pending(approval) && is_short(approval)
            }
            chunk::Kind::Plan(_) => self.questions.iter().any(|asked| asked.plan.is_some()),
            _ => false,
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

    fn into_outcome(mut self, end: TurnEnd) -> TurnOutcome {
        self.forget_questions();
        self.screen.show(self.renderer.finish());
        self.screen.stop_spinner();
        let typed = self.row.into_typed();
        TurnOutcome { record: self.record, stop: self.stop.map(|(why, _)| why), end, typed }
    }
}
