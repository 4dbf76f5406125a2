//! What every plugin of a chat service does when it starts.

use std::time::{SystemTime, UNIX_EPOCH};

use talon_sdk::channel::CLOSED_TOPIC;
use talon_sdk::{EventSource, SourceEvent, ToolError, tracing};

use crate::target::Target;
use crate::trust::Trust;

/// Checks where the service is (the setting `api`), and asks the agent to open the channel: what the plugin needs to listen comes with that
/// call. Gives what this machine trusts; `None` if that is nothing, so that the service cannot be reached over TLS.
///
/// # Errors
/// `api` is no URL that may be used.
pub fn start_channel(api: &str, allow_http: bool, events: &EventSource) -> Result<Option<Trust>, ToolError> {
    Target::parse(api, allow_http).map_err(|error| ToolError::new(format!("config: api: {error}")))?;
    let trust = Trust::load();
    if let Err(error) = &trust {
        tracing::warn!("https cannot be used: {error}");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let closed = SourceEvent::new(format!("closed/{now}"), CLOSED_TOPIC, "The channel's plugin has started");
    if let Err(error) = events.tell(closed) {
        tracing::warn!("{error}");
    }
    Ok(trust.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_asks_to_be_opened_unless_its_service_is_nowhere() {
        let events = EventSource::new();
        for wrong in ["", "ftp://example.org", "http://example.org"] {
            let refused = start_channel(wrong, false, &events).err().map(|error| error.to_string());
            assert!(refused.is_some_and(|why| why.starts_with("config: api: ")), "{wrong}");
        }
        assert_eq!(events.waiting(), 0);
        assert!(start_channel("http://127.0.0.1:1/api", false, &events).is_ok());
        assert_eq!(events.waiting(), 1);
    }
}
