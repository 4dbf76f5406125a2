use std::fs;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::damage::Continuation;
use crate::record::{Arguments, Body, Operation};
use crate::settings::Settings;
use crate::writer::Writer;
use crate::writer::open::{OpenError, OpenedLog};
use crate::{files_of, head};

fn settings(dir: &Path, file_bytes: u64, files: u32) -> Settings {
    let wait = Duration::from_millis(100);
    Settings { dir: dir.join("audit"), file_bytes, files, wait, version: "test".to_owned() }
}

fn operation(number: usize) -> Body {
    Body::operation(Operation {
        who: None,
        verb: "stop".to_owned(),
        subject: format!("plugin-{number}"),
        outcome: "done",
        reason: String::new(),
        duration_us: 7,
    })
}

fn open(settings: &Settings) -> Result<OpenedLog, OpenError> {
    Writer::open(settings, &Continuation::default())
}

/// Writes so many records in one go.
fn write(settings: &Settings, records: usize) {
    let mut writer = open(settings).unwrap().writer;
    for number in 0..records {
        // A clock that jumps back, as clocks may.
        writer.append(&operation(number), 1_000_000 - number as u64);
        writer.settle().unwrap();
    }
    writer.close().unwrap();
}

fn all(settings: &Settings) -> VerifyRequest {
    VerifyRequest { files: files_of(&settings.dir).unwrap(), all: true, anchor: None }
}

fn broken(request: &VerifyRequest) -> BrokenChain {
    match verify(request) {
        Err(VerifyError::Broken(broken)) => *broken,
        other => panic!("{other:?}"),
    }
}

/// Every line of every file, with the file that it is in.
fn lines(request: &VerifyRequest) -> Vec<(PathBuf, String)> {
    let of = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        text.lines().map(|line| (file.clone(), line.to_owned())).collect::<Vec<_>>()
    };
    request.files.iter().flat_map(of).collect()
}

/// Puts lines into the files that they belong to.
fn put(request: &VerifyRequest, lines: &[(PathBuf, String)]) {
    for file in &request.files {
        let own = lines.iter().filter(|(of, _)| of == file).map(|(_, line)| format!("{line}\n"));
        fs::write(file, own.collect::<String>()).unwrap();
    }
}

// Promises: AUDIT-5
#[test]
fn a_log_over_several_files_and_starts_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1500, 0);
    write(&settings, 20);
    write(&settings, 20);
    let verified = verify(&all(&settings)).unwrap();
    assert!(verified.files > 3, "{verified:?}");
    assert_eq!((verified.start, verified.lost, verified.notes.len()), (ChainStart::FirstRecord, 0, 0));
    let head = head(&settings.dir).unwrap();
    assert_eq!(verified.head, (head.seq, head.hash));
    assert_eq!(verified.records, head.seq, "each record has a number, and none is left out");
}

// Promises: AUDIT-5
#[test]
fn what_was_deleted_by_rotation_is_accounted_for_and_what_was_otherwise_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1500, 2);
    write(&settings, 60);
    let request = all(&settings);
    assert_eq!(request.files.len(), 3, "two that are closed and the one that is written to");
    assert!(matches!(verify(&request).unwrap().start, ChainStart::AfterDeleted(seq) if seq > 1));

    fs::remove_file(&request.files[0]).unwrap();
    let broken = broken(&all(&settings));
    assert_eq!((broken.fault, broken.line), (Fault::Removed, 1), "{broken:?}");
    // If only some files are given, the result says where they begin.
    let some = VerifyRequest { all: false, ..all(&settings) };
    assert!(matches!(verify(&some).unwrap().start, ChainStart::FirstGivenFile(_)));
}

// Promises: AUDIT-4
#[test]
fn each_kind_of_tampering_has_its_word_and_its_place() {
    type Tamper = fn(&mut Vec<(PathBuf, String)>);
    let cases: [(Fault, u64, Tamper); 6] = [
        (Fault::Changed, 4, |lines| lines[3].1 = lines[3].1.replace("plugin-1", "plugin-9")),
        (Fault::Removed, 4, |lines| drop(lines.remove(3))),
        (Fault::Inserted, 5, |lines| lines.insert(4, lines[2].clone())),
        (Fault::Inserted, 5, |lines| lines.insert(4, (lines[2].0.clone(), "{\"seq\":5}".to_owned()))),
        (Fault::Reordered, 4, |lines| lines.swap(3, 6)),
        (Fault::Removed, 1, |lines| drop(lines.remove(0))),
    ];
    for (fault, line, tamper) in cases {
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(dir.path(), 1 << 20, 0);
        write(&settings, 8);
        let request = all(&settings);
        let mut lines = lines(&request);
        tamper(&mut lines);
        put(&request, &lines);
        let broken = broken(&request);
        assert_eq!((broken.fault, broken.line), (fault, line), "{broken:?}");
    }
}

