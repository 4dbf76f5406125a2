//! Invalid files.

use talon_proto::state::Layers;
use talon_store::{Key, Namespace, PluginId};

use super::{exported, import, scratch};

const STATE: &str = "plugins/hello/state.yaml";
const MEMORIES: &str = "memory/memories.yaml";
const SESSION: &str = "sessions/x.yaml";

async fn refusals(layers: Layers, path: &str, file: impl AsRef<[u8]>) -> ((u64, u64, u64), Vec<String>) {
    let one = scratch().await;
    let dry = import(&one.store, layers, true, &[(path, file.as_ref())]).await;
    assert!(exported(&one.store, layers).await.is_empty(), "a dry run changes nothing");
    let said = import(&one.store, layers, false, &[(path, file.as_ref())]).await;
    assert_eq!(
        (dry.counted(), dry.lines()),
        (said.counted(), said.lines()),
        "what is planned is what is done"
    );
    (said.counted(), said.lines())
}

// Promises: STATE-24
#[tokio::test]
async fn paths_that_are_not_of_the_layout_are_refused() {
    let long = format!("plugins/{}/state.yaml", "a".repeat(10_000));
    let longish = format!("plugins/{}/state.yaml", "a".repeat(65));
    for (path, why) in [
        ("plugins/../../etc/passwd", "stay inside"),
        ("plugins/../state.yaml", "stay inside"),
        ("sessions/../memory/memories.yaml", "stay inside"),
        ("/plugins/hello/state.yaml", "stay inside"),
        ("plugins/he\0llo/state.yaml", "stay inside"),
        ("plugins/Hello/state.yaml", "a plugin's id must"),
        ("plugins/-a/state.yaml", "a plugin's id must"),
        ("plugins/ä/state.yaml", "a plugin's id must"),
        (longish.as_str(), "a plugin's id must"),
        (long.as_str(), "more than 1024 bytes"),
        ("plugins/hello/state.yml", "not part of the layout"),
        ("plugins/hello/deep/state.yaml", "not part of the layout"),
        ("sessions/.yaml", "not part of the layout"),
        ("README.md", "not part of the layout"),
        ("memory/memories.yaml", "are not what is open here"),
    ] {
        let (counts, lines) = refusals(Layers::KeyValues, path, "a: b\n").await;
        assert_eq!(counts, (0, 0, 1), "{path:.100}");
        assert!(lines[0].starts_with("0:0 : ") && lines[0].contains(why), "{path:.100}: {lines:?}");
    }
    let (_, lines) = refusals(Layers::Conversations, STATE, "a: b\n").await;
    assert!(lines[0].contains("are not what is open here"), "{lines:?}");
}

// Promises: STATE-24
#[tokio::test]
async fn a_file_that_cannot_be_read_is_one_refusal_with_its_place() {
    let deep = format!("a: b\nc: {}", "[".repeat(10_000));
    let deep_blocks: String = (0..400).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n";
    for (file, at) in [
        (&b"good: value\nbad: [1, 2\nworse: }\n"[..], "3:"),
        (b"good: value\n  bad: value\n", "2:"),
        (b"good: \"value\n", "2:"),
        (b"good: value\nbad\n", ""),
        (b"good: value\nn\xc3\xbc: \xff\xfe\n", "2:5 : is not UTF-8"),
        (b"good: value\nnul: a\0b\n", "2:7"),
        (b"a: b\n---\nc: d\n", "2:1 : a second document"),
        (b"- a\n- b\n", "1:1 : the file must be a map"),
        (b"just words\n", "1:1 : the file must be a map"),
        (bomb.as_bytes(), "2:8 : aliases are not taken"),
        (b"a: *nobody\n", "1:4"),
        (b"a: &a\n  b: *a\n", "2:6 : aliases"),
        (deep.as_bytes(), "2:"),
        (deep_blocks.as_bytes(), "14"),
        (b"\x00\x01\x02\x03", "1:1"),
        (b"a: \x1b[31m\n", "1:4"),
    ] {
        let (counts, lines) = refusals(Layers::KeyValues, STATE, file).await;
        let shown = String::from_utf8_lossy(&file[..file.len().min(60)]).into_owned();
        assert_eq!((counts, lines.len()), ((0, 0, 1), 1), "{shown:?}: {lines:?}");
        assert!(lines[0].starts_with(at) && !lines[0].starts_with("0:0"), "{shown:?}: {lines:?}");
        assert!(!lines[0].chars().any(char::is_control));
    }
    for file in ["", "# nothing\n", "---\n", "{}\n", "null\n", "\u{feff}"] {
        let (counts, lines) = refusals(Layers::KeyValues, STATE, file).await;
        assert_eq!(counts, (0, 0, 0), "{file:?}: {lines:?}");
    }
}

