//! The rules by which secrets are told.

use std::sync::LazyLock;

use regex::Regex;

use super::value::{is_code, is_placeholder};

/// A secret in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secret {
    /// Which kind it is, for people: `aws access key`.
    pub rule: &'static str,
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Whether its format alone proves it. The others are values of names that sound like secrets.
    pub certain: bool,
}

struct Rule {
    name: &'static str,
    /// Group 1 is the secret, if there is one; otherwise all of it.
    pattern: Regex,
    certain: bool,
}

/// The rule whose values may be a program's text: what is assigned to a name.
const NAMED: &str = "value of a secret's name";

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
            NAMED,
            r#"(?i)(?:pass(?:word|wd|phrase)?|secret|token|api[_\-]?key|access[_\-]?key|private[_\-]?key|client[_\-]?secret|credentials?|auth)[A-Za-z0-9_\-]{0,24}["']?\s{0,8}(?:=>|:=|=|:)\s{0,8}(?:"([^"\n]{6,})"|'([^'\n]{6,})'|([^\s"'(){}<>\[\],;]\S{7,}))"#,
        ),
        (
            "secret option",
            r#"(?i)--?(?:password|passwd|token|secret|api-key|auth-token)[= ](?:"([^"\n]{4,})"|'([^'\n]{4,})'|([^\s"'-]\S{3,}))"#,
        ),
        (
            "authorization header",
            r#"(?i)(?-u:\b)(?:authorization|x-api-key)["']?\s{0,4}[:=]\s{0,4}["']?(?:(?:bearer|basic|token)\s+)?([A-Za-z0-9+/_=.\-]{8,})"#,
        ),
        (
            "login of curl",
            r#"(?-u:\b)curl(?-u:\b)[^\n|;]{0,}?\s(?:-u|--user)[= ]?(?:"[^:"\n]{1,128}:([^"\n]{1,})"|'[^:'\n]{1,128}:([^'\n]{1,})'|['"]?[^\s:'"]{1,128}:([^\s'"]\S{0,}))"#,
        ),
        (
            "password of mysql",
            r#"(?-u:\b)mysql(?:dump|admin)?(?-u:\b)[^\n|;]{0,}?\s-p(?:"([^"\n]{3,})"|'([^'\n]{3,})'|([^\s"']\S{2,}))"#,
        ),
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
            let Some(whole) = captures.get(0) else { continue };
            let place = captures.iter().skip(1).flatten().next().unwrap_or(whole);
            let is_text =
                || rule.name == NAMED && is_code(&text[whole.start()..place.start()], place.as_str());
            if !rule.certain && (is_placeholder(place.as_str()) || is_text()) {
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
