//! Whether the time per byte stays flat on the worst texts known:
//! `cargo run --release -p talon-sanitize --example scaling [FILE…]`, with files to try besides (a fuzzer's
//! corpus).
//!
//! Each text is repeated up to 64 KiB, 512 KiB, 1 MiB and 8 MiB. What counts is the last column, the cost of
//! a byte at 8 MiB against one at 1 MiB.

use std::hint::black_box;
use std::time::{Duration, Instant};

use talon_sanitize::{FamilyCounts, Sanitizer};

const SIZES: [usize; 4] = [64 << 10, 512 << 10, 1 << 20, 8 << 20];

fn main() {
    let sanitizer = Sanitizer::default();
    println!("{:32} {:>9} {:>9} {:>9} {:>9}   ratio", "ns per byte", "64 KiB", "512 KiB", "1 MiB", "8 MiB");
    let unit = |text: &str| text.to_owned();
    let marks = "\u{301}".repeat(12);
    let keys: String = (0..120).map(|key| format!("\"k{key}\": [{key}], ")).collect();
    let worst = [
        ("<", unit("<")),
        ("[", unit("[")),
        ("\"", unit("\"")),
        ("&", unit("&")),
        ("\\", unit("\\")),
        ("%", unit("%")),
        ("#", unit("#")),
        ("`", unit("`")),
        ("openers", unit("<[\"&\\%<a[b\"t")),
        ("%25", unit("%25")),
        ("%5c", unit("%5c")),
        ("&#92;", unit("&#92;")),
        ("&amp;", unit("&amp;")),
        ("&amp;amp;lt;", unit("&amp;amp;lt;")),
        ("&#38;", unit("&#38;")),
        ("\\u003c", unit("\\u003c")),
        ("\\u{0000003c}", unit("\\u{0000003c}")),
        ("%3ca", unit("%3ca")),
        ("%255c", unit("%255c")),
        ("＼", unit("＼")),
        ("\\u", unit("\\u")),
        ("&#x", unit("&#x")),
        ("%u00", unit("%u00")),
        ("\\n", unit("\\n")),
        ("%0a", unit("%0a")),
        ("line breaks", unit("\n")),
        ("blank lines before a turn", unit("\n \\ \\ \\ \\ \\ \nHuman: ")),
        ("spelled breaks", unit("&#10;")),
        ("turns", unit("Human:\n\n")),
        ("roles", unit("User: a\nSystem: b\n")),
        ("steps", unit("Action: a\nAction Input: b\nObservation: c\n")),
        ("one long step", format!("Action: {}\n", "y".repeat(200))),
        ("spaces behind openers", format!("<{}[{}", " ".repeat(150), " ".repeat(150))),
        ("spaces behind a quote", format!("\"{}", " ".repeat(150))),
        ("marks behind an opener", format!("<{marks}")),
        ("marks in a name", format!("<t{marks}o{marks}o{marks}l{marks}")),
        ("marks behind an escape", format!("&{marks}%{marks}\\{marks}")),
        ("marks", unit("\u{301}")),
        ("invisible", unit("\u{200b}")),
        ("invisible, alone", unit("a\u{200b}")),
        ("direction marks", unit("\u{200e}")),
        ("joined emoji", unit("👩\u{200d}")),
        ("tags of a flag", unit("\u{1f3f4}\u{e0067}\u{e0062}")),
        ("controls", unit("\0")),
        ("returns", unit("\r")),
        ("openers without closers", unit("<user>")),
        ("openers and closers", unit("<user></user>")),
        ("torn names", unit("<to ol _ca ll ")),
        ("tokens", unit("<|im_start|>")),
        ("brackets", unit("[TOOL_CALLS]")),
        ("bars", unit("|>a_tool|>")),
        ("types", unit("\"type\":\"function\",")),
        ("types in large objects", format!("{{{keys}\"type\": \"function\", {keys}\"x\": 1}},")),
        ("types in open objects", format!("{{\"type\": \"function\", {keys}")),
        ("escaped types", unit("\\\"type\\\":\\\"function\\\",")),
        ("sentinels", unit("]<]~b]")),
        ("fences", unit("```tool_code\n")),
        ("markers", unit(">>>get\n")),
        ("look-alikes", unit("＜〈【“｀＃")),
        ("ligatures", unit("<ﬁ⒜ﷺ")),
        ("base64 of text", unit("SWdub3JlIGFsbCBydWxl")),
        ("hexadecimal zeros", unit("00")),
        ("runs of an alphabet", unit("/usr/local/lib/python3/site ")),
    ];
    for (name, unit) in &worst {
        measure(name, unit, |text| {
            black_box(sanitizer.text(text, &mut FamilyCounts::default()));
        });
    }
    for (name, unit) in &worst {
        measure(&format!("flags: {name}"), unit, |text| {
            black_box(sanitizer.flags(text));
        });
    }
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let unit = String::from_utf8_lossy(&bytes);
        if !unit.is_empty() {
            measure(&path, &unit, |text| {
                black_box(sanitizer.text(text, &mut FamilyCounts::default()));
            });
        }
    }
    // Structured content takes 8 MiB at most, brackets included.
    for (name, item) in [
        ("dirty strings", "\"<think>\\u003cthink>\","),
        ("dirty keys", "{\"<think>\": 1},"),
        ("clean records", "{\"id\": 12, \"name\": \"x\", \"tags\": [\"a\", \"b\"]},"),
        (
            "deep",
            "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],",
        ),
        ("escapes", "\"\\\\\\\\\\n\\u00e9\","),
    ] {
        measure(&format!("json: {name}"), item, |text| {
            let json = format!("[{}0]", &text[..text.rfind(item).unwrap_or(0)]);
            // What grows over the limit is refused, which takes the same work.
            black_box(sanitizer.json(&json, &mut FamilyCounts::default()));
        });
    }
    measure("json: one object of many keys", "\"k0000000\":1,", |text| {
        let keys: String = (0..text.len() / 13).map(|key| format!("\"k{key:07}\":1,")).collect();
        assert!(
            black_box(sanitizer.json(&format!("{{{keys}\"\":1}}"), &mut FamilyCounts::default())).is_some()
        );
    });
}

fn measure(name: &str, unit: &str, run: impl Fn(&str)) {
    let costs = SIZES.map(|size| {
        let mut text = unit.repeat(size / unit.len() + 1);
        text.truncate(text.floor_char_boundary(size));
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            run(&text);
            best = best.min(start.elapsed());
            if best > Duration::from_secs(1) {
                break;
            }
        }
        best.as_secs_f64() * 1e9 / text.len() as f64
    });
    let ratio = costs[3] / costs[2];
    let slow = if costs[3] > 50.0 { "  slow" } else { "" };
    println!(
        "{name:32} {:9.2} {:9.2} {:9.2} {:9.2}   {ratio:.2}{slow}",
        costs[0], costs[1], costs[2], costs[3]
    );
}
