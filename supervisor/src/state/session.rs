//! One process of the service: told what to open, then given what it should have, until it ends.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use talon_control::{Control, ControlError};
use talon_proto::state::{
    AttachOperator, Availability, DetachPlugin, FromState, Ready, Refused, ToState, from_state, to_state,
};

use tokio_util::sync::CancellationToken;

use super::keeper::Inner;
use super::status::{KeeperState, KeeperStatus, Passing, said};

type Line = Control<ToState, FromState>;

/// What the service may say in a session, apart from its being ready. It says something when its database stops or begins
/// to answer: a thousand times is more than any server comes and goes in a supervisor's life, and one that says more
/// is not what it should be. Its session is ended, and with that it.
const MAX_SAID: u32 = 1000;

/// From its start to its end, or ours. Our end of the control socket is dropped with this, and the process ends by that.
pub(super) async fn run(inner: Arc<Inner>, control: OwnedFd, ends: CancellationToken) {
    let ended = async {
        let line = Line::new(control).map_err(ControlError::from)?;
        talk(&inner, &line).await
    };
    match ends.run_until_cancelled(ended).await {
        // Its exit says the rest.
        None | Some(Ok(())) => {}
        Some(Err(error)) => tracing::error!(%error, "the control socket of the state service is closed"),
    }
}

async fn talk(inner: &Inner, line: &Line) -> Result<(), ControlError> {
    line.send(&message(to_state::What::Open(inner.open.clone())), None).await?;
    let mut given = None;
    let mut said = 0;
    loop {
        tokio::select! {
            packet = line.receive() => match packet? {
                None => return Ok(()),
                Some(_) if said > MAX_SAID => {
                    tracing::error!("the state service says too much; it is ended");
                    return Ok(());
                }
                Some(packet) => {
                    said += 1;
                    // What was given stays given, however often it says that it is ready.
                    if hear(inner, packet.message) && given.is_none() {
                        given = Some(BTreeSet::new());
                    }
                }
            },
            () = inner.changed.notified() => {}
        }
        if let Some(given) = &mut given {
            give(inner, line, given).await?;
        }
    }
}

/// Takes in what the service says; tells whether it is ready to be given sockets.
fn hear(inner: &Inner, message: FromState) -> bool {
    match message.what {
        Some(from_state::What::Ready(Ready { engine, place, problem, .. })) => {
            tracing::info!(engine = %said(&engine), place = %said(&place), "state is kept");
            inner.note(|status| {
                status.engine = said(&engine).into_string();
                status.place = said(&place).into_string();
                status.refused = None;
                answers(status, &problem);
            });
            true
        }
        Some(from_state::What::Refused(Refused { message, retryable })) => {
            let problem = said(&message);
            tracing::error!(%problem, "the state service cannot open its database");
            inner.note(|status| {
                status.refused = Some(if retryable { Passing::Maybe } else { Passing::No });
                status.problem = Some(problem);
            });
            false
        }
        Some(from_state::What::Availability(Availability { problem })) => {
            if problem.is_empty() {
                tracing::info!("the state service's database answers again");
            } else {
                tracing::warn!(problem = %said(&problem), "the state service's database does not answer");
            }
            inner.note(|status| answers(status, &problem));
            false
        }
        // A newer service may say more than this supervisor knows.
        None => false,
    }
}

fn answers(status: &mut KeeperStatus, problem: &str) {
    let well = problem.is_empty();
    status.state = if well { KeeperState::Serving } else { KeeperState::Unavailable };
    status.problem = (!well).then(|| said(problem));
}

/// Hands over what is wanted and was not given yet, and takes back what is not wanted any more.
async fn give(inner: &Inner, line: &Line, given: &mut BTreeSet<u64>) -> Result<(), ControlError> {
    let wanted = inner.sockets();
    for (id, socket) in &wanted {
        if given.insert(*id) {
            let attach = message(to_state::What::AttachPlugin(socket.about.clone()));
            line.send(&attach, Some(socket.listener.as_fd())).await?;
        }
    }
    let gone: Vec<u64> = given.iter().copied().filter(|id| !wanted.contains_key(id)).collect();
    for id in gone {
        given.remove(&id);
        line.send(&message(to_state::What::DetachPlugin(DetachPlugin { id })), None).await?;
    }
    for operator in inner.take_operators() {
        let attach = message(to_state::What::AttachOperator(AttachOperator {}));
        line.send(&attach, Some(operator.as_fd())).await?;
    }
    Ok(())
}

fn message(what: to_state::What) -> ToState {
    ToState { what: Some(what) }
}
