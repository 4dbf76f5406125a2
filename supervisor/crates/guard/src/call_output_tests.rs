use std::sync::Arc;

use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Log(Mutex<(Vec<String>, Omitted)>);

impl OutputObserver for Log {
    fn output(&self, lines: Vec<Sanitized>, left_out: Omitted) {
        let mut log = self.0.lock();
        log.0.extend(lines.into_iter().map(Sanitized::into_string));
        log.1.add(left_out);
    }
}

fn output() -> (RawOutput, Arc<Log>) {
    let log = Arc::new(Log::default());
    let observer = ArcById::<dyn OutputObserver>::new(Arc::clone(&log) as _);
    (RawOutput::new(Sanitizer::default(), observer), log)
}

fn lines(count: usize, text: &str) -> Vec<Raw<'_>> {
    (0..count).map(|_| Raw::from(text)).collect()
}

// Promises: EXT-141
#[tokio::test(start_paused = true)]
async fn what_a_second_takes_is_passed_on_and_the_rest_is_counted() {
    let (output, log) = output();
    output.push(lines(MAX_LINES_IN_WINDOW + 7, "abc"), Omitted { lines: 5, bytes: 0 });
    assert_eq!(log.0.lock().0.len(), MAX_LINES_IN_WINDOW);
    assert_eq!(log.0.lock().1, Omitted { lines: 12, bytes: 21 });
    tokio::time::advance(WINDOW).await;
    let long = "x".repeat(MAX_LINE_BYTES + 100);
    output.push([Raw::from(long.as_str())], Omitted::default());
    assert_eq!(log.0.lock().0.last().map(String::len), Some(MAX_LINE_BYTES));
    assert_eq!(log.0.lock().1, Omitted { lines: 12, bytes: 121 });
}

// Promises: EXT-141
#[tokio::test(start_paused = true)]
async fn a_call_has_a_total() {
    let (output, log) = output();
    let line = "x".repeat(MAX_LINE_BYTES);
    for _ in 0..2 * MAX_BYTES / MAX_BYTES_IN_WINDOW {
        output.push(lines(MAX_BYTES_IN_WINDOW / MAX_LINE_BYTES, &line), Omitted::default());
        tokio::time::advance(WINDOW).await;
    }
    let log = log.0.lock();
    assert_eq!(log.0.iter().map(String::len).sum::<usize>(), MAX_BYTES);
    assert_eq!(log.1.bytes, MAX_BYTES as u64);
}

#[tokio::test(start_paused = true)]
async fn a_text_of_several_lines_is_several_lines() {
    let (output, log) = output();
    output.push([Raw::from("a\r\nb\n\nc")], Omitted::default());
    assert_eq!(log.0.lock().0, ["a", "b", "", "c"]);
}

/// Pieces of control syntax, which only together are some.
const PIECES: [&str; 24] = [
    "<",
    "tool_call",
    ">",
    "</",
    "[",
    "TOOL_CALLS",
    "]",
    "<|",
    "im_start",
    "|>",
    "Human:",
    "\n",
    "\n\n",
    " ",
    "[/",
    "plugin_output",
    "\u{1b}[",
    "2J",
    "\u{200b}",
    "{\"tool_calls\":",
    "```tool_code",
    "Assistant: ",
    "system",
    "\r",
];

proptest! {
    // Promises: EXT-140
    #[test]
    fn no_syntax_slips_through_between_two_lines(
        pieces in prop::collection::vec(0..PIECES.len(), 1..24),
        cuts in prop::collection::vec(0..24_usize, 0..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _entered = runtime.enter();
        let (output, log) = output();
        let mut given = Vec::new();
        let mut rest: &[usize] = &pieces;
        for cut in cuts {
            let (line, left) = rest.split_at(cut.min(rest.len()));
            given.push(line.iter().map(|piece| PIECES[*piece]).collect::<String>());
            rest = left;
        }
        given.push(rest.iter().map(|piece| PIECES[*piece]).collect());
        for line in &given {
            output.push([Raw::from(line.as_str())], Omitted::default());
        }
        let log = log.0.lock();
        for line in &log.0 {
            prop_assert!(Sanitizer::default().is_clean(line), "{line:?} of {given:?}");
        }
        let shown = log.0.join("\n");
        prop_assert!(Sanitizer::default().is_clean(&shown), "{shown:?} of {given:?}");
    }
}
