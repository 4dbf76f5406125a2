use super::*;

fn found(yaml: &str) -> Vec<String> {
    found_with(yaml, false)
}

fn found_with(yaml: &str, has_plugin_dir: bool) -> Vec<String> {
    let extensions: Extensions = serde_saphyr::from_str(yaml).expect("extensions");
    let around = Environment { plugins: &["pii", "words"], has_plugin_dir, subagents: &["explore", "plan"] };
    let line = |finding: Finding| {
        let Finding { severity, list, index, key, message, help } = finding;
        let index = index.map(|index| format!("[{index}]")).unwrap_or_default();
        let key = key.map(|key| format!(".{key}")).unwrap_or_default();
        format!("{severity:?} {list}{index}{key}: {message} ({help})")
    };
    check(&extensions, around).into_iter().map(line).collect()
}

#[test]
fn what_makes_sense_is_left_alone() {
    let yaml = "
filters: [{ action: pii.scan, may: [drop] }]
request_hooks:
  - { action: pii.scan, may: [annotate, replace], metadata: [lang], args: { text: '{{ message }} in {{ metadata.lang }}' } }
  - { action: pii.scan, name: twice, subagents: [explore] }
response_hooks: [{ action: words.polish, stream: through, deadline: 30s }]";
    assert_eq!(found(yaml), Vec::<String>::new());
}

// Promises: EXT-3
#[test]
fn each_mistake_is_named_with_the_nearest_right_one() {
    for (yaml, says) in [
        (
            "request_hooks: [{ action: pi.scan }]",
            "Problem request_hooks[0].action: no plugin of this configuration is called pi (did you mean pii?)",
        ),
        ("request_hooks: [{ action: scan }]", "\"scan\" is no action (write plugin.action)"),
        ("request_hooks: [{ action: 'pii.*' }]", "is no action"),
        ("request_hooks: [{ action: pii.a }, { action: pii.a }]", "request_hooks[1].name: another entry"),
        ("filters: [{ action: pii.a, may: [replace] }]", "filters[0].may: a filter replaces nothing"),
        ("request_hooks: [{ action: pii.a, stream: hold }]", "stream: only the text of answers"),
        ("request_hooks: [{ action: pii.a, deadline: 6m }]", "deadline: 6m is more than 300 s"),
        ("request_hooks: [{ action: pii.a, name: 'a b' }]", "name: is no name of an entry"),
        ("request_hooks: [{ action: pii.a, metadata: ['a b'] }]", "metadata: lists what is no key"),
        (
            "request_hooks: [{ action: pii.a, subagents: [explor] }]",
            "there is no sub-agent explor (did you mean explore?)",
        ),
        ("request_hooks: [{ action: pii.a, args: { t: '{{ mesage }}' } }]", "args: t:"),
        ("request_hooks: [{ action: pii.a, args: { t: '{{ metadata.lang }}' } }]", "args: t:"),
    ] {
        let found = found(yaml);
        assert!(found.iter().any(|line| line.contains(says)), "{yaml}: {found:?}");
    }
    let many = "{ action: pii.a, name: n }, ".repeat(17);
    assert!(found(&format!("filters: [{many}]"))[0].contains("has 17 entries, and 16 are the most"));
    assert!(found_with("filters: [{ action: other.a, may: [drop] }]", true)[0].starts_with("Warning"));
}

