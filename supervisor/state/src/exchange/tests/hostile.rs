//! Whatever bytes come: an answer, and a short one.

use proptest::prelude::*;
use talon_store::Timestamp;

use super::super::node::Problem;
use super::super::omitted::OmittedFields;
use super::super::read::{Item, Shape, check, read};
use super::super::sessions::SessionReader;
use super::super::{entries, memories, messages};

/// Pieces of files, which together are sometimes one.
const PIECES: &[&str] = &[
    "id: ",
    "messages:",
    "- ",
    "\n",
    "\n",
    "\n  ",
    "\n- ",
    "role: user",
    "content: ",
    "tags: ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ": ",
    "? ",
    "|\n",
    ">-\n",
    "\"",
    "'",
    "!!binary ",
    "!!str ",
    "!x ",
    "&a ",
    "*a",
    "#",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "null",
    "~",
    "0001-01-01T00:00:00Z",
    "2026-01-01",
    "created_at: ",
    "trigger: ",
    "steps:",
    "plugin: a",
    "action: b",
    "order: ",
    "99999999999",
    "sequence: 1",
    "files: ",
    "tool_calls: ",
    "metadata: ",
    "overrides: ",
    "summary: x",
    "é",
    "\t",
    "\0",
    "\u{feff}",
    "<<: ",
    "trigger: a\nsteps:\n  - plugin: a, action: b, order: 1\noutcome: c",
];

fn file() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
        1 => "[a-z0-9:-]{0,12}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn everything(bytes: &[u8]) -> Vec<Problem> {
    let text = match check(bytes) {
        Ok(text) => text,
        Err(problem) => return vec![problem],
    };
    let mut problems = Vec::new();
    let mut seen = entries::SeenKeys::default();
    let mut left_out = OmittedFields::default();
    let mut reading = SessionReader::default();
    let read_as = |shape, each: &mut dyn FnMut(Item) -> bool| read(text, shape, each).err();
    let map = read_as(Shape::Map, &mut |item| {
        if let Item::Entry(key, value) = item {
            problems.extend(entries::read(key, value, &mut seen).1.err());
        }
        true
    });
    let list = read_as(Shape::List, &mut |item| {
        if let Item::Element(node) = item {
            problems.extend(memories::read(node, Timestamp::from_millis(0), &mut left_out).err());
        }
        true
    });
    let session = read_as(Shape::MapWith { items: "messages", skip: messages::FILES }, &mut |item| {
        match item {
            Item::Entry(key, value) => reading.field(key, value),
            Item::Element(node) => reading.message(node),
        }
        true
    });
    match reading.finish("stem", "import") {
        Ok((_, left_out)) => problems.extend(left_out.problems().map(|(_, problem)| problem)),
        Err(problem) => problems.push(problem),
    }
    problems.extend(left_out.problems().map(|(_, problem)| problem));
    problems.extend([map, list, session].into_iter().flatten());
    problems
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    // Promises: STATE-24
    #[test]
    fn any_bytes_get_a_short_answer(bytes in file()) {
        let lines = String::from_utf8_lossy(&bytes).split(['\n', '\r']).count() + 2;
        for problem in everything(&bytes) {
            prop_assert!(problem.reason.len() < 1_000, "{problem:?}");
            prop_assert!(!problem.reason.chars().any(char::is_control), "{problem:?}");
            prop_assert!(problem.at.line <= lines, "{problem:?}");
        }
    }
}
