use serde_json::{Value, json};

use super::*;

fn reader(schema: &Value) -> Reader {
    Reader::new(&Parameters::of(schema))
}

fn read(reader: &Reader, pairs: &[(&str, &str)]) -> Result<Value, ArgumentError> {
    let texts = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    reader.read(&texts, None).map(|read| Value::Object(read.object))
}

#[test]
fn texts_become_what_was_declared() {
    let schema = json!({"type": "object", "properties": {
        "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
        "l": {"type": "array", "items": {"type": "integer"}}, "o": {"type": "object"}, "x": {},
        "opt": {"type": "integer", "default": null},
        "nil": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
    }});
    let reader = reader(&schema);
    let texts = [
        ("s", "12"),
        ("i", "3.0"),
        ("n", "0.5"),
        ("b", "True"),
        ("l", "[1,[2]]"),
        ("o", "{\"a\":{\"b\":null}}"),
        ("x", "{\"k\":1}"),
        ("opt", "null"),
        ("nil", "null"),
    ];
    assert_eq!(
        read(&reader, &texts).unwrap(),
        json!({"s": "12", "i": 3, "n": 0.5, "b": true, "l": [1, [2]], "o": {"a": {"b": null}}, "x": {"k": 1}, "nil": null})
    );
    assert_eq!(read(&reader, &[("x", "plain words")]).unwrap()["x"], "plain words");
    for (name, text, says) in [
        ("i", "1.5", "an integer"),
        ("n", "NaN", "a number"),
        ("b", "yes", "true or false"),
        ("l", "{}", "a JSON array"),
        ("o", "[", "a JSON object"),
        ("nil", "x", "integer or null"),
    ] {
        let why = read(&reader, &[(name, text)]).unwrap_err().to_string();
        assert!(why.contains(says) && why.contains(&format!("`{name}`")), "{why}");
    }
}

#[test]
fn the_whole_object_is_given_as_one() {
    let whole = reader(&json!({"anyOf": [{"required": ["a"]}]}));
    assert_eq!(read(&whole, &[("arguments", "{\"a\":[1]}")]).unwrap(), json!({"a": [1]}));
    // A property that merely has that name is an ordinary property.
    let named = reader(&json!({"type": "object", "properties": {"arguments": {"type": "object"}}}));
    assert_eq!(read(&named, &[("arguments", "{\"a\":1}")]).unwrap(), json!({"arguments": {"a": 1}}));
}

#[test]
fn json_is_sent_as_it_came() {
    let schema = json!({"type": "object", "properties": {"x": {}, "i": {"type": "integer"}}});
    let json = Arguments::parse(r#"{"x": "7", "i": 12345678901234567890123}"#).unwrap();
    let read = reader(&schema).read(&json.texts(), Some(&json)).unwrap();
    assert_eq!(&*read.raw.0, r#"{"i":12345678901234567890123,"x":"7"}"#);
    assert_eq!(read.object["x"], "7");
    let whole = reader(&json!({"anyOf": [{}]}));
    let json = Arguments::parse(r#"{"arguments": {"x": "7", "b": 1.10}}"#).unwrap();
    let read = whole.read(&json.texts(), Some(&json)).unwrap();
    assert_eq!(&*read.raw.0, r#"{"x":"7","b":1.10}"#);
}
