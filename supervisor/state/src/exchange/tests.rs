//! Tests of export and import, with files as other programs write them and with invalid ones.

mod bad;
mod foreign;
mod hostile;
mod random;
mod rounds;
mod times;

use std::collections::BTreeMap;

use talon_proto::state::{ExportChunk, ImportCounts, ImportRefused, Layers, export_chunk, import_report};
use talon_store::{Engine, Store, StoreOptions};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::{Importer, export};

/// Paths and bytes.
type Files = BTreeMap<String, Vec<u8>>;

struct Scratch {
    store: Store,
    _directory: TempDir,
}

async fn scratch() -> Scratch {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state/state.db");
    Scratch { store: StoreOptions::new(Engine::Sqlite { path }).open().await.unwrap(), _directory: directory }
}

async fn exported(store: &Store, layers: Layers) -> Files {
    // One chunk at a time: an export waits for its client.
    let (to, mut chunks) = mpsc::channel::<ExportChunk>(1);
    let store = store.clone();
    let task = tokio::spawn(async move { export(&store, layers, to).await });
    let mut files = Files::new();
    let (mut planned, mut done, mut open, mut records) = (None, None, None, 0);
    while let Some(chunk) = chunks.recv().await {
        assert!(done.is_none(), "nothing comes after the end");
        match chunk.kind.unwrap() {
            export_chunk::Kind::Planned(plan) => planned = Some(plan.files),
            export_chunk::Kind::Begin(file) => {
                assert!(open.replace(file.path.clone()).is_none());
                assert!(files.insert(file.path, Vec::new()).is_none());
            }
            export_chunk::Kind::Data(data) => {
                assert!((1..=super::limits::CHUNK_BYTES).contains(&data.len()));
                files.get_mut(open.as_ref().unwrap()).unwrap().extend(data);
            }
            export_chunk::Kind::End(end) => {
                assert!(open.take().is_some());
                records += end.records;
            }
            export_chunk::Kind::Done(end) => done = Some((end.files, end.records)),
        }
    }
    task.await.unwrap().unwrap();
    assert_eq!(planned, Some(files.len() as u64));
    assert_eq!(done, Some((files.len() as u64, records)));
    files
}

/// What an import said.
struct Said {
    counts: ImportCounts,
    refused: Vec<ImportRefused>,
    /// The path and the plugin of each file whose plugin has another name.
    renamed: Vec<(String, String)>,
}

impl Said {
    fn counted(&self) -> (u64, u64, u64) {
        (self.counts.imported, self.counts.unchanged, self.counts.refused)
    }

    /// `line:column record: reason` of each refusal.
    fn lines(&self) -> Vec<String> {
        let line = |r: &ImportRefused| format!("{}:{} {}: {}", r.line, r.column, r.record, r.reason);
        self.refused.iter().map(line).collect()
    }
}

async fn import(store: &Store, layers: Layers, dry_run: bool, files: &[(&str, &[u8])]) -> Said {
    import_by(Importer::new(store.clone(), layers, dry_run), files).await
}

async fn import_by(mut importer: Importer, files: &[(&str, &[u8])]) -> Said {
    let (to, mut reports) = mpsc::channel(1);
    let files: Vec<_> = files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect();
    let task = tokio::spawn(async move {
        for (path, bytes) in files {
            importer.import_file(&path, bytes, &to).await.unwrap();
        }
        importer.into_report()
    });
    let mut refused = Vec::new();
    let mut files = ImportCounts::default();
    let mut in_file = 0;
    let mut renamed = Vec::new();
    while let Some(report) = reports.recv().await {
        match report.kind.unwrap() {
            import_report::Kind::Refused(record) => {
                assert!(
                    record.reason.len() < 1_000 && record.record.len() < 1_000 && record.path.len() < 1_000
                );
                in_file += 1;
                refused.push(record);
            }
            import_report::Kind::File(file) => {
                let counts = file.counts.unwrap();
                assert_eq!(counts.refused, std::mem::take(&mut in_file), "each refusal is reported");
                files.imported += counts.imported;
                files.unchanged += counts.unchanged;
                files.refused += counts.refused;
                renamed.extend((!file.plugin.is_empty()).then_some((file.path, file.plugin)));
            }
            import_report::Kind::Done(_) => panic!("the end is not sent by a file"),
        }
    }
    let Some(import_report::Kind::Done(done)) = task.await.unwrap().kind else {
        panic!("the last is the end")
    };
    let counts = done.counts.unwrap();
    assert_eq!(counts, files);
    Said { counts, refused, renamed }
}

async fn import_all(store: &Store, layers: Layers, files: &Files) -> Said {
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
    import(store, layers, false, &files).await
}