// Promises: AUDIT-4
#[test]
fn a_record_that_was_changed_and_hashed_anew_does_not_fit_what_follows() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1 << 20, 0);
    write(&settings, 8);
    let request = all(&settings);
    let mut lines = lines(&request);
    let link = line::parse(lines[4].1.as_bytes()).unwrap();
    let mut forged = Vec::new();
    line::seal(link.seq, link.unix_ms, &operation(99), link.prev, &mut forged);
    let forged = String::from_utf8(forged).unwrap().trim_end().to_owned();

    let genuine = std::mem::replace(&mut lines[4].1, forged.clone());
    put(&request, &lines);
    let broken = super::tests::broken(&request);
    assert_eq!((broken.fault, broken.line), (Fault::Changed, 5), "{broken:?}");

    // The same line beside the genuine one.
    lines[4].1 = genuine;
    lines.insert(4, (lines[4].0.clone(), forged));
    put(&request, &lines);
    let broken = super::tests::broken(&request);
    assert_eq!((broken.fault, broken.line), (Fault::Inserted, 5), "{broken:?}");
}

// Promises: AUDIT-4
#[test]
fn an_end_that_is_cut_off_shows_where_something_follows_or_was_noted() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1500, 0);
    write(&settings, 20);
    let request = all(&settings);
    let noted = verify(&request).unwrap().head;
    let mut kept = lines(&request);
    let genuine = kept.clone();

    // The end of a file with another one behind it.
    let second = kept.iter().position(|(file, _)| *file == request.files[1]).unwrap();
    kept.drain(second - 2..second);
    put(&request, &kept);
    let broken = super::tests::broken(&request);
    assert_eq!((broken.fault, &broken.file), (Fault::Truncated, &request.files[0]), "{broken:?}");

    // The end of all: nothing in the log can show it, a hash that was noted elsewhere does.
    let mut kept = genuine.clone();
    kept.truncate(kept.len() - 2);
    put(&request, &kept);
    assert!(verify(&request).is_ok());
    let anchored = VerifyRequest { anchor: Some(noted), ..request.clone() };
    assert_eq!(super::tests::broken(&anchored).fault, Fault::Truncated);

    // A whole file in the middle.
    put(&request, &genuine);
    fs::remove_file(&request.files[1]).unwrap();
    assert_eq!(super::tests::broken(&all(&settings)).fault, Fault::Removed);
}

// Promises: AUDIT-7
#[test]
fn a_log_that_was_begun_anew_is_not_whole() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1 << 20, 0);
    write(&settings, 3);
    let file = &all(&settings).files[0];
    let mut text = fs::read_to_string(file).unwrap();
    text.push_str("rubbish\n");
    fs::write(file, text).unwrap();
    let OpenedLog { writer, findings, .. } = open(&settings).unwrap();
    assert!(findings[0].contains("cannot be continued"), "{findings:?}");
    drop(writer);
    let broken = broken(&all(&settings));
    assert_eq!((broken.fault, broken.line), (Fault::Changed, 7), "{broken:?}");
    let since = VerifyRequest { files: all(&settings).files[1..].to_vec(), all: false, anchor: None };
    assert_eq!(verify(&since).unwrap().start, ChainStart::FirstRecord);
}

// Promises: AUDIT-6
#[test]
fn a_torn_end_is_cut_off_and_said() {
    for torn in ["{\"seq\":7,\"unix", "\0\0\0\0"] {
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(dir.path(), 1 << 20, 0);
        write(&settings, 3);
        let file = &all(&settings).files[0];
        let whole = fs::read_to_string(file).unwrap();
        fs::write(file, format!("{whole}{torn}")).unwrap();
        // As it is while it is written.
        assert_eq!(verify(&all(&settings)).unwrap().notes.len(), 1);

        write(&settings, 1);
        let verified = verify(&all(&settings)).unwrap();
        assert!(verified.notes[0].contains("were cut off"), "{verified:?}");
        assert!(fs::read_to_string(file).unwrap().starts_with(&whole));
    }
}

