//! `SearchAudit` and `VerifyAudit`: the audit log, for administrators. Its lines go out as they are: who asked reads the JSON.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use talon_audit::{LineReader, VerifyError, VerifyRequest, files_of, verify};
use talon_proto::host::{
    AuditRecord, SearchAuditRequest, SearchAuditResponse, VerifyAuditRequest, VerifyAuditResponse,
};
use talon_sanitize::Raw;
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::audit;
use crate::blocking::blocking;
use crate::config::{Environment, Role};
use crate::peer::require;
use crate::to_wire::{count, status_text, wire};

/// Records of one answer, unless the request says otherwise, and at most. 500 of the longest lines are 60 MiB, which no log has; usual
/// ones are a few hundred bytes.
const DEFAULT_RECORDS: u32 = 100;
const MAX_RECORDS: u32 = 500;
/// The most that the records of one answer take, in bytes: 3 MiB, below what a message of gRPC takes. The next page has the others.
const MAX_ANSWER_BYTES: usize = 3 << 20;
/// How much of the log one request reads, in bytes: 256 MiB, a second. The next page goes on behind it.
const MAX_READ_BYTES: u64 = 256 << 20;
/// The longest text to search for, in bytes.
const MAX_TEXT_BYTES: usize = 200;

pub(super) async fn search(
    context: &HostContext,
    request: Request<SearchAuditRequest>,
) -> Result<Response<SearchAuditResponse>, Status> {
    require(&request, Role::Admin)?;
    let SearchAuditRequest { text, before, limit } = request.into_inner();
    if text.len() > MAX_TEXT_BYTES {
        return Err(Status::invalid_argument(format!(
            "text has more than {MAX_TEXT_BYTES} bytes: search for less"
        )));
    }
    let limit = if limit == 0 { DEFAULT_RECORDS } else { limit.min(MAX_RECORDS) };
    let dir = directory(context)?;
    let turn = context.reading_turn().await?;
    let words = text.split_whitespace().map(str::to_ascii_lowercase).collect();
    let search = Search { words, before, limit: limit as usize, max_read: MAX_READ_BYTES };
    let found = blocking(move || {
        // Whoever asked may be gone before the thread is done, which is when the next may read.
        let _turn = turn;
        search.run(&dir)
    });
    Ok(Response::new(found.await.map_err(|error| unreadable(&error))?))
}

pub(super) async fn check(
    context: &HostContext,
    request: Request<VerifyAuditRequest>,
) -> Result<Response<VerifyAuditResponse>, Status> {
    require(&request, Role::Admin)?;
    let dir = directory(context)?;
    let turn = context.reading_turn().await?;
    let verified = blocking(move || {
        let _turn = turn;
        let files = files_of(&dir).map_err(|source| VerifyError::Io { path: dir, source })?;
        verify(&VerifyRequest { files, all: true, anchor: None })
    });
    let lines = |notes: &[String]| notes.iter().map(|note| wire(Raw::from(note).line())).collect();
    let answer = match verified.await {
        Ok(chain) => VerifyAuditResponse {
            whole: true,
            records: chain.records,
            files: count(chain.files),
            lost: chain.lost,
            notes: lines(&chain.notes),
            head: chain.head.0,
            head_hash: chain.head.1.to_string(),
        },
        Err(VerifyError::Broken(broken)) => VerifyAuditResponse {
            whole: false,
            records: broken.records_before,
            notes: lines(&[VerifyError::Broken(broken).to_string()]),
            ..VerifyAuditResponse::default()
        },
        Err(error) => return Err(Status::failed_precondition(status_text(error.to_string()))),
    };
    Ok(Response::new(answer))
}

fn directory(context: &HostContext) -> Result<PathBuf, Status> {
    if !context.info.audit.is_on() {
        return Err(Status::failed_precondition(
            "there is no audit log: set audit.enabled and start talon again",
        ));
    }
    Ok(audit::directory(&context.info.reloader.config(), &Environment::of_process()))
}

fn unreadable(error: &(PathBuf, io::Error)) -> Status {
    let text = format!("the audit log cannot be read: {}: {}", error.0.display(), error.1);
    Status::failed_precondition(status_text(text))
}

/// What is searched for.
struct Search {
    /// In lower case; a line has to have all of them.
    words: Vec<String>,
    /// Only records before this number; 0 for all.
    before: u64,
    limit: usize,
    /// How many bytes are read; the next page goes on behind them.
    max_read: u64,
}

