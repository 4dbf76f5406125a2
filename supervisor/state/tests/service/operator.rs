//! What an operator can do.

use talon_proto::state::{
    BackupBegin, BackupRequest, DeleteEntryRequest, DescribeRequest, GetEntryRequest, Layers,
    ListEntriesRequest, ListPluginsRequest, Open, PluginUsage, PurgeRequest, RestoreBegin, RestoreChunk,
    RestoreEnd, RestoreResponse, SetEntryRequest, backup_chunk, restore_chunk,
};
use tonic::{Code, Status};

use crate::plugin::{get, set};
use crate::support::{MAX_VALUE, Operator, Place, Service};

fn usage(plugin: &str, bytes: u64, keys: u64) -> PluginUsage {
    PluginUsage { plugin: plugin.into(), bytes, keys }
}

#[tokio::test]
async fn an_operator_sees_sets_deletes_and_purges() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    let mut operator = service.operator().await;
    set(&mut plugin, "a", b"12345").await.unwrap();
    let entry = SetEntryRequest { plugin: "other".into(), key: "k".into(), value: vec![1; 9] };
    operator.set_entry(entry).await.unwrap();
    operator
        .set_entry(SetEntryRequest { plugin: "hello".into(), key: "b".into(), value: b"by hand".to_vec() })
        .await
        .unwrap();
    assert_eq!(get(&mut plugin, "b").await.unwrap().unwrap(), b"by hand");
    let plugins = operator.list_plugins(ListPluginsRequest::default()).await.unwrap().into_inner();
    assert_eq!(plugins.plugins, [usage("hello", 14, 2), usage("other", 10, 1)]);
    let list = ListEntriesRequest { plugin: "hello".into(), page_size: 1, ..ListEntriesRequest::default() };
    let page = operator.list_entries(list.clone()).await.unwrap().into_inner();
    assert_eq!((page.entries[0].key.as_str(), page.entries[0].value_bytes), ("a", 5));
    assert_eq!(page.usage, Some(usage("hello", 14, 2)));
    let list = ListEntriesRequest { page_token: page.next_page_token, ..list };
    let page = operator.list_entries(list).await.unwrap().into_inner();
    assert_eq!((page.entries[0].key.as_str(), page.next_page_token.as_str()), ("b", ""));
    let entry = GetEntryRequest { plugin: "hello".into(), key: "a".into() };
    let found = operator.get_entry(entry).await.unwrap().into_inner();
    assert_eq!(found.value.unwrap(), b"12345");
    let delete = DeleteEntryRequest { plugin: "hello".into(), key: "a".into() };
    assert!(operator.delete_entry(delete.clone()).await.unwrap().into_inner().existed);
    assert!(!operator.delete_entry(delete).await.unwrap().into_inner().existed);
    let purged = operator.purge(PurgeRequest { plugin: "hello".into() }).await.unwrap().into_inner();
    assert_eq!(purged.purged, Some(usage("hello", 8, 1)));
    assert_eq!(get(&mut plugin, "b").await.unwrap(), None);
    let wrong = operator.purge(PurgeRequest { plugin: "../hello".into() }).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn it_says_what_is_open() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    set(&mut plugin, "a", b"1").await.unwrap();
    set(&mut plugin, "a", b"2").await.unwrap();
    let mut operator = service.operator().await;
    let described = operator.describe(DescribeRequest::default()).await.unwrap().into_inner();
    assert_eq!(described.engine, "sqlite");
    assert_eq!(described.place, place.database().to_str().unwrap());
    assert_eq!(described.layers(), Layers::KeyValues);
    assert_eq!((described.writes, described.commits, described.sockets), (2, 2, 1));
    assert_eq!((described.problem.as_str(), described.version.as_str()), ("", env!("CARGO_PKG_VERSION")));
    assert!(described.schema_version > 0);
}

#[tokio::test]
async fn what_is_not_open_is_not_served() {
    let place = Place::new();
    let open = Open { layers: Layers::Conversations.into(), ..place.open() };
    let (service, _) = Service::with(&place, open).await;
    service.attach(1, "hello", &place.path("k")).await;
    let mut operator = service.operator().await;
    let described = operator.describe(DescribeRequest::default()).await.unwrap().into_inner();
    assert_eq!((described.layers(), described.sockets), (Layers::Conversations, 0));
    let refused = operator.list_plugins(ListPluginsRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let refused = operator.purge(PurgeRequest { plugin: "hello".into() }).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(service.log().contains("not obeyed"), "{}", service.log());
}

/// A whole backup: its beginning, its bytes and its digest.
pub(crate) async fn backup(operator: &mut Operator) -> (BackupBegin, Vec<u8>, String) {
    let mut chunks = operator.backup(BackupRequest {}).await.unwrap().into_inner();
    let Some(backup_chunk::Kind::Begin(begin)) = chunks.message().await.unwrap().unwrap().kind else {
        panic!("it begins with `begin`");
    };
    let mut bytes = Vec::new();
    loop {
        match chunks.message().await.unwrap().unwrap().kind.unwrap() {
            backup_chunk::Kind::Data(data) => bytes.extend(data),
            backup_chunk::Kind::End(end) => {
                assert!(chunks.message().await.unwrap().is_none());
                assert_eq!(begin.bytes, bytes.len() as u64);
                return (begin, bytes, end.sha256);
            }
            backup_chunk::Kind::Begin(_) => panic!("it begins twice"),
        }
    }
}

async fn restore(
    operator: &mut Operator,
    begin: RestoreBegin,
    bytes: &[u8],
    sha256: Option<&str>,
) -> Result<RestoreResponse, Status> {
    let mut said = vec![restore_chunk::Kind::Begin(begin)];
    said.extend(bytes.chunks(60_000).map(|data| restore_chunk::Kind::Data(data.to_vec())));
    said.extend(sha256.map(|sha256| restore_chunk::Kind::End(RestoreEnd { sha256: sha256.to_owned() })));
    let said = said.into_iter().map(|kind| RestoreChunk { kind: Some(kind) });
    Ok(operator.restore(tokio_stream::iter(said.collect::<Vec<_>>())).await?.into_inner())
}

fn of(begin: &BackupBegin) -> RestoreBegin {
    RestoreBegin { layers: begin.layers, bytes: begin.bytes, check_only: false }
}

/// The files beside the database that are neither it nor its own.
fn left_over(place: &Place) -> Vec<String> {
    let names = std::fs::read_dir(place.path("state")).unwrap();
    let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("copying")).collect()
}