// Promises: EXT-41
#[test]
fn notifications_routes_and_providers_are_checked_as_hooks_are() {
    let right = "
notifications:
  - { on: [plugin.*, answer], action: pii.send, where: { plugin: [words] }, min_interval: 5m, digest: 1h,
      quiet: { from: '22:00', to: '07:00', timezone: Europe/Berlin, except: [plugin.failed] } }
  - { on: [task.failed], action: words.post, args: { text: '{{ event.summary }} {{ event.fields.job }}', n: '{{ attempt }}' } }
auth: [{ action: pii.login, scheme: basic, scopes: { staff: [operate] } }]
routes:
  - { path: /x/a, action: pii.a, scope: chat, headers: [Content-Type], args: { text: \"{{ query.q[0] }} {{ headers['content-type'] }}\" } }
  - { path: /x/a, action: pii.a, name: post, method: POST, scope: operate }
  - { path: /x/a/*, action: words.b, scope: chat }";
    let not_yet: Vec<String> = found(right)
        .into_iter()
        .filter(|line| !line.contains("nothing calls them in this version"))
        .collect();
    assert_eq!(not_yet, Vec::<String>::new());
    for (yaml, says) in [
        (
            "notifications: [{ on: [plugin.faild], action: pii.a }]",
            "Problem notifications[0].on: there is no kind of event \"plugin.faild\" (did you mean plugin.failed?)",
        ),
        (
            "notifications: [{ on: ['*'], action: pii.a }]",
            "there is no kind of event \"*\" (there are: plugin.failed,",
        ),
        ("notifications: [{ on: [answer], action: pi.a }]", "is called pi (did you mean pii?)"),
        ("notifications: [{ action: pii.a }]", "Warning notifications[0].on: the entry takes no events"),
        (
            "notifications: [{ on: [plugin.*], where: { plugn: [a] }, action: pii.a }]",
            "no event of these kinds has a field plugn (did you mean plugin?)",
        ),
        ("notifications: [{ on: [answer], where: { job: [] }, action: pii.a }]", "job has no values"),
        (
            "notifications: [{ on: [answer], action: pii.a, quiet: { from: '07:00', to: '07:00' } }]",
            "quiet: ends when it begins",
        ),
        (
            "notifications: [{ on: [answer], action: pii.a, quiet: { from: '07:00', to: '08:00', timezone: Europe/Berlni } }]",
            "there is no time zone \"Europe/Berlni\" (did you mean Europe/Berlin?)",
        ),
        (
            "notifications: [{ on: [answer], action: pii.a, args: { t: '{{ event.sumary }}' } }]",
            "Problem notifications[0].args: t:",
        ),
        (
            "notifications: [{ on: [answer], action: pii.a, give_up_after: 31d }]",
            "give_up_after: 31d is more than 30d",
        ),
        ("notifications: [{ on: [answer], action: pii.a, deadline: 6m }]", "deadline: 6m is more than 300 s"),
        ("auth: [{ action: pii.login, scopes: {} }]", "auth[0].scopes: grants nothing"),
        (
            "auth: [{ action: pii.login, scheme: Bearer, scopes: { a: [chat] } }]",
            "scheme: is no scheme in lower case",
        ),
        ("auth: [{ action: login, scopes: { a: [chat] } }]", "\"login\" is no action"),
        (
            "auth: [{ action: pii.login, name: local, scopes: { a: [chat] } }]",
            "auth[0].name: is the issuer of Talon's own subjects",
        ),
        (
            "routes: [{ path: /y/a, action: pii.a, scope: chat }]",
            "routes[0].path: \"/y/a\" does not begin with /x/",
        ),
        ("routes: [{ path: /x/../admin, action: pii.a, scope: chat }]", "\"/x/../admin\" is no plain path"),
        ("routes: [{ path: /x/%2e%2e, action: pii.a, scope: chat }]", "is no plain path"),
        ("routes: [{ path: /x/, action: pii.a, scope: chat }]", "is no plain path"),
        (
            "routes: [{ path: /x/a/*, action: pii.a, scope: chat }, { path: /x/a/b, action: words.b, scope: chat }]",
            "routes[1].path: GET /x/a/b overlaps /x/a/* of the entry pii.a",
        ),
        (
            "routes: [{ path: /x/a, action: pii.a, scope: chat, headers: [Cookie] }]",
            "headers: Cookie is never passed on",
        ),
        (
            "routes: [{ path: /x/a, action: pii.a, scope: chat, max_body_bytes: 600000 }]",
            "is more than 524288",
        ),
        (
            "routes: [{ path: /x/a, action: pii.a, scope: chat }, { path: /x/b, action: pii.a, scope: chat }]",
            "routes[1].name: another entry of this list is called pii.a",
        ),
    ] {
        let mut found = found(yaml);
        found.retain(|line| !line.contains("nothing calls them in this version"));
        assert!(found.len() == 1 && found[0].contains(says), "{yaml}: {found:?}");
    }
}

#[test]
fn a_channel_has_the_name_of_no_other_issuer_of_subjects() {
    let with = |name: &str| {
        let yaml = format!(
            "auth:\n  - {{ action: pii.login, name: desk, scopes: {{ a: [chat] }} }}\n  - {{ action: words.login, scopes: {{ a: [chat] }} }}\n\
             channels: [{{ action: words.channel, name: {name}, senders: ['1'] }}]"
        );
        let mut found = found(&yaml);
        found.retain(|line| !line.contains("nothing calls them in this version"));
        found
    };
    assert_eq!(with("telegram"), Vec::<String>::new());
    for (name, says) in [
        ("local", "is the issuer of Talon's own subjects"),
        ("token", "is the issuer of Talon's own subjects"),
        ("talon", "is the issuer of Talon's own subjects"),
        ("desk", "desk is an auth provider too"),
        ("words.login", "words.login is an auth provider too"),
        ("cli", "cannot be the name of a channel"),
    ] {
        let found = with(name);
        assert!(
            found.len() == 1 && found[0].starts_with("Problem channels[0].name: ") && found[0].contains(says),
            "{name}: {found:?}"
        );
    }
}

// Promises: EXT-155
#[test]
fn an_event_of_a_plugin_goes_on_only_by_an_entry_that_names_plugin_and_values() {
    let problems = |entry: &str| {
        let yaml = format!("notifications: [{entry}]");
        let extensions: Extensions = serde_saphyr::from_str(&yaml).expect("it is YAML of the types");
        let around = Environment { plugins: &["mail", "web"], has_plugin_dir: false, subagents: &[] };
        check(&extensions, around).into_iter().filter_map(|found| found.key).collect::<Vec<_>>()
    };
    let args = "args: { text: '{{ event.fields.sender }} {{ event.summary }}' }";
    let good =
        format!("{{ on: [source.event], where: {{ plugin: [mail], kind: [x] }}, action: web.send, {args} }}");
    assert_eq!(problems(&good), [""; 0]);
    for (bad, key) in [
        (format!("{{ on: ['source.*'], where: {{ plugin: [mail] }}, action: web.send, {args} }}"), "on"),
        (format!("{{ on: [source.event, plugin.failed], where: {{ plugin: [mail] }}, action: web.send, {args} }}"), "on"),
        (format!("{{ on: [source.event], action: web.send, {args} }}"), "where"),
        (format!("{{ on: [source.event], where: {{ plugin: ['*'] }}, action: web.send, {args} }}"), "where"),
        ("{ on: [source.event], where: { plugin: [mail] }, action: web.send }".to_owned(), "args"),
        ("{ on: [source.event], where: { plugin: [mail] }, action: web.send, args: { all: '{{ event }}' } }".to_owned(), "args"),
        ("{ on: [source.event], where: { plugin: [mail] }, action: web.send, args: { all: '{{ event.fields }}' } }".to_owned(), "args"),
    ] {
        assert_eq!(problems(&bad), [key], "{bad}");
    }
}
