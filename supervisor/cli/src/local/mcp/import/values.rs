//! Converts strings of an editor's file to configuration syntax, where `${NAME}` is a variable: editors'
//! variables are translated, literal dollar signs are escaped, and secrets are not copied.

use std::collections::BTreeMap;

use talon_supervisor::config::sounds_secret;

/// Prefixes of common services' secrets.
const SECRET_PREFIXES: [&str; 13] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "eyJ",
    "AIza",
    "Bearer ",
    "Basic ",
];
/// Headers whose values are not sensitive.
const PLAIN_HEADERS: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];

/// How much of an unknown variable a message shows.
const MAX_SHOWN_CHARS: usize = 60;

/// Why a string cannot be converted.
#[derive(Debug, thiserror::Error)]
pub(super) enum ValueError {
    #[error("its url holds credentials: put them into a header, then import it again")]
    CredentialsInUrl,
    #[error("holds \"${{\" without a \"}}\": correct it")]
    Unclosed,
    #[error("${{{name}:-…}} has a default that holds \"$\": write the value itself, then import it again")]
    DollarInDefault { name: String },
    #[error(
        "${{{shown}}} stands for what only the editor knows: write the value itself, then import it again"
    )]
    EditorOnly { shown: String },
}

/// The strings of one plugin, and the variables that replace secrets, each with its meaning.
#[derive(Debug)]
pub(super) struct ValueTranslator<'p> {
    plugin: &'p str,
    pub(super) variables: BTreeMap<String, String>,
}

impl<'p> ValueTranslator<'p> {
    pub(super) fn of(plugin: &'p str) -> Self {
        Self { plugin, variables: BTreeMap::new() }
    }

    /// Converts an environment variable's value.
    pub(super) fn env(&mut self, name: &str, value: &str) -> Result<String, ValueError> {
        if holds_variables(value) {
            return self.translate(value);
        }
        if value.is_empty() || !(sounds_secret(name) || looks_secret(value)) {
            return Ok(literal(value));
        }
        Ok(self.secret(name.to_owned(), format!("the variable {name} of its env")))
    }

