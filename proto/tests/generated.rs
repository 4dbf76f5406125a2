//! The Rust code below `src/generated` is what the `.proto` files say. It is checked in, so that no build has
//! to compile the files: the compiler is a fifth of the crates that a plugin's author would build. After a
//! change of a file:
//!
//! ```text
//! TALON_RECORD_PROTOS=1 cargo test -p talon-proto --test generated
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::TempDir;

const RECORD: &str = "TALON_RECORD_PROTOS";

const FILES: [&str; 9] = [
    "opentalon/plugin/v1/plugin.proto",
    "talon/host/v1/host.proto",
    "talon/state/v1/state.proto",
    "talon/state/v1/operator.proto",
    "talon/state/v1/control.proto",
    "talon/agent/v1/agent.proto",
    "talon/agent/v1/control.proto",
    "talon/model/v1/model.proto",
    "talon/gateway/v1/control.proto",
];

/// Streams that are open for a plugin's whole life and carry a message now and then.
const LASTING: [&str; 2] = ["plugin/goplugin.proto", "talon/plugin/v1/notices.proto"];

/// The packages and messages that programs print as JSON. It is derived, so that a new field is never
/// forgotten; by a feature, because no other crate needs it.
const PRINTED: [&str; 12] = [
    ".talon.host.v1",
    ".talon.agent.v1",
    // A message of the agent's control socket holds one of the state's.
    ".talon.state.v1",
    ".opentalon.plugin.v1.PluginCapabilities",
    ".opentalon.plugin.v1.GlossaryEntry",
    ".opentalon.plugin.v1.KnowledgeArticle",
    ".opentalon.plugin.v1.Action",
    ".opentalon.plugin.v1.Parameter",
    ".opentalon.plugin.v1.Media",
    ".opentalon.plugin.v1.JobProposal",
    ".opentalon.plugin.v1.InputRequest",
    ".opentalon.plugin.v1.InputResponse",
];
const SERIALIZE: &str = r#"#[cfg_attr(feature = "serde", derive(serde::Serialize))]"#;

/// Compiles the files with a compiler written in Rust, so that no machine needs `protoc`.
fn generate(out: &Path) {
    let root = env!("CARGO_MANIFEST_DIR");
    let compiled = |files: &[&str]| protox::compile(files, [root]).expect("the files compile");
    // Maps have one order, so that equal messages are equal bytes, and who receives arguments keeps their
    // order.
    let configured = || tonic_prost_build::configure().btree_map(".").out_dir(out);
    let printed =
        PRINTED.iter().fold(configured(), |builder, package| builder.type_attribute(package, SERIALIZE));
    printed.compile_fds(compiled(&FILES)).expect("code is generated");
    let lasting = configured().codec_path("crate::lasting::LastingCodec");
    lasting.compile_fds(compiled(&LASTING)).expect("code is generated");
}

/// The files of a directory, with their texts.
fn texts(directory: &Path) -> BTreeMap<String, String> {
    let entries = directory.read_dir().expect("the directory can be listed");
    let read = |path: &Path| std::fs::read_to_string(path).expect("it is text");
    entries
        .map(|entry| entry.expect("it is whole"))
        .map(|entry| (entry.file_name().display().to_string(), read(&entry.path())))
        .collect()
}

// Promises: WIRE-2
#[test]
fn the_generated_code_is_what_the_protos_say() {
    let checked_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/generated");
    if std::env::var_os(RECORD).is_some() {
        generate(&checked_in);
    }
    let made = TempDir::new().expect("a temporary directory");
    generate(made.path());
    let (made, checked_in) = (texts(made.path()), texts(&checked_in));
    assert!(
        made.keys().eq(checked_in.keys()),
        "{:?} is generated, {:?} is there",
        made.keys(),
        checked_in.keys()
    );
    for (name, text) in made {
        assert!(
            checked_in[&name] == text,
            "{name} is not what the .proto files say: run this with {RECORD}=1"
        );
    }
}
