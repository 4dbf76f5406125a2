//! What a plugin sees on its socket.

use talon_proto::state::{
    CompareAndSetRequest, DeleteRequest, GetRequest, KeysRequest, QuotaExceeded, SetRequest,
};
use tonic::{Code, Status};

use crate::support::{MAX_VALUE, Place, Plugin, Service, attach, connect, listener};

pub(crate) async fn set(plugin: &mut Plugin, key: &str, value: &[u8]) -> Result<(), Status> {
    plugin.set(SetRequest { key: key.to_owned(), value: value.to_vec() }).await.map(drop)
}

pub(crate) async fn get(plugin: &mut Plugin, key: &str) -> Result<Option<Vec<u8>>, Status> {
    Ok(plugin.get(GetRequest { key: key.to_owned() }).await?.into_inner().value)
}

#[tokio::test]
async fn every_request_does_what_it_says() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    assert_eq!(get(&mut plugin, "a").await.unwrap(), None);
    set(&mut plugin, "a", b"1").await.unwrap();
    set(&mut plugin, "ä", b"").await.unwrap();
    assert_eq!(get(&mut plugin, "a").await.unwrap().unwrap(), b"1");
    assert_eq!(get(&mut plugin, "ä").await.unwrap().unwrap(), b"");
    let swap = |expected: Option<&[u8]>, value: Option<&[u8]>| CompareAndSetRequest {
        key: "a".into(),
        expected: expected.map(<[u8]>::to_vec),
        value: value.map(<[u8]>::to_vec),
    };
    let lost = plugin.compare_and_set(swap(None, Some(b"2"))).await.unwrap().into_inner();
    assert_eq!((lost.swapped, lost.current.as_deref()), (false, Some(&b"1"[..])));
    let won = plugin.compare_and_set(swap(Some(b"1"), Some(b"2"))).await.unwrap().into_inner();
    assert_eq!((won.swapped, won.current), (true, None));
    assert_eq!(get(&mut plugin, "a").await.unwrap().unwrap(), b"2");
    let delete = || DeleteRequest { key: "a".into() };
    assert!(plugin.delete(delete()).await.unwrap().into_inner().existed);
    assert!(!plugin.delete(delete()).await.unwrap().into_inner().existed);
}

#[tokio::test]
async fn keys_come_in_pages_and_by_prefix() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    for number in 0..25 {
        set(&mut plugin, &format!("a{number:02}"), b"x").await.unwrap();
    }
    set(&mut plugin, "b", b"x").await.unwrap();
    let (mut found, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = KeysRequest { prefix: "a".into(), page_token, page_size: 10 };
        let page = plugin.keys(request).await.unwrap().into_inner();
        found.extend(page.keys);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(found, (0..25).map(|number| format!("a{number:02}")).collect::<Vec<_>>());
    let wrong = KeysRequest { page_token: "nonsense".into(), ..KeysRequest::default() };
    assert_eq!(plugin.keys(wrong).await.unwrap_err().code(), Code::InvalidArgument);
}

// Promises: STATE-4
#[tokio::test]
async fn two_plugins_with_equal_keys_see_their_own() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut one = service.plugin(&place, 1, "one").await;
    let mut two = service.plugin(&place, 2, "two").await;
    set(&mut one, "key", b"of one").await.unwrap();
    assert_eq!(get(&mut two, "key").await.unwrap(), None);
    set(&mut two, "key", b"of two").await.unwrap();
    assert_eq!(get(&mut one, "key").await.unwrap().unwrap(), b"of one");
    let keys = two.keys(KeysRequest::default()).await.unwrap().into_inner().keys;
    assert_eq!(keys, ["key"]);
}

// Promises: STATE-4
#[tokio::test]
async fn two_sockets_of_one_plugin_share_its_namespace() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut first = service.plugin(&place, 1, "hello").await;
    let mut second = service.plugin(&place, 2, "hello").await;
    set(&mut first, "key", b"value").await.unwrap();
    assert_eq!(get(&mut second, "key").await.unwrap().unwrap(), b"value");
    service.detach(1).await;
    assert_eq!(get(&mut second, "key").await.unwrap().unwrap(), b"value");
}

// Promises: STATE-9
#[tokio::test]
async fn a_quota_error_says_used_and_limit_in_words_and_as_a_message() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let socket = place.path("k");
    let uid = nix::unistd::geteuid().as_raw();
    let mut small = attach(1, "hello", uid);
    (small.quota_bytes, small.quota_keys) = (100, 2);
    service.attach_with(small, listener(&socket)).await;
    let mut plugin = connect(&socket).await;
    set(&mut plugin, "a", &[0; 49]).await.unwrap();
    let bytes = set(&mut plugin, "b", &[0; 50]).await.unwrap_err();
    assert_eq!(bytes.code(), Code::ResourceExhausted, "{bytes:?}");
    assert!(bytes.message().contains("50 of 100"), "{bytes:?}");
    let details = QuotaExceeded::of(&bytes).unwrap();
    assert_eq!(details, QuotaExceeded { resource: "bytes".into(), used: 50, limit: 100, wanted: 101 });
    set(&mut plugin, "b", b"").await.unwrap();
    let keys = set(&mut plugin, "c", b"").await.unwrap_err();
    let details = QuotaExceeded::of(&keys).unwrap();
    assert_eq!(details, QuotaExceeded { resource: "keys".into(), used: 2, limit: 2, wanted: 3 });
    plugin.delete(DeleteRequest { key: "a".into() }).await.unwrap();
    set(&mut plugin, "c", b"").await.unwrap();
}

// Promises: STATE-10
#[tokio::test]
async fn what_cannot_be_kept_is_refused_with_a_reason_and_the_connection_stays() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    let long = "k".repeat(513);
    for (key, value, says) in [
        ("", 1, "1 to 512 bytes"),
        (long.as_str(), 1, "1 to 512 bytes, not 513"),
        ("k", MAX_VALUE + 1, "at most 1048576 bytes, not 1048577"),
        ("k", 3 * MAX_VALUE, "1048576"),
        ("k", 64 * MAX_VALUE, "1048576"),
    ] {
        let refused = set(&mut plugin, key, &vec![0; value]).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{value}: {refused:?}");
        assert!(refused.message().contains(says), "{refused:?}");
    }
    let largest = vec![7; MAX_VALUE];
    set(&mut plugin, &"k".repeat(512), &largest).await.unwrap();
    assert_eq!(get(&mut plugin, &"k".repeat(512)).await.unwrap().unwrap(), largest);
    let both = CompareAndSetRequest {
        key: "k".repeat(512),
        expected: Some(largest),
        value: Some(vec![8; MAX_VALUE]),
    };
    assert!(plugin.compare_and_set(both).await.unwrap().into_inner().swapped);
}
