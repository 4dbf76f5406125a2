use talon_extensions::{Extensions, HookEntry};
use talon_guard::Origin;
use tonic::Code;

use super::*;
use crate::config::{DefaultPath, DefaultPaths, PluginStorage, PluginStorageEngine, Role as PeerRole};

fn peer(agent: bool) -> Peer {
    let rights = Some((PeerRole::Admin, Origin::Person));
    let service = agent.then_some(OwnService::Agent);
    Peer { uid: 1000, gid: 1000, pid: 1, rights, allowed: None, service, delegation: None }
}

fn config() -> Arc<Config> {
    let hooks = vec![
        HookEntry::new("pii.scan"),
        HookEntry { name: Some("again".to_owned()), ..HookEntry::new("pii.scan") },
        HookEntry {
            name: Some("filled".to_owned()),
            args: Some(Default::default()),
            ..HookEntry::new("pii.scan")
        },
    ];
    let extensions = Extensions { request_hooks: hooks, ..Extensions::default() };
    let place = || DefaultPath { path: "/nowhere".into(), variable: None };
    let places = DefaultPaths { runtime_dir: place(), data_dir: place(), config_file: None };
    Arc::new(Config { extensions, ..Config::built_in(&places) })
}

fn request(role: &str, extension: &str, action: &str) -> ExecuteRequest {
    let (plugin, action) = action.split_once('.').unwrap();
    ExecuteRequest {
        plugin: plugin.to_owned(),
        action: action.to_owned(),
        role: role.to_owned(),
        extension: extension.to_owned(),
        ..ExecuteRequest::default()
    }
}

fn asked(agent: bool, request: &ExecuteRequest) -> Result<Option<RoleCall>, Status> {
    role_call(&peer(agent), request, config)
}

// Promises: EXT-5
#[test]
fn exactly_the_entries_of_the_configuration_may_be_called() {
    for (role, name, action, granted) in [
        ("request_hook", "pii.scan", "pii.scan", true),
        ("request_hook", "again", "pii.scan", true),
        ("request_hook", "pii.scan", "pii.wipe", false),
        ("request_hook", "pii.scan", "files.scan", false),
        ("request_hook", "other", "pii.scan", false),
        ("request_hook", "", "pii.scan", false),
        ("response_hook", "pii.scan", "pii.scan", false),
        ("filter", "pii.scan", "pii.scan", false),
    ] {
        let call = asked(true, &request(role, name, action)).unwrap().unwrap();
        assert_eq!(call.grant().is_none(), granted, "{role} {name} {action}");
        assert_eq!(call.label, format!("{role}/{name}"));
        if let Some(grant) = call.grant() {
            assert!(!grant.covers("pii", "scan") && grant.remedy("pii", "scan").contains("`extensions`"));
        }
    }
    let long = asked(true, &request("filter", &"x".repeat(10_000), "pii.scan")).unwrap().unwrap();
    assert!(long.label.len() < 100);
}

// Promises: EXT-90
#[test]
fn an_action_has_to_declare_its_role_unless_the_entry_gives_arguments() {
    let mut call = asked(true, &request("request_hook", "pii.scan", "pii.scan")).unwrap().unwrap();
    assert!(call.needs_declaration && call.grant().is_none());
    call.refuse_undeclared();
    let grant = call.grant().unwrap();
    assert!(
        !grant.covers("pii", "scan") && grant.remedy("pii", "scan").contains("does not declare this role")
    );
    let filled = asked(true, &request("request_hook", "filled", "pii.scan")).unwrap().unwrap();
    assert!(!filled.needs_declaration, "its arguments are the entry's");
    // What the configuration does not list is refused for that reason.
    let mut other = asked(true, &request("filter", "pii.scan", "pii.scan")).unwrap().unwrap();
    other.refuse_undeclared();
    assert!(other.grant().unwrap().remedy("pii", "scan").contains("`extensions`"));
}

// Promises: EXT-5
#[test]
fn a_role_is_believed_on_the_connection_of_our_own_service_alone() {
    assert!(asked(false, &ExecuteRequest::default()).unwrap().is_none());
    let request = request("request_hook", "pii.scan", "pii.scan");
    let error = asked(false, &request).err().unwrap();
    assert_eq!(error.code(), Code::PermissionDenied);
    let only_entry = ExecuteRequest { role: String::new(), ..request.clone() };
    assert_eq!(asked(false, &only_entry).err().unwrap().code(), Code::PermissionDenied);
    assert_eq!(asked(true, &only_entry).err().unwrap().code(), Code::InvalidArgument);
    let unknown = ExecuteRequest { role: "request_hok".to_owned(), ..request.clone() };
    assert!(asked(true, &unknown).err().unwrap().message().ends_with("did you mean request_hook?"));
    let context = [("session_id".to_owned(), "s".to_owned())].into();
    for bad in [
        ExecuteRequest { context, ..request.clone() },
        ExecuteRequest { for_model: true, ..request.clone() },
        ExecuteRequest { within: vec!["pii.*".to_owned()], ..request },
    ] {
        assert_eq!(asked(true, &bad).err().unwrap().code(), Code::InvalidArgument);
    }
}

