use proptest::prelude::*;
use serde_json::json;

use super::*;

fn args(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).expect("arguments")
}

fn variables() -> Value {
    json!({"message": "say \"hi\"\n{{ session.id }}", "session": {"id": "s1", "turn": 7}, "metadata": {"lang": "de"}})
}

fn rendered(template: Value) -> Result<Value, TemplateError> {
    render(&args(json!({"a": template})), &variables()).map(|mut all| all.remove("a").expect("it is there"))
}

// Promises: EXT-2
#[test]
fn placeholders_are_filled_with_values_and_values_stay_data() {
    for (template, becomes) in [
        (json!("plain"), json!("plain")),
        (json!("{{ message }}"), json!("say \"hi\"\n{{ session.id }}")),
        (json!(" {{session.turn}} "), json!(7)),
        (json!("{{ session }}"), json!({"id": "s1", "turn": 7})),
        (json!("turn {{ session.turn }} of {{ session.id }}"), json!("turn 7 of s1")),
        (json!("<{{ message }}>"), json!("<say \"hi\"\n{{ session.id }}>")),
        (json!("{{ metadata.lang ~ '!' }}"), json!("de!")),
        (json!("{{ 'German' if metadata.lang == 'de' else 'other' }}"), json!("German")),
        (json!({"deep": ["{{ session.id }}", 3, null]}), json!({"deep": ["s1", 3, null]})),
        (json!("{{ '{{' }} {{ message[0] if false else 'x' }}"), json!("{{ x")),
    ] {
        assert_eq!(rendered(template.clone()), Ok(becomes), "{template}");
    }
}

// Promises: EXT-2
#[test]
fn nothing_but_placeholders_is_run() {
    for template in [
        "{% for x in metadata %}x{% endfor %}",
        "{% set x = 1 %}",
        "{# note #}",
        "{{ missing }}",
        "{{ session.missing }}",
        "{{ session.missing.more }} x",
        "{{ range(3) }}",
        "{{ message | upper }}",
        "{{ message.upper() }}",
        "{{",
        "{{ }}",
        "{{ 1 + }}",
        "{{ 'x' * 90000000 }}",
        "{{ [1] * 1000000000000 }}",
        "a {{ [message] * 1000000000 }}",
    ] {
        let error = rendered(json!(template)).expect_err(template).to_string();
        assert!(error.starts_with("a") && error.len() < 500, "{template}: {error}");
    }
    let long = rendered(json!("x".repeat(MAX_TEMPLATE_BYTES + 1))).expect_err("too long");
    assert!(matches!(long, TemplateError::TooLong { .. }));
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert!(matches!(rendered(deep), Err(TemplateError::TooDeep { .. })));
}

#[test]
fn arguments_that_no_call_may_have_are_refused() {
    let variables = json!({"message": "x".repeat(400_000)});
    let template = args(json!({"a": "{{ message }}", "b": "{{ message }}", "c": "{{ message }}"}));
    assert_eq!(render(&template, &variables), Err(TemplateError::TooLarge));
}

proptest! {
    // Promises: EXT-2
    #[test]
    fn a_value_never_changes_the_structure(message in ".{0,200}") {
        let variables = json!({"message": message});
        let template = args(json!({"whole": "{{ message }}", "part": "<{{ message }}>", "in": {"list": ["{{ message }}"]}}));
        let rendered = render(&template, &variables).expect("rendered");
        prop_assert_eq!(Value::Object(rendered), json!({
            "whole": message, "part": format!("<{message}>"), "in": {"list": [message]}
        }));
    }

    #[test]
    fn no_template_panics(template in ".{0,80}", braces in "[{}% a-z.\\[\\]()*~+0-9'\"|]{0,60}") {
        for text in [&template, &braces, &format!("{{{{ {braces} }}}}")] {
            let _ = render(&args(json!({"a": text})), &variables());
        }
    }
}
