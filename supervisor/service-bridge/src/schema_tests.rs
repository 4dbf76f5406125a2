use super::*;
use crate::fixture::message;

fn parameters_of(fields: &str) -> Vec<Parameter> {
    parameters(&message(fields), &mut Budget::default())
}

fn schema_of(field: &str) -> Value {
    serde_json::from_str(&parameters_of(field)[0].schema).unwrap()
}

// Promises: OTHER-17
#[test]
fn fields_are_parameters_of_their_kinds() {
    for (field, kind) in [
        ("string a = 1;", "string"),
        ("bytes a = 1;", "string"),
        ("int32 a = 1;", "integer"),
        ("uint64 a = 1;", "integer"),
        ("double a = 1;", "number"),
        ("bool a = 1;", "boolean"),
        ("Color a = 1;", "string"),
        ("repeated int32 a = 1;", "array"),
        ("map<string, int32> a = 1;", "object"),
        ("M a = 1;", "object"),
        ("google.protobuf.Timestamp a = 1;", "string"),
        ("google.protobuf.Value a = 1;", "any"),
    ] {
        let parameters = parameters_of(field);
        assert_eq!((parameters[0].r#type.as_str(), parameters[0].required), (kind, false), "{field}");
    }
    assert_eq!(parameters_of("string lease_id = 1;")[0].name, "leaseId");
    assert_eq!(schema_of("Color a = 1;")["enum"], json!(["RED", "GREEN"]));
    assert_eq!(schema_of("repeated bytes a = 1;")["items"]["contentEncoding"], "base64");
    assert_eq!(schema_of("map<string, int32> a = 1;")["additionalProperties"]["type"], "integer");
}

#[test]
fn what_holds_itself_ends() {
    let inner = &schema_of("M a = 1; int32 b = 2;");
    assert_eq!(inner["properties"]["a"]["type"], "object");
    let text = inner.to_string();
    assert!(text.len() < 2000, "{text}");
}

#[test]
fn a_wide_request_has_bounded_schemas() {
    let wide: String = (1..=200).map(|number| format!("Wide w{number} = {number};")).collect();
    let parameters = parameters_of(&wide);
    assert_eq!(parameters.len(), 200);
    let bytes: usize = parameters.iter().map(|parameter| parameter.schema.len()).sum();
    assert!(bytes <= MAX_TOTAL_BYTES && parameters.iter().all(|p| p.r#type == "object"), "{bytes}");
    assert!(Budget(3).spend("four".to_owned()).is_empty());
}
