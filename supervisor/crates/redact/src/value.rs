//! What stands where a secret could, and is none: examples, variables, and places in a program.

/// Values that stand for a secret, by all of them: one that only begins as an example does is none.
const WORDS: [&str; 15] = [
    "example",
    "changeme",
    "placeholder",
    "redacted",
    "none",
    "null",
    "true",
    "false",
    "string",
    "option",
    "optional",
    "required",
    "default",
    "undefined",
    "yourpassword",
];

/// What ends a word in a program.
const STOPS: [char; 10] = [',', ';', '(', ')', '{', '}', '<', '>', '[', ']'];

/// The shortest value of a name that is a secret if nothing else tells.
const SHORTEST: usize = 8;

/// Values that stand where a secret will: examples, variables, words.
pub(super) fn is_placeholder(value: &str) -> bool {
    // Redacted already, perhaps by the shell's reporter.
    if value.starts_with("[redacted") {
        return true;
    }
    let value = value.trim_end_matches([',', ';', '"', '\'', '`']);
    let lower = value.to_ascii_lowercase();
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphabetic() || c == '_' || c == '-');
    let is_mask = ['x', '*', '.', '_'].iter().any(|mask| lower.chars().all(|c| c == *mask));
    let is_your =
        lower.strip_prefix("your").is_some_and(|rest| rest.starts_with(['_', '-']) && is_word(rest));
    is_mask || is_your || WORDS.contains(&lower.as_str()) || is_variable(value)
}

/// `$NAME`, `${NAME}`, `$(program)`, `%NAME%`, `{{ name }}`, `<name>`.
fn is_variable(value: &str) -> bool {
    let is_name = |text: &str| {
        text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    };
    let is_between = |first: char, last: char| value.starts_with(first) && value.ends_with(last);
    value.starts_with("${")
        || value.starts_with("$(")
        || value.strip_prefix('$').is_some_and(|name| is_name(name.trim_end_matches(')')))
        || is_between('%', '%')
        || is_between('{', '}')
        || value.strip_prefix('<').is_some_and(|name| is_name(name.trim_end_matches('>')))
        || is_between('<', '>')
}

/// Whether what is assigned to a name is a program's text, and no value. `before` is the name, the sign, and a
/// quote if there is one.
pub(super) fn is_code(before: &str, value: &str) -> bool {
    if before.ends_with(['"', '\'']) {
        return is_between_texts(value);
    }
    // `NAME=value`, as in files of environments: a program's text has spaces, or another name.
    let is_environment = before.ends_with('=')
        && before.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_' || c == '=');
    if is_environment {
        return false;
    }
    let head = value.split(STOPS).next().unwrap_or_default();
    let is_cut = head.len() < value.len();
    let is_call = value[head.len()..].starts_with('(');
    let is_name = head.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '?'));
    ["::", "()", "->", "env.", "environ"].iter().any(|part| value.contains(part))
        || (is_cut && is_name && (is_call || head.len() < SHORTEST))
        || is_member(head)
        || is_reference(head)
}

/// What is between two texts of a program, as in `"password: ", name, " and "`.
fn is_between_texts(value: &str) -> bool {
    let is_sign =
        |c: char| matches!(c, ')' | '(' | ',' | ';' | '+' | '.' | '[' | ']' | '{' | '}' | '=' | ':');
    let value = value.trim();
    value.starts_with(is_sign) && value.ends_with(is_sign)
}

/// `self.tokens.next`, `config.password`: a place in a program.
fn is_member(value: &str) -> bool {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    value.contains('.') && value.split('.').all(is_name)
}

/// `&token`, `*self.token`, `!is_valid`.
fn is_reference(value: &str) -> bool {
    let name = value.trim_start_matches(['&', '*', '!']);
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '\''));
    name.len() < value.len() && is_name && (!value.starts_with('!') || name.contains(['_', '.']))
}
