//! Keys as people write them: names joined by dots, and one that holds a dot in quotes, as in `models.models."a.b"`.

/// A key as a text, which [`steps`] reads.
pub(super) fn text(steps: &[String]) -> String {
    let is_plain = |step: &str| {
        !step.is_empty() && !step.chars().any(|c| matches!(c, '.' | '"' | '=' | '\\') || c.is_control())
    };
    let step = |step: &String| if is_plain(step) { step.clone() } else { quote(step) };
    steps.iter().map(step).collect::<Vec<_>>().join(".")
}

/// A text of JSON.
fn quote(step: &str) -> String {
    serde_json::Value::from(step).to_string()
}

/// The names of a key; `None` if one is empty, or a quote is not closed.
pub(super) fn steps(key: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = key;
    loop {
        let (step, after) = if rest.starts_with('"') {
            let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let step = texts.next()?.ok()?;
            (step, rest.get(texts.byte_offset()..)?)
        } else {
            let (step, after) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
            (step.to_owned(), after)
        };
        if step.is_empty() {
            return None;
        }
        steps.push(step);
        if after.is_empty() {
            return Some(steps);
        }
        rest = after.strip_prefix('.')?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(steps: &[&str]) -> Vec<String> {
        steps.iter().map(|&step| step.to_owned()).collect()
    }

    #[test]
    fn a_key_is_read_as_it_is_shown() {
        for (key, shown) in [
            (&["agent", "turn", "iterations"][..], "agent.turn.iterations"),
            (&["models", "gpt-4.1", "price"][..], "models.\"gpt-4.1\".price"),
            (&["a.b"][..], "\"a.b\""),
            (&["a", "\"", "b\\", "c=d", "ü e"][..], "a.\"\\\"\".\"b\\\\\".\"c=d\".ü e"),
        ] {
            assert_eq!(text(&owned(key)), shown);
            assert_eq!(steps(shown), Some(owned(key)), "{shown}");
        }
        for wrong in ["", ".", ".a", "a..b", "a.", "\"\"", "\"a", "\"a\"b", "a.\"b.c", "a.\"b\"."] {
            assert_eq!(steps(wrong), None, "{wrong}");
        }
    }
}
