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

use super::approval::{ApprovalReply, QuestionReply, decide_hint, is_pending, is_short, rule_line};
use super::input_area::InputArea;
use super::line_input::{self, LineInput};
use super::outcome::{StopReason, TurnEnd, TurnOutcome, TurnRecord};
use super::render::{DisplayFilter, Renderer};
use super::running_calls::RunningCalls;
use super::screen::Screen;
use super::typed_line::TypedAhead;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::single_line;
use crate::client::agent::json;
use crate::client::form_filler::{FormFiller, FormStep};
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
        followed.update_area();
        let until = tokio::select! {
            biased;
            _ = interrupts.recv() => followed.cancel(StopReason::Interrupted, turn.session_id()),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                followed.cancel(StopReason::TimedOut, turn.session_id())
            }
            Some(decided) = followed.decisions.join_next() => followed.handle_decision(decided),
            line = read_line(&mut followed.input) => followed.handle_reply(line),
            keys = read_keys(&mut followed.area) => followed.handle_keys(&keys),
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

/// Reads keys; pends forever if there is no area.
async fn read_keys(area: &mut Option<InputArea>) -> Vec<u8> {
    match area {
        Some(area) => area.keys().await,
        None => std::future::pending().await,
    }
}

struct TurnFollower<'o> {
    agent: Agent,
    options: FollowOptions,
    screen: Screen<'o>,
    renderer: Renderer,
    record: TurnRecord,
    running: RunningCalls,
    stop: Option<(StopReason, Instant)>,
    /// Approvals to ask about; the first is being asked.
    questions: VecDeque<Approval>,
    input: Option<LineInput>,
    /// The form of the first question, if a plugin asks it.
    form: Option<FormFiller>,
    /// Where the person types while nothing is asked.
    area: Option<InputArea>,
    typed: TypedAhead,
    decisions: JoinSet<Result<Approval, Status>>,
}

