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
            r"-----BEGIN (?:[A-Z0-9 ]{0,24})PRIVATE KEY(?: BLOCK)?-----(?s:.{0,16384}?)(?:-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----|\z)",
        ),
        ("aws access key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
        ("github token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"),
        ("gitlab token", r"\bgl(?:pat|dt|rt|ft|cbt|ptt|oas|soat|agent|imt)-[A-Za-z0-9_\-]{20,255}"),
        ("slack token", r"\bxox[abeprs]-[A-Za-z0-9-]{10,255}|\bxapp-[A-Za-z0-9-]{10,255}"),
        ("slack webhook", r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{20,255}"),
        ("google api key", r"\bAIza[A-Za-z0-9_\-]{35}"),
        ("stripe key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
        ("api key of a model provider", r"\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_\-]{20,255}"),
        ("npm token", r"\bnpm_[A-Za-z0-9]{36}"),
        ("pypi token", r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_\-]{20,}"),
        ("crates.io token", r"\bcio[A-Za-z0-9]{32}\b"),
        ("sendgrid key", r"\bSG\.[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,64}"),
        ("hugging face token", r"\bhf_[A-Za-z0-9]{30,255}"),
        ("telegram token", r"\b[0-9]{8,10}:AA[A-Za-z0-9_\-]{33}"),
        ("json web token", r"\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"),
        ("password in an address", r"\b[a-z][a-z0-9+.\-]{1,20}://[^\s/:@]{0,64}:([^\s/@]{3,256})@"),
    ];
    let named = [
        (
            "value of a secret's name",
            r#"(?i)(?:pass(?:word|wd|phrase)?|secret|token|api[_\-]?key|access[_\-]?key|private[_\-]?key|client[_\-]?secret|credentials?|auth)[A-Za-z0-9_\-]{0,24}["']?\s{0,8}(?:=>|:=|=|:)\s{0,8}(?:["']([^"'\s]{6,512})["']|([^\s"'#;,(){}<>\[\]$]{8,512}))"#,
        ),
        (
            "secret option",
            r#"(?i)--?(?:password|passwd|token|secret|api-key|auth-token)[= ]['"]?([^\s"'$-][^\s"']{3,512})"#,
        ),
        (
            "authorization header",
            r#"(?i)\b(?:authorization|x-api-key)["']?\s{0,4}[:=]\s{0,4}["']?(?:(?:bearer|basic|token)\s+)?([A-Za-z0-9+/_=.\-]{8,1024})"#,
        ),
        (
            "login of curl",
            r#"\bcurl\b[^\n|;]{0,512}?\s(?:-u|--user)[= ]?['"]?[^\s:'"]{1,128}:([^\s'"]{1,256})"#,
        ),
        ("password of mysql", r"\bmysql(?:dump|admin)?\b[^\n|;]{0,512}?\s-p([^\s]{3,256})"),
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
            if !rule.certain && is_placeholder(place.as_str()) {
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
    let is_variable = value.starts_with(['$', '<', '{', '%', '&', '*', '!'])
        || value.contains("::")
        || value.contains("()")
        || value.contains("env.")
        || value.contains("environ");
    is_variable
        || WORDS.iter().any(|word| lower.starts_with(word))
        || value.chars().all(|c| c == '.' || c == '_')
}
