use super::*;
use crate::config::Environment;

fn peer(agent: bool) -> Peer {
    Peer {
        uid: 70_000,
        gid: 70_000,
        pid: 7,
        rights: None,
        allowed: None,
        service: agent.then_some(crate::peer::OwnService::Agent),
        delegation: None,
    }
}

fn config(lists: &str) -> Arc<Config> {
    let mut config = Config::built_in(&Environment::of_process().default_paths());
    config.agent.allow = serde_json::from_str(lists).expect("lists");
    Arc::new(config)
}

const LISTS: &str = r#"{
    "senders": { "alice": ["files.*", "hello.greet"], "nobody": [] },
    "channels": { "cli": ["files.read", "files.write", "hello.*"] },
    "subagents": { "ResearchAgent": ["files.read"] }
}"#;

fn request(within: &[&str], context: &[(&str, &str)]) -> ExecuteRequest {
    let context = context.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ExecuteRequest {
        within: within.iter().map(|pattern| (*pattern).to_owned()).collect(),
        context: context.collect(),
        ..ExecuteRequest::default()
    }
}

/// Which of some actions a call may use.
fn may(peer: &Peer, request: &ExecuteRequest, config: &Arc<Config>) -> Result<Vec<&'static str>, Status> {
    let granted = grant_for(peer, request, || Arc::clone(config))?;
    let all = ["files.read", "files.write", "files.wipe", "hello.greet", "hello.shout", "talon.read_more"];
    let covers = |tool: &&str| {
        let (plugin, action) = tool.split_once('.').expect("a dot");
        let covers = granted.as_ref().is_none_or(|granted| granted.covers(plugin, action));
        let some = granted.as_ref().is_none_or(|granted| granted.covers_any_action(plugin));
        assert!(some || !covers, "{tool}");
        covers
    };
    Ok(all.into_iter().filter(covers).collect())
}

// Promises: GRANT-3
#[test]
fn without_a_word_nothing_is_narrowed() {
    let nothing = grant_for(&peer(false), &request(&[], &[]), || unreachable!("nobody asks for it"));
    assert!(nothing.expect("it is fine").is_none());
}

// Promises: GRANT-3
#[test]
fn within_takes_away_and_gives_nothing() {
    let config = config("{}");
    let narrow = request(&["files.read", "hello.*"], &[]);
    assert_eq!(may(&peer(false), &narrow, &config).unwrap(), ["files.read", "hello.greet", "hello.shout"]);
    let allowed = Some(Arc::new(AllowedActions::new(&["files".to_owned()])));
    let granted_less = Peer { allowed, ..peer(false) };
    assert_eq!(may(&granted_less, &narrow, &config).unwrap(), ["files.read"]);
}

// Promises: GRANT-3
#[test]
fn what_is_no_pattern_is_no_request() {
    for bad in ["files", "*", "files.re*", "a b.c", ""] {
        let status = may(&peer(false), &request(&["files.*", bad], &[]), &config("{}")).unwrap_err();
        assert_eq!(status.code(), tonic::Code::InvalidArgument, "{bad}");
        assert!(status.message().contains("plugin.*"), "{}", status.message());
    }
    let many = vec!["files.*"; MAX_WITHIN + 1];
    let status = may(&peer(false), &request(&many, &[]), &config("{}")).unwrap_err();
    assert!(status.message().contains("shorten"), "{}", status.message());
}

