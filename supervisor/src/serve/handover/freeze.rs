//! Freezes this supervisor so that another one can take over, and thaws it if none does.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use talon_control::fd_bundle::Packer;
use talon_plugin::{EventKind, NewEvent};
use tokio::time::Instant;

use super::document::{HandoverContents, PackError};
use crate::serve::running::RunningSupervisor;
use crate::serve::{ServeFailure, state_service};
use crate::socket::{FileIdentity, HostSocket, SocketFile};

impl RunningSupervisor {
    /// Accepts no more calls and closes what only one supervisor may have open. Calls in flight may finish
    /// within the grace period. Clients that connect from now on wait for the next server, in this supervisor
    /// or another. May be called again, and is cancel safe.
    pub(super) async fn freeze(&mut self, grace: Duration) {
        let began = Instant::now();
        self.events.emit(NewEvent::new(EventKind::Supervisor, "handing over"));
        self.liveness.send_replace(None);
        self.closing.hand_over();
        // Concurrently, since the agent's calls are among those that may finish.
        let served = async {
            match self.server.take() {
                Some(server) => server.close(grace).await,
                None => true,
            }
        };
        let services = async {
            self.gateway.close(grace).await;
            self.agent.close(grace).await;
        };
        let (all_answered, ()) = tokio::join!(served, services);
        if !all_answered {
            tracing::warn!("not all requests were answered within the grace period; they are cut off");
        }
        let left = self.dispatcher.drain(grace.saturating_sub(began.elapsed())).await;
        if left > 0 {
            tracing::warn!(
                calls = left,
                "calls are still in flight after the grace period; they are cut off"
            );
        }
        if let Some(service) = self.state_service.take() {
            service.stop().await;
        }
        self.admin.close().await;
        self.recorder.close().await;
        self.audit.close().await;
    }

    /// Packs everything into one bundle, without changing anything.
    pub(super) async fn pack(&self) -> Result<OwnedFd, PackError> {
        let mut packer = Packer::default();
        let processes = self.registry.hand_over(&mut packer).await?;
        let contents = HandoverContents {
            host: self.socket.listener.as_fd().try_clone_to_owned().map_err(PackError::Host)?,
            file: self.socket.file.as_ref().map(SocketFile::identity),
            agent: self.agent.socket().map(duplicate).transpose().map_err(PackError::Agent)?,
            gateway: self.gateway.listener().map_err(PackError::Gateway)?,
            quarantined: self.dispatcher.quarantined(),
            processes,
        };
        contents.seal(packer)
    }

    /// Serves again, if it was frozen.
    pub(in crate::serve) async fn thaw(&mut self) -> Result<(), ServeFailure> {
        if self.server.is_some() {
            return Ok(());
        }
        self.recorder.resume().await;
        self.registry.resume();
        if let Some(keeper) = &self.state {
            keeper.reopen();
            let config = self.config();
            let uids = config.talon_plugin_settings().uid_range;
            self.state_service =
                Some(state_service::run(&config, uids, &self.registry, keeper, self.service_mode)?);
        }
        self.dispatcher.resume();
        self.open().await?;
        self.events.emit(NewEvent::new(EventKind::Supervisor, "the handover failed; serving again"));
        Ok(())
    }

    /// Releases the processes, which belong to another supervisor now, and leaves every file in place.
    pub(in crate::serve) async fn release(self) {
        self.registry.release().await;
        if let Some(file) = self.socket.file {
            file.retain();
        }
        self.agent.release();
    }
}

fn duplicate(socket: &HostSocket) -> io::Result<(OwnedFd, Option<FileIdentity>)> {
    let listener = socket.listener.as_fd().try_clone_to_owned()?;
    Ok((listener, socket.file.as_ref().map(SocketFile::identity)))
}
