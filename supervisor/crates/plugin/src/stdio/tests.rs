use std::io::Write;
use std::os::fd::OwnedFd;

use proptest::prelude::*;
use talon_plugin_config::name::PluginName;

use super::*;
use crate::events::Events;
use crate::logs::Level;
use crate::settings::{LogLimits, Settings};

fn classify(line: &str) -> (Level, Sanitized) {
    Classifier::default().classify(line, 1000)
}

// Promises: HAND-25
#[test]
fn hclog_lines_keep_their_level() {
    let line = r#"{"@level":"warn","@message":"low on disk","@module":"db","@timestamp":"2026-01-02T15:04:05.000000Z","free":12,"path":"/a b"}"#;
    assert_eq!(classify(line), (Level::Warn, r#"db: low on disk free=12 path="/a b""#.into()));
}

#[test]
fn a_message_of_the_wrong_type_hurts_nobody() {
    for line in [r#"{"@message": 1}"#, r#"{"@message": null, "@level": 3}"#, "{", "{}", r#"{"@level":[]}"#] {
        assert_eq!(classify(line), (Level::Info, Raw::from(line).line()));
    }
}

// Promises: HAND-25
#[test]
fn level_words_at_the_front_are_known() {
    for (line, level) in [
        ("[TRACE] x", Level::Trace),
        ("[DEBUG] x", Level::Debug),
        ("[INFO] x", Level::Info),
        ("[WARN]  x", Level::Warn),
        ("[ERROR] x", Level::Error),
        ("[error] x", Level::Error),
        ("2026-01-02T15:04:05.000Z [WARN]  db: x", Level::Warn),
        ("2026-01-02T15:04:05Z ERROR db: x", Level::Error),
        ("ERROR:root:x", Level::Error),
        ("WARNING: x", Level::Warn),
        ("thread 'main' panicked at src/main.rs:1:1:", Level::Error),
        ("an error in prose", Level::Info),
        ("info about things", Level::Info),
        ("", Level::Info),
    ] {
        assert_eq!(classify(line).0, level, "{line}");
    }
}

#[test]
fn after_a_go_panic_everything_unstructured_is_an_error() {
    let mut classifier = Classifier::default();
    assert_eq!(classifier.classify("before", 100).0, Level::Info);
    assert_eq!(classifier.classify("panic: runtime error", 100).0, Level::Error);
    assert_eq!(classifier.classify("goroutine 1 [running]:", 100).0, Level::Error);
    assert_eq!(classifier.classify(r#"{"@level":"info","@message":"x"}"#, 100).0, Level::Info);
}

// Promises: HAND-26
#[test]
fn control_characters_are_made_visible() {
    assert_eq!(classify("a\x1b[31mb\r\u{202e}c\td").1, r"a␛[31mb␍(U+202E)c\td");
    assert_eq!(classify("Grüße 日本").1, "Grüße 日本");
}

#[test]
fn lines_are_sanitized_before_they_are_kept() {
    assert_eq!(classify("<|im_start|>system").1, "<·|im_start|>system");
    // Escapes in a JSON line are decoded first.
    let hclog = r#"{"@message":"\u003c|im_start|>","@module":"\u001b[2J","k\n":"[/plugin_output]"}"#;
    assert_eq!(classify(hclog).1, r"␛[2J: <·|im_start|> k\n=[·/plugin_output]");
}

#[test]
fn last_words_make_no_token_where_they_meet() {
    let words = LastLines::default();
    for line in ["<", "|im_start|>", "[", "plugin_output]"] {
        words.push(Raw::from(line));
    }
    let all = words.joined().unwrap();
    assert!(talon_sanitize::Sanitizer::default().is_clean(&all), "{all}");
}

fn lines(limit: usize, chunks: &[&[u8]]) -> Vec<(Vec<u8>, u64)> {
    let mut splitter = LineSplitter::new(limit);
    let mut lines = Vec::new();
    for chunk in chunks {
        splitter.push(chunk, &mut |line| lines.push((line.bytes.to_vec(), line.cut)));
    }
    if let Some(line) = splitter.rest() {
        lines.push((line.bytes.to_vec(), line.cut));
    }
    lines
}

// Promises: HAND-23
#[test]
fn long_lines_are_cut_and_the_cut_is_counted() {
    let got = lines(4, &[b"abcdefg", b"h\nij\r\n\nxyz12"]);
    let expected: Vec<(Vec<u8>, u64)> =
        vec![(b"abcd".into(), 4), (b"ij".into(), 0), (b"".into(), 0), (b"xyz1".into(), 1)];
    assert_eq!(got, expected);
}

proptest! {
    #[test]
    fn chunks_do_not_matter(text in proptest::collection::vec(any::<u8>(), 0..200), cuts in proptest::collection::vec(0usize..200, 0..5)) {
        let mut cuts: Vec<_> = cuts.into_iter().map(|c| c.min(text.len())).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut start = 0;
        for cut in cuts {
            chunks.push(&text[start..cut]);
            start = cut;
        }
        chunks.push(&text[start..]);
        prop_assert_eq!(lines(16, &chunks), lines(16, &[&text]));
    }

    // Promises: HAND-26
    #[test]
    fn nothing_that_acts_survives_and_growth_is_bounded(line in any::<String>()) {
        let (_, text) = Classifier::default().classify(&line, 200);
        prop_assert!(!text.chars().any(char::is_control));
        prop_assert!(talon_sanitize::Sanitizer::default().is_clean(&text), "{text:?}");
        prop_assert!(text.len() <= 200 + '…'.len_utf8());
    }
}

fn sink() -> LogSink {
    let settings = Settings {
        runtime_dir: "/nowhere".into(),
        log_dir: None,
        data_dir: "/nowhere".into(),
        uid_range: None,
        start_concurrency: 1,
        frames: Default::default(),
        env_allow_list: Vec::new(),
        log_limits: LogLimits::default(),
        state: None,
        models: None,
    };
    LogSink::new(&PluginName::new("p").unwrap(), &settings, Events::new())
}

fn reader(sink: &LogSink) -> (std::fs::File, PipeReader, LineSplitter, StreamLogger) {
    let (read, write) = rustix::pipe::pipe().unwrap();
    let scribe = StreamLogger::new(sink.clone(), 0, Stream::Stdout, LastLines::default());
    (OwnedFd::into(write), PipeReader::new(read).unwrap(), LineSplitter::new(100), scribe)
}

// Promises: HAND-22
#[tokio::test]
async fn a_pipe_is_read_to_its_end() {
    let sink = sink();
    let (mut write, reader, splitter, scribe) = reader(&sink);
    write.write_all(b"one\ntwo\nhalf").unwrap();
    drop(write);
    reader.drain(splitter, scribe, std::future::pending()).await;
    let texts: Vec<_> = sink.tail().recent.into_iter().map(|line| line.text).collect();
    assert_eq!(texts, ["one", "two", "half"]);
}

// Promises: HAND-28
#[tokio::test]
async fn a_pipe_that_a_grandchild_holds_is_given_up_once_the_process_is_gone() {
    let sink = sink();
    let (mut write, reader, splitter, scribe) = reader(&sink);
    write.write_all(b"last words\n").unwrap();
    // The writing end stays open, as if a descendant held it.
    reader.drain(splitter, scribe, std::future::ready(())).await;
    assert_eq!(sink.tail().recent.pop().unwrap().text, "last words");
    drop(write);
}

// Promises: HANDOVER-9
#[test]
fn a_stream_that_is_let_go_of_has_its_last_line_logged() {
    let sink = sink();
    let mut scribe = StreamLogger::new(sink.clone(), 0, Stream::Stdout, LastLines::default());
    let mut flowing = StreamLogGuard::new(&mut scribe, 100);
    flowing.log_chunk(b"whole\nhal");
    flowing.log_chunk(b"f");
    drop(flowing);
    let texts: Vec<_> = sink.tail().recent.into_iter().map(|line| line.text).collect();
    assert_eq!(texts, ["whole", "half"]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_leaves_time_for_others_and_its_last_words_are_kept() {
    let sink = sink();
    let (mut write, reader, splitter, scribe) = reader(&sink);
    let words = scribe.last_lines.clone();
    let writer = std::thread::spawn(move || {
        for _ in 0..16 {
            write.write_all(&b"\n".repeat(CHUNK_BYTES)).unwrap();
        }
        write.write_all(b"it broke\n").unwrap();
    });
    // Paused time advances only when all tasks wait; a reader that never waits would stop the clock.
    let began = tokio::time::Instant::now();
    reader.drain(splitter, scribe, std::future::pending()).await;
    writer.join().unwrap();
    assert!(began.elapsed() >= 10 * FLOOD_PAUSE, "{:?}", began.elapsed());
    assert_eq!(words.joined().unwrap(), "it broke");
    assert!(sink.dropped() > 16 * CHUNK_BYTES as u64 - 10_000);
}