// Promises: GRANT-4
#[test]
fn the_operators_lists_hold_for_the_agent_whatever_it_asks_for() {
    let config = config(LISTS);
    let agent = |context: &[(&str, &str)]| {
        let mut all = vec![("session_id", "s")];
        all.extend(context);
        may(&peer(true), &request(&[], &all), &config).unwrap()
    };
    let everything =
        ["files.read", "files.write", "files.wipe", "hello.greet", "hello.shout", "talon.read_more"];
    assert_eq!(agent(&[("sender", "bob"), ("channel", "web")]), everything);
    let alice = ["files.read", "files.write", "files.wipe", "hello.greet", "talon.read_more"];
    assert_eq!(agent(&[("sender", "alice"), ("channel", "web")]), alice);
    let on_the_line = ["files.read", "files.write", "hello.greet", "talon.read_more"];
    assert_eq!(agent(&[("sender", "alice"), ("channel", "cli")]), on_the_line);
    let research = [("sender", "alice"), ("channel", "cli"), ("subagent", "ResearchAgent")];
    assert_eq!(agent(&research), ["files.read", "talon.read_more"]);
    assert_eq!(agent(&[("sender", "bob"), ("channel", "web"), ("subagent", "WriterAgent")]), everything);
    assert_eq!(agent(&[("sender", "nobody"), ("channel", "web")]), ["talon.read_more"]);
    let both =
        request(&["files.wipe", "hello.*"], &[("session_id", "s"), ("sender", "alice"), ("channel", "web")]);
    assert_eq!(may(&peer(true), &both, &config).unwrap(), ["files.wipe", "hello.greet"]);
}

// Promises: GRANT-5
#[test]
fn nobody_else_is_believed_whom_they_call_for() {
    let config = config(LISTS);
    let context = [("sender", "nobody"), ("channel", "cli"), ("subagent", "ResearchAgent")];
    assert_eq!(may(&peer(false), &request(&[], &context), &config).unwrap().len(), 6);
}

// Promises: GRANT-5
#[test]
fn the_agent_has_to_say_for_whom_it_calls() {
    let lists = config(LISTS);
    for (context, lacking) in [
        (&[][..], "session_id"),
        (&[("session_id", ""), ("sender", "bob"), ("channel", "web")], "session_id"),
        (&[("session_id", "s"), ("channel", "web")], "sender"),
        (&[("session_id", "s"), ("sender", ""), ("channel", "web")], "sender"),
        (&[("session_id", "s"), ("sender", "bob")], "channel"),
    ] {
        let status = may(&peer(true), &request(&[], context), &lists).unwrap_err();
        assert_eq!(status.code(), tonic::Code::InvalidArgument, "{context:?}");
        assert!(status.message().ends_with(lacking), "{context:?}: {}", status.message());
    }
    let without_lists = may(&peer(true), &request(&[], &[("session_id", "s")]), &config("{}"));
    assert_eq!(without_lists.unwrap().len(), 6);
}

// Promises: GRANT-4
#[test]
fn a_refusal_says_who_could_grant_it() {
    let config = config(LISTS);
    let what_to_do = |peer: Peer, within: &[&str], context: &[(&str, &str)]| {
        let granted = grant_for(&peer, &request(within, context), || Arc::clone(&config)).unwrap().unwrap();
        assert!(!granted.covers("files", "wipe"));
        granted.remedy("files", "wipe")
    };
    let allowed = Some(Arc::new(AllowedActions::new(&["files__read".to_owned()])));
    assert!(what_to_do(Peer { allowed, ..peer(false) }, &[], &[]).contains("host.peers"));
    assert!(what_to_do(peer(false), &["files.read"], &[]).contains("within"));
    let session = ("session_id", "s");
    for (sender, channel, subagent, said) in [
        ("nobody", "web", "", "senders"),
        ("bob", "cli", "", "channels"),
        ("bob", "web", "ResearchAgent", "subagents"),
    ] {
        let context = [session, ("sender", sender), ("channel", channel), ("subagent", subagent)];
        assert!(what_to_do(peer(true), &[], &context).contains(said), "{said}");
    }
}

// Promises: GRANT-4
#[test]
fn another_configuration_holds_for_the_next_call() {
    let context = [("session_id", "s"), ("sender", "bob"), ("channel", "web")];
    let (before, after) = (config("{}"), config(r#"{ "senders": { "bob": ["files.read"] } }"#));
    assert_eq!(may(&peer(true), &request(&[], &context), &before).unwrap().len(), 6);
    assert_eq!(may(&peer(true), &request(&[], &context), &after).unwrap(), ["files.read", "talon.read_more"]);
}