/// Nothing is lost by it, but no supervisor leaves a file like that behind when it begins the next one.
#[test]
fn a_missing_line_end_between_two_files_is_a_cut() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1500, 0);
    write(&settings, 20);
    let request = all(&settings);
    let whole = fs::read_to_string(&request.files[0]).unwrap();
    fs::write(&request.files[0], whole.trim_end()).unwrap();
    let broken = broken(&request);
    assert_eq!(broken.fault, Fault::Truncated, "{broken:?}");
    assert_eq!((broken.file, broken.line), (request.files[0].clone(), whole.lines().count() as u64));
}

// Promises: AUDIT-6
#[test]
fn a_death_between_two_files_is_gone_on_from() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1500, 0);
    write(&settings, 20);
    let request = all(&settings);
    let genuine: Vec<String> = request.files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    // The next file was made, and there is nothing in it yet; or it was not even made.
    for (closed, next) in [(true, Some("")), (true, Some("{\"se")), (true, None), (false, Some(""))] {
        for file in &request.files[1..] {
            let _ = fs::remove_file(file);
        }
        let mut first = genuine[0].clone();
        if !closed {
            let cut = first.trim_end().rfind('\n').unwrap() + 1;
            first.truncate(cut);
        }
        fs::write(&request.files[0], first).unwrap();
        if let Some(next) = next {
            fs::write(&request.files[1], next).unwrap();
        }
        write(&settings, 3);
        let verified = verify(&all(&settings)).unwrap();
        assert_eq!(verified.start, ChainStart::FirstRecord, "{closed} {next:?}");
    }
}

// Promises: AUDIT-10
#[test]
fn there_is_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1500, 0);
    let writer = open(&settings).unwrap().writer;
    let second = open(&settings).unwrap_err();
    assert!(matches!(second, OpenError::Busy(_)), "{second}");
    drop(writer);
    assert!(open(&settings).is_ok());
}

// Promises: AUDIT-5
#[test]
fn a_file_that_somebody_removed_is_succeeded_and_missed() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1 << 20, 0);
    let mut writer = open(&settings).unwrap().writer;
    fs::remove_file(writer.path()).unwrap();
    writer.append(&operation(1), 1);
    writer.settle().unwrap();
    let damage = writer.sync().unwrap().unwrap();
    assert!(
        damage.why.contains("was removed") && damage.message().contains("3 records are lost"),
        "{damage:?}"
    );
    writer.append(&operation(2), 1);
    writer.settle().unwrap();
    assert_eq!(broken(&all(&settings)).fault, Fault::Removed);
    // Without its directory there is nothing to go on with.
    fs::remove_dir_all(&settings.dir).unwrap();
    assert_eq!(writer.sync().unwrap_err().kind(), io::ErrorKind::NotFound);
}

// Promises: AUDIT-11
#[test]
fn files_and_directory_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1500, 0);
    write(&settings, 20);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&settings.dir), 0o700);
    assert!(all(&settings).files.iter().all(|file| mode(file) == 0o600));
    fs::set_permissions(&settings.dir, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(open(&settings).unwrap().findings[0].contains("chmod go-w"));
}

// Promises: AUDIT-11
#[test]
fn an_endless_line_is_a_change_and_costs_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1 << 20, 0);
    write(&settings, 3);
    let request = all(&settings);
    let mut lines = lines(&request);
    lines[2].1 = "x".repeat(10 << 20);
    put(&request, &lines);
    let broken = broken(&request);
    assert_eq!((broken.fault, broken.line), (Fault::Changed, 3));
    let mut read = LineReader::new(request.files.clone());
    let mut longest = 0;
    while let Some(line) = read.next_line().unwrap() {
        longest = longest.max(line.bytes.len());
    }
    assert_eq!(longest, line::MAX_LINE_BYTES + 1);
}

#[derive(Debug, Clone)]
enum Tampering {
    Flip { line: usize, byte: usize, with: u8 },
    Remove { line: usize },
    Repeat { line: usize, at: usize },
    Swap { one: usize, other: usize },
    Cut { line: usize, byte: usize },
}

