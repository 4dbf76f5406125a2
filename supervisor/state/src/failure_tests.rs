use talon_child::MAX_STATUS_BYTES;
use talon_store::PluginId;

use super::*;

#[test]
fn a_quota_is_told_in_words_and_as_a_message() {
    let plugin = PluginId::new("hello").unwrap();
    let error = Error::Quota { plugin, resource: Resource::Keys, used: 10, limit: 9, wanted: 11 };
    let status = status(&error, Requester::Plugin);
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("10 of 9 keys"), "{status:?}");
    let details = QuotaExceeded::of(&status).unwrap();
    assert_eq!(details, QuotaExceeded { resource: "keys".into(), used: 10, limit: 9, wanted: 11 });
}

#[test]
fn a_plugin_is_not_told_about_the_machine_and_an_operator_is() {
    let secret = "open /data/state.db failed";
    for error in [Error::Corrupt(secret.into()), Error::Engine(secret.into()), Error::Full(secret.into())] {
        let plugin = status(&error, Requester::Plugin);
        assert!(!plugin.message().contains("/data"), "{plugin:?}");
        let operator = status(&error, Requester::Operator);
        assert!(operator.message().contains(secret), "{operator:?}");
        assert_eq!(plugin.code(), operator.code());
    }
}

#[test]
fn what_may_work_later_says_when() {
    let gone = Error::Unavailable { reason: "10.0.0.1 refused".into(), retry_in: Duration::from_millis(250) };
    let status = status(&gone, Requester::Plugin);
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.metadata().get(RETRY_HEADER).unwrap(), "250");
    assert!(!status.message().contains("10.0.0.1"), "{status:?}");
}

#[test]
fn texts_fit_into_a_header() {
    assert_eq!(truncate("short".into()), "short");
    let long = truncate("ä".repeat(MAX_STATUS_BYTES));
    assert!(long.len() <= MAX_STATUS_BYTES + '…'.len_utf8() && long.ends_with("ä…"));
}
