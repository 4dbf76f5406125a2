//! The day, for the prompt. The time of day is left out: a prompt that stays the same for a day is cached.

use chrono::{DateTime, Local, Offset as _, TimeZone};

/// The day and the machine's time zone, as `Tuesday, 2026-11-24, time zone Europe/Berlin (UTC+01:00)`.
#[must_use]
pub fn today() -> String {
    let name = iana_time_zone::get_timezone().ok();
    day(&Local::now(), name.as_deref())
}

fn day<Z: TimeZone>(now: &DateTime<Z>, zone: Option<&str>) -> String
where
    Z::Offset: std::fmt::Display,
{
    let seconds = now.offset().fix().local_minus_utc();
    let offset = match seconds {
        0 => "UTC".to_owned(),
        _ => format!("UTC{}", now.format("%:z")),
    };
    let zone = zone.filter(|name| *name != offset && *name != "Etc/UTC");
    let zone = zone.map_or_else(|| offset.clone(), |name| format!("{name} ({offset})"));
    format!("{}, time zone {zone}", now.format("%A, %Y-%m-%d"))
}

#[cfg(test)]
mod tests {
    use chrono::{FixedOffset, Utc};

    use super::*;

    #[test]
    fn the_day_is_that_of_the_zone() {
        let utc: DateTime<Utc> = "2026-11-24T23:30:00Z".parse().expect("a time");
        assert_eq!(day(&utc, Some("Etc/UTC")), "Tuesday, 2026-11-24, time zone UTC");
        let berlin = utc.with_timezone(&FixedOffset::east_opt(3_600).expect("an hour"));
        assert_eq!(
            day(&berlin, Some("Europe/Berlin")),
            "Wednesday, 2026-11-25, time zone Europe/Berlin (UTC+01:00)"
        );
        assert_eq!(day(&berlin, None), "Wednesday, 2026-11-25, time zone UTC+01:00");
        assert!(today().contains(", time zone "));
    }
}
