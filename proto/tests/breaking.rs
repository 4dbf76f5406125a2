//! No change to a `.proto` file may break who speaks it already: nothing is removed, renumbered, retyped or
//! relabelled, no number is used again, no method takes or gives anything else.
//!
//! `baseline.txt` beside this file holds what was promised, a line a thing. What is added has to be recorded
//! there, which turns it into a promise as well:
//!
//! ```text
//! TALON_RECORD_PROTOS=1 cargo test -p talon-proto --test breaking
//! ```
//!
//! That refuses to record a change that breaks. If one is really meant, give it a name or a package of its
//! own.

#[path = "breaking/surface.rs"]
mod surface;

use std::path::{Path, PathBuf};

use self::surface::Surface;

const RECORD: &str = "TALON_RECORD_PROTOS";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every `.proto` file of this crate, go-plugin's among them, so that none can be forgotten.
fn files() -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![root().to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("our own directory can be listed") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "proto") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

// Promises: OTHER-12
#[test]
fn what_was_promised_stays_as_it_is() {
    let compiled = protox::compile(files(), [root()]).expect("the files compile");
    let now = Surface::of(&compiled);
    let baseline = root().join("tests/breaking/baseline.txt");
    let promised = Surface::parse(&std::fs::read_to_string(&baseline).unwrap_or_default());

    let breaks = promised.breaks(&now);
    assert!(breaks.is_empty(), "programs that exist would break:\n  {}", breaks.join("\n  "));
    let added = promised.added(&now);
    if std::env::var_os(RECORD).is_some() {
        std::fs::write(&baseline, now.to_string()).expect("our own file can be written");
    } else {
        let added = added.join("\n  ");
        assert!(
            added.is_empty(),
            "not recorded yet:\n  {added}\nrecord it with  {RECORD}=1 cargo test -p talon-proto --test breaking"
        );
    }
}

#[test]
fn every_file_is_compiled_into_the_crate() {
    let generator = std::fs::read_to_string(root().join("tests/generated.rs")).expect("it is there");
    for file in files() {
        let name = file.strip_prefix(root()).expect("it lies there").display().to_string();
        assert!(generator.contains(&format!("{name:?}")), "{name} is not in tests/generated.rs");
    }
}

/// What the check is for, one change each.
const BEFORE: &str = r#"
syntax = "proto3";
package p;
message M {
  reserved 5;
  reserved "gone";
  string a = 1;
  repeated int32 b = 2;
  map<string, M> c = 3;
  oneof choice { bool d = 4; bool e = 6; }
  optional bool f = 7;
  message Inner { E e = 1; }
}
enum E { E_UNSPECIFIED = 0; E_ONE = 1; }
service S {
  rpc Get(M) returns (M.Inner);
  rpc Watch(M) returns (stream M);
}
"#;

fn compiled(source: &str) -> Surface {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("p.proto");
    std::fs::write(&file, source).expect("it takes a file");
    Surface::of(
        &protox::compile([&file], [directory.path()]).unwrap_or_else(|error| panic!("{error}: {source}")),
    )
}

// Promises: OTHER-12
#[test]
fn every_kind_of_break_is_named() {
    let before = compiled(BEFORE);
    for (from, to, says) in [
        ("string a = 1;", "", "field p.M.a was removed"),
        ("string a = 1;", "string a = 8;", "field p.M.a had number 1 and has 8"),
        ("string a = 1;", "bytes a = 1;", "field p.M.a had type string and has bytes"),
        ("string a = 1;", "repeated string a = 1;", "field p.M.a was singular and is repeated"),
        ("string a = 1;", "optional string a = 1;", "field p.M.a was singular and is optional"),
        ("string a = 1;", "string aa = 1;", "field p.M.aa uses number 1 again, which was a's"),
        ("reserved 5;", "int32 g = 5;", "field p.M.g uses number 5 again, which is reserved"),
        ("reserved 5;", "", "reserved p.M 5 was removed"),
        ("reserved \"gone\";", "", "reserved p.M \"gone\" was removed"),
        (
            "map<string, M> c = 3;",
            "map<string, string> c = 3;",
            "had type map<string, p.M> and has map<string, string>",
        ),
        (
            "oneof choice { bool d = 4; bool e = 6; }",
            "bool d = 4; oneof choice { bool e = 6; }",
            "field p.M.d was oneof choice and is singular",
        ),
        ("optional bool f = 7;", "bool f = 7;", "field p.M.f was optional and is singular"),
        (
            "message Inner { E e = 1; }",
            "message Inner { int32 e = 1; }",
            "field p.M.Inner.e had type p.E and has int32",
        ),
        ("E_ONE = 1;", "", "value p.E.E_ONE was removed"),
        ("E_ONE = 1;", "E_ONE = 2;", "value p.E.E_ONE had number 1 and has 2"),
        ("E_ONE = 1;", "E_UN = 1;", "value p.E.E_UN uses number 1 again, which was E_ONE's"),
        ("rpc Get(M) returns (M.Inner);", "", "rpc p.S.Get was removed"),
        ("rpc Get(M)", "rpc Get(M.Inner)", "rpc p.S.Get took p.M and takes p.M.Inner"),
        ("returns (M.Inner)", "returns (M)", "rpc p.S.Get gave p.M.Inner and gives p.M"),
        ("rpc Get(M)", "rpc Get(stream M)", "rpc p.S.Get took p.M and takes stream p.M"),
        ("returns (stream M)", "returns (M)", "rpc p.S.Watch gave stream p.M and gives p.M"),
        ("package p;", "package q;", "message p.M was removed"),
    ] {
        let after = compiled(&BEFORE.replacen(from, to, 1));
        let breaks = before.breaks(&after);
        assert!(breaks.iter().any(|broken| broken.contains(says)), "{from:?} → {to:?}: {breaks:#?}");
    }
}

#[test]
fn what_is_added_breaks_nothing_and_is_told() {
    let before = compiled(BEFORE);
    for (from, to, says) in [
        ("string a = 1;", "string a = 1; string z = 9;", "field p.M.z = 9 singular string"),
        ("E_ONE = 1;", "E_ONE = 1; E_TWO = 2;", "value p.E.E_TWO = 2"),
        ("rpc Get(M)", "rpc New(M) returns (M); rpc Get(M)", "rpc p.S.New(p.M) returns (p.M)"),
        ("reserved 5;", "reserved 5; reserved 20 to 22;", "reserved p.M 20 to 22"),
    ] {
        let after = compiled(&BEFORE.replacen(from, to, 1));
        assert_eq!(before.breaks(&after), Vec::<String>::new(), "{to:?}");
        assert_eq!(before.added(&after), [says], "{to:?}");
    }
    assert_eq!(before.added(&before), Vec::<String>::new());
    assert_eq!(
        Surface::parse(&before.to_string()).to_string(),
        before.to_string(),
        "it is read as it was written"
    );
}
