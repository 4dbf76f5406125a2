//! Finished occurrences of jobs as YAML: a map of `JOB PLANNED-TIME` and of what the agent stores of each, as
//! JSON. In another store they keep these times from running again.

use talon_child::yaml::YamlWriter;
use talon_store::{Occurrence, OccurrenceState, Timestamp};

use super::entries::{self, SeenKeys};
use super::node::{Node, Problem};

pub(super) fn is_finished(occurrence: &Occurrence) -> bool {
    !matches!(occurrence.state, OccurrenceState::Planned | OccurrenceState::Running)
}

pub(super) fn write(yaml: &mut YamlWriter, occurrence: Occurrence) {
    let occurrence = without_claim(occurrence);
    let json = serde_json::to_vec(&occurrence).expect("an occurrence has texts and numbers only");
    yaml.bytes(&key(&occurrence), &json);
}

/// Reads an occurrence. Returns its name for reports, and the occurrence.
pub(super) fn read(key: Node, value: Node, seen: &mut SeenKeys) -> (String, Result<Occurrence, Problem>) {
    let (record, entry) = entries::read(key, value, seen);
    let checked = entry.and_then(|(at, written, value)| {
        let wrong = |reason: &str| Problem { at, reason: reason.to_owned() };
        let occurrence: Occurrence = serde_json::from_slice(&value)
            .map_err(|error| wrong(&format!("is no occurrence as JSON in a text: {error}")))?;
        if self::key(&occurrence) != written.as_str() {
            return Err(wrong("the occurrence says another job or planned time than its key"));
        }
        if !is_finished(&occurrence) {
            return Err(wrong("only occurrences that are done, failed or missed are imported"));
        }
        Ok(without_claim(occurrence))
    });
    (record, checked)
}

/// Whether two are the same, whoever ran them.
pub(super) fn are_same(there: &Occurrence, new: &Occurrence) -> bool {
    without_claim(there.clone()) == without_claim(new.clone())
}

fn key(occurrence: &Occurrence) -> String {
    format!("{} {}", occurrence.job, occurrence.planned_at)
}

/// A claim means nothing elsewhere.
fn without_claim(occurrence: Occurrence) -> Occurrence {
    Occurrence { holder: None, lease_until: Timestamp::from_millis(0), ..occurrence }
}