    /// Converts an HTTP header's value.
    pub(super) fn header(&mut self, name: &str, value: &str) -> Result<String, ValueError> {
        if holds_variables(value) {
            return self.translate(value);
        }
        if PLAIN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Ok(literal(value));
        }
        let variable = self.variable_name(name);
        Ok(self.secret(variable, format!("the header {name}")))
    }

    /// Converts the arguments.
    pub(super) fn args(&mut self, args: &[String]) -> Result<Vec<String>, ValueError> {
        let mut after_flag: Option<String> = None;
        let mut texts = Vec::with_capacity(args.len());
        for arg in args {
            let flag = arg.strip_prefix('-').map(|rest| rest.trim_start_matches('-'));
            let text = match (
                flag.or(Some(arg.as_str())).and_then(|rest| rest.split_once('=')),
                after_flag.take(),
            ) {
                _ if holds_variables(arg) => self.translate(arg)?,
                (Some((name, value)), _)
                    if is_word(name) && !value.is_empty() && (sounds_secret(name) || looks_secret(value)) =>
                {
                    let variable = self.variable_name(name);
                    let before = &arg[..arg.len() - value.len()];
                    format!("{}{}", literal(before), self.secret(variable, format!("the argument {name}")))
                }
                (None, Some(name)) if flag.is_none() => {
                    let variable = self.variable_name(&name);
                    self.secret(variable, format!("the argument after {name}"))
                }
                _ if looks_secret(arg) => {
                    let variable = self.variable_name("secret");
                    self.secret(variable, "an argument".to_owned())
                }
                _ => literal(arg),
            };
            after_flag = flag.filter(|name| is_word(name) && sounds_secret(name)).map(str::to_owned);
            texts.push(text);
        }
        Ok(texts)
    }

    /// Converts an address. Rejects credentials in it.
    pub(super) fn url(&mut self, url: &str) -> Result<String, ValueError> {
        let (before, query) = url.split_once('?').unwrap_or((url, ""));
        let authority = before.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
        if authority.contains('@') {
            return Err(ValueError::CredentialsInUrl);
        }
        let mut text = if holds_variables(before) {
            self.translate(before)?
        } else {
            let mut steps = Vec::new();
            for step in before.split('/') {
                steps.push(if looks_secret(step) {
                    let variable = self.variable_name("url");
                    self.secret(variable, "a part of its url".to_owned())
                } else {
                    literal(step)
                });
            }
            steps.join("/")
        };
        for (index, part) in query.split('&').enumerate().filter(|_| !query.is_empty()) {
            text.push(if index == 0 { '?' } else { '&' });
            match part.split_once('=') {
                _ if holds_variables(part) => text.push_str(&self.translate(part)?),
                Some((name, value)) if !value.is_empty() && (sounds_secret(name) || looks_secret(value)) => {
                    let variable = self.variable_name(name);
                    let value = self.secret(variable, format!("the parameter {name} of its url"));
                    text.push_str(&format!("{}={value}", literal(name)));
                }
                _ => text.push_str(&literal(part)),
            }
        }
        Ok(text)
    }

    /// The name of a variable for this plugin.
    fn variable_name(&self, what: &str) -> String {
        variable(&format!("{}_{what}", self.plugin))
    }

    fn secret(&mut self, name: String, what: String) -> String {
        let name = variable(&name);
        let text = format!("${{{name}}}");
        self.variables.insert(name, what);
        text
    }

    /// Translates editors' variables to configuration syntax.
    fn translate(&mut self, text: &str) -> Result<String, ValueError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(&literal(before));
            let Some((inside, after)) = after.split_once('}') else {
                return Err(ValueError::Unclosed);
            };
            rest = after;
            let (name, default) =
                inside.split_once(":-").map_or((inside, None), |(name, text)| (name, Some(text)));
            let name = name.strip_prefix("env:").unwrap_or(name);
            if let Some(id) = inside.strip_prefix("input:") {
                let name = variable(&format!("{}_{id}", self.plugin));
                out.push_str(&format!("${{{name}}}"));
                self.variables.insert(name, format!("what the editor asks for as {id:?}"));
            } else if inside == "userHome" {
                out.push_str(&literal(&std::env::var("HOME").unwrap_or_default()));
            } else if is_variable(name)
                && !matches!(name, "workspaceFolder" | "workspaceFolderBasename" | "pathSeparator" | "file")
            {
                match default {
                    // It would be expanded as a variable of the supervisor.
                    Some(default) if default.contains('$') => {
                        return Err(ValueError::DollarInDefault { name: name.to_owned() });
                    }
                    // A default value that is a secret is not copied either.
                    Some(default)
                        if default.is_empty() || !(sounds_secret(name) || looks_secret(default)) =>
                    {
                        out.push_str(&format!("${{{name}:-{default}}}"));
                    }
                    _ => {
                        out.push_str(&format!("${{{name}}}"));
                        self.variables.insert(name.to_owned(), format!("the editor's ${{{name}}}"));
                    }
                }
            } else {
                return Err(ValueError::EditorOnly { shown: inside.chars().take(MAX_SHOWN_CHARS).collect() });
            }
        }
        out.push_str(&literal(rest));
        Ok(out)
    }
}

/// Escapes a literal text.
pub(super) fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

fn holds_variables(text: &str) -> bool {
    text.contains("${")
}