#[tokio::test]
async fn a_backup_brings_back_what_was_there_while_plugins_go_on() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    let mut operator = service.operator().await;
    set(&mut plugin, "a", &vec![1; MAX_VALUE]).await.unwrap();
    let (begin, bytes, sha256) = backup(&mut operator).await;
    assert_eq!(begin.layers(), Layers::KeyValues);
    set(&mut plugin, "a", b"later").await.unwrap();
    set(&mut plugin, "b", b"later").await.unwrap();
    let check = RestoreBegin { check_only: true, ..of(&begin) };
    let checked = restore(&mut operator, check, &bytes, Some(&sha256)).await.unwrap();
    assert_eq!(checked.kept, "");
    assert_eq!(get(&mut plugin, "a").await.unwrap().unwrap(), b"later");
    let restored = restore(&mut operator, of(&begin), &bytes, Some(&sha256)).await.unwrap();
    assert!(std::path::Path::new(&restored.kept).exists(), "{restored:?}");
    assert!(get(&mut plugin, "a").await.unwrap() == Some(vec![1; MAX_VALUE]));
    assert_eq!(get(&mut plugin, "b").await.unwrap(), None);
    set(&mut plugin, "c", b"x").await.unwrap();
    assert_eq!(left_over(&place), [""; 0]);
}

// Promises: STATE-21
#[tokio::test]
async fn what_does_not_arrive_whole_is_not_restored() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    let mut operator = service.operator().await;
    set(&mut plugin, "a", &[1; 100_000]).await.unwrap();
    let (begin, bytes, sha256) = backup(&mut operator).await;
    set(&mut plugin, "a", b"now").await.unwrap();
    let short = &bytes[..bytes.len() - 1];
    let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
    let mut nonsense = bytes.clone();
    nonsense.fill(7);
    let digest = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&nonsense));
    for (bytes, sha256, says) in [
        (short, Some(sha256.as_str()), "shorter"),
        (&longer[..], Some(&sha256), "longer"),
        (&bytes[..], Some(&digest), "digest"),
        (&bytes[..], None, "before its end"),
        (&nonsense[..], Some(&digest), "cannot be restored"),
    ] {
        let refused = restore(&mut operator, of(&begin), bytes, sha256).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        assert!(refused.message().contains(says), "{refused:?}");
    }
    let other = RestoreBegin { layers: Layers::Conversations.into(), ..of(&begin) };
    let refused = restore(&mut operator, other, &bytes, Some(&sha256)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    let large = RestoreBegin { bytes: u64::MAX, ..of(&begin) };
    let refused = restore(&mut operator, large, &bytes, Some(&sha256)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert_eq!(get(&mut plugin, "a").await.unwrap().unwrap(), b"now");
    assert_eq!(left_over(&place), [""; 0]);
}

#[tokio::test]
async fn a_damaged_database_is_replaced_by_a_backup() {
    let place = Place::new();
    let mut service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    set(&mut plugin, "a", &[1; 100_000]).await.unwrap();
    let (begin, bytes, sha256) = backup(&mut service.operator().await).await;
    service.let_go();
    service.ended();
    std::fs::write(place.database(), vec![7; 10_000]).unwrap();
    let open = Open { for_restore: true, ..place.open() };
    let (mut service, ready) = Service::with(&place, open).await;
    assert!(!ready.problem.is_empty(), "{ready:?}");
    let mut operator = service.operator().await;
    let described = operator.describe(DescribeRequest::default()).await.unwrap().into_inner();
    assert_eq!((described.problem, described.schema_version), (ready.problem, 0));
    let refused = operator.list_plugins(ListPluginsRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    let restored = restore(&mut operator, of(&begin), &bytes, Some(&sha256)).await.unwrap();
    assert_eq!(std::fs::read(restored.kept).unwrap(), vec![7; 10_000]);
    service.let_go();
    assert!(service.ended().success());
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 2, "hello").await;
    assert_eq!(get(&mut plugin, "a").await.unwrap().unwrap(), [1; 100_000]);
}

#[tokio::test]
async fn what_a_killed_service_left_of_a_copy_is_removed_at_the_next_start() {
    let place = Place::new();
    drop(Service::at(&place).await);
    let left = place.path("state/state.db.copying-left");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("copy.db"), "half").unwrap();
    let _service = Service::at(&place).await;
    assert_eq!(left_over(&place), [""; 0]);
}
