//! Text grown from control tokens, evasions and ordinary text.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const TOKENS: [&str; 44] = [
    "<tool_call>",
    "</tool_call>",
    "<|im_start|>",
    "<|im_end|>",
    "<｜tool▁calls▁begin｜>",
    "[TOOL_CALLS]",
    "[/INST]",
    "[INST]",
    "[plugin_output]",
    "[/plugin_output]",
    "[/structured]",
    "[structured]",
    "<invoke name=\"x\">",
    "<parameter name=\"x\">",
    "<function=x>",
    "</s>",
    "<<SYS>>",
    "<start_of_turn>",
    "<minimax:tool_call>",
    "{\"tool_calls\":[",
    "{\"function_call\":{",
    "{\"type\":\"function\",\"function\":{}}",
    "{\"type\":\"tool_use\",\"name\":\"x\"}",
    "```tool_code\n",
    "Action: ```json\n{",
    "\n\nHuman: hi",
    "\n\nAssistant: ok",
    "System: a\nUser: b",
    "\nAction: x\nAction Input: {}",
    "### Instruction:",
    ">>>get\n",
    "]<]x[>[",
    "<think>",
    "<user>",
    "</user>",
    "<tool>{",
    "[|assistant|]",
    "[tool]",
    "[/tool]",
    "<ns:invoke a=1>",
    "&lt;tool_call>",
    "\\u003ctool_call>",
    "%3Ctool_call%3E",
    "<arg_key>",
];
const PIECES: [&str; 40] = [
    "<",
    ">",
    "/",
    "|",
    "[",
    "]",
    "\"",
    "`",
    "```",
    "#",
    "&",
    "&amp;",
    "lt;",
    "&#60",
    "%",
    "%25",
    "3c",
    "\\",
    "\\u00",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    "_",
    "=",
    "{",
    "}",
    ",",
    "·",
    "\u{200b}",
    "\u{200d}",
    "\u{200e}",
    "\u{fe0f}",
    "\u{1b}[0m",
    "\0",
    "tool",
    "_call",
    "x",
    "😀",
];

/// One token, perhaps disguised.
fn token() -> impl Strategy<Value = String> {
    (select(&TOKENS[..]), 0u8..16, any::<prop::sample::Index>()).prop_map(|(token, evasion, index)| {
        let chars: Vec<char> = token.chars().collect();
        let at = index.index(chars.len() + 1);
        let insert = |what: &str| {
            let mut out: String = chars[..at].iter().collect();
            out.push_str(what);
            out.extend(&chars[at..]);
            out
        };
        match evasion {
            0 => token.to_uppercase(),
            1 => insert("\u{200b}"),
            2 => insert(" "),
            3 => insert("\n"),
            4 => insert("\u{a0}"),
            5 => insert("\u{200e}"),
            6 => insert("\u{1b}[0m"),
            7 => insert(token),
            8 => chars
                .iter()
                .map(|&c| {
                    char::from_u32(u32::from(c) + 0xfee0).filter(|_| ('!'..='~').contains(&c)).unwrap_or(c)
                })
                .collect(),
            9 => token.replace('<', "&lt;").replace('[', "&lsqb;").replace('"', "&quot;"),
            10 => token.replace('<', "&amp;#60;").replace('[', "&amp;#x5B;"),
            11 => token.replace('<', "\\u003c").replace('[', "\\u005b").replace('"', "\\\""),
            12 => token.replace('<', "%3C").replace('[', "%255B"),
            13 => {
                token.replace('<', "\u{3008}").replace('>', "\u{3009}").replace('[', "【").replace(']', "】")
            }
            14 => token.replace('o', "о").replace('a', "а").replace('e', "е").replace('s', "ѕ"),
            _ => token.to_owned(),
        }
    })
}

/// Tokens, their pieces, and text in between.
pub(crate) fn grown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => token(),
        4 => select(&PIECES[..]).prop_map(str::to_owned),
        1 => "[a-zA-Z ]{0,8}",
        1 => any::<char>().prop_map(String::from),
    ];
    vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

/// Anything.
pub(crate) fn arbitrary() -> impl Strategy<Value = String> {
    prop_oneof![grown(), any::<String>(), "\\PC{0,40}"]
}
