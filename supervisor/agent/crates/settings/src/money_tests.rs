use proptest::prelude::*;

use super::*;

fn money(text: &str) -> Money {
    text.parse().expect("an amount")
}

#[test]
fn amounts_are_written_as_they_are_read() {
    for (written, shown) in [
        ("2", "2.00"),
        ("0.15", "0.15"),
        ("0.0375", "0.0375"),
        ("007.50", "7.50"),
        ("0.000000000001", "0.000000000001"),
        ("1000000", "1000000.00"),
    ] {
        assert_eq!(money(written).to_string(), shown);
    }
}

#[test]
fn what_is_no_amount_says_so() {
    for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "NaN", "inf", "$2", "１"] {
        assert!(matches!(text.parse::<Money>(), Err(ParseMoneyError::Malformed { .. })), "{text:?}");
    }
    assert!(matches!("0.0000000000001".parse::<Money>(), Err(ParseMoneyError::TooFine { decimals: 12, .. })));
    assert!(matches!("0.0000001".parse::<Price>(), Err(ParseMoneyError::TooFine { decimals: 6, .. })));
    assert!(matches!("1000000.01".parse::<Price>(), Err(ParseMoneyError::TooMuch { .. })));
    let long = "9".repeat(500);
    let error = long.parse::<Money>().expect_err("too much");
    assert!(error.to_string().len() < 100, "{error}");
}

#[test]
fn floats_keep_the_digits_that_were_written() {
    let read = |text: &str| serde_json::from_str::<Price>(text).expect("a price");
    assert_eq!(read("0.1").of(1_000_000), money("0.1"));
    assert_eq!(read("0.0375").of(2), money("0.000000075"));
    assert_eq!(read("3"), read("3.0"));
    assert_eq!(read("\"0.15\""), read("0.15"));
    assert!(serde_json::from_str::<Price>("-0.5").is_err());
    assert!(serde_json::from_str::<Price>("null").is_err());
}

proptest! {
    #[test]
    fn what_is_written_reads_as_the_same_again(picodollars in 0..=1_000_000 * PICOS_PER_DOLLAR) {
        let amount = Money(picodollars);
        prop_assert_eq!(money(&amount.to_string()), amount);
        let json = serde_json::to_string(&amount).expect("a string");
        prop_assert_eq!(serde_json::from_str::<Money>(&json).expect("an amount"), amount);
    }

    #[test]
    fn tokens_cost_the_same_one_by_one_and_together(micros in 0_u64..=1_000_000_000_000, a: u32, b: u32) {
        let price = Price { picodollars_a_token: micros };
        let (a, b) = (u64::from(a), u64::from(b));
        prop_assert_eq!(price.of(a).plus(price.of(b)), price.of(a + b));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,60}") {
        let _ = text.parse::<Money>();
        let _ = text.parse::<Price>();
    }

    #[test]
    fn nothing_is_below_nothing(a: u128, b: u128) {
        let left = Money(a).less(Money(b));
        prop_assert!(left <= Money(a));
    }
}