// Promises: STATE-24
#[tokio::test]
async fn a_bad_key_is_refused_alone() {
    let file = format!(
        "good: 1\n{long}: x\nlist: [1, 2]\nmap: {{a: b}}\ntag: !mine x\nbase: !!binary '***'\n\"\": empty\n? [a]\n: x\n\
         good: 2\n!!binary /w==: bytes\nbig: {big}\nlast: 3\n",
        long = "k".repeat(513),
        big = "x".repeat(1024 * 1024 + 1),
    );
    let (counts, lines) = refusals(Layers::KeyValues, STATE, file).await;
    assert_eq!(counts, (2, 0, 10), "{lines:?}");
    let starts = [
        "2:1 kkk",
        "3:7 list: the value must be a text",
        "4:6 map: the value must be a text",
        "5:",
        "6:",
        "7:1 : a key must have 1 to 512 bytes, not 0",
        "8:3 : a key must be a text",
        "10:1 good: the key stands twice",
        "11:",
        "12:6 big: a value must have at most 1048576 bytes, not 1048577",
    ];
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line} is not {start}");
    }
}

#[tokio::test]
async fn a_record_too_large_to_hold_is_refused_and_the_rest_goes_on() {
    let many = "1,".repeat(90_000);
    let file = format!("good: 1\nhuge: [{many}[{many}]]\nlast: 2\n");
    let (counts, lines) = refusals(Layers::KeyValues, STATE, file).await;
    assert_eq!(counts, (2, 0, 1), "{lines:?}");
    assert!(lines[0].starts_with("2:7 huge: the value"), "{lines:?}");
    assert!(lines[0].contains("larger than a record may be"), "{lines:?}");
    // In a session it is a message, and so the session.
    let file = format!("messages:\n- {{role: user, tool_calls: [{many}[{many}]]}}\n");
    let (counts, lines) = refusals(Layers::Conversations, SESSION, file).await;
    assert_eq!(counts, (0, 0, 1), "{lines:?}");
    assert!(lines[0].starts_with("2:3 x: its message 1: is larger"), "{lines:?}");
}

#[tokio::test]
async fn what_is_there_stays() {
    let one = scratch().await;
    let hello = Namespace::of(PluginId::new("hello").unwrap());
    let key = Key::new("a").unwrap();
    one.store.key_values().set(&hello, &key, b"mine".to_vec()).await.unwrap();
    for dry_run in [true, false] {
        let said = import(&one.store, Layers::KeyValues, dry_run, &[(STATE, b"a: yours\nb: new\n")]).await;
        assert_eq!(said.counted(), (1, 0, 1));
        assert_eq!(
            said.lines(),
            ["1:1 a: the key is there already with another value, which stays; delete it to take this one"]
        );
    }
    assert_eq!(one.store.key_values().get(&hello.plugin, &key).await.unwrap().as_deref(), Some(&b"mine"[..]));
}

#[tokio::test]
async fn the_quota_holds() {
    let one = scratch().await;
    let hello = Namespace::of(PluginId::new("hello").unwrap());
    let value = vec![b'x'; 1024 * 1024];
    for number in 0..63 {
        let key = Key::new(format!("k{number}")).unwrap();
        one.store.key_values().set(&hello, &key, value.clone()).await.unwrap();
    }
    let half = "x".repeat(512 * 1024);
    let file = format!("a: {half}\nb: {half}\nc: {half}\nd: small\n");
    for dry_run in [true, false] {
        let said = import(&one.store, Layers::KeyValues, dry_run, &[(STATE, file.as_bytes())]).await;
        assert_eq!(said.counted(), (2, 0, 2), "{:?}", said.lines());
        let lines = said.lines();
        assert!(lines[0].starts_with("2:1 b: the quota of `hello` is used up:"), "{lines:?}");
        assert!(lines[1].starts_with("3:1 c: the quota of `hello` is used up:"), "{lines:?}");
    }
}

