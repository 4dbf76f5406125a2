//! Which scripts plugins run, recorded in the audit log: a record for each version that is loaded or refused, with the SHA-256 of the
//! source, and for each script that is gone. The supervisor reads no script: the plugin says so.

use std::sync::Arc;

use talon_plugin::{Event, EventKind};
use talon_sanitize::Sanitized;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::task::AbortOnDropHandle;

use crate::audit::Audit;

/// The operations, as the log names them.
const LOAD: &str = "load_script";
const REMOVE: &str = "remove_script";

/// Records until the handle is dropped.
pub(crate) fn record(audit: &Audit, mut events: Receiver<Arc<Event>>) -> AbortOnDropHandle<()> {
    let audit = audit.clone();
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            match events.recv().await {
                Ok(event) => record_event(&audit, &event),
                Err(RecvError::Lagged(count)) => {
                    let why = format!("{count} events came too fast; `talon status` says what runs");
                    audit.supervisor_operation(LOAD, "", Err(&why));
                }
                Err(RecvError::Closed) => return,
            }
        }
    }))
}

fn record_event(audit: &Audit, event: &Event) {
    let field = |key: &str| event.fields.get(key).map(Sanitized::as_str).unwrap_or_default();
    let plugin = event.plugin.as_ref().map(ToString::to_string).unwrap_or_default();
    let script = format!("{plugin}/{}", field("script"));
    match event.kind {
        EventKind::ScriptLoaded => {
            audit.supervisor_operation(LOAD, &format!("{script} sha256:{}", field("sha256")), Ok(()));
        }
        EventKind::ScriptRefused => audit.supervisor_operation(LOAD, &script, Err(field("reason"))),
        EventKind::ScriptRemoved => audit.supervisor_operation(REMOVE, &script, Ok(())),
        _ => {}
    }
}
