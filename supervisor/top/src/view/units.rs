//! Formats numbers for narrow columns.

use std::time::Duration;

/// Stands for a missing number.
pub(crate) const NONE: &str = "–";

/// Three digits: `0`, `0.4`, `12.3`, `184`, `12.3k`.
pub(crate) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => NONE.to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(rate) if rate < 99.95 => format!("{rate:.1}"),
        Some(rate) if rate < 9999.5 => format!("{rate:.0}"),
        Some(rate) if rate < 999_950.0 => format!("{:.1}k", rate / 1e3),
        Some(rate) => format!("{:.1}M", rate / 1e6),
    }
}

/// A count: `9999`, `12k`, `3M`.
pub(crate) fn count(count: u64) -> String {
    match count {
        0..=9999 => count.to_string(),
        10_000..=9_999_999 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// `180us`, `12.3ms`, `1.9s`, `1m40s`.
pub(crate) fn micros(us: Option<u64>) -> String {
    let Some(us) = us else { return NONE.to_owned() };
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let number = us as f64;
    match us {
        0..=999 => format!("{us}us"),
        1000..=99_949 => format!("{:.1}ms", number / 1e3),
        99_950..=999_499 => format!("{:.0}ms", number / 1e3),
        999_500..=59_949_999 => format!("{:.1}s", number / 1e6),
        _ => format!("{}m{}s", us / 60_000_000, us / 1_000_000 % 60),
    }
}

/// `412K`, `41.0M`, `1.2G`.
pub(crate) fn bytes(bytes: Option<u64>) -> String {
    let Some(bytes) = bytes else { return NONE.to_owned() };
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let number = bytes as f64;
    match bytes {
        0..=0x000f_ffff => format!("{:.0}K", number / 1024.0),
        0x0010_0000..=0x3fff_ffff => format!("{:.1}M", number / f64::from(1 << 20)),
        _ => format!("{:.1}G", number / f64::from(1 << 30)),
    }
}

/// A duration in its largest two units: `3d 4h`, `1m 5s`, `40s`.
pub(crate) fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// The time of the day in UTC: `10:00:01Z`.
pub(crate) fn clock(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_have_three_digits_or_so() {
        let rates = [None, Some(0.0), Some(0.44), Some(99.96), Some(9999.6)].map(rate);
        assert_eq!(rates, ["–", "0", "0.4", "100", "10.0k"]);
        let times = [None, Some(180), Some(12_340), Some(1_900_000), Some(100_000_000)].map(micros);
        assert_eq!(times, ["–", "180us", "12.3ms", "1.9s", "1m40s"]);
        let sizes = [None, Some(421_888), Some(43 << 20), Some(5 << 28)].map(bytes);
        assert_eq!(sizes, ["–", "412K", "43.0M", "1.2G"]);
        assert_eq!([12, 12_345, 12_345_678].map(count), ["12", "12k", "12M"]);
        assert_eq!(clock(1_777_888_801_000), "10:00:01Z");
        assert_eq!(short(Duration::from_secs(11_040)), "3h 4m");
    }

    proptest! {
        #[test]
        fn no_usual_number_is_wider_than_its_column(number in 0.0..1e9, us in 0_u64..6_000_000_000, size in 0_u64..1 << 43) {
            prop_assert!(rate(Some(number)).len() <= 7);
            prop_assert!(micros(Some(us)).len() <= 7);
            prop_assert!(bytes(Some(size)).len() <= 7);
        }
    }
}
