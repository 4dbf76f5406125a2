//! A turn of no session: the client keeps the conversation.

use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{CompleteRequest, CompletionRefusal, Done};
use tonic::{Code, Status};

use crate::app::App;
use crate::identity::Caller;
use crate::problem::{Problem, ProblemKind};
use crate::turn::{Turn, TurnEnd, failed};

/// A turn that has begun. Letting go of it cancels it.
pub(super) struct CompletionTurn(Turn);

impl CompletionTurn {
    pub(super) async fn begin(app: &App, caller: &Caller, request: CompleteRequest) -> Result<Self, Problem> {
        for_all_sessions(caller)?;
        Turn::complete(app, caller, request).await.map(Self).map_err(|status| refused(&status))
    }

    pub(super) async fn next(&mut self) -> Result<Option<Kind>, Status> {
        self.0.next().await
    }

    /// Its answer.
    pub(super) async fn end(&mut self) -> Result<Done, Problem> {
        match self.0.end().await? {
            TurnEnd::Done(done) => Ok(done),
            TurnEnd::Failed(error) => Err(failed(&error)),
        }
    }
}

/// Refuses a credential that is for one session.
pub(super) fn for_all_sessions(caller: &Caller) -> Result<(), Problem> {
    if caller.session.is_none() {
        return Ok(());
    }
    let detail = "this credential is for one session: /v1 needs one without (`talon token create`)";
    Err(Problem::new(ProblemKind::Forbidden, detail))
}

/// What a refusal of the agent becomes: the fields have the client's names.
pub(super) fn refused(status: &Status) -> Problem {
    let Some(refusal) = CompletionRefusal::of(status) else {
        // A model that there is not is named in the request, as any other wrong value is.
        if status.code() == Code::NotFound && status.message().contains("model") {
            return Problem::new(ProblemKind::NotFound, status.message())
                .with_fields(["model"])
                .with_code("model_not_found");
        }
        return status.clone().into();
    };
    let problem = Problem::new(ProblemKind::BadRequest, status.message());
    match refusal.reason.as_str() {
        "turn_expired" => problem.with_code("turn_expired"),
        _ if refusal.field.is_empty() => problem,
        _ => problem.with_fields([refusal.field]),
    }
}
