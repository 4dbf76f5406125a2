use super::*;
use proptest::prelude::*;

fn duration(text: &str) -> std::time::Duration {
    text.parse::<Duration>().unwrap_or_else(|e| panic!("{text}: {e}")).get()
}

// Promises: CONF-6
#[test]
fn durations_read_as_people_write_them() {
    use std::time::Duration as D;
    assert_eq!(duration("30s"), D::from_secs(30));
    assert_eq!(duration("1m30s"), D::from_secs(90));
    assert_eq!(duration(" 1 m 30 s "), D::from_secs(90));
    assert_eq!(duration("500ms"), D::from_millis(500));
    assert_eq!(duration("1.5h"), D::from_secs(5400));
    assert_eq!(duration("2d"), D::from_secs(172_800));
    assert_eq!(duration("250µs"), D::from_micros(250));
    assert_eq!(duration("0s"), D::ZERO);
}

// Promises: CONF-6
#[test]
fn a_bare_number_is_told_its_unit() {
    let error = "30".parse::<Duration>().unwrap_err().to_string();
    assert!(error.contains("\"30s\""), "{error}");
}

#[test]
fn what_is_no_duration_is_refused() {
    for bad in ["", " ", "s", "30 seconds", "-1s", "1s1m", "1m1m", "1.s", "1e3s", "0x1s", "30s!", "1m30", "∞"]
    {
        assert!(bad.parse::<Duration>().is_err(), "{bad:?}");
    }
    for long in ["366d", "99999999999999999999999999999999999d", &"9".repeat(63)] {
        assert!(long.parse::<Duration>().is_err(), "{long:?}");
    }
}

// Promises: CONF-6
#[test]
fn sizes_read_as_people_write_them() {
    let size = |text: &str| text.parse::<ByteSize>().unwrap_or_else(|e| panic!("{text}: {e}")).get();
    assert_eq!(size("65536"), 65_536);
    assert_eq!(size("64KiB"), 65_536);
    assert_eq!(size("8 MiB"), 8 << 20);
    assert_eq!(size("10MB"), 10_000_000);
    assert_eq!(size("1.5KiB"), 1536);
    assert_eq!(size("0"), 0);
}

#[test]
fn what_is_no_size_is_refused() {
    for bad in ["", "KiB", "-1", "1.5B", "64K", "64kib", "1 2", "99999999TiB", "1e6"] {
        assert!(bad.parse::<ByteSize>().is_err(), "{bad:?}");
    }
}

#[test]
fn sizes_print_in_the_largest_unit_that_fits() {
    assert_eq!(ByteSize::bytes(65_536).to_string(), "64KiB");
    assert_eq!(ByteSize::mib(8).to_string(), "8MiB");
    assert_eq!(ByteSize::bytes(1000).to_string(), "1000B");
    assert_eq!(ByteSize::bytes(0).to_string(), "0B");
}

#[test]
fn numbers_and_texts_deserialize() {
    assert_eq!(serde_json::from_str::<ByteSize>("65536").unwrap(), ByteSize::kib(64));
    assert_eq!(serde_json::from_str::<ByteSize>("\"64KiB\"").unwrap(), ByteSize::kib(64));
    assert!(serde_json::from_str::<ByteSize>("-1").is_err());
    assert_eq!(serde_json::from_str::<Duration>("\"30s\"").unwrap(), Duration::from_secs(30));
    assert!(serde_json::from_str::<Duration>("30").unwrap_err().to_string().contains("no unit"));
}

proptest! {
    #[test]
    fn every_duration_prints_as_it_reads(nanos in 0..MAX_DURATION.as_nanos() as u64) {
        let duration = Duration::from(std::time::Duration::from_nanos(nanos));
        prop_assert_eq!(duration.to_string().parse::<Duration>().unwrap(), duration);
    }

    #[test]
    fn every_size_prints_as_it_reads(bytes: u64, shift in 0u32..50) {
        for bytes in [bytes, (bytes >> shift) << shift] {
            let size = ByteSize::bytes(bytes);
            prop_assert_eq!(size.to_string().parse::<ByteSize>().unwrap(), size);
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,80}") {
        let _ = text.parse::<Duration>();
        let _ = text.parse::<ByteSize>();
    }

    #[test]
    fn no_text_of_numbers_and_units_panics(text in "[0-9.]{0,60}(d|h|m|s|ms|KiB|TiB|µs| )[0-9.]{0,5}(s|B)?") {
        let _ = text.parse::<Duration>();
        let _ = text.parse::<ByteSize>();
    }
}