fn tampering() -> impl Strategy<Value = Tampering> {
    let any = any::<usize>;
    prop_oneof![
        (any(), any(), 1_u8..=255).prop_map(|(line, byte, with)| Tampering::Flip { line, byte, with }),
        any().prop_map(|line| Tampering::Remove { line }),
        (any(), any()).prop_map(|(line, at)| Tampering::Repeat { line, at }),
        (any(), any()).prop_map(|(one, other)| Tampering::Swap { one, other }),
        (any(), any()).prop_map(|(line, byte)| Tampering::Cut { line, byte }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// With the last hash noted elsewhere nothing at all can be changed without showing, and without it
    /// nothing but the end.
    // Promises: AUDIT-4
    #[test]
    fn no_tampering_goes_unseen(records in 1_usize..30, file_bytes in 500_u64..4000, tampering in tampering()) {
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(dir.path(), file_bytes, 0);
        write(&settings, records);
        let request = all(&settings);
        let noted = verify(&request).unwrap().head;
        let genuine: Vec<(PathBuf, Vec<u8>)> = lines(&request)
            .into_iter()
            .map(|(file, line)| (file, format!("{line}\n").into_bytes()))
            .collect();
        let mut lines = genuine.clone();
        let count = lines.len();
        let mut at_the_end = false;
        match tampering {
            Tampering::Flip { line, byte, with } => {
                let (line, bytes) = (line % count, lines[line % count].1.len());
                lines[line].1[byte % bytes] ^= with;
                at_the_end = line == count - 1 && byte % bytes == bytes - 1;
            }
            Tampering::Remove { line } => {
                at_the_end = line % count == count - 1;
                lines.remove(line % count);
            }
            Tampering::Repeat { line, at } => lines.insert(at % (count + 1), genuine[line % count].clone()),
            Tampering::Swap { one, other } => {
                let (one, other) = (one % count, other % count);
                let (a, b) = (lines[one].1.clone(), lines[other].1.clone());
                lines[one].1 = b;
                lines[other].1 = a;
            }
            Tampering::Cut { line, byte } => {
                let line = line % count;
                let byte = byte % lines[line].1.len();
                lines[line].1.truncate(byte);
                at_the_end = line == count - 1;
            }
        }
        for file in &request.files {
            let own = lines.iter().filter(|(of, _)| of == file).flat_map(|(_, line)| line.clone());
            fs::write(file, own.collect::<Vec<u8>>()).unwrap();
        }
        let changed = lines.iter().flat_map(|(_, line)| line).ne(genuine.iter().flat_map(|(_, line)| line));
        let anchored = VerifyRequest { anchor: Some(noted), ..request.clone() };
        prop_assert_eq!(verify(&anchored).is_err(), changed);
        if !at_the_end {
            prop_assert_eq!(verify(&request).is_err(), changed);
        }
    }

    /// After a kill at any byte, the log continues, and everything that was written completely is there.
    // Promises: AUDIT-6
    #[test]
    fn a_log_goes_on_from_any_torn_end(records in 1_usize..20, file_bytes in 500_u64..4000, cut in any::<usize>()) {
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(dir.path(), file_bytes, 0);
        write(&settings, records);
        let last = all(&settings).files.pop().unwrap();
        let bytes = fs::read(&last).unwrap();
        let kept = &bytes[..cut % (bytes.len() + 1)];
        fs::write(&last, kept).unwrap();
        let whole = lines(&all(&settings)).len() - usize::from(!kept.is_empty() && !kept.ends_with(b"\n"));

        write(&settings, 2);
        let verified = verify(&all(&settings)).unwrap();
        prop_assert_eq!(verified.start, ChainStart::FirstRecord);
        prop_assert!(verified.records as usize >= whole + 4, "{:?}", verified);
    }

    /// No record is longer than a line may be, whatever callers and plugins call themselves.
    // Promises: AUDIT-11
    #[test]
    fn the_longest_record_is_a_line(byte in any::<char>(), length in 0_usize..100_000) {
        let long = byte.to_string().repeat(length / byte.len_utf8());
        let who = crate::record::Caller { uid: u32::MAX, gid: u32::MAX, pid: u32::MAX, role: "operate", origin: "program", subject: Some(long.clone()) };
        let body = Body::call(Box::new(crate::record::Call {
            who,
            session: long.clone(),
            sender: long.clone(),
            subagent: long.clone(),
            role: "response_hook",
            call_id: long.clone(),
            plugin: long.clone(),
            action: long.clone(),
            arguments: Arguments::text(&format!("{{\"{long}\":\"{long}\"}}")),
            outcome: "host_fault",
            reason: "arguments_too_large",
            guard: crate::record::Verdicts {
                neutralised: vec![(long.clone(), u64::MAX); 100],
                truncated: true,
                flags: vec![long.clone(); 100],
                tainted_by: vec![long.clone(); 100],
            },
            answer_sha256: long.clone(),
            plugin_sha256: long,
            duration_us: u64::MAX,
        }));
        let mut line = Vec::new();
        line::seal(u64::MAX, u64::MAX, &body, Hash::NONE, &mut line);
        prop_assert!(line.len() <= line::MAX_LINE_BYTES, "{}", line.len());
        prop_assert!(line::parse(&line[..line.len() - 1]).is_ok());
    }
}
