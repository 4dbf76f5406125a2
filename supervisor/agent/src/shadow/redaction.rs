//! The second look for secrets. A watcher is not trusted to have found all: any process of a person may send observations, and a watcher may
//! be older than the rules.

use talon_proto::agent::{Observation, ObserveRequest};
use talon_redact::redact;

use super::observation::{MAX_EXCERPT_BYTES, MAX_LANGUAGE_BYTES, MAX_LINE_BYTES, problem};

/// Replaces the secrets that are left in a request, before anything of it is stored, shown or sent. Returns how many there were. What is
/// beyond its bounds is left as it is, since it is refused.
pub(super) fn redact_again(request: &mut ObserveRequest) -> u32 {
    let within = request.observations.iter_mut().filter(|observation| problem(observation).is_none());
    within.map(redact_observation).fold(0, u32::saturating_add)
}

/// The texts keep their bounds; the observation counts what was replaced.
fn redact_observation(observation: &mut Observation) -> u32 {
    let Observation { subject, finding, language, excerpt, excerpt_left_out_bytes, redactions, .. } =
        observation;
    let mut found = 0u32;
    for (text, most) in [(subject, MAX_LINE_BYTES), (finding, MAX_LINE_BYTES), (language, MAX_LANGUAGE_BYTES)]
    {
        // Lines are cut without a count, as a watcher's are.
        found = found.saturating_add(redact_text(text, most).0);
    }
    let (of_excerpt, cut) = redact_text(excerpt, MAX_EXCERPT_BYTES);
    found = found.saturating_add(of_excerpt);
    *excerpt_left_out_bytes = excerpt_left_out_bytes.saturating_add(cut);
    *redactions = redactions.saturating_add(found);
    found
}

/// Returns how many secrets it had, and how many bytes were cut: a mark may be longer than what it stands for.
fn redact_text(text: &mut String, most: usize) -> (u32, u64) {
    let redacted = redact(text);
    let end = redacted.text.floor_char_boundary(most);
    let cut = redacted.text.len() - end;
    *text = redacted.text;
    text.truncate(end);
    (redacted.count, cut as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn observation(excerpt: &str) -> Observation {
        Observation {
            id: "o1".to_owned(),
            kind: "command".to_owned(),
            trigger: "test_failed".to_owned(),
            excerpt: excerpt.to_owned(),
            ..Observation::default()
        }
    }

    // Promises: SHADOW-34
    #[test]
    fn secrets_that_a_watcher_left_are_replaced_and_counted() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let seen = Observation {
            subject: format!("push {token}"),
            finding: "password=hunter2hunter2 failed".to_owned(),
            redactions: 1,
            ..observation(&format!("one\n{token}\n[redacted: github token]"))
        };
        let refused = Observation { id: String::new(), ..observation(&token) };
        let mut request = ObserveRequest { observations: vec![seen, refused], ..ObserveRequest::default() };
        assert_eq!(redact_again(&mut request), 3);
        let [seen, refused] = &request.observations[..] else { panic!("{request:?}") };
        assert_eq!(seen.redactions, 4);
        let text = format!("{seen:?}");
        assert!(!text.contains(&token) && !text.contains("hunter2"), "{text}");
        assert!(seen.excerpt.starts_with("one\n[redacted: github token]\n"), "{}", seen.excerpt);
        assert_eq!(refused.redactions, 0, "it is refused");
        assert_eq!(redact_again(&mut request), 0, "nothing is counted twice");
    }

    proptest! {
        // Promises: SHADOW-34
        #[test]
        fn texts_stay_within_their_bounds(lines in prop::collection::vec("(token=[a-z0-9]{8} |[ -~]{0,20})", 0..60)) {
            let mut excerpt = lines.join("\n");
            excerpt.truncate(MAX_EXCERPT_BYTES);
            let mut finding = lines.join(" ");
            finding.truncate(MAX_LINE_BYTES);
            let mut request = ObserveRequest::default();
            request.observations.push(Observation { finding, ..observation(&excerpt) });
            redact_again(&mut request);
            prop_assert_eq!(problem(&request.observations[0]), None);
        }
    }
}
