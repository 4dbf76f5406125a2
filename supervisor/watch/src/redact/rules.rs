//! The rules by which secrets are told.

use std::sync::LazyLock;

use regex::Regex;

/// A secret in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret {
    /// Which kind it is, for people: `aws access key`.
    pub(crate) rule: &'static str,
    /// Its bytes in the text.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether its format alone proves it. The others are values of names that sound like secrets.
    pub(crate) certain: bool,
}

struct Rule {
    name: &'static str,
    /// Group 1 is the secret, if there is one; otherwise all of it.
    pattern: Regex,
    certain: bool,
}

/// The formats that their providers document, and what people write.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let certain = [
        (
            "private key",
            r"-----BEGIN (?:[A-Z0-9 ]{0,24})PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----|\z)",
        ),
        ("aws access key", r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?-u:\b)"),
        ("github token", r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})"),
        ("gitlab token", r"(?-u:\b)gl(?:pat|dt|rt|ft|cbt|ptt|oas|soat|agent|imt)-[A-Za-z0-9_\-]{20,}"),
        ("slack token", r"(?-u:\b)xox[abeprs]-[A-Za-z0-9-]{10,}|(?-u:\b)xapp-[A-Za-z0-9-]{10,}"),
        ("slack webhook", r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{20,}"),
        ("google api key", r"(?-u:\b)AIza[A-Za-z0-9_\-]{35}"),
        ("stripe key", r"(?-u:\b)[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("api key of a model provider", r"(?-u:\b)sk-(?:ant-|proj-|or-)?[A-Za-z0-9_\-]{20,}"),
        ("npm token", r"(?-u:\b)npm_[A-Za-z0-9]{36}"),
        ("pypi token", r"(?-u:\b)pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_\-]{20,}"),
        ("crates.io token", r"(?-u:\b)cio[A-Za-z0-9]{32}(?-u:\b)"),
        ("sendgrid key", r"(?-u:\b)SG\.[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,64}"),
        ("hugging face token", r"(?-u:\b)hf_[A-Za-z0-9]{30,}"),
        ("telegram token", r"(?-u:\b)[0-9]{8,10}:AA[A-Za-z0-9_\-]{33}"),
        ("json web token", r"(?-u:\b)eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"),
        ("password in an address", r"(?-u:\b)[a-z][a-z0-9+.\-]{1,20}://[^\s/:@]{0,64}:([^\s/@]{3,})@"),
    ];
    let named = [
        (
            "value of a secret's name",
            r#"(?i)(?:pass(?:word|wd|phrase)?|secret|token|api[_\-]?key|access[_\-]?key|private[_\-]?key|client[_\-]?secret|credentials?|auth)[A-Za-z0-9_\-]{0,24}["']?\s{0,8}(?:=>|:=|=|:)\s{0,8}(?:["']([^"'\s]{6,})["']|([^\s"'#;,(){}<>\[\]$]{8,}))"#,
        ),
        (
            "secret option",
            r#"(?i)--?(?:password|passwd|token|secret|api-key|auth-token)[= ]['"]?([^\s"'$-][^\s"']{3,})"#,
        ),
        (
            "authorization header",
            r#"(?i)(?-u:\b)(?:authorization|x-api-key)["']?\s{0,4}[:=]\s{0,4}["']?(?:(?:bearer|basic|token)\s+)?([A-Za-z0-9+/_=.\-]{8,})"#,
        ),
        (
            "login of curl",
            r#"(?-u:\b)curl(?-u:\b)[^\n|;]{0,}?\s(?:-u|--user)[= ]?['"]?[^\s:'"]{1,128}:([^\s'"]{1,})"#,
        ),
        ("password of mysql", r"(?-u:\b)mysql(?:dump|admin)?(?-u:\b)[^\n|;]{0,}?\s-p([^\s]{3,})"),
    ];
    let rule = |certain| {
        move |(name, pattern): (&'static str, &str)| Rule {
            name,
            pattern: Regex::new(pattern).expect("the tests compile every rule"),
            certain,
        }
    };
    certain.into_iter().map(rule(true)).chain(named.into_iter().map(rule(false))).collect()
});

/// All secrets of a text, by rule; they may overlap.
pub(super) fn find(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    for rule in RULES.iter() {
        for captures in rule.pattern.captures_iter(text) {
            let place = captures.iter().skip(1).flatten().next().or_else(|| captures.get(0));
            let Some(place) = place else { continue };
            let is_call = text[place.end()..].starts_with('(');
            if !rule.certain && (is_call || is_placeholder(place.as_str())) {
                continue;
            }
            found.push(Secret {
                rule: rule.name,
                start: place.start(),
                end: place.end(),
                certain: rule.certain,
            });
        }
    }
    found
}

/// Values that stand where a secret will: examples, variables, types, words.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    const WORDS: [&str; 14] = [
        "example",
        "changeme",
        "placeholder",
        "your",
        "xxxx",
        "****",
        "redacted",
        "none",
        "null",
        "true",
        "false",
        "string",
        "option",
        "default",
    ];
    // Redacted already, perhaps by the shell's reporter.
    let is_redacted = value.starts_with("[redacted");
    let is_variable = is_redacted
        || value.starts_with(['$', '<', '{', '%', '&', '*', '!'])
        || value.contains("::")
        || value.contains("()")
        || value.contains("env.")
        || value.contains("environ")
        || is_member(value);
    is_variable
        || WORDS.iter().any(|word| lower.starts_with(word))
        || value.chars().all(|c| c == '.' || c == '_')
}

/// `self.tokens.next`, `config.password`: a place in a program, and no value.
fn is_member(value: &str) -> bool {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    value.contains('.') && value.split('.').all(is_name)
}