#[tokio::test]
async fn a_bad_memory_is_refused_alone() {
    let file = format!(
        "- content: good\n- just words\n- content: ''\n- id: \"a\\0b\"\n  content: x\n- content: x\n  tags: [\"a\\nb\"]\n\
         - content: x\n  created_at: yesterday\n- trigger: t\n  steps: []\n- trigger: t\n  steps:\n  - plugin: a\n\
         - content: x\n  content: y\n- content: {}\n- content: x\n  created_at: 2026-01-01T25:00:00Z\n- content: last\n",
        "long ".repeat(14_000),
    );
    let (counts, lines) = refusals(Layers::Conversations, MEMORIES, file).await;
    assert_eq!(counts, (2, 0, 10), "{lines:?}");
    let starts = [
        "2:3",
        "3:3",
        "4:",
        "7:",
        "9:15 : created_at must be a time",
        "10:3 t: a workflow",
        "14:5 t: a step",
        "16:3",
        "17:",
        "19:",
    ];
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line} is not {start}");
    }
    let (counts, lines) = refusals(Layers::Conversations, MEMORIES, "content: x\n").await;
    assert_eq!((counts, lines[0].as_str()), ((0, 0, 1), "1:1 : the file must be a list"));
}

// Promises: STATE-24
#[tokio::test]
async fn a_session_with_a_hole_is_refused_whole() {
    let message = "- {role: user, content: hi}\n";
    for (file, start) in [
        (
            format!("id: a:b\nmessages:\n{message}- {{role: nobody}}\n- {{content: x}}\n"),
            "4:10 a:b: its message 2: the role must",
        ),
        (format!("messages:\n{message}- words\n"), "3:3 x: its message 2: a message must be a map"),
        ("messages: words\n".into(), "1:11 x: messages must be a list"),
        (
            format!("messages:\n- {{role: user, content: {}}}\n", "x".repeat(1024 * 1024 + 1)),
            "2:25 x: its message 1: content must",
        ),
        (format!("id: '../up'\nmessages:\n{message}"), "1:5 ../up: the id must not lead out"),
        (format!("id: \"a\\0b\"\nmessages:\n{message}"), "1:5 a\u{fffd}b: the id must not hold"),
        (format!("id: {}\nmessages:\n{message}", "i".repeat(10_000)), "1:5 iii"),
        (format!("id: a\nid: b\nmessages:\n{message}"), "2:1 a: the key id stands twice"),
        (format!("created_at: 5\nmessages:\n{message}"), "1:13 x: created_at must be a time"),
        (format!("state: asleep\nmessages:\n{message}"), "1:8 x: the state must be"),
        (
            "messages:\n- {role: user, sequence: 2}\n- {role: user, sequence: 2}\n".into(),
            "3:26 x: the sequence 2 must be above",
        ),
        ("messages:\n- {role: user, sequence: 99999999999999999999}\n".into(), "2:26"),
        ("next_sequence: 1\nmessages:\n- {role: user}\n".into(), "1:16 x: next_sequence must be 2 at least"),
        (format!("messages:\n{message}messages:\n{message}"), "4:3 x: the key messages stands twice"),
        (String::new(), "0:0 x: the file says nothing"),
        ("- a\n".into(), "1:1 x: the file must be a map"),
    ] {
        let (counts, lines) = refusals(Layers::Conversations, SESSION, &file).await;
        assert_eq!(counts, (0, 0, 1), "{file:.60}: {lines:?}");
        assert!(lines[0].starts_with(start), "{file:.60}: {lines:?}");
    }
}

#[tokio::test]
async fn metadata_that_does_not_fit_is_left_out() {
    let entries: String = (0..70).map(|number| format!("  k{number}: v\n")).collect();
    let file = format!("long: {}\nmetadata:\n  list: []\n{entries}messages: []\n", "x".repeat(5_000));
    let (counts, lines) = refusals(Layers::Conversations, SESSION, file).await;
    // 63 fit beside the id; the parts beyond that are reported by name, up to a limit.
    assert_eq!(counts, (1, 0, 9), "{lines:?}");
}

#[tokio::test]
async fn a_log_of_other_messages_stays() {
    let one = scratch().await;
    let file = |content: &str| {
        format!("id: 01KHZZZZZZ0123456789ABCDEF\nmessages:\n- {{role: user, content: {content}}}\n")
    };
    let (first, second) = (file("a"), file("b"));
    let said = import(&one.store, Layers::Conversations, false, &[(SESSION, first.as_bytes())]).await;
    assert_eq!(said.counted(), (1, 0, 0));
    for dry_run in [true, false] {
        let said = import(&one.store, Layers::Conversations, dry_run, &[(SESSION, second.as_bytes())]).await;
        assert_eq!(said.counted(), (0, 0, 1));
        assert!(said.lines()[0].contains("there is a session of this id already"), "{:?}", said.lines());
    }
}