fn looks_secret(value: &str) -> bool {
    value.len() >= 12 && SECRET_PREFIXES.iter().any(|beginning| value.starts_with(beginning))
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

fn is_variable(name: &str) -> bool {
    name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Converts a text to a variable name: unchanged if it is valid, otherwise in upper case.
fn variable(text: &str) -> String {
    if is_variable(text) && !text.bytes().any(|b| b.is_ascii_lowercase()) {
        return text.to_owned();
    }
    let good = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = text.chars().map(good).collect();
    if is_variable(&name) { name } else { format!("_{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(given: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut values = ValueTranslator::of("my-server");
        let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
        let texts = values.args(&given).unwrap();
        (texts, values.variables.into_keys().collect())
    }

    #[test]
    fn secrets_stay_behind_and_everything_else_means_itself() {
        let mut values = ValueTranslator::of("my-server");
        assert_eq!(values.env("GITHUB_TOKEN", "abc").unwrap(), "${GITHUB_TOKEN}");
        assert_eq!(values.env("github-pass", "abc").unwrap(), "${GITHUB_PASS}");
        assert_eq!(values.env("PLAIN", "sk-0123456789abcdef").unwrap(), "${PLAIN}");
        assert_eq!(values.env("PRICE", "5$ and $$ or $HOME").unwrap(), "5$$ and $$$$ or $$HOME");
        assert_eq!(values.env("API_KEY", "").unwrap(), "");
        assert_eq!(values.header("Authorization", "Bearer x").unwrap(), "${MY_SERVER_AUTHORIZATION}");
        assert_eq!(values.header("User-Agent", "me").unwrap(), "me");
        assert_eq!(
            values.url("https://a.example/mcp?x=1&api_key=abc").unwrap(),
            "https://a.example/mcp?x=1&api_key=${MY_SERVER_API_KEY}"
        );
        assert_eq!(
            values.url("https://${env:HOST}/mcp?token=abc&user=${env:ME}").unwrap(),
            "https://${HOST}/mcp?token=${MY_SERVER_TOKEN}&user=${ME}",
            "a variable beside it hides no secret"
        );
        assert_eq!(
            values.url("https://a.example/s/sk-0123456789abcdef/mcp").unwrap(),
            "https://a.example/s/${MY_SERVER_URL}/mcp"
        );
        for plain in ["https://a.example/$x", "https://a.example/mcp?a&b=c"] {
            assert_eq!(values.url(plain).unwrap(), literal(plain));
        }
        for bad in ["https://me:secret@a.example/", "https://me:secret@${env:HOST}/"] {
            assert!(values.url(bad).is_err(), "{bad}");
        }
        let kept = values.variables.keys().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(
            kept,
            [
                "GITHUB_PASS",
                "GITHUB_TOKEN",
                "HOST",
                "ME",
                "MY_SERVER_API_KEY",
                "MY_SERVER_AUTHORIZATION",
                "MY_SERVER_TOKEN",
                "MY_SERVER_URL",
                "PLAIN"
            ]
        );
    }

    #[test]
    fn secrets_in_arguments_are_found_by_the_flag_and_by_how_they_begin() {
        assert_eq!(
            args(&["--api-key", "abc", "--port", "80"]).0,
            ["--api-key", "${MY_SERVER_API_KEY}", "--port", "80"]
        );
        assert_eq!(args(&["--token=abc"]).0, ["--token=${MY_SERVER_TOKEN}"]);
        assert_eq!(args(&["--password", "--verbose"]).0, ["--password", "--verbose"]);
        assert_eq!(args(&["sk-0123456789abcdef"]).0, ["${MY_SERVER_SECRET}"]);
        assert_eq!(args(&["API_KEY=abc"]).0, ["API_KEY=${MY_SERVER_API_KEY}"]);
        assert_eq!(
            args(&["postgresql://localhost/db", "a=b", "-x"]),
            (vec!["postgresql://localhost/db".into(), "a=b".into(), "-x".into()], vec![])
        );
    }

    #[test]
    fn what_editors_write_for_variables_is_translated() {
        let mut values = ValueTranslator::of("s");
        assert_eq!(values.env("A", "${env:HOME_DIR}/x$").unwrap(), "${HOME_DIR}/x$$");
        assert_eq!(values.env("A", "${B:-c}").unwrap(), "${B:-c}");
        assert_eq!(values.env("A", "a ${input:api-key}").unwrap(), "a ${S_API_KEY}");
        assert_eq!(values.env("A", "${B:-sk-0123456789abcdef}").unwrap(), "${B}");
        assert_eq!(values.env("A", "${B_TOKEN:-x}${C_TOKEN:-}").unwrap(), "${B_TOKEN}${C_TOKEN:-}");
        for bad in
            ["${B:-$C}", "${B:-${C}}", "${B:-a$}", "${workspaceFolder}/x", "${command:x}", "${open", "${}"]
        {
            assert!(values.env("A", bad).is_err(), "{bad}");
        }
    }
}