fn config_with_backend() -> Arc<Config> {
    let places = || DefaultPath { path: "/nowhere".into(), variable: None };
    let places = DefaultPaths { runtime_dir: places(), data_dir: places(), config_file: None };
    let mut config = Config::built_in(&places);
    config.state.plugins =
        Some(PluginStorage { engine: PluginStorageEngine::Plugin, action: Some("valkey.store".to_owned()) });
    config.extensions =
        Extensions { request_hooks: vec![HookEntry::new("pii.scan")], ..Extensions::default() };
    Arc::new(config)
}

// Promises: EXT-105
#[test]
fn the_state_service_calls_the_storage_backend_and_nothing_else() {
    let config = config_with_backend();
    let state = Peer { service: Some(OwnService::State), ..peer(false) };
    let asked = |peer: &Peer, request: &ExecuteRequest| role_call(peer, request, || Arc::clone(&config));
    let store = request("storage_backend", "valkey.store", "valkey.store");
    let call = asked(&state, &store).unwrap().unwrap();
    assert!(call.grant().is_none() && call.needs_declaration);
    let other = request("storage_backend", "valkey.store", "valkey.flush");
    assert!(asked(&state, &other).unwrap().unwrap().grant().is_some());
    for (peer, request) in [
        (&state, ExecuteRequest { role: String::new(), extension: String::new(), ..store.clone() }),
        (&state, request("request_hook", "pii.scan", "pii.scan")),
        (&peer(true), store.clone()),
        (&peer(false), store),
    ] {
        let refused = asked(peer, &request).err().map(|status| status.code());
        assert!(matches!(refused, Some(Code::PermissionDenied | Code::InvalidArgument)), "{refused:?}");
    }
}

// Promises: EXT-105
#[test]
fn only_an_administrator_calls_the_action_that_keeps_state() {
    let config = config_with_backend();
    let call = |role: Option<PeerRole>, agent: bool, action: &str| {
        let peer = Peer { rights: role.map(|role| (role, Origin::Person)), ..peer(agent) };
        role_call(&peer, &request("", "", action), || Arc::clone(&config))
    };
    for agent in [false, true] {
        for role in [None, Some(PeerRole::Call), Some(PeerRole::Operate)] {
            let refused = call(role, agent, "valkey.store").err().expect("refused");
            assert_eq!(refused.code(), Code::PermissionDenied);
            assert!(refused.message().contains("`talon state`"), "{refused}");
            for other in ["valkey.info", "files.store"] {
                assert!(call(role, agent, other).expect("an ordinary call").is_none());
            }
        }
    }
    assert!(call(Some(PeerRole::Admin), false, "valkey.store").expect("an ordinary call").is_none());
    // Without such an entry it is an action as any other.
    let peer = Peer { rights: Some((PeerRole::Call, Origin::Person)), ..peer(false) };
    assert!(role_call(&peer, &request("", "", "valkey.store"), self::config).expect("ordinary").is_none());
}

// Promises: EXT-162
#[test]
fn a_job_that_no_entry_lists_has_to_be_proposed_by_its_action() {
    let mut free = asked(true, &request("scheduled_task", "files.tidy", "files.tidy")).unwrap().unwrap();
    assert!(free.needs_proposal && free.grant().is_none());
    free.refuse_unlisted();
    assert!(!free.grant().unwrap().covers("files", "tidy"));
    // Another role is never free, and neither is a job that an entry lists for another action.
    assert!(!asked(true, &request("filter", "files.tidy", "files.tidy")).unwrap().unwrap().needs_proposal);
    let listed = || {
        let job = serde_json::json!([{ "id": "files.tidy", "every": "1h", "action": "files.tidy" }]);
        let extensions =
            Extensions { schedule: serde_json::from_value(job).unwrap(), ..Extensions::default() };
        Arc::new(Config { extensions, ..(*config()).clone() })
    };
    for (action, granted) in [("files.tidy", true), ("files.wipe", false)] {
        let call = role_call(&peer(true), &request("scheduled_task", "files.tidy", action), listed)
            .unwrap()
            .unwrap();
        assert_eq!((call.grant().is_none(), call.needs_proposal), (granted, false), "{action}");
    }
    assert_eq!(
        asked(false, &request("scheduled_task", "files.tidy", "files.tidy")).err().unwrap().code(),
        Code::PermissionDenied
    );
}
