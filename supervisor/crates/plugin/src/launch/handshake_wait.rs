//! Waits for the handshake line in a plugin's output.

use super::error::LaunchError;
use crate::stdio::{Line, LineSplitter, PipeReader, StreamLogger};
use talon_plugin_client::handshake::{self, Handshake, HandshakeError, MAX_LINE_BYTES};
use talon_plugin_config::spec::PluginSpec;
use talon_sanitize::Raw;

/// The most lines and bytes before the handshake: a banner, a few warnings of an interpreter.
const MAX_STRAY_LINES: usize = 64;
const MAX_STRAY_BYTES: usize = 64 << 10;

/// The output before the handshake line.
#[derive(Default)]
struct StrayOutput {
    lines: usize,
    bytes: usize,
}

impl StrayOutput {
    fn add(&mut self, line: &Line<'_>) {
        self.lines += 1;
        self.bytes += line.bytes.len();
    }

    fn is_too_much(&self) -> bool {
        self.lines > MAX_STRAY_LINES || self.bytes > MAX_STRAY_BYTES
    }
}

/// Splits a plugin's standard output into lines and passes them to the log.
pub(super) struct HandshakeOutput {
    pub(super) reader: PipeReader,
    pub(super) splitter: LineSplitter,
    pub(super) logger: StreamLogger,
}

/// How the wait ended without an error.
pub(super) enum HandshakeWait {
    /// A handshake line was read.
    Handshake(Handshake),
    /// The output ended.
    Eof,
}

/// Reads until there is a handshake line. Lines before it, and lines after it in the same chunk, are logged.
/// Cancel-safe: data that was read stays in `output`.
pub(super) async fn wait_for_handshake(
    output: &mut HandshakeOutput,
    spec: &PluginSpec,
) -> Result<HandshakeWait, LaunchError> {
    wait_counting_stray_lines(output, spec, &mut 0).await
}

/// Like `wait_for_handshake`, and counts the lines before the handshake line.
pub(super) async fn wait_counting_stray_lines(
    output: &mut HandshakeOutput,
    spec: &PluginSpec,
    stray: &mut usize,
) -> Result<HandshakeWait, LaunchError> {
    let mut before = StrayOutput::default();
    loop {
        let Ok(chunk) = output.reader.read().await else { return Ok(HandshakeWait::Eof) };
        if chunk.is_empty() {
            return Ok(HandshakeWait::Eof);
        }
        let mut handshake = None;
        let logger = &mut output.logger;
        output.splitter.push(chunk, &mut |line| {
            if handshake.is_some() {
                return logger.log_line(&line);
            }
            match parse(&line, spec) {
                Err(HandshakeError::Stray { .. }) => {
                    before.add(&line);
                    logger.log_line(&line);
                }
                // If the limit is exceeded already, the rest of the chunk does not matter.
                _ if before.is_too_much() => logger.log_line(&line),
                parsed => handshake = Some(parsed),
            }
        });
        *stray = before.lines;
        if let Some(parsed) = handshake {
            return Ok(HandshakeWait::Handshake(parsed?));
        }
        if before.is_too_much() {
            return Err(LaunchError::TooMuchOutput { lines: MAX_STRAY_LINES, bytes: MAX_STRAY_BYTES });
        }
        // A plugin that sends an endless line is not waited for.
        if output.splitter.pending() > MAX_LINE_BYTES as u64 {
            let start = output.splitter.rest().map_or_else(Vec::new, |line| line.bytes.to_vec());
            let shown = Raw::from_bytes(&start).line_within(handshake::QUOTED_BYTES);
            return Err(HandshakeError::TooLong { shown }.into());
        }
    }
}

fn parse(line: &Line<'_>, spec: &PluginSpec) -> Result<Handshake, HandshakeError> {
    let text = String::from_utf8_lossy(line.bytes);
    if line.cut > 0 {
        return Err(HandshakeError::TooLong { shown: handshake::excerpt(&text) });
    }
    handshake::parse(&text, spec.dialect, &spec.app_versions)
}