impl Search {
    /// Reads the files from the newest to the oldest, each from its beginning.
    fn run(&self, dir: &Path) -> Result<SearchAuditResponse, (PathBuf, io::Error)> {
        let mut files = files_of(dir).map_err(|error| (dir.to_owned(), error))?;
        let mut answer = SearchAuditResponse::default();
        let (mut read, mut bytes) = (0, 0);
        // Of all files: one may have no line with a number.
        let mut lowest: Option<u64> = None;
        while let Some(file) = files.pop() {
            let mut found = VecDeque::new();
            let mut lines = LineReader::new(vec![file.clone()]);
            while let Some(line) = lines.next_line().or_else(gone)? {
                read += line.bytes.len() as u64;
                let Some(number) = line.has_newline.then(|| number_of(&line.bytes)).flatten() else {
                    continue;
                };
                if self.before > 0 && number >= self.before {
                    break;
                }
                lowest = Some(lowest.map_or(number, |lowest| lowest.min(number)));
                if self.has_words(&line.bytes) {
                    let json = Raw::from_bytes(&line.bytes).expose().to_owned();
                    found.push_back(AuditRecord { sequence: number, json });
                    // One more says that there is a further page.
                    if found.len() > self.limit + 1 {
                        found.pop_front();
                    }
                }
            }
            while let Some(record) = found.pop_back() {
                bytes += record.json.len();
                if answer.records.len() == self.limit
                    || (bytes > MAX_ANSWER_BYTES && !answer.records.is_empty())
                {
                    answer.next_before = answer.records.last().map_or(0, |last| last.sequence);
                    return Ok(answer);
                }
                answer.records.push(record);
            }
            // Without a number there is nothing from which a page could go on.
            if read > self.max_read
                && !files.is_empty()
                && let Some(lowest) = lowest
            {
                answer.next_before = lowest;
                return Ok(answer);
            }
        }
        Ok(answer)
    }

    fn has_words(&self, line: &[u8]) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let line = line.to_ascii_lowercase();
        let line = String::from_utf8_lossy(&line);
        self.words.iter().all(|word| line.contains(word.as_str()))
    }
}

/// A file that was deleted meanwhile, because there are more than are kept, has no lines.
fn gone(error: (PathBuf, io::Error)) -> Result<Option<talon_audit::Line>, (PathBuf, io::Error)> {
    if error.1.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) }
}

/// The number of a record: every line of ours begins with it.
fn number_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"{\"seq\":")?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, file: u64, numbers: std::ops::Range<u64>) {
        let lines: String =
            numbers.map(|number| format!("{{\"seq\":{number},\"verb\":\"Stop{}\"}}\n", number % 2)).collect();
        std::fs::write(dir.join(format!("audit-{file:012}.jsonl")), lines).unwrap();
    }

    fn numbers(found: &SearchAuditResponse) -> Vec<u64> {
        found.records.iter().map(|record| record.sequence).collect()
    }

    // Promises: GW-124
    #[test]
    fn the_newest_records_come_first_and_pages_go_on_over_files() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 1, 1..6);
        write(dir.path(), 2, 6..9);
        let search = |words: &[&str], before, limit| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            Search { words, before, limit, max_read: MAX_READ_BYTES }.run(dir.path()).unwrap()
        };
        let page = search(&[], 0, 5);
        assert_eq!((numbers(&page), page.next_before), (vec![8, 7, 6, 5, 4], 4));
        let page = search(&[], 4, 5);
        assert_eq!((numbers(&page), page.next_before), (vec![3, 2, 1], 0));
        assert_eq!(numbers(&search(&["stop1", "verb"], 0, 9)), [7, 5, 3, 1]);
        assert!(search(&["nothing"], 0, 9).records.is_empty());
    }

    // Promises: GW-124
    #[test]
    fn a_page_that_ends_in_a_file_without_numbers_goes_on_behind_the_lowest_seen() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 1, 1..6);
        std::fs::write(dir.path().join("audit-000000000002.jsonl"), "damaged\n".repeat(9)).unwrap();
        write(dir.path(), 3, 6..9);
        let newest = std::fs::metadata(dir.path().join("audit-000000000003.jsonl")).unwrap().len();
        let search = |before| {
            let search = Search { words: Vec::new(), before, limit: 9, max_read: newest };
            search.run(dir.path()).unwrap()
        };
        let page = search(0);
        assert_eq!((numbers(&page), page.next_before), (vec![8, 7, 6], 6));
        let page = search(6);
        assert_eq!((numbers(&page), page.next_before), (vec![5, 4, 3, 2, 1], 0));
    }
}
