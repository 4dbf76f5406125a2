//! Events of plugins as observations: what a build server or a calendar says goes through the same policy.

use std::sync::Arc;

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use talon_agent_settings::ShadowSource;
use talon_extensions::EventKind;
use talon_extensions::contract::Event;
use talon_guard::Raw;
use talon_proto::agent::{Observation, ObserveRequest};
use talon_redact::redact;

use super::error::ShadowError;
use super::observation::{MAX_EXCERPT_BYTES, MAX_LINE_BYTES, MAX_OBSERVATIONS, MAX_TRIGGER_BYTES, SOURCE};
use super::shadow_loop::ShadowLoop;
use crate::notify::EventObserver;

/// What the trigger of such an observation begins with; the plugin's name follows.
const TRIGGER: &str = "source_";

#[async_trait]
impl EventObserver for ShadowLoop {
    /// Told of events before they are acknowledged, so that some come again; those are known by their ids then.
    async fn observe(self: Arc<Self>, events: &[Event]) -> Result<(), talon_store::Error> {
        let keys = self.keys();
        if !keys.enabled {
            return Ok(());
        }
        for source in &keys.sources {
            let seen: Vec<Observation> =
                events.iter().filter_map(|event| observation(source, event)).collect();
            for observations in seen.chunks(MAX_OBSERVATIONS) {
                let redacted =
                    observations.iter().fold(0, |sum: u32, one| sum.saturating_add(one.redactions));
                let request =
                    ObserveRequest { observations: observations.to_vec(), ..ObserveRequest::default() };
                match ShadowLoop::observe(&self, &source.sender, request).await {
                    Err(ShadowError::Store(error)) => return Err(error),
                    Err(error) => {
                        tracing::warn!(target: "agent", %error, "events of a plugin are no observations")
                    }
                    Ok(_) => self.metrics.count_shadow_redactions(redacted),
                }
            }
        }
        Ok(())
    }
}

/// What an event of this source means, without secrets; `None` for another one's.
fn observation(source: &ShadowSource, event: &Event) -> Option<Observation> {
    let plugin = source.action.split('.').next().unwrap_or_default();
    let field = |name: &str| event.fields.get(name).map(String::as_str).unwrap_or_default();
    let topic = field("topic");
    let is_of = event.kind == EventKind::SourceEvent && field("plugin") == plugin;
    let is_wanted = source.topics.is_empty() || source.topics.iter().any(|wanted| wanted == topic);
    if !is_of || !is_wanted {
        return None;
    }
    let mut redactions = 0_u32;
    // Secrets are looked for before a text is cut: of one that is cut no rule knows what is left.
    let mut clean = |text: &str| {
        let redacted = redact(text);
        redactions = redactions.saturating_add(redacted.count);
        redacted.text
    };
    let (subject, finding, mut excerpt) = (clean(topic), clean(&event.summary), clean(&event.details));
    let line = |text: String| Raw::from(text).line_within(MAX_LINE_BYTES - '…'.len_utf8()).into_string();
    let end = excerpt.floor_char_boundary(MAX_EXCERPT_BYTES);
    let left_out = (excerpt.len() - end) as u64;
    excerpt.truncate(end);
    let word = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '_' };
    let mut trigger: String = TRIGGER.chars().chain(plugin.chars().map(word)).collect();
    trigger.truncate(MAX_TRIGGER_BYTES);
    Some(Observation {
        id: hex::encode(&Sha256::digest(&event.id)[..16]),
        kind: SOURCE.to_owned(),
        trigger,
        subject: line(subject),
        finding: line(finding),
        excerpt,
        excerpt_left_out_bytes: left_out,
        occurred_unix_ms: event.time_unix_ms.unsigned_abs(),
        redactions,
        ..Observation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow::observation::problem;

    fn event(plugin: &str, topic: &str, details: &str) -> Event {
        let fields = [("plugin", plugin), ("topic", topic)];
        Event {
            id: "host 7 1".to_owned(),
            kind: EventKind::SourceEvent,
            severity: EventKind::SourceEvent.severity(),
            summary: "The build of main failed\nand more".to_owned(),
            details: details.to_owned(),
            time_unix_ms: 5,
            fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            count: 1,
        }
    }

    // Promises: SHADOW-32
    #[test]
    fn an_event_of_a_named_source_is_an_observation_within_its_bounds() {
        let source = ShadowSource {
            action: "build-server.watch".to_owned(),
            sender: "ada".to_owned(),
            topics: vec!["build.failed".to_owned()],
        };
        let long = "é".repeat(3000);
        let seen = observation(&source, &event("build-server", "build.failed", &long)).expect("it is of it");
        assert_eq!(problem(&seen), None);
        assert_eq!((seen.trigger.as_str(), seen.subject.as_str()), ("source_build_server", "build.failed"));
        assert_eq!(seen.excerpt.len() as u64 + seen.excerpt_left_out_bytes, long.len() as u64);
        let wordy = Event { summary: "é".repeat(3000), ..event("build-server", "build.failed", "") };
        let seen_wordy = observation(&source, &wordy).expect("it is of it");
        assert!(problem(&seen_wordy).is_none() && seen_wordy.finding.ends_with('…'), "{seen_wordy:?}");
        let again = observation(&source, &event("build-server", "build.failed", "")).expect("it is of it");
        assert_eq!(again.id, seen.id, "the same event is the same observation");
        assert_eq!(observation(&source, &event("build-server", "build.passed", "")), None);
        assert_eq!(observation(&source, &event("other", "build.failed", "")), None);
        let all = ShadowSource { topics: Vec::new(), ..source };
        assert!(observation(&all, &event("build-server", "build.passed", "")).is_some());
    }

    // Promises: SHADOW-34
    #[test]
    fn a_secret_of_an_event_is_replaced_wherever_its_texts_are_cut() {
        let source = ShadowSource {
            action: "build-server.watch".to_owned(),
            sender: "ada".to_owned(),
            topics: Vec::new(),
        };
        let token = format!("ghp_{}", "a1B2".repeat(9));
        for before in 0..=token.len() {
            let details = format!("{} {token} end", "x".repeat(MAX_EXCERPT_BYTES - 1 - before));
            let line = format!("{} {token} end", "x".repeat(MAX_LINE_BYTES - 4 - before));
            let said = Event { summary: line.clone(), ..event("build-server", &line, &details) };
            let seen = observation(&source, &said).expect("it is of it");
            assert_eq!((problem(&seen), seen.redactions), (None, 3));
            let kept = format!("{} {} {}", seen.subject, seen.finding, seen.excerpt);
            assert!(!kept.contains("ghp"), "{before}: {kept}");
        }
    }
}
