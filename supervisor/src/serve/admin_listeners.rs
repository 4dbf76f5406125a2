//! The listeners for monitoring, while this supervisor serves: `admin.sock` exists once, so one supervisor
//! closes it before the next binds it.

use std::os::fd::{AsFd, OwnedFd};

use talon_plugin::Registry;

use super::inherited::AdminListener;
use super::{ServeFailure, peers};
use crate::admin::{self, Admin, Listener, Sources};
use crate::config::Config;

/// The listeners for metrics and health, open or closed.
pub(super) struct AdminListeners {
    inherited: Vec<AdminListener>,
    sources: Sources,
    open: Option<Admin>,
}

impl AdminListeners {
    /// Closed. `inherited` listeners are served besides `admin.sock`, with a new duplicate each time.
    pub(super) fn new(inherited: Vec<AdminListener>, sources: Sources) -> Self {
        Self { inherited, sources, open: None }
    }

    pub(super) fn open(&mut self, config: &Config, registry: &Registry) -> Result<(), ServeFailure> {
        let mut listeners = admin::listeners(config)?;
        for socket in &self.inherited {
            let copy = match socket {
                AdminListener::Unix(listener) => copy(listener),
                AdminListener::Tcp(listener) => copy(listener),
            };
            listeners.push(Listener::inherited(copy?)?);
        }
        let admit = peers::admission_policy(config.admin_gid(), registry.clone());
        self.open = Some(admin::start(listeners, admit, self.sources.clone()));
        Ok(())
    }

    pub(super) async fn close(&mut self) {
        if let Some(admin) = self.open.take() {
            admin.stop().await;
        }
    }
}

fn copy(listener: &impl AsFd) -> Result<OwnedFd, admin::ListenerError> {
    Ok(listener.as_fd().try_clone_to_owned()?)
}
