use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixture::message;

fn round_trip(fields: &str, json: &Value) -> Result<Value, MessageError> {
    let message = message(fields);
    answer(&message, request(&message, &json.to_string())?.into())
}

// Promises: OTHER-17
#[test]
fn answers_are_the_json_of_proto3() {
    let fields = "bytes data = 1; uint64 big_number = 2; int32 small = 3; Color color = 4; map<string, int64> counts = 5;
        google.protobuf.Timestamp at = 6; bool unset = 7; repeated M below = 8;";
    let given = json!({
        "data": "AP8=", "bigNumber": 18_446_744_073_709_551_615_u64, "small": -7, "color": "GREEN",
        "counts": {"a": 1}, "at": "2026-11-24T23:00:00Z", "below": [{"small": 1}, {}],
    });
    let mut expected = given.clone();
    expected["bigNumber"] = json!("18446744073709551615");
    expected["counts"] = json!({"a": "1"});
    assert_eq!(round_trip(fields, &given).unwrap(), expected);
    // Both spellings of a name are taken.
    assert_eq!(round_trip(fields, &json!({"big_number": "3"})).unwrap(), json!({"bigNumber": "3"}));
    assert_eq!(round_trip(fields, &json!({})).unwrap(), json!({}));
}

#[test]
fn arguments_that_do_not_fit_are_refused_within_bounds() {
    let fields = "int32 small = 1; bytes data = 2; M below = 3;";
    for (given, word) in [
        (json!({"small": 2_147_483_648_i64}), "small"),
        (json!({"small": "seven"}), "seven"),
        (json!({"data": "%%%"}), "base64"),
        (json!({"nothing": 1}), "nothing"),
        (json!({"small": {}}), ""),
        (json!({"data": "x".repeat(10_000)}), ""),
    ] {
        if let Err(error) = round_trip(fields, &given) {
            let error = error.to_string();
            assert!(error.contains("the arguments are no x.M") && error.len() < 1200, "{word}: {error}");
        } else {
            assert!(given["data"].is_string(), "{given} was taken");
        }
    }
}

// Promises: OTHER-17
#[test]
fn what_nests_too_deep_is_refused_on_both_ways() {
    let described = message("M below = 1;");
    let deep = format!("{}1{}", "{\"below\":".repeat(10_000), "}".repeat(10_000));
    let refused = request(&described, &deep).unwrap_err().to_string();
    assert!(refused.contains("recursion limit"), "{refused}");
    // A message within itself, 200 times.
    let mut nested = Vec::new();
    for _ in 0..200 {
        let mut outer = vec![0x0a];
        prost::encoding::encode_varint(nested.len() as u64, &mut outer);
        outer.extend(nested);
        nested = outer;
    }
    let refused = answer(&described, nested.into()).unwrap_err().to_string();
    assert!(refused.contains("recursion limit"), "{refused}");
}

proptest! {
    #[test]
    fn no_answer_is_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let described = message("bytes data = 1; M below = 2; map<string, M> more = 3; google.protobuf.Value any = 4;");
        let _ = answer(&described, bytes.into());
    }

    #[test]
    fn what_is_sent_comes_back(data in prop::collection::vec(any::<u8>(), 1..40), number in 1_i64.., text in "[a-z\u{e9}\"]{1,9}") {
        use prost::Message as _;
        let described = message("bytes data = 1; int64 number = 2; string text = 3;");
        let mut sent = DynamicMessage::new(described.clone());
        sent.set_field_by_name("data", prost_reflect::Value::Bytes(data.into()));
        sent.set_field_by_name("number", prost_reflect::Value::I64(number));
        sent.set_field_by_name("text", prost_reflect::Value::String(text));
        let json = answer(&described, sent.encode_to_vec().into()).unwrap();
        prop_assert_eq!(request(&described, &json.to_string()).unwrap(), sent.encode_to_vec());
    }
}
