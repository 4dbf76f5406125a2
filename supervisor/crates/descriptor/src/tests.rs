use protox::prost_reflect::prost::Message as _;

use super::*;

const KV: &str = r#"
syntax = "proto3";
package proto;
import "google/protobuf/empty.proto";
message Key { string key = 1; }
service KV {
  rpc Get(Key) returns (Key);
  rpc Put(Key) returns (google.protobuf.Empty);
  rpc Watch(Key) returns (stream Key);
  rpc Upload(stream Key) returns (Key);
}
service Events { rpc All(Key) returns (stream Key); }
"#;

fn compiled(source: &str) -> FileDescriptorSet {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("kv.proto"), source).unwrap();
    protox::compile(["kv.proto"], [directory.path()]).unwrap()
}

fn names(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(method, action)| ((*method).to_owned(), (*action).to_owned())).collect()
}

fn refusal(service: &str, methods: &[(&str, &str)]) -> String {
    actions(&compiled(KV).encode_to_vec(), service, &names(methods)).unwrap_err().to_string()
}

#[test]
fn every_method_with_one_answer_is_an_action() {
    let kv = actions(&compiled(KV).encode_to_vec(), "proto.KV", &BTreeMap::new()).unwrap();
    assert_eq!(kv.methods, names(&[("Get", "Get"), ("Put", "Put")]));
    assert_eq!(kv.streaming, ["Watch", "Upload"]);
    let long = format!("R{}", "x".repeat(99));
    let kv = actions(
        &compiled(&KV.replace("rpc Get", &format!("rpc {long}"))).encode_to_vec(),
        "proto.KV",
        &BTreeMap::new(),
    );
    let (action, method) = kv.unwrap().methods.pop_last().unwrap();
    assert_eq!(method, long);
    assert!(action.len() <= 64 && action.contains("_-h"), "{action}");
}

#[test]
fn listed_methods_have_the_names_that_are_given() {
    let chosen = names(&[("Get", "read")]);
    let kv = actions(&compiled(KV).encode_to_vec(), "proto.KV", &chosen).unwrap();
    assert_eq!(kv.methods, names(&[("read", "Get")]));
}

// Promises: OTHER-18
#[test]
fn what_cannot_be_offered_is_refused_by_name() {
    for (service, methods, words) in [
        ("proto.Kv", &[][..], &["no service proto.Kv", "proto.KV, proto.Events"][..]),
        ("KV", &[], &["no service KV"]),
        ("proto.Events", &[], &["no method with one question", "All"]),
        ("proto.KV", &[("Watch", "watch")], &["Watch of proto.KV streams", "remove it"]),
        ("proto.KV", &[("Upload", "upload")], &["Upload of proto.KV streams"]),
        ("proto.KV", &[("get", "get")], &["no method get", "Get, Put"]),
        ("proto.KV", &[("Get", "kv.get")], &["\"kv.get\"", "kv_-2eget"]),
        ("proto.KV", &[("Get", "x"), ("Put", "x")], &["Get and Put are both the action x"]),
    ] {
        let refused = refusal(service, methods);
        for word in words {
            assert!(refused.contains(word), "{word:?} is not in {refused:?}");
        }
        assert!(refused.len() < 1200);
    }
    let mut incomplete = compiled(KV);
    incomplete.file.retain(|file| file.name() != "google/protobuf/empty.proto");
    let refused = actions(&incomplete.encode_to_vec(), "proto.KV", &BTreeMap::new()).unwrap_err().to_string();
    assert!(
        refused.contains("google/protobuf/empty.proto") && refused.contains("--include_imports"),
        "{refused}"
    );
    let refused = actions(b"syntax = \"proto3\";", "proto.KV", &BTreeMap::new()).unwrap_err().to_string();
    assert!(refused.contains("no FileDescriptorSet") && refused.len() < 400, "{refused}");
}

#[test]
fn a_service_of_many_and_long_names_has_a_short_error() {
    let method = |name: String| MethodDescriptorProto { name: Some(name), ..Default::default() };
    let service = prost_types::ServiceDescriptorProto {
        name: Some("Wide".to_owned()),
        method: (0..=MAX_METHODS).map(|number| method(format!("M{number}{}", "\n".repeat(1000)))).collect(),
        ..Default::default()
    };
    let file = FileDescriptorProto { service: vec![service], ..Default::default() };
    let wide = FileDescriptorSet { file: vec![file] }.encode_to_vec();
    for (service, names) in
        [("Wide", BTreeMap::new()), ("Wide", names(&[("x", "x")])), ("Other", BTreeMap::new())]
    {
        let refused = actions(&wide, service, &names).unwrap_err().to_string();
        assert!(refused.len() < 4096 && !refused.contains('\n'), "{refused}");
    }
}

// Promises: OTHER-18
#[test]
fn a_file_is_read_within_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let large = directory.path().join("large.pb");
    File::create(&large).unwrap().set_len(100 << 20).unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for (path, words) in [
        (large.as_path(), "larger than 4 MiB"),
        (fifo.as_path(), "is no file"),
        (directory.path(), "is no file"),
        (Path::new("/nonexistent.pb"), "cannot read /nonexistent.pb"),
    ] {
        let refused = read(path).unwrap_err().to_string();
        assert!(refused.contains(words), "{words:?} is not in {refused:?}");
    }
    let small = directory.path().join("small.pb");
    std::fs::write(&small, "x").unwrap();
    assert_eq!(read(&small).unwrap(), b"x");
}
