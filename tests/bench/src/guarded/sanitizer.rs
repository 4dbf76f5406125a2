//! The sanitizer compared with common alternatives, on the same texts.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;
use talon_sanitize::{FamilyCounts, Sanitizer};

use crate::figures::Unit;
use crate::turns::{self, Measurement};

#[path = "../../../../supervisor/crates/sanitize/benches/sanitize/inputs.rs"]
mod inputs;
#[path = "../../../../supervisor/crates/sanitize/benches/sanitize/rivals.rs"]
mod rivals;

const BYTES: usize = 64 << 10;

/// The minimum time that one contender processes a text before the next one's turn.
const CONTENDER_TIME: Duration = Duration::from_millis(4);

pub(super) async fn serve() -> Result<()> {
    let (sanitizer, patterns, texts) = (Sanitizer::default(), rivals::patterns(), texts());
    turns::serve_turns(async || {
        let mut told = Vec::new();
        for (name, text) in &texts {
            let case = format!("sanitizer/{name}, 64 KiB");
            let mut contender = |name, speed| {
                told.push(Measurement::new(&case, name, "speed", Unit::GigabytesPerSecond, speed))
            };
            contender("Talon", throughput(text, || sanitizer.text(text, &mut FamilyCounts::default()).len()));
            contender("60 passes", throughput(text, || rivals::replace_all(&patterns, text).len()));
        }
        Ok(told)
    })
    .await
}

fn texts() -> [(&'static str, String); 8] {
    [
        ("prose", inputs::prose(BYTES)),
        ("JSON", inputs::json(BYTES)),
        ("HTML", inputs::html(BYTES)),
        ("code", inputs::code(BYTES)),
        ("Cyrillic", inputs::cyrillic(BYTES)),
        ("Chinese", inputs::chinese(BYTES)),
        ("a hit per KiB", inputs::with_hits(BYTES, 1 << 10)),
        ("a hit per 64 B", inputs::with_hits(BYTES, 64)),
    ]
}

/// The throughput in gigabytes a second, of passes over the whole text.
fn throughput(text: &str, pass: impl Fn() -> usize) -> f64 {
    let (begin, mut passes) = (Instant::now(), 0_u32);
    let took = loop {
        black_box(pass());
        passes += 1;
        let took = begin.elapsed();
        if took >= CONTENDER_TIME {
            break took;
        }
    };
    text.len() as f64 * f64::from(passes) / took.as_secs_f64() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_their_names_say() {
        let sanitizer = Sanitizer::default();
        for (name, text) in texts() {
            let clean = sanitizer.text(&text, &mut FamilyCounts::default()) == *text;
            assert_eq!(clean, !name.starts_with("a hit"), "{name}");
            assert!((BYTES * 99 / 100..BYTES * 102 / 100).contains(&text.len()), "{name}: {}", text.len());
        }
    }
}
