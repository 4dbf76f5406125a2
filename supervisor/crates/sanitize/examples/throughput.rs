//! How fast 64 KiB go through: `cargo run --release -p talon-sanitize --example throughput`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use talon_sanitize::{Sanitizer, Tally};

const SIZE: usize = 64 << 10;

fn main() {
    let prose = "The quick brown fox jumps over the lazy dog, and then it rests for a while near the river bank.\nNobody knows why; the next line says that it was tired. ";
    let json = r#"{"id": 12345, "name": "widget", "tags": ["a", "b"], "price": 12.5, "type": "product", "description": "A fine thing to have, in blue."},"#;
    let html = "<div class=\"row\"><p>Some <b>bold</b> text with a <a href=\"https://example.com/x\">link</a> &amp; more.</p><ul><li>one</li><li>two</li></ul></div>\n";
    let cyrillic = "Съешь ещё этих мягких французских булок, да выпей чаю. ";
    let chinese = "我们使用这个工具来处理文本，然后把结果返回给用户。";
    let code = "pub(crate) fn next(bytes: &[u8], at: usize) -> Option<usize> {\n    let x = table[at] + vec![1, 2, 3].len(); // <T> and \"text\"\n}\n";
    let sanitizer = Sanitizer::default();
    for (name, seed) in [
        ("prose", prose),
        ("json", json),
        ("html", html),
        ("code", code),
        ("cyrillic", cyrillic),
        ("chinese", chinese),
    ] {
        let text = fill(seed);
        assert!(sanitizer.is_clean(&text), "{name} is meant to be clean");
        measure(name, &sanitizer, &text);
    }
    for (name, every) in [("one hit", SIZE), ("hit per KiB", 1024), ("hit per 64 B", 64)] {
        measure(name, &sanitizer, &with_hits(&fill(prose), every));
    }
}

fn fill(seed: &str) -> String {
    let mut text = seed.repeat(SIZE / seed.len() + 1);
    text.truncate(text.floor_char_boundary(SIZE));
    // Ends like a text, not in the middle of a delimiter.
    text.push_str("\n.\n");
    text
}

fn with_hits(text: &str, every: usize) -> String {
    text.as_bytes()
        .chunks(every)
        .map(|chunk| {
            String::from_utf8_lossy(&chunk[..chunk.len().saturating_sub(12)]).into_owned() + "<|im_start|>"
        })
        .collect()
}

/// The best of many runs: what the machine can do undisturbed.
fn measure(name: &str, sanitizer: &Sanitizer, text: &str) {
    let mut best = Duration::MAX;
    for _ in 0..400 {
        let start = Instant::now();
        black_box(sanitizer.text(black_box(text), &mut Tally::default()));
        best = best.min(start.elapsed());
    }
    println!("{name:14} {:7.3} GB/s", text.len() as f64 / best.as_secs_f64() / 1e9);
}
