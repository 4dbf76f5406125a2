//! Backups can be read back, and damaged files are rejected.

use std::io::SeekFrom;

use super::*;

fn backup() -> File {
    let mut file = tempfile::tempfile().unwrap();
    let mut writer = BackupWriter::new(&mut file);
    for (part, byte) in [(StatePart::Plugins, 1_u8), (StatePart::Agent, 2)] {
        let mut entry = writer.begin_database(part, 3).unwrap();
        for _ in 0..3 {
            entry.write(&[byte; 700]).unwrap();
        }
        let copy = entry.finish().unwrap();
        writer.add_database(copy);
    }
    writer.finish("2026-01-02T03:04:05Z".into()).unwrap();
    file
}

fn checked(mut file: File) -> Result<VerifiedBackup, BackupError> {
    file.rewind().unwrap();
    check(&mut file, &|_| ())
}

fn bytes_of(mut file: File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

#[test]
fn what_was_written_is_found_where_it_is() {
    let mut file = backup();
    let checked = checked(file.try_clone().unwrap()).unwrap();
    assert_eq!(checked.manifest.created_at, "2026-01-02T03:04:05Z");
    let parts: Vec<(StatePart, u64)> =
        checked.entries.iter().map(|place| (place.part, place.copy.bytes)).collect();
    assert_eq!(parts, [(StatePart::Plugins, 2100), (StatePart::Agent, 2100)]);
    for (place, byte) in checked.entries.iter().zip([1, 2]) {
        let mut bytes = vec![0; 2100];
        file.seek(SeekFrom::Start(place.offset)).unwrap();
        file.read_exact(&mut bytes).unwrap();
        assert!(bytes.iter().all(|&one| one == byte));
    }
}

#[test]
fn a_file_that_was_cut_off_anywhere_is_refused() {
    let whole = bytes_of(backup());
    // The two empty blocks at the end of a tar carry no information.
    for length in (0..whole.len() - 1024).step_by(97) {
        let cut = checked(file_of(&whole[..length]));
        assert!(cut.is_err(), "{length} of {}", whole.len());
    }
}

#[test]
fn a_byte_that_was_changed_is_noticed() {
    let mut bytes = bytes_of(backup());
    bytes[512 + 100] ^= 1;
    let failed = checked(file_of(&bytes)).unwrap_err();
    assert!(matches!(failed, BackupError::Mismatch { name: "plugins.db", what: "its digest" }), "{failed}");
}

// Promises: CLI-50
#[test]
fn a_manifest_that_names_another_schema_than_the_database_is_refused() {
    let mut file = tempfile::tempfile().unwrap();
    let mut writer = BackupWriter::new(&mut file);
    let mut head = [0; 4096];
    head[..16].copy_from_slice(b"SQLite format 3\0");
    head[63] = 4;
    let mut entry = writer.begin_database(StatePart::Plugins, 3).unwrap();
    entry.write(&head).unwrap();
    let copy = entry.finish().unwrap();
    writer.add_database(copy);
    writer.finish("2026-01-02T03:04:05Z".into()).unwrap();
    let failed = checked(file).unwrap_err();
    assert!(matches!(failed, BackupError::Mismatch { what: "its schema version", .. }), "{failed}");
}

#[test]
fn other_files_are_no_backups() {
    for bytes in [&b""[..], b"SQLite format 3\0", &[0; 4096], &[7; 4096]] {
        assert!(checked(file_of(bytes)).is_err());
    }
    let mut tar = Builder::new(tempfile::tempfile().unwrap());
    tar.append_data(&mut header(1), "../plugins.db", &b"x"[..]).unwrap_err();
    tar.append_data(&mut header(1), "etc/passwd", &b"x"[..]).unwrap();
    assert!(matches!(checked(tar.into_inner().unwrap()), Err(BackupError::NotABackup(_))));
    let mut tar = Builder::new(tempfile::tempfile().unwrap());
    let newer = br#"{"format": "talon-backup", "version": 9, "more": []}"#;
    tar.append_data(&mut header(newer.len() as u64), MANIFEST, &newer[..]).unwrap();
    let failed = checked(tar.into_inner().unwrap()).unwrap_err();
    assert!(matches!(failed, BackupError::UnsupportedVersion(9)), "{failed}");
}
