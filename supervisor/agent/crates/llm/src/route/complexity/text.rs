//! Code, lists and questions in a message.

/// Features of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TextFeatures {
    /// Blocks of code; one that is not closed counts.
    pub fences: usize,
    /// Lines inside of them.
    pub code_lines: usize,
    /// Lines that start with a number or a bullet.
    pub steps: usize,
    /// Question marks outside of code; consecutive ones count once.
    pub questions: usize,
}

pub(super) fn extract_features(text: &str) -> TextFeatures {
    let mut seen = TextFeatures::default();
    let mut in_code = false;
    for line in text.lines() {
        let line = line.trim_start();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
            seen.fences += usize::from(in_code);
        } else if in_code {
            seen.code_lines += 1;
        } else {
            seen.steps += usize::from(is_step(line));
            seen.questions += questions(line);
        }
    }
    seen
}

/// `1.`, `2)`, `3、`, `-`, `*` or `•`, and something behind it.
fn is_step(line: &str) -> bool {
    let rest = line.trim_start_matches(char::is_numeric);
    let rest = if rest.len() < line.len() {
        rest.strip_prefix(['.', ')', '、', '．', '）', ':'])
    } else {
        line.strip_prefix(['-', '*', '•', '–'])
    };
    // A number with a decimal point is no step, and neither is a rule made of dashes.
    rest.is_some_and(|rest| rest.starts_with(char::is_whitespace) && !rest.trim().is_empty())
        || rest.is_some_and(|rest| {
            line.starts_with(char::is_numeric) && rest.starts_with(|c: char| c.is_alphabetic())
        })
}

/// A question ends before white space or at the end of the line; the marks of URLs do not.
fn questions(line: &str) -> usize {
    let is_mark = |c: char| matches!(c, '?' | '？' | '؟');
    let mut count = 0;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        // In scripts without spaces the full-width mark ends a question whatever follows.
        let ends = c == '？'
            || chars.peek().is_none_or(|next| !next.is_alphanumeric() && *next != '=' && !is_mark(*next));
        if is_mark(c) && ends {
            count += 1;
            while chars.next_if(|next| is_mark(*next)).is_some() {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_text() {
        let seen =
            extract_features("Look?\n```rust\nfn a() -> Option<u8>? {}\n- no step\n```\nand\n~~~\nx\n~~~");
        assert_eq!(seen, TextFeatures { fences: 2, code_lines: 3, steps: 0, questions: 1 });
        assert_eq!(extract_features("```\nnever closed").fences, 1);
    }

    #[test]
    fn steps_are_told_from_numbers_and_rules() {
        for line in ["1. read", "  2) write", "- a", "* b", "• c", "10. ten", "3、读", "٣. اقرأ", "1.read"]
        {
            assert_eq!(extract_features(line).steps, 1, "{line}");
        }
        for line in ["3.14 is pi", "---", "- ", "2026 was", "-5 degrees", "*emphasis*", "", "1."] {
            assert_eq!(extract_features(line).steps, 0, "{line}");
        }
    }

    #[test]
    fn questions_are_counted_in_any_script() {
        for (text, count) in [
            ("Why? How?", 2),
            ("Really???", 1),
            ("为什么？怎么办？", 2),
            ("لماذا؟ كيف؟", 2),
            ("see http://x/y?z=1", 0),
            ("(why?)", 1),
            ("¿Por qué?", 1),
        ] {
            assert_eq!(extract_features(text).questions, count, "{text}");
        }
    }
}
