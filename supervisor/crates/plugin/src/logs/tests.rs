use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use crate::settings::LogLimits;

fn settings(log_dir: Option<&Path>, log_limits: LogLimits) -> Settings {
    Settings {
        runtime_dir: "/nowhere".into(),
        log_dir: log_dir.map(Path::to_owned),
        data_dir: "/nowhere".into(),
        uid_range: None,
        start_concurrency: 1,
        frames: Default::default(),
        env_allow_list: Vec::new(),
        log_limits,
        state: None,
        models: None,
    }
}

fn sink(log_dir: Option<&Path>, limits: LogLimits) -> LogSink {
    LogSink::new(&PluginName::new("chatty").unwrap(), &settings(log_dir, limits), Events::new())
}

fn say(sink: &LogSink, text: &str) {
    sink.line(0, Stream::Stderr, text.len(), || (Level::Info, Raw::from(text).line()));
}

#[tokio::test]
async fn the_ring_keeps_the_last_lines_and_the_listener_gets_the_next() {
    let sink = sink(None, LogLimits { ring_lines: 2, ..LogLimits::default() });
    for text in ["one", "two", "three"] {
        say(&sink, text);
    }
    let mut tail = sink.tail();
    say(&sink, "four");
    let recent: Vec<_> = tail.recent.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(recent, ["two", "three"]);
    assert_eq!(tail.live.recv().await.unwrap().text, "four");
}

#[tokio::test]
async fn the_ring_is_bounded_in_bytes_too() {
    let sink =
        sink(None, LogLimits { ring_lines: 1_000_000, burst_lines: 1_000_000, ..LogLimits::default() });
    for _ in 0..2000 {
        say(&sink, &"x".repeat(8 << 10));
    }
    let bytes: usize = sink.tail().recent.iter().map(|line| line.text.len()).sum();
    assert!(bytes <= RING_BYTES);
}

// Promises: HAND-24
#[tokio::test(start_paused = true)]
async fn a_flood_is_dropped_counted_and_told() {
    let limits = LogLimits { lines_per_second: 1, burst_lines: 2, ..LogLimits::default() };
    let events = Events::new();
    let mut listener = events.subscribe();
    let sink = LogSink::new(&PluginName::new("chatty").unwrap(), &settings(None, limits), events);
    for _ in 0..10 {
        say(&sink, "x");
    }
    assert_eq!(sink.dropped(), 8);
    sink.report_dropped(0);
    let last = sink.tail().recent.pop().unwrap();
    assert_eq!((last.stream, last.level), (Stream::Supervisor, Level::Warn));
    assert!(last.text.starts_with("8 lines dropped"));
    assert_eq!(listener.recv().await.unwrap().kind, EventKind::LogLinesDropped);
}

#[tokio::test]
async fn the_file_is_private_and_rotates() {
    let dir = tempfile::tempdir().unwrap();
    let log_dir = dir.path().join("logs");
    let limits = LogLimits { file_bytes: 200, rotated_files: 2, ..LogLimits::default() };
    let sink = sink(Some(&log_dir), limits);
    for index in 0..20 {
        say(&sink, &format!("line {index}"));
    }
    sink.flush().await;
    let mut names: Vec<_> =
        std::fs::read_dir(&log_dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["chatty.log", "chatty.log.1", "chatty.log.2"]);
    let current = std::fs::read_to_string(log_dir.join("chatty.log")).unwrap();
    assert!(current.trim_end().ends_with("line 19"), "{current}");
    for name in names {
        let metadata = log_dir.join(name).metadata().unwrap();
        assert!(metadata.len() <= 200);
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(sink.dropped(), 0);
}

// Promises: BAD-16
#[tokio::test]
async fn a_file_that_cannot_be_written_costs_lines_in_the_file_only() {
    let dir = tempfile::tempdir().unwrap();
    let log_dir = dir.path().join("logs");
    std::fs::create_dir(&log_dir).unwrap();
    // A write to this device fails as a full disk does. The symlink is refused, which fails as well.
    std::os::unix::fs::symlink("/dev/full", log_dir.join("chatty.log")).unwrap();
    let sink = sink(Some(&log_dir), LogLimits::default());
    say(&sink, "one");
    say(&sink, "two");
    sink.flush().await;
    assert_eq!(sink.dropped(), 2);
    assert_eq!(sink.tail().recent.len(), 2);
    std::fs::remove_file(log_dir.join("chatty.log")).unwrap();
    say(&sink, "three");
    sink.flush().await;
    assert!(std::fs::read_to_string(log_dir.join("chatty.log")).unwrap().contains("three"));
}
