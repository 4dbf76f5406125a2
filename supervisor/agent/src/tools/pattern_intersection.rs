//! What may be called where two lists of patterns hold: the intersection of both.

use talon_agent_settings::covers;

/// The intersection of two lists of patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternIntersection {
    /// These patterns. An empty list restricts nothing, as everywhere.
    Patterns(Vec<String>),
    /// Nothing, which on the wire cannot be an empty list, since that allows everything.
    Nothing,
}

/// Intersects the session's patterns with the sub-agent's (`None` if the operator does not restrict it; an
/// empty list grants nothing).
pub(crate) fn intersect(session: &[String], granted: Option<&[String]>) -> PatternIntersection {
    let Some(granted) = granted else { return PatternIntersection::Patterns(session.to_vec()) };
    let mut both: Vec<String> = if session.is_empty() {
        granted.to_vec()
    } else {
        let pairs = session.iter().flat_map(|one| granted.iter().map(move |other| narrower(one, other)));
        pairs.flatten().collect()
    };
    both.sort_unstable();
    both.dedup();
    if both.is_empty() { PatternIntersection::Nothing } else { PatternIntersection::Patterns(both) }
}

/// The narrower of two patterns, if one covers the other.
fn narrower(one: &str, other: &str) -> Option<String> {
    let is_within = |inner: &str, outer: &str| {
        inner == outer || inner.rsplit_once('.').is_some_and(|(plugin, action)| covers(outer, plugin, action))
    };
    if is_within(one, other) {
        Some(one.to_owned())
    } else if is_within(other, one) {
        Some(other.to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|pattern| (*pattern).to_owned()).collect()
    }

    // Promises: AGENT-41
    #[test]
    fn both_lists_have_to_cover_what_is_called() {
        for (session, granted, both) in [
            (&[][..], None, PatternIntersection::Patterns(vec![])),
            (&["a.*"], None, PatternIntersection::Patterns(list(&["a.*"]))),
            (&[], Some(&["a.*"][..]), PatternIntersection::Patterns(list(&["a.*"]))),
            (
                &["a.*", "b.x"],
                Some(&["a.x", "b.*", "c.*"]),
                PatternIntersection::Patterns(list(&["a.x", "b.x"])),
            ),
            (&["a.*"], Some(&["a.*"]), PatternIntersection::Patterns(list(&["a.*"]))),
            (&["a.x"], Some(&["a.y", "b.*"]), PatternIntersection::Nothing),
            (&["a.*"], Some(&[]), PatternIntersection::Nothing),
            (&[], Some(&[]), PatternIntersection::Nothing),
        ] {
            let granted = granted.map(list);
            assert_eq!(intersect(&list(session), granted.as_deref()), both, "{session:?} {granted:?}");
        }
    }

    proptest! {
        // Promises: AGENT-41
        #[test]
        fn it_covers_exactly_what_both_cover(
            session in proptest::collection::vec("[ab]\\.([xy]|\\*)", 0..4),
            granted in proptest::option::of(proptest::collection::vec("[ab]\\.([xy]|\\*)", 0..4)),
            plugin in "[abc]", action in "[xyz]",
        ) {
            let by = |patterns: &[String]| patterns.iter().any(|pattern| covers(pattern, &plugin, &action));
            let by_session = session.is_empty() || by(&session);
            let wanted = by_session && granted.as_deref().is_none_or(by);
            let found = match intersect(&session, granted.as_deref()) {
                PatternIntersection::Nothing => false,
                PatternIntersection::Patterns(both) => both.is_empty() || by(&both),
            };
            prop_assert_eq!(found, wanted);
        }
    }
}
