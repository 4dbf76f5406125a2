//! The second look for secrets. A watcher is not trusted to have found all: any process of a person may send observations, and a watcher may
//! be older than the rules.

use talon_proto::agent::{Observation, ObserveRequest};
use talon_redact::redact;

use super::observation::{MAX_EXCERPT_BYTES, MAX_LANGUAGE_BYTES, MAX_LINE_BYTES, beyond_bounds};
use super::watchers::{MAX_LIMIT_BYTES, MAX_LIMITS};

/// How much of what a watcher cannot watch is looked at: 4 KiB, of which 512 bytes are shown at most. The rest is left out, so that a secret
/// that is cut at the end of what is shown was whole when it was looked for.
const LOOKED_AT_BYTES: usize = 8 * MAX_LIMIT_BYTES;

/// Replaces the secrets that are left in a request, before anything of it is stored, shown or sent. Returns how many there were. What is
/// beyond its bounds is left as it is, since it is refused.
pub(super) fn redact_again(request: &mut ObserveRequest) -> u32 {
    let within = request.observations.iter_mut().filter(|observation| beyond_bounds(observation).is_none());
    within.map(redact_observation).fold(0, u32::saturating_add)
}

/// What a watcher cannot watch, without secrets; and how many there were. Those beyond the bound are left out, since they do not count.
pub(super) fn redact_limits(limits: &[String]) -> (Vec<String>, u32) {
    let mut found = 0u32;
    let redacted = limits.iter().take(MAX_LIMITS).map(|limit| {
        let redacted = redact(&limit[..limit.floor_char_boundary(LOOKED_AT_BYTES)]);
        found = found.saturating_add(redacted.count);
        redacted.text
    });
    (redacted.collect(), found)
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
    use crate::shadow::observation::problem;

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

    /// Every text of an observation, by its field's name. One that is added to the message has to be added here.
    fn texts(observation: &mut Observation) -> [(&'static str, &mut String); 12] {
        let Observation {
            id,
            kind,
            trigger,
            directory,
            repository,
            path_hash,
            subject,
            finding,
            excerpt,
            excerpt_left_out_bytes: _,
            language,
            occurred_unix_ms: _,
            boundary,
            exit_code: _,
            duration_ms: _,
            fingerprint,
            redactions: _,
        } = observation;
        [
            ("id", id),
            ("kind", kind),
            ("trigger", trigger),
            ("directory", directory),
            ("repository", repository),
            ("path_hash", path_hash),
            ("subject", subject),
            ("finding", finding),
            ("excerpt", excerpt),
            ("language", language),
            ("boundary", boundary),
            ("fingerprint", fingerprint),
        ]
    }

    // Promises: SHADOW-34
    #[test]
    fn no_text_of_an_observation_that_is_taken_has_a_secret() {
        // Of these, each field takes one by its form: a name, a word, a short line, a value.
        let secrets = [
            format!("ghp_{}", "a1B2".repeat(9)),
            format!("sk_{}_{}", "live", "a1b2".repeat(4)),
            format!("AKIA{}", "A2B3".repeat(4)),
            "password=hunter2hunter2".to_owned(),
        ];
        for secret in &secrets {
            for text in [secret.clone(), format!("/home/ada/{secret}/parser")] {
                for field in 0..texts(&mut observation("")).len() {
                    let mut seen = observation("");
                    let (name, place) = texts(&mut seen).into_iter().nth(field).expect("a field");
                    place.clone_from(&text);
                    let mut request =
                        ObserveRequest { observations: vec![seen], ..ObserveRequest::default() };
                    redact_again(&mut request);
                    let seen = &request.observations[0];
                    match problem(seen) {
                        Some(why) => assert!(why.starts_with(&format!("{name}:")), "{name} {text}: {why}"),
                        None => {
                            let shown = format!("{seen:?}");
                            let value = secret.trim_start_matches("password=");
                            assert!(!shown.contains(value), "{name}: {shown}");
                            assert!(["subject", "finding", "excerpt", "language"].contains(&name), "{name}");
                            assert_eq!(seen.redactions, 1, "{name}: {shown}");
                        }
                    }
                }
            }
        }
    }

    // Promises: SHADOW-34
    #[test]
    fn what_cannot_be_watched_is_told_without_secrets() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        // The second one would be cut within its secret.
        let mut limits =
            vec![format!("cannot watch {token}"), format!("{} {token}", "x".repeat(MAX_LIMIT_BYTES - 20))];
        limits.resize(3 * MAX_LIMITS, "too many files".to_owned());
        let (told, found) = redact_limits(&limits);
        assert_eq!((told.len(), found), (MAX_LIMITS, 2));
        assert_eq!(told[0], "cannot watch [redacted: github token]");
        assert!(told.iter().all(|text| !text.contains("ghp_")), "{told:?}");
        assert_eq!(redact_limits(&told), (told.clone(), 0), "nothing is counted twice");
        let (long, _) = redact_limits(&["é".repeat(LOOKED_AT_BYTES)]);
        assert_eq!(long[0].len(), LOOKED_AT_BYTES);
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
