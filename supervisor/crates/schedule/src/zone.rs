//! Time zones.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use talon_sanitize::{nearest, truncate};

/// The longest name in a message. IANA's longest has 32 bytes.
const MAX_SHOWN_BYTES: usize = 60;

/// The database in this program, so that every machine and every process have the same.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone of the IANA database, by name: `Europe/Berlin`. The default is `UTC`.
///
/// The database is a part of the program, of the version that the release notes name, so that the command
/// line, the supervisor and the agent have the same, also on machines without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

/// There is no time zone of a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no time zone {shown:?}: {}", advice(.nearest))]
pub struct UnknownZoneError {
    /// The name, truncated.
    pub shown: String,
    /// The nearest names.
    pub nearest: Vec<String>,
}

fn advice(nearest: &[String]) -> String {
    match nearest {
        [] => "write a name of the IANA database, such as Europe/Berlin or UTC".to_owned(),
        [near, ..] => format!("did you mean {near}?"),
    }
}

impl Zone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), zone: TimeZone::UTC }
    }

    /// Its name, as the database writes it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// A time as a person in this zone reads it: `2026-03-29 03:00:00 +02:00 CEST`.
    #[must_use]
    pub fn show(&self, at: jiff::Timestamp) -> String {
        at.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z %Z").to_string()
    }

    /// The names of all zones, sorted.
    #[must_use]
    pub fn names() -> Vec<String> {
        let mut names: Vec<String> = DATABASE.available().map(|name| name.as_str().to_owned()).collect();
        names.sort_unstable();
        names
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self::utc()
    }
}

impl FromStr for Zone {
    type Err = UnknownZoneError;

    fn from_str(name: &str) -> Result<Self, UnknownZoneError> {
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(Self::utc());
        }
        match DATABASE.get(name) {
            Ok(zone) => Ok(Self { name: zone.iana_name().unwrap_or(name).to_owned(), zone }),
            Err(_) => {
                let names = Self::names();
                Err(UnknownZoneError {
                    shown: truncate(name, MAX_SHOWN_BYTES, "…").into_owned(),
                    nearest: nearest(name, names.iter().map(String::as_str)),
                })
            }
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_the_name_that_the_database_writes() {
        assert_eq!("europe/berlin".parse::<Zone>().expect("a zone").name(), "Europe/Berlin");
        assert_eq!("utc".parse::<Zone>(), Ok(Zone::utc()));
        assert!(Zone::names().len() > 400);
    }

    #[test]
    fn an_unknown_zone_is_answered_with_the_nearest() {
        let unknown = "Europe/Berlni".parse::<Zone>().expect_err("unknown");
        assert_eq!(unknown.nearest.first().map(String::as_str), Some("Europe/Berlin"));
        assert!(unknown.to_string().ends_with('?'), "{unknown}");
        for hostile in ["", "../../etc/passwd", &"x".repeat(100_000), "Mars/Olympus", "Europe/Berlin\0"] {
            let text = hostile.parse::<Zone>().expect_err("unknown").to_string();
            assert!(text.len() < 300, "{text}");
        }
    }
}
