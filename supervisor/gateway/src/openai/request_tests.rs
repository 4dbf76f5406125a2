use super::*;
use crate::problem::ProblemKind;

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
        "stream": true, "stream_options": {"include_usage": true}, "reasoning_effort": "low", "verbosity": "high", "stop": ["END", "###"], "seed": -7});
    let request = read(&all).unwrap();
    assert!(request.stream && request.include_usage);
    let CompleteRequest { sampling, schema, thinking, verbosity, model, stop, seed, .. } = request.asked;
    assert_eq!((stop, seed), (vec!["END".to_owned(), "###".to_owned()], Some(-7)));
    assert_eq!(read(&json!({"stop": "END"})).unwrap().asked.stop, ["END"]);
    assert_eq!((sampling.unwrap().max_tokens, model.as_str()), (Some(7), ""));
    assert_eq!(
        (schema.as_str(), thinking.as_str(), verbosity.as_str()),
        (r#"{"type":"object"}"#, "low", "high")
    );
    for neutral in [
        json!({"n": 1, "frequency_penalty": 0, "presence_penalty": 0.0, "logprobs": false, "seed": null}),
        json!({"tools": [], "tool_choice": "auto", "stop": null, "logit_bias": {}, "store": false, "metadata": null}),
        json!({"parallel_tool_calls": true, "functions": [], "safety_identifier": "u1", "tools": null}),
    ] {
        assert!(read(&neutral).is_ok(), "{neutral}");
    }
    for (refused, name) in [
        (json!({"n": 2}), "n"),
        (json!({"seed": "lucky"}), "seed"),
        (json!({"stop": [7]}), "stop"),
        // Nothing of a completion is stored, so there is nothing to note it at.
        (json!({"metadata": {"a": "b"}}), "metadata"),
        (json!({"tools": [{"type": "function"}]}), "tools"),
        (json!({"tools": [{"type": "custom", "custom": {"name": "a"}}]}), "tools"),
        (json!({"tool_choice": "some"}), "tool_choice"),
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
fn a_field_of_several_forms_says_which_it_takes() {
    let said = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    for (body, forms) in [
        (json!({"stop": [7]}), "a text or a list of texts"),
        (said(json!(7)), "a text, or a list of parts"),
        (said(json!([{"type": "input_audio", "input_audio": {}}])), "text, refusal and image_url"),
    ] {
        let problem = read(&body).unwrap_err();
        assert!(problem.detail().contains(forms), "{body}: {}", problem.detail());
    }
}

// Promises: GW-166
#[test]
fn tools_and_their_choice_reach_the_agent() {
    let function = json!({"name": "look", "description": "Looks.", "strict": true,
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}});
    let asked = json!({"tools": [{"type": "function", "function": function}], "parallel_tool_calls": false,
        "tool_choice": {"type": "function", "function": {"name": "look"}}});
    let CompleteRequest { client_tools, tool_choice, one_call, .. } = read(&asked).unwrap().asked;
    let tool = &client_tools[0];
    assert_eq!((tool.name.as_str(), tool.description.as_str(), tool.strict), ("look", "Looks.", true));
    assert!(tool.parameters.contains("properties") && one_call);
    assert_eq!(tool_choice.unwrap(), ToolChoice { mode: "tool".to_owned(), name: "look".to_owned() });
}

#[test]
fn null_is_neutral_for_what_is_known_alone() {
    for name in NEUTRAL {
        assert!(is_neutral(name, &Value::Null));
    }
    assert!(!is_neutral("model_kwargs", &Value::Null));
}
