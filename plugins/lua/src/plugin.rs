//! The plugin, as its host sees it.

use std::process::ExitCode;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_sdk::{Notifier, Plugin};

use crate::actions;
use crate::service::Service;
use crate::settings::Settings;

/// Serves until the host ends it.
pub(crate) fn serve() -> ExitCode {
    let (notifier, current) = (Notifier::new(), Arc::new(Mutex::new(None::<Arc<Service>>)));
    let (told, offered) = (notifier.clone(), Arc::clone(&current));
    Plugin::new("lua")
        .description("Runs Lua scripts as filters, hooks, notification sinks and scheduled tasks.")
        .init(move |settings: Settings| {
            let (notifier, current) = (told.clone(), Arc::clone(&current));
            async move {
                let service = Service::start(settings, notifier).await?;
                *current.lock() = Some(Arc::clone(&service));
                Ok(service)
            }
        })
        .refresh(move || {
            let service = offered.lock().clone();
            async move { Ok(service.map(|service| actions::tools(&service)).unwrap_or_default()) }
        })
        .notifier(notifier)
        .serve()
}
