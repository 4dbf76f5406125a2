//! The answers of jobs as events: to a notification entry.

use async_trait::async_trait;
use talon_extensions::EventKind;
use talon_store::Occurrence;

use super::ask::sender;
use super::run_id::run_id;
use super::target::{AnswerSink, RunAnswer};
use crate::notify::{NewEvent, Notifier};

#[async_trait]
impl AnswerSink for Notifier {
    async fn deliver(&self, to: &str, occurrence: &Occurrence, answer: &RunAnswer) -> Result<(), String> {
        let event = event(occurrence, answer);
        self.notify_entry(to, event).await.map_err(|error| talon_error_chain::error_chain(&error))
    }
}

/// The event of a run's answer, the same whenever it is made.
fn event(occurrence: &Occurrence, answer: &RunAnswer) -> NewEvent {
    let (run, job) = (run_id(occurrence).to_string(), &occurrence.job);
    let first = answer.text.lines().find(|line| !line.trim().is_empty());
    let summary = match first {
        Some(line) => format!("{job}: {}", line.trim()),
        None => format!("{job} ran, and has no text to say"),
    };
    NewEvent::new(EventKind::Answer, format!("answer {run}"), summary)
        .details(answer.text.clone())
        .field("job", job)
        .field("run", run)
        .field("session", answer.session.clone().unwrap_or_default())
        .field("sender", answer.session.as_ref().map(|_| sender(job)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::fixture::occurrence;

    // Promises: EXT-92
    #[test]
    fn an_answer_is_one_event_however_often_it_is_told() {
        let run = occurrence("digest", 1_800_000_000_000);
        let answer = RunAnswer {
            text: "\n Three changes.\nOne".to_owned(),
            session: Some("01S".to_owned()),
            kept: None,
        };
        let told = event(&run, &answer);
        assert_eq!((told.summary.as_str(), told.details.as_str()), ("digest: Three changes.", &*answer.text));
        assert_eq!((&*told.fields["sender"], &*told.fields["session"]), ("schedule:digest", "01S"));
        assert_eq!(event(&run, &answer), told);
        assert_ne!(event(&occurrence("digest", 1_800_000_060_000), &answer).id, told.id);
        let silent = event(&run, &RunAnswer::default());
        assert!(silent.summary.contains("no text") && !silent.fields.contains_key("session"));
    }
}
