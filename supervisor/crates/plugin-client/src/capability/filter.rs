//! Removes declared actions that callers could not use by the names they are shown.
//!
//! A parameter may have any name that a schema allows, such as `$filter` or `filter[name]`, so there is no
//! fixed set of characters to check against. But callers see the sanitized name and send it back. If
//! sanitizing changes a name, no caller can use it.

use talon_proto::plugin::Action;
use talon_sanitize::{Raw, Sanitized, Sanitizer, sanitized};

/// The longest name of a plugin or action.
pub(super) const MAX_DECLARED_NAME_LEN: usize = 64;

/// How many omitted actions are reported one by one. 8: enough for an author to see the pattern, and short
/// enough for a status page.
pub const MAX_REPORTED_OMISSIONS: usize = 8;

/// Removes the actions that cannot be offered, and returns the reasons.
pub(super) fn remove_unusable(actions: &mut Vec<Action>) -> Vec<Sanitized> {
    let sanitizer = Sanitizer::default();
    let mut told = Vec::new();
    let mut untold = 0_usize;
    actions.retain(|action| {
        let Some((what, name)) = unusable_name(action, &sanitizer) else { return true };
        if told.len() < MAX_REPORTED_OMISSIONS {
            // The action's name was checked before.
            told.push(sanitized!(
                "its action {} is not offered: the name of its {} \"{}\" is no plain text (white space, control \
                 characters or control syntax), so callers could not use it as it is shown; let its author rename it",
                Raw::from(&action.name).line(),
                what,
                Raw::from(name).line_within(MAX_DECLARED_NAME_LEN),
            ));
        } else {
            untold += 1;
        }
        false
    });
    if untold > 0 {
        told.push(sanitized!("{} more of its actions are not offered, for the same reason", untold));
    }
    told
}

/// The first name in an action that sanitizing would change.
fn unusable_name<'a>(action: &'a Action, sanitizer: &Sanitizer) -> Option<(&'static str, &'a str)> {
    let parameters = action.parameters.iter().map(|parameter| ("parameter", parameter.name.as_str()));
    let context = action.inject_context_args.iter().map(|name| ("context argument", name.as_str()));
    parameters.chain(context).find(|(_, name)| !is_plain(name, sanitizer))
}

fn is_plain(name: &str, sanitizer: &Sanitizer) -> bool {
    let seen = |c: char| !c.is_whitespace() && !c.is_control();
    !name.is_empty() && name.chars().all(seen) && sanitizer.is_clean(name)
}

#[cfg(test)]
mod tests {
    use talon_proto::plugin::Parameter;

    use super::*;

    fn action(name: &str, parameters: &[&str]) -> Action {
        let parameter = |name: &&str| Parameter { name: (*name).to_owned(), ..Parameter::default() };
        Action {
            name: name.to_owned(),
            parameters: parameters.iter().map(parameter).collect(),
            ..Action::default()
        }
    }

    #[test]
    fn names_of_fields_are_taken_as_they_are() {
        let mut actions = vec![action(
            "a",
            &["$filter", "filter[name]", "größe", "@type", "X-Header", "a.b", "session_id"],
        )];
        assert!(remove_unusable(&mut actions).is_empty());
        assert_eq!(actions.len(), 1);
    }

    #[test]
    fn an_action_that_could_not_be_called_as_it_is_shown_is_not_offered() {
        for name in
            ["<|im_start|>", "[/plugin_output]", "a b", "a\u{200b}b", "a\u{1b}[2J", "\u{202e}a", "a\n"]
        {
            let mut actions = vec![action("bad", &["fine", name]), action("good", &["fine"])];
            let told = remove_unusable(&mut actions);
            assert_eq!(
                actions.iter().map(|action| action.name.as_str()).collect::<Vec<_>>(),
                ["good"],
                "{name:?}"
            );
            assert_eq!(told.len(), 1);
            assert!(told[0].starts_with("its action bad is not offered"), "{}", told[0]);
            assert!(Sanitizer::default().is_clean(&told[0]), "{}", told[0]);
        }
        let mut context = vec![Action { inject_context_args: vec!["<think>".into()], ..action("bad", &[]) }];
        assert!(remove_unusable(&mut context)[0].contains("context argument"));
    }

    #[test]
    fn many_are_counted_rather_than_told() {
        let mut actions: Vec<_> = (0..100).map(|i| action(&format!("a{i}"), &["a b"])).collect();
        let told = remove_unusable(&mut actions);
        assert_eq!(told.len(), MAX_REPORTED_OMISSIONS + 1);
        assert!(told[MAX_REPORTED_OMISSIONS].starts_with("92 more"), "{}", told[MAX_REPORTED_OMISSIONS]);
    }
}