type DecisionResult = Result<Result<Approval, Status>, tokio::task::JoinError>;

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
            area: None,
            typed,
            decisions: JoinSet::new(),
        }
    }

    /// Opens the area where nothing is asked; otherwise draws it, as the window may have another size.
    fn update_area(&mut self) {
        match &mut self.area {
            Some(area) => area.draw(),
            None if self.options.types_ahead && self.questions.is_empty() && self.stop.is_none() => {
                self.area = InputArea::start(&self.typed);
                // It is tried where a line begins, and not in the middle of an answer.
                self.options.types_ahead = self.area.is_some();
            }
            None => {}
        }
    }

    /// Closes the area; what was typed is kept, and answers no question.
    fn close_area(&mut self) {
        if let Some(area) = self.area.take() {
            self.typed = area.finish();
        }
    }

    fn handle_keys(&mut self, keys: &[u8]) -> Option<TurnEnd> {
        if let Some(area) = &mut self.area {
            area.push(keys);
        }
        None
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
            _ => None,
        }
    }

    fn show(&mut self, kind: &chunk::Kind) {
        self.screen.show(self.renderer.chunk(kind, SystemTime::now()));
        self.running.update(kind);
        // A question is not drawn over.
        if self.options.filter.lines && self.questions.is_empty() {
            self.screen.show_calls(&self.running);
        }
    }

    /// Whether it is a call that is asked about after another one. It is shown then: what stands last on the
    /// screen is what the reply is about.
    fn is_queued(&self, kind: &chunk::Kind) -> bool {
        let chunk::Kind::Approval(approval) = kind else { return false };
        !self.questions.is_empty() && is_pending(approval) && is_short(approval)
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
                    (self.input, self.form) = (None, None);
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
            return if self.questions.len() == 1 { self.prompt() } else { None };
        }
        if !self.options.prompts_approvals || !is_short(&approval) {
            self.screen.out.err_line(decide_hint(&approval));
        }
        (!self.options.waits_for_approvals).then(|| TurnEnd::Parked(Box::new(approval)))
    }

    /// Shows the first question that is left, and asks it.
    fn prompt_next(&mut self) -> Option<TurnEnd> {
        let next = chunk::Kind::Approval(self.questions.front()?.clone());
        self.show(&next);
        self.prompt()
    }

    /// Asks the first question, which was shown.
    fn prompt(&mut self) -> Option<TurnEnd> {
        self.close_area();
        self.screen.stop_spinner();
        let approval = self.questions.front()?;
        line_input::discard_pending_input();
        if !approval.form.is_empty() {
            match FormFiller::new(&approval.form) {
                Ok(form) => self.form = Some(form),
                // An agent of another version may have other forms.
                Err(error) => {
                    let why = format!("talon: this question cannot be answered here: {error}");
                    self.screen.out.err_line(single_line(&why));
                    let approval = self.questions.pop_front()?;
                    return self.postpone(approval);
                }
            }
            let id = single_line(&approval.id);
            self.screen.out.err_line(sanitized!("Answer it ({})? [Y/n/later]", id));
            return self.read_reply();
        }
        if !approval.question.is_empty() {
            let id = single_line(&approval.id);
            self.screen
                .out
                .err_line(sanitized!("Your answer ({})? [a text or number, nothing: it decides, later]", id));
            return self.read_reply();
        }
        let what = sanitized!("{}.{}", single_line(&approval.plugin), single_line(&approval.action));
        self.screen.out.err_line(sanitized!(
            "Run {}, exactly as shown ({})? [y/N/session/always/no REASON/later]",
            what,
            single_line(&approval.id)
        ));
        self.read_reply()
    }

    fn read_reply(&mut self) -> Option<TurnEnd> {
        match LineInput::start() {
            Ok(typed) => self.input = Some(typed),
            Err(error) => return Some(TurnEnd::Failed(Failure::failed(format!("cannot ask: {error}")))),
        }
        None
    }

    fn handle_reply(&mut self, line: std::io::Result<Option<String>>) -> Option<TurnEnd> {
        self.input = None;
        if self.form.is_some() {
            return self.handle_form_line(line);
        }
        if self.questions.front().is_some_and(|asked| !asked.question.is_empty()) {
            return self.handle_answer(line);
        }
        let reply = match line {
            Ok(Some(line)) => ApprovalReply::parse(&line),
            // A closed or unreadable input decides nothing.
            Ok(None) | Err(_) => ApprovalReply::Later,
        };
        let approval = match reply {
            ApprovalReply::Unclear => {
                self.screen.out.err_line(
                    "y runs it; session and always run it, and the same call without asking from then on;",
                );
                self.screen
                    .out
                    .err_line("n denies it, `no REASON` tells the model why, later decides nothing");
                return self.prompt();
            }
            _ => self.questions.pop_front()?,
        };
        let (approve, reason, scope) = match reply {
            ApprovalReply::Approve => (true, String::new(), ""),
            ApprovalReply::ApproveSession => (true, String::new(), "session"),
            ApprovalReply::ApproveAlways => (true, String::new(), "always"),
            ApprovalReply::Deny(reason) => (false, reason, ""),
            ApprovalReply::Later | ApprovalReply::Unclear => {
                return self.postpone(approval);
            }
        };
        let DecideRequest { answer, patterns, .. } = DecideRequest::default();
        let Approval { id, digest, .. } = approval;
        self.decide(DecideRequest { id, approve, digest, reason, scope: scope.to_owned(), answer, patterns })
    }

    /// Handles the reply to a question of the model.
    fn handle_answer(&mut self, line: std::io::Result<Option<String>>) -> Option<TurnEnd> {
        let approval = self.questions.pop_front()?;
        let reply = match line {
            Ok(Some(line)) => QuestionReply::parse(&line, &approval.choices),
            Ok(None) | Err(_) => QuestionReply::Later,
        };
        let id = approval.id.clone();
        match reply {
            QuestionReply::Answer(answer) => {
                self.decide(DecideRequest { id, approve: true, answer, ..DecideRequest::default() })
            }
            QuestionReply::Decline => self.decide(DecideRequest { id, ..DecideRequest::default() }),
            QuestionReply::Later => self.postpone(approval),
        }
    }

    /// Handles a line of the reply to a plugin's question.
    fn handle_form_line(&mut self, line: std::io::Result<Option<String>>) -> Option<TurnEnd> {
        let line = line.ok().flatten();
        let line = line.as_deref().map(|line| line.trim_end_matches(['\n', '\r']));
        let form = self.form.as_mut()?;
        let step = match line {
            Some("later") if !form.has_begun() => FormStep::Cancel,
            line => form.enter(line),
        };
        if let FormStep::Ask(lines) = step {
            lines.into_iter().for_each(|line| self.screen.out.err_line(line));
            return self.read_reply();
        }
        self.form = None;
        let approval = self.questions.pop_front()?;
        let id = approval.id.clone();
        match step {
            FormStep::Accept(answer) => {
                self.decide(DecideRequest { id, approve: true, answer, ..DecideRequest::default() })
            }
            FormStep::Decline => self.decide(DecideRequest { id, ..DecideRequest::default() }),
            FormStep::GiveUp => {
                self.screen.out.err_line("Too many wrong answers: the question is declined.");
                self.decide(DecideRequest { id, ..DecideRequest::default() })
            }
            // A closed input decides nothing.
            FormStep::Cancel | FormStep::Ask(_) => self.postpone(approval),
        }
    }

    /// Leaves a decision for later. Postponing one question postpones all of them.
    fn postpone(&mut self, approval: Approval) -> Option<TurnEnd> {
        self.screen.out.err_line(decide_hint(&approval));
        for left in std::mem::take(&mut self.questions) {
            self.show(&chunk::Kind::Approval(left.clone()));
            self.screen.out.err_line(decide_hint(&left));
        }
        (!self.options.waits_for_approvals).then(|| TurnEnd::Parked(Box::new(approval)))
    }

    fn decide(&mut self, request: DecideRequest) -> Option<TurnEnd> {
        let mut agent = self.agent.grpc();
        self.decisions.spawn(async move { agent.decide(request).await.map(tonic::Response::into_inner) });
        self.prompt_next()
    }

    /// Handles the agent's response to a decision; the turn continues either way.
    fn handle_decision(&mut self, decided: DecisionResult) -> Option<TurnEnd> {
        match decided {
            Ok(Err(status)) => {
                let why = sanitized!("talon: not decided: {}", single_line(status.message()));
                self.screen.out.err_line(Line::from(why));
            }
            Ok(Ok(approval)) if !approval.rule_id.is_empty() => {
                self.screen.out.err_line(rule_line(&approval));
            }
            Ok(Ok(_)) | Err(_) => {}
        }
        None
    }

    fn forget_questions(&mut self) {
        (self.input, self.form) = (None, None);
        self.questions.clear();
    }

    fn into_outcome(mut self, end: TurnEnd) -> TurnOutcome {
        self.forget_questions();
        self.screen.show(self.renderer.finish());
        self.screen.stop_spinner();
        self.close_area();
        TurnOutcome { record: self.record, stop: self.stop.map(|(why, _)| why), end, typed: self.typed }
    }
}
