//! The session of one completion, which goes with it: the client keeps the conversation.

use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{AskRequest, CancelRequest, DeleteSessionRequest, Done};
use tonic::Status;

use crate::api::sessions::turn::{Turn, TurnEnd, failed};
use crate::app::App;
use crate::identity::Caller;
use crate::problem::{Problem, ProblemKind};

/// A turn in a session of its own.
pub(super) struct StatelessTurn {
    turn: Turn,
    // Dropped after the turn: an abandoned one is cancelled first.
    _session: OwnSession,
}

struct OwnSession {
    app: App,
    caller: Caller,
    id: String,
}

impl StatelessTurn {
    pub(super) async fn begin(app: &App, caller: &Caller, request: AskRequest) -> Result<Self, Problem> {
        if caller.session.is_some() {
            let detail = "this credential is for one session: /v1 needs one without (`talon token create`)";
            return Err(Problem::new(ProblemKind::Forbidden, detail));
        }
        let turn = Turn::begin(app, caller, request).await?;
        let id = turn.started.session_id.clone();
        Ok(Self { turn, _session: OwnSession { app: app.clone(), caller: caller.clone(), id } })
    }

    pub(super) async fn next(&mut self) -> Result<Option<Kind>, Status> {
        self.turn.next().await
    }

    /// Its answer.
    pub(super) async fn end(&mut self) -> Result<Done, Problem> {
        match self.turn.end().await? {
            TurnEnd::Done(done) => Ok(done),
            TurnEnd::Failed(error) => Err(failed(&error)),
        }
    }
}

impl Drop for OwnSession {
    fn drop(&mut self) {
        let mut agent = self.app.backends.agent(&self.caller);
        let session_id = std::mem::take(&mut self.id);
        tokio::spawn(async move {
            // Nothing to end if the turn has ended; one that was abandoned ends before its session goes.
            let _ended = agent.cancel(CancelRequest { session_id: session_id.clone() }).await;
            if let Err(error) = agent.delete_session(DeleteSessionRequest { session_id }).await {
                tracing::warn!(%error, "the session of a completion stays");
            }
        });
    }
}
