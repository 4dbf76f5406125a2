//! Whether a server keeps what it acknowledges.

use std::collections::HashMap;

use redis::aio::ConnectionLike;
use redis::{RedisError, cmd};
use talon_sink::peer_text::one_line;

/// Why a server is not used. The texts end with what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DurabilityError {
    #[error(
        "the server would lose acknowledged writes with a crash: {0}; change that (CONFIG SET, and its file), or set durability: relaxed in the plugin's config"
    )]
    Volatile(String),
    #[error(
        "the server does not say whether it keeps acknowledged writes ({}): allow the user CONFIG GET, or set durability: relaxed in the plugin's config",
        one_line(&.0.to_string())
    )]
    Unknown(RedisError),
}

/// What is wrong with a server's settings, if something is.
fn complaint(settings: &HashMap<String, String>) -> Option<String> {
    // What a server does not know, it does not do.
    let value = |name: &str| settings.get(name).map_or("", String::as_str);
    if value("appendonly") != "yes" {
        return Some("appendonly is not yes".to_owned());
    }
    if value("appendfsync") != "always" {
        return Some(format!("appendfsync is {}, not always", one_line(value("appendfsync"))));
    }
    if value("no-appendfsync-on-rewrite") == "yes" {
        return Some("no-appendfsync-on-rewrite is yes".to_owned());
    }
    if value("maxmemory") != "0" && value("maxmemory-policy") != "noeviction" {
        return Some(format!(
            "maxmemory-policy is {}, which removes keys when memory is short, not noeviction",
            one_line(value("maxmemory-policy"))
        ));
    }
    None
}

/// Asks a server for its settings.
pub(crate) async fn check(connection: &mut impl ConnectionLike) -> Result<(), DurabilityError> {
    let mut settings = HashMap::new();
    for pattern in ["append*", "no-appendfsync-on-rewrite", "maxmemory*"] {
        let found: Result<HashMap<String, String>, _> =
            cmd("CONFIG").arg("GET").arg(pattern).query_async(connection).await;
        settings.extend(found.map_err(DurabilityError::Unknown)?);
    }
    complaint(&settings).map_or(Ok(()), |complaint| Err(DurabilityError::Volatile(complaint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-108
    #[test]
    fn a_server_that_would_lose_writes_is_recognised() {
        let good = [
            ("appendonly", "yes"),
            ("appendfsync", "always"),
            ("no-appendfsync-on-rewrite", "no"),
            ("maxmemory", "0"),
            ("maxmemory-policy", "allkeys-lru"),
        ];
        let with = |name: &str, value: &str| {
            let mut settings: HashMap<String, String> =
                good.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            settings.insert(name.to_owned(), value.to_owned());
            complaint(&settings)
        };
        assert_eq!(with("appendonly", "yes"), None);
        for (name, value, says) in [
            ("appendonly", "no", "appendonly"),
            ("appendfsync", "everysec", "everysec"),
            ("no-appendfsync-on-rewrite", "yes", "rewrite"),
            ("maxmemory", "100mb", "noeviction"),
        ] {
            assert!(with(name, value).is_some_and(|complaint| complaint.contains(says)), "{name}");
        }
        assert!(complaint(&HashMap::new()).is_some());
    }
}
