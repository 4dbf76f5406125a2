//! The founding layout over an operator's connection. What is in the files is tested where they are made.

use std::collections::BTreeMap;

use talon_proto::state::{
    ExportRequest, ImportChunk, ImportCounts, ImportDone, ImportFile, ImportOptions, ImportReport,
    export_chunk, import_chunk, import_report,
};
use talon_state::exchange::limits::MAX_FILE_BYTES;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use crate::plugin::{get, set};
use crate::support::{Operator, Place, Service};

async fn export(operator: &mut Operator) -> BTreeMap<String, Vec<u8>> {
    let mut chunks = operator.export(ExportRequest {}).await.unwrap().into_inner();
    let (mut files, mut open) = (BTreeMap::new(), String::new());
    while let Some(chunk) = chunks.message().await.unwrap() {
        match chunk.kind.unwrap() {
            export_chunk::Kind::Begin(begin) => {
                open.clone_from(&begin.path);
                files.insert(begin.path, Vec::new());
            }
            export_chunk::Kind::Data(data) => files.get_mut(&open).unwrap().extend(data),
            export_chunk::Kind::Done(done) => {
                assert_eq!(done.files, files.len() as u64);
                assert!(chunks.message().await.unwrap().is_none());
                return files;
            }
            export_chunk::Kind::Planned(_) | export_chunk::Kind::End(_) => {}
        }
    }
    panic!("it ended without being done");
}

async fn import(
    operator: &mut Operator,
    said: Vec<import_chunk::Kind>,
) -> Result<(ImportDone, Vec<ImportReport>), Status> {
    let said = tokio_stream::iter(said.into_iter().map(|kind| ImportChunk { kind: Some(kind) }));
    let mut reports = operator.import(said).await?.into_inner();
    let mut others = Vec::new();
    while let Some(report) = reports.message().await? {
        match report.kind {
            Some(import_report::Kind::Done(done)) => return Ok((done, others)),
            _ => others.push(report),
        }
    }
    panic!("it ended without being done");
}

fn whole(files: &BTreeMap<String, Vec<u8>>, dry_run: bool) -> Vec<import_chunk::Kind> {
    let mut said = vec![import_chunk::Kind::Options(ImportOptions { dry_run, sender: String::new() })];
    for (path, bytes) in files {
        said.push(import_chunk::Kind::Begin(ImportFile { path: path.clone() }));
        said.extend(bytes.chunks(1000).map(|data| import_chunk::Kind::Data(data.to_vec())));
    }
    said
}

#[tokio::test]
async fn what_was_exported_is_imported_elsewhere_and_only_once() {
    let (here, there) = (Place::new(), Place::new());
    let (from, to) = (Service::at(&here).await, Service::at(&there).await);
    for (id, name) in [(1, "one"), (2, "two")] {
        let mut plugin = from.plugin(&here, id, name).await;
        for number in 0..300 {
            set(&mut plugin, &format!("key-{number}"), name.as_bytes()).await.unwrap();
        }
    }
    let files = export(&mut from.operator().await).await;
    assert_eq!(files.keys().collect::<Vec<_>>(), ["plugins/one/state.yaml", "plugins/two/state.yaml"]);
    let mut operator = to.operator().await;
    let mut plugin = to.plugin(&there, 1, "two").await;
    for (dry_run, imported, unchanged) in [(true, 600, 0), (false, 600, 0), (false, 0, 600)] {
        let (done, reports) = import(&mut operator, whole(&files, dry_run)).await.unwrap();
        let counts = done.counts.unwrap();
        assert_eq!((counts.imported, counts.unchanged, counts.refused), (imported, unchanged, 0));
        assert_eq!((done.files, reports.len()), (2, 2));
        assert_eq!(get(&mut plugin, "key-7").await.unwrap().is_none(), dry_run);
    }
    assert_eq!(get(&mut plugin, "key-299").await.unwrap().unwrap(), b"two");
}

#[tokio::test]
async fn an_import_that_makes_no_sense_is_refused() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut operator = service.operator().await;
    let options = || import_chunk::Kind::Options(ImportOptions::default());
    let begin = |path: &str| import_chunk::Kind::Begin(ImportFile { path: path.into() });
    for said in [
        vec![begin("plugins/a/state.yaml")],
        vec![options(), import_chunk::Kind::Data(vec![1])],
        vec![options(), begin("a"), options()],
        vec![options(), begin(&"a".repeat(2000))],
        vec![],
    ] {
        let refused = import(&mut operator, said).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    }
    let (done, reports) = import(&mut operator, vec![options(), begin("../../etc/passwd")]).await.unwrap();
    assert_eq!((done.files, done.counts.unwrap().imported), (1, 0));
    assert!(matches!(reports[0].kind, Some(import_report::Kind::Refused(_))), "{reports:?}");
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_while_it_comes_and_the_next_is_taken() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut operator = service.operator().await;
    let (to, said) = mpsc::channel(1);
    let say = async |kind| to.send(ImportChunk { kind: Some(kind) }).await.unwrap();
    let data = |text: &str| import_chunk::Kind::Data(text.into());
    let begin = |id: &str| import_chunk::Kind::Begin(ImportFile { path: format!("plugins/{id}/state.yaml") });
    let mut reports = operator.import(ReceiverStream::new(said)).await.unwrap().into_inner();
    say(import_chunk::Kind::Options(ImportOptions::default())).await;
    say(begin("large")).await;
    // The stream has no end yet: waiting for one would block for ever.
    let refused = loop {
        tokio::select! {
            report = reports.message() => break report.unwrap().unwrap(),
            () = say(data(&" ".repeat(1 << 20))) => {}
        }
    };
    let Some(import_report::Kind::Refused(refused)) = refused.kind else { panic!("{refused:?}") };
    assert_eq!((refused.path.as_str(), refused.line), ("plugins/large/state.yaml", 0));
    assert!(refused.reason.contains(&format!("larger than {MAX_FILE_BYTES} bytes")), "{refused:?}");
    for what in [data("more: of it\n"), begin("small"), data("key: value\n")] {
        say(what).await;
    }
    drop(to);
    let mut files = Vec::new();
    let done = loop {
        match reports.message().await.unwrap().unwrap().kind.unwrap() {
            import_report::Kind::File(file) => files.push((file.path, file.counts.unwrap())),
            import_report::Kind::Done(done) => break done,
            other @ import_report::Kind::Refused(_) => panic!("{other:?}"),
        }
    };
    let counts = |imported, refused| ImportCounts { imported, refused, unchanged: 0 };
    let expected = [("large", counts(0, 1)), ("small", counts(1, 0))];
    assert_eq!(files, expected.map(|(id, counts)| (format!("plugins/{id}/state.yaml"), counts)));
    assert_eq!((done.files, done.counts), (2, Some(counts(1, 1))));
    let mut plugin = service.plugin(&place, 1, "small").await;
    assert_eq!(get(&mut plugin, "key").await.unwrap().unwrap(), b"value");
}
