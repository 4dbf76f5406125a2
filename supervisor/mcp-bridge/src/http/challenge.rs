//! The `WWW-Authenticate` header: what a server says that it wants.

/// The longest header that is looked at.
const MAX_CHALLENGE_BYTES: usize = 4096;

/// A parameter of a `WWW-Authenticate` header.
pub(crate) fn challenge_parameter(challenge: &str, name: &str) -> Option<String> {
    if challenge.len() > MAX_CHALLENGE_BYTES {
        return None;
    }
    let is_start =
        |at: usize| challenge[..at].chars().next_back().is_none_or(|before| before == ' ' || before == ',');
    let mut starts = challenge.match_indices(name).map(|(at, _)| at).filter(|at| is_start(*at));
    starts.find_map(|at| {
        let value = challenge[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?.0,
            None => value.split([',', ' ']).next()?,
        };
        Some(value.to_owned())
    })
}

/// Whether a scope has only characters that mean nothing to a shell in quotes.
pub(super) fn is_plain(scope: &str) -> bool {
    scope.chars().all(|char| char.is_ascii_alphanumeric() || " ._:/-".contains(char))
}

/// All names of two scopes, each once: those of the first, then what the second adds.
pub(super) fn union(first: &str, second: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in first.split_whitespace().chain(second.split_whitespace()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_further_right_is_asked_for_beside_those_that_are_there() {
        assert_eq!(union("a:read a:list", "a:write a:read"), "a:read a:list a:write");
        assert_eq!(union("", "a:write"), "a:write");
    }

    #[test]
    fn a_challenge_names_its_parameters() {
        let header = r#"Bearer error="invalid_token", resource_metadata="https://a.example/x", scope="a b""#;
        assert_eq!(challenge_parameter(header, "resource_metadata").as_deref(), Some("https://a.example/x"));
        assert_eq!(challenge_parameter(header, "scope").as_deref(), Some("a b"));
        assert_eq!(challenge_parameter("Bearer scope=one,x=2", "scope").as_deref(), Some("one"));
        for none in ["Bearer", "Bearer noscope=\"a\"", "Bearer scope", "Bearer scope=\"open"] {
            assert_eq!(challenge_parameter(none, "scope"), None, "{none}");
        }
    }
}
