//! What a turn asks the person, one question after the other, and what becomes of the replies.

use talon_proto::agent::{Approval, DecideRequest, Plan, chunk};
use talon_sanitize::sanitized;

use super::approval::{decide_hint, is_pending, is_short, rule_line};
use super::line_input::{self, LineInput};
use super::outcome::TurnEnd;
use super::plan_question::{self, PlanReply};
use super::reply::{ApprovalReply, QuestionReply};
use super::turn_follower::{Response, ResponseResult, TurnFollower};
use crate::client::agent::formatting::single_line;
use crate::client::agent::plan::{PlanEdit, set_request};
use crate::client::form_filler::{FormFiller, FormStep};
use crate::failure::Failure;
use crate::line::Line;

impl TurnFollower<'_> {
    /// A call starts waiting for an approval, or stops waiting.
    pub(super) fn handle_approval(&mut self, approval: Approval) -> Option<TurnEnd> {
        let known = self.questions.iter().position(|asked| asked.id == approval.id);
        if !is_pending(&approval) {
            if let Some(at) = known {
                self.questions.remove(at);
                if at == 0 {
                    (self.input, self.form, self.is_deciding_plan) = (None, None, false);
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

    /// Takes over a changed plan, and asks about it anew if it is what is asked about.
    pub(super) fn handle_plan(&mut self, plan: &Plan) -> Option<TurnEnd> {
        let about_it = self.questions.iter_mut().filter_map(|asked| asked.plan.as_mut());
        about_it.for_each(|shown| shown.clone_from(plan));
        if self.is_deciding_plan || self.questions.front()?.plan.is_none() {
            return None;
        }
        self.input = None;
        self.prompt_next()
    }

    /// Shows the first question that is left, and asks it.
    fn prompt_next(&mut self) -> Option<TurnEnd> {
        let next = chunk::Kind::Approval(self.questions.front()?.clone());
        self.show(&next);
        self.prompt()
    }

    /// Asks the first question, which was shown.
    fn prompt(&mut self) -> Option<TurnEnd> {
        self.row.close();
        self.screen.stop_spinner();
        let approval = self.questions.front()?;
        line_input::discard_pending_input();
        if approval.plan.is_some() {
            self.screen.out.err_line(plan_question::PROMPT);
            return self.read_reply();
        }
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

    pub(super) fn handle_reply(&mut self, line: std::io::Result<Option<String>>) -> Option<TurnEnd> {
        self.input = None;
        if self.form.is_some() {
            return self.handle_form_line(line);
        }
        if self.questions.front().is_some_and(|asked| asked.plan.is_some()) {
            return self.handle_plan_reply(line);
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
        let Approval { id, digest, .. } = approval;
        let scope = scope.to_owned();
        self.decide(DecideRequest { id, approve, digest, reason, scope, ..DecideRequest::default() })
    }

    /// Handles the reply to the question whether a plan is carried out.
    fn handle_plan_reply(&mut self, line: std::io::Result<Option<String>>) -> Option<TurnEnd> {
        let reply = match line {
            Ok(Some(line)) => PlanReply::parse(&line),
            // A closed or unreadable input decides nothing.
            Ok(None) | Err(_) => PlanReply::Later,
        };
        let (approve, reason) = match reply {
            PlanReply::Approve => (true, String::new()),
            PlanReply::Deny(reason) => (false, reason),
            PlanReply::Edit(edit) => return self.edit_plan(&edit),
            PlanReply::Unclear => {
                plan_question::help().into_iter().for_each(|line| self.screen.out.err_line(line));
                return self.prompt();
            }
            PlanReply::Later => {
                let approval = self.questions.pop_front()?;
                return self.postpone(approval);
            }
        };
        // It stays the first question until the agent agrees: somebody else may have changed the plan.
        self.is_deciding_plan = true;
        let asked = self.questions.front()?;
        let plan_revision = asked.plan.as_ref().map_or(0, |plan| plan.revision);
        let id = asked.id.clone();
        self.send(DecideRequest { id, approve, reason, plan_revision, ..DecideRequest::default() });
        None
    }

    /// Changes the plan that is asked about. It comes back as a chunk, and is asked about then.
    fn edit_plan(&mut self, edit: &PlanEdit) -> Option<TurnEnd> {
        let asked = self.questions.front()?;
        match set_request(&asked.session_id, asked.plan.as_ref()?, edit) {
            Ok(request) => {
                let mut agent = self.agent.grpc();
                self.requests
                    .spawn(async move { agent.set_plan(request).await.map(|_| Response::PlanChanged) });
                None
            }
            Err(why) => {
                self.screen.out.err_line(single_line(&why));
                self.prompt()
            }
        }
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
        self.send(request);
        self.prompt_next()
    }

    fn send(&mut self, request: DecideRequest) {
        let mut agent = self.agent.grpc();
        self.requests.spawn(async move {
            let decided = agent.decide(request).await?;
            Ok(Response::Decided(Box::new(decided.into_inner())))
        });
    }

    /// Handles the agent's response to a decision; the turn continues either way.
    pub(super) fn handle_response(&mut self, answered: ResponseResult) -> Option<TurnEnd> {
        match answered {
            Ok(Err(status)) => {
                let why = sanitized!("talon: not decided: {}", single_line(status.message()));
                self.screen.out.err_line(Line::from(why));
                self.is_deciding_plan = false;
                // The plan is still asked about, as it is now.
                let asks =
                    self.input.is_none() && self.questions.front().is_some_and(|one| one.plan.is_some());
                if asks { self.prompt_next() } else { None }
            }
            Ok(Ok(Response::Decided(approval))) => {
                if !approval.rule_id.is_empty() {
                    self.screen.out.err_line(rule_line(&approval));
                }
                self.questions.pop_front_if(|asked| asked.id == approval.id)?;
                self.is_deciding_plan = false;
                self.prompt_next()
            }
            Ok(Ok(Response::PlanChanged)) | Err(_) => None,
        }
    }

    pub(super) fn forget_questions(&mut self) {
        (self.input, self.form) = (None, None);
        self.questions.clear();
    }
}
