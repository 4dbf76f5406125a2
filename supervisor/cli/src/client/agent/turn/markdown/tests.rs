use proptest::prelude::*;

use super::*;

/// The spans of a text that comes in these pieces.
fn spans(pieces: &[&str]) -> Vec<Span> {
    let mut stream = MarkdownStream::default();
    let mut all: Vec<Span> = pieces.iter().flat_map(|piece| stream.push(piece)).collect();
    all.extend(stream.finish());
    all
}

fn text_of(spans: &[Span]) -> String {
    spans.iter().map(|span| &*span.text).collect()
}

/// Each character with its style: how a text is cut into spans is not seen.
fn styled(pieces: &[&str]) -> Vec<(char, String, bool)> {
    let all = spans(pieces);
    let look = |span: &Span| span.style.map(|style| style.to_string()).unwrap_or_default();
    all.iter().flat_map(|span| span.text.chars().map(move |c| (c, look(span), span.is_link))).collect()
}

/// The parts of a text that have a style, each with the style's sequence.
fn marked(text: &str) -> Vec<(String, String)> {
    let styled = |span: &Span| Some((span.text.to_string(), span.style?.to_string().replace('\u{1b}', "")));
    spans(&[text]).iter().filter_map(styled).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(text, style)| ((*text).to_owned(), (*style).to_owned())).collect()
}

#[test]
fn emphasis_code_headings_and_lists_have_styles_and_keep_their_markers() {
    for (text, expected) in [
        ("a **b** c", &[("**", "[2m"), ("b", "[1m"), ("**", "[2m")] as &[(&str, &str)]),
        ("run `ls -l`", &[("`", "[2m"), ("ls -l", "[33m"), ("`", "[2m")]),
        ("## Why", &[("## ", "[36m"), ("Why", "[1m")]),
        ("  - one", &[("  - ", "[36m")]),
        ("12. twelve", &[("12. ", "[36m")]),
        ("> said", &[("> ", "[36m")]),
        ("an *old* one", &[("*", "[2m"), ("old", "[3m"), ("*", "[2m")]),
    ] {
        assert_eq!(marked(text), pairs(expected), "{text}");
    }
}

#[test]
fn what_only_looks_like_markdown_has_no_style() {
    for text in [
        "2 * 3 * 4",
        "snake_case and a*b",
        "#hash and -x",
        "1.5 is a number",
        "2026",
        "a \\*star\\*",
        "****",
        "h",
        "http",
        "http://",
    ] {
        assert_eq!(marked(text), [], "{text}");
    }
    // What is open ends with its line.
    assert_eq!(styled(&["**a\nb"]).last().unwrap().1, "");
}

#[test]
fn a_url_links_to_itself_and_ends_where_its_sentence_does() {
    for (text, url) in [
        ("see https://example.com/a_b?c=d.", "https://example.com/a_b?c=d"),
        ("[here](http://example.com/x)", "http://example.com/x"),
        ("<https://example.com>,", "https://example.com"),
    ] {
        let links: Vec<String> =
            spans(&[text]).iter().filter(|span| span.is_link).map(|span| span.text.to_string()).collect();
        assert_eq!(links, [url], "{text}");
    }
    let long = format!("https://{}", "x".repeat(9000));
    assert!(spans(&[&long]).iter().all(|span| !span.is_link));
    assert!(spans(&["`https://example.com`"]).iter().all(|span| !span.is_link));
}

#[test]
fn code_has_keywords_strings_numbers_and_comments() {
    let text = "```rust\nlet x = \"a \\\" b\"; // 7\nfn y() { 42 }\n```\nlet it be";
    assert_eq!(
        marked(text),
        pairs(&[
            ("```rust\n", "[2m"),
            ("let", "[35m"),
            ("\"a \\\" b\"", "[32m"),
            ("// 7", "[2m"),
            ("fn", "[35m"),
            ("42", "[36m"),
            ("```\n", "[2m"),
        ])
    );
    let text = "~~~py\n\"\"\"one\ntwo\"\"\"\nx = 'a#b' # c\n~~~\n";
    assert_eq!(
        marked(text),
        pairs(&[
            ("~~~py\n", "[2m"),
            ("\"\"\"one\n", "[32m"),
            ("two\"\"\"", "[32m"),
            ("'a#b'", "[32m"),
            ("# c", "[2m"),
            ("~~~\n", "[2m"),
        ])
    );
    let text = "```diff\n+a\n-b\n c\n```";
    let diff = pairs(&[("```diff\n", "[2m"), ("+a\n", "[32m"), ("-b\n", "[31m"), ("```", "[2m")]);
    assert_eq!(marked(text), diff);
    assert_eq!(marked("```brainfuck\nfn if 3\n```"), pairs(&[("```brainfuck\n", "[2m"), ("```", "[2m")]));
}

#[test]
fn text_is_not_held_back_longer_than_its_style_is_open() {
    let mut stream = MarkdownStream::default();
    for (piece, shown) in [
        ("Hel", "Hel"),
        ("lo *", "lo "),
        ("*b", "**b"),
        ("**, see ht", "**, see "),
        ("tps://a.b", ""),
        ("/c d", "https://a.b/c d"),
        ("\n", "\n"),
        ("``", ""),
        ("`sh\nech", "```sh\n"),
        ("o 1\n", "echo 1\n"),
    ] {
        assert_eq!(text_of(&stream.push(piece)), shown, "{piece}");
    }
    // A line of code without an end is shown, too.
    assert_eq!(text_of(&stream.push(&"y".repeat(5000))).len(), 5000);
    assert_eq!(text_of(&stream.push("z")), "z");
    assert_eq!(text_of(&stream.push("\nfi")), "\n");
    assert_eq!(text_of(&stream.finish()), "fi");
}

fn piece() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(vec![
        "```",
        "`",
        "~~~rust\n",
        "**",
        "*",
        "# ",
        "- ",
        "12. ",
        "> ",
        "\n",
        "\\",
        "https://a.b",
        "http",
        "\"",
        "/*",
        "*/",
        "fn ",
        "日本",
        " ",
        "x",
        "|",
        ")",
        "\r\n",
        "\t",
        "'''",
    ]);
    proptest::collection::vec(known, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    // Promises: CLI-69
    #[test]
    fn every_character_is_shown_whatever_the_pieces(pieces in proptest::collection::vec(piece(), 0..8)) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let whole = pieces.concat();
        prop_assert_eq!(text_of(&spans(&pieces)), whole.clone());
        prop_assert_eq!(styled(&pieces), styled(&[&whole]));
    }
}
