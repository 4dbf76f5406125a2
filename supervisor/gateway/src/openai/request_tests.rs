use super::*;

fn read(more: &Value) -> Result<ChatRequest, Problem> {
    let mut body = json!({"model": "talon", "messages": [{"role": "user", "content": "Hi"}]});
    let fields = body.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    ChatRequest::read(fields.clone())
}

// Promises: GW-106
#[test]
fn every_field_is_honoured_neutral_or_refused_by_its_name() {
    let all = json!({"temperature": 0.5, "max_tokens": 7, "response_format": {"type": "json_object"}, "user": "u",
        "stream": true, "stream_options": {"include_usage": true}, "reasoning_effort": "low"});
    let request = read(&all).unwrap();
    assert!(request.stream && request.include_usage);
    assert_eq!(request.sampling.unwrap().max_tokens, Some(7));
    assert_eq!((request.schema.as_str(), request.thinking.as_str()), (r#"{"type":"object"}"#, "low"));
    for neutral in [
        json!({"n": 1, "frequency_penalty": 0, "presence_penalty": 0.0, "logprobs": false, "seed": null}),
        json!({"tools": [], "tool_choice": "auto", "stop": null, "logit_bias": {}, "store": false, "metadata": null}),
    ] {
        assert!(read(&neutral).is_ok(), "{neutral}");
    }
    for (refused, name) in [
        (json!({"n": 2}), "n"),
        (json!({"seed": 1}), "seed"),
        (json!({"stop": ["a"]}), "stop"),
        (json!({"tools": [{"type": "function"}]}), "tools"),
        (json!({"unheard_of": null}), "unheard_of"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"stream_options": {}}), "stream_options"),
        (json!({"max_tokens": -1}), "max_tokens"),
        (json!({"model": null}), "model"),
        (json!({"messages": "Hi"}), "messages"),
        (json!({"reasoning_effort": "most"}), "reasoning_effort"),
    ] {
        let problem = read(&refused).unwrap_err();
        assert_eq!(
            (problem.kind(), problem.fields()),
            (ProblemKind::BadRequest, &[name.to_owned()][..]),
            "{refused}"
        );
    }
}

#[test]
fn null_is_neutral_for_what_is_known_alone() {
    for name in NEUTRAL {
        assert!(is_neutral(name, &Value::Null));
    }
    assert!(!is_neutral("model_kwargs", &Value::Null));
}
