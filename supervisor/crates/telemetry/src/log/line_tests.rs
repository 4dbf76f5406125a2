use super::*;

// Promises: TRACE-7
#[test]
fn texts_are_cut_where_a_character_ends() {
    let mut text = BoundedText::default();
    assert!(write!(text, "{}", "ä".repeat(MAX_TEXT_BYTES)).is_err());
    assert!(text.0.len() <= MAX_TEXT_BYTES + "…".len() && text.0.ends_with("ä…"));
}

// Promises: TRACE-7
#[test]
fn the_last_value_of_a_name_stands_and_what_does_not_fit_is_counted() {
    let mut fields = Fields::default();
    fields.set("plugin", "outer".into());
    let mut inner = Fields::default();
    inner.set("plugin", "inner".into());
    fields.extend(&inner);
    assert_eq!(fields.iter().collect::<Vec<_>>(), [("plugin", Value::from("inner"))]);
    for number in 0..MAX_FIELDS {
        fields.set(Box::leak(number.to_string().into_boxed_str()), number.into());
    }
    assert_eq!(fields.iter().last(), Some((OMITTED_FIELD, Value::from(1))));
}
