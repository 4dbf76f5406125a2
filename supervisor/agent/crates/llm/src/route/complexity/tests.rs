use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::ToolSpec;

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

fn asked(text: &str) -> Request {
    Request { messages: vec![user(text)], ..Request::default() }
}

fn complexity(text: &str) -> Complexity {
    judge(&asked(text)).complexity
}

#[test]
fn small_talk_and_single_questions_are_simple() {
    for text in [
        "",
        "hello",
        "What is the capital of France?",
        "Wie spät ist es in Tokio?",
        "今天天气怎么样？",
        "Translate this into German: good morning",
        "Analyze this: 2 + 2",
    ] {
        assert_eq!(complexity(text), Complexity::Simple, "{text}");
    }
}

#[test]
fn a_few_steps_are_moderate() {
    for text in [
        "Compare tokio and async-std and evaluate which one fits.",
        "Do this:\n1. read the file\n2. find the function\n3. tell me why it fails, step by step",
        "Refactor this:\n```rust\nfn main() {}\n```",
        "Почему это не работает? Проанализируй журнал.",
    ] {
        assert_eq!(complexity(text), Complexity::Moderate, "{text}");
    }
}

#[test]
fn much_thought_is_complex() {
    let plan = "Design a migration of our billing service, compare the alternatives and prove that nothing is lost.\n\
        1. read the schema\n2. list what depends on it\n3. write the plan\n4. name the risks\n5. estimate\n6. review it\n\
        What breaks first? What can be rolled back?";
    assert_eq!(complexity(plan), Complexity::Complex);
    let judged = judge(&asked(plan));
    let signs: Vec<&str> = judged.signs.iter().map(|sign| sign.sign).collect();
    assert_eq!(signs, ["steps", "questions", "reasoning"]);
    assert_eq!(judged.points, 5);
}

#[test]
fn each_sign_has_its_points_from_its_limits_on() {
    let points = |request: &Request, sign: &str| {
        judge(request).signs.iter().find(|seen| seen.sign == sign).map_or(0, |seen| seen.points)
    };
    let lengths = [(399, 0), (400, 1), (1499, 1), (1500, 2), (100_000, 2)];
    for (chars, expected) in lengths {
        assert_eq!(points(&asked(&"ж".repeat(chars)), "length"), expected, "{chars}");
    }
    let many_lines = format!("```\n{}```", "x\n".repeat(60));
    for (text, expected) in [("```\nx\n```", 1), ("```\n```\n```\n```", 2), (&many_lines, 2)] {
        assert_eq!(points(&asked(text), "code"), expected, "{text}");
    }
    for (steps, expected) in [(2, 0), (3, 1), (5, 1), (6, 2)] {
        assert_eq!(points(&asked(&"- do\n".repeat(steps)), "steps"), expected, "{steps}");
    }
    for (questions, expected) in [(1, 0), (2, 1), (4, 2)] {
        assert_eq!(points(&asked(&"so? ".repeat(questions)), "questions"), expected, "{questions}");
    }
    let tool = ToolSpec { name: "x".to_owned(), description: String::new(), parameters: json!({}).into() };
    for (tools, expected) in [(7, 0), (8, 1), (100, 1)] {
        let request = Request { tools: vec![tool.clone(); tools], ..asked("hi") };
        assert_eq!(points(&request, "tools"), expected, "{tools}");
    }
    let result = Message::Tool { call_id: "1".to_owned(), content: "x".to_owned(), is_error: false };
    for (results, expected) in [(2, 0), (3, 1)] {
        let mut request = asked("hi");
        request.messages.extend(vec![result.clone(); results]);
        assert_eq!(points(&request, "results"), expected, "{results}");
    }
    for (chars, expected) in [(15_999, 0), (16_000, 1)] {
        let request = Request { messages: vec![user(&"a".repeat(chars)), user("hi")], ..Request::default() };
        assert_eq!(points(&request, "history"), expected, "{chars}");
    }
}

#[test]
fn the_text_of_tools_and_instructions_cannot_make_it_harder() {
    let hard = "Design, prove, compare, evaluate step by step?\n1. a\n2. b\n3. c\n".repeat(100);
    let request = Request {
        messages: vec![
            Message::System { text: hard.clone() },
            Message::Tool { call_id: "0".to_owned(), content: hard.repeat(4), is_error: false },
            user("hi"),
            Message::Assistant { text: String::new(), calls: Vec::new(), thoughts: None },
            Message::Tool { call_id: "1".to_owned(), content: hard, is_error: false },
        ],
        ..Request::default()
    };
    assert_eq!(judge(&request), judge(&asked("hi")));
}

proptest! {
    #[test]
    fn any_request_is_judged_and_always_the_same(texts in prop::collection::vec(".{0,200}", 0..6), tools in 0_usize..20) {
        let tool = ToolSpec { name: "x".to_owned(), description: String::new(), parameters: json!({}).into() };
        let messages = texts.iter().map(|text| user(text)).collect();
        let request = Request { messages, tools: vec![tool; tools], ..Request::default() };
        let judged = judge(&request);
        prop_assert_eq!(judged.points, judged.signs.iter().map(|sign| sign.points).sum::<u32>());
        prop_assert_eq!(judged, judge(&request));
    }

    #[test]
    fn more_tools_never_make_it_easier(text in "(?s).{0,400}", tools in 0_usize..20) {
        let tool = ToolSpec { name: "x".to_owned(), description: String::new(), parameters: json!({}).into() };
        let with = |count| judge(&Request { tools: vec![tool.clone(); count], ..asked(&text) }).complexity;
        prop_assert!(with(tools) <= with(tools + 1));
    }
}

#[test]
fn the_page_for_operators_has_these_numbers() {
    const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../docs/models.md"));
    let row = |sign: &str, [one, two]: [usize; 2]| {
        let two = if two == usize::MAX { "–".to_owned() } else { two.to_string() };
        let row =
            PAGE.lines().find(|line| line.starts_with(&format!("| {sign}"))).expect("a row for each sign");
        assert!(row.ends_with(&format!("| {one} | {two} |")), "{row}");
    };
    row("length of the message", LENGTH);
    row("blocks of code", FENCES);
    row("steps", STEPS);
    row("questions", QUESTIONS);
    row("different words of reasoning", WORDS);
    row("tools offered", [TOOLS, usize::MAX]);
    row("results of tools", [RESULTS, usize::MAX]);
    row("what was said before", [HISTORY, usize::MAX]);
    assert!(PAGE.contains(&format!("({MANY_CODE_LINES} lines of code count as two)")));
    assert!(PAGE.contains(&format!(
        "Below {MODERATE} points a request is simple, from {MODERATE} on moderate, from {COMPLEX} on complex"
    )));
}
