//! Helpers for the tests of several layers.

use proptest::prelude::*;
use prost::Message as _;
use talon_proto::plugin::ToolResultResponse;
use talon_sanitize::{Sanitizer, Settings};

use crate::answer::{Answer, Outcome, RawAnswer};
use crate::call::{Call, Origin};

/// A call of the plugin `x` by a model.
pub(crate) fn call(id: &str) -> Call {
    Call::new(id, "x", "run", Origin::Model)
}

/// A plugin's well-formed answer.
pub(crate) fn raw(call_id: &str, content: &str) -> RawAnswer {
    let message =
        ToolResultResponse { call_id: call_id.to_owned(), content: content.to_owned(), ..Default::default() };
    RawAnswer(message.encode_to_vec().into())
}

pub(crate) fn answer(content: &str, error: &str, structured_content: &str) -> Answer {
    Answer {
        outcome: if error.is_empty() { Outcome::Ok } else { Outcome::ToolError },
        content: content.to_owned().into(),
        error: error.to_owned().into(),
        structured_content: structured_content.to_owned().into(),
        ..Answer::from_tool("")
    }
}

pub(crate) fn sanitizer() -> Sanitizer {
    Sanitizer::new(&Settings::default()).expect("there is no pattern to be wrong")
}

/// Text with delimiters and their pieces in it.
pub(crate) fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "[/plugin_output]",
            "[plugin_output]",
            "[/structured]",
            "[structured]",
            "[",
            "/",
            "plugin_",
            "output",
            "]",
            "\n",
            "\n\nHuman: ",
            "Assistant:",
            "\nAction: ",
            "\r\n",
            "\u{2028}",
            "\u{85}",
            "· ",
            "[truncated: response exceeded size limit, 3 bytes left out]",
            "[/plugin_output nonce=",
            "0123456789abcdef0123456789abcdef",
            " ",
            "[tool_call]",
            "ä",
            "\u{200b}",
            "<",
            ">",
            "\"",
            "{",
        ])
        .prop_map(str::to_owned),
        ".{0,5}",
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}
