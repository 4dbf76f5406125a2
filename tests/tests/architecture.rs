//! The directions that the architecture promises: which crate may depend on which, and which may use unsafe
//! code; and that no module of a crate imports from one that imports from it.

mod module_graph;

use std::path::{Path, PathBuf};
use std::process::Command;

use module_graph::{circles, read_crate};
use talon_tests::repository;

fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Everything that is linked into a package, by name. Development dependencies are left out.
fn linked_into(package: &str, options: &[&str]) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(repository())
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(["--package", package])
        .args(options)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn never(package: &str, forbidden: &[&str]) {
    never_with(package, &[], forbidden);
}

fn never_with(package: &str, options: &[&str], forbidden: &[&str]) {
    let linked = linked_into(package, options);
    assert!(linked.len() > 3, "{package}: {linked:?}");
    for name in forbidden {
        assert!(!linked.iter().any(|crate_name| crate_name == name), "{name} is linked into {package}");
    }
}

// Promises: RULE-9
#[test]
fn crates_depend_in_one_direction() {
    never("talon-guard", &["talon-plugin", "talon-jail", "talon-supervisor", "talon"]);
    never("talon-plugin", &["talon-guard", "talon-supervisor", "talon"]);
    never(
        "talon-plugin-config",
        &["talon-proto", "talon-plugin", "talon-plugin-client", "talon-egress", "tokio", "tonic"],
    );
    never(
        "talon-plugin-client",
        &["talon-plugin", "talon-egress", "talon-guard", "talon-supervisor", "talon"],
    );
    never(
        "talon-egress",
        &[
            "talon-proto",
            "talon-plugin",
            "talon-plugin-client",
            "talon-guard",
            "talon-supervisor",
            "talon",
            "tonic",
        ],
    );
    never("talon-sanitize", &["talon-proto", "talon-guard", "tokio"]);
    never("talon-jail", &["talon-proto", "talon-plugin", "tokio", "tonic"]);
    never("talon-audit", &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon"]);
    never("talon-event-bus", &["talon-plugin", "talon-store", "talon-supervisor", "talon"]);
    never("talon-event-log", &["talon-proto", "talon-plugin", "talon-supervisor", "tokio", "tonic"]);
    never("talon-child", &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon"]);
    never("talon-client", &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon"]);
    never(
        "talon-listen",
        &["talon-proto", "talon-plugin", "talon-guard", "talon-store", "talon-supervisor", "talon"],
    );
    never(
        "talon-gateway",
        &[
            "talon-plugin",
            "talon-guard",
            "talon-jail",
            "talon-llm",
            "talon-agent",
            "talon-store",
            "talon-supervisor",
            "talon",
            "rusqlite",
            "tokio-postgres",
        ],
    );
    never("talon-store", &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon"]);
    never("talon-sdk", &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon"]);
    never(
        "talon-bridge",
        &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon", "talon-sdk"],
    );
    never("talon-mcp-bridge", &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon"]);
    never("talon-framed-bridge", &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon"]);
    never(
        "talon-service-bridge",
        &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon"],
    );
    // Dynamic messages are the bridge's: the process with privileges reads only names in a descriptor.
    never("talon", &["prost-reflect"]);
    never(
        "talon-mcp",
        &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon", "talon-sdk"],
    );
    never(
        "talon-top",
        &["talon-plugin", "talon-guard", "talon-jail", "talon-supervisor", "talon", "talon-sdk"],
    );
    never(
        "talon-watch",
        &["talon-plugin", "talon-guard", "talon-jail", "talon-llm", "talon-supervisor", "talon", "talon-sdk"],
    );
    never("talon", &["talon-watch", "ignore"]);
    never(
        "talon-agent-settings",
        &[
            "talon-proto",
            "talon-plugin",
            "talon-llm",
            "talon-supervisor",
            "talon",
            "tokio",
            "reqwest",
            "rustls",
        ],
    );
    // What the supervisor knows of the agent is what an operator writes about it.
    assert!(linked_into("talon", &[]).iter().any(|name| name == "talon-agent-settings"));
    never("talon", &["talon-agent", "talon-llm", "jsonschema", "tiktoken-rs"]);
    // The library knows no command line, and is no client of itself.
    never(
        "talon-supervisor",
        &["talon", "talon-client", "talon-conformance", "clap", "indicatif", "rustyline"],
    );
    never(
        "talon-telemetry",
        &["talon-proto", "talon-plugin", "talon-guard", "talon-supervisor", "talon", "reqwest"],
    );
    for carries_it_unread in ["talon-guard", "talon-plugin", "talon-sdk"] {
        never(carries_it_unread, &["talon-telemetry", "opentelemetry", "opentelemetry_sdk"]);
    }
}

/// What never belongs into the process that holds privileges.
const HEAVY: [&str; 10] = [
    "axum",
    "crossterm",
    "mlua",
    "openssl-sys",
    "ratatui",
    "reqwest",
    "rmcp",
    "rusqlite",
    "serde_yaml",
    "tokio-postgres",
];

#[test]
fn the_supervisor_links_no_web_framework_no_script_engine_no_database_and_no_mcp() {
    never("talon", &HEAVY);
    never("talon-supervisor", &HEAVY);
    never("talon-mcp-bridge", &["axum", "openssl-sys", "reqwest"]);
    never("talon-mcp", &["axum", "openssl-sys", "reqwest", "rustls"]);
}

#[test]
fn tls_stands_behind_a_feature() {
    never_with("talon", &["--no-default-features"], &["rustls", "aws-lc-sys", "rcgen"]);
    assert!(linked_into("talon", &[]).iter().any(|name| name == "rustls"), "the feature is on by default");
}

// Promises: RULE-8
#[test]
fn only_the_jail_may_be_unsafe() {
    assert!(read("Cargo.toml").contains("unsafe_code = \"forbid\""));
    for manifest in members() {
        let text = read(&manifest);
        let inherits = text.contains("[lints]\nworkspace = true");
        assert_eq!(inherits, !manifest.contains("crates/jail/"), "{manifest}");
    }
}

/// A message of a panic may contain what a plugin or a model said. The library that children share sets the hook for them.
// Promises: TRACE-18
#[test]
fn every_program_of_ours_sanitizes_its_panics() {
    const HOOKS: [&str; 3] = ["print_panics_sanitized();", "log_panics();", "run_program("];
    let mains: Vec<String> = members()
        .iter()
        .filter(|manifest| manifest.starts_with("supervisor/"))
        .map(|manifest| manifest.replace("Cargo.toml", "src/main.rs"))
        .filter(|main| repository().join(main).is_file())
        .collect();
    assert!(mains.len() >= 8, "the programs are elsewhere now: {mains:?}");
    for main in mains {
        let text = read(&main);
        assert!(HOOKS.iter().any(|hook| text.contains(hook)), "{main} sets no hook for panics");
    }
}

/// Nothing that waits, restarts, expires or bounds may go by a clock that somebody sets: the wall clock is
/// read to be shown, and never reckoned with, but where a file's own times are: those are of that clock, and
/// what a step of it does there is said there.
// Promises: HANDOVER-39
#[test]
fn nobody_reckons_with_the_wall_clock() {
    let places = [
        "supervisor/src/serve",
        "supervisor/src/host",
        "supervisor/src/dispatch",
        "supervisor/src/state",
        "supervisor/src/service",
        "supervisor/src/agent",
        "supervisor/src/notify.rs",
        "supervisor/src/reload",
        "supervisor/src/socket",
        "supervisor/src/usage",
        "supervisor/crates/egress/src",
        "supervisor/crates/plugin/src",
        "supervisor/crates/plugin-client/src",
        "supervisor/crates/plugin-config/src",
        "supervisor/crates/guard/src",
        "supervisor/crates/jail/src",
        "supervisor/crates/control/src",
        "supervisor/crates/listen/src",
    ];
    let of_files = ["supervisor/crates/plugin/src/view/digest_cache.rs"].map(|file| repository().join(file));
    let mut looked_at = 0;
    for place in places {
        let mut open = vec![repository().join(place)];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(
                    path.read_dir().expect("it is there").map(|entry| entry.expect("it is whole").path()),
                );
                continue;
            }
            let text: String =
                std::fs::read_to_string(&path).expect("it is text").split_whitespace().collect();
            looked_at += 1;
            for after in text.split("SystemTime::now()").skip(1) {
                let reckons = after.starts_with('.') || after.starts_with('+') || after.starts_with('-');
                assert!(
                    !reckons || of_files.contains(&path),
                    "{} reckons with the wall clock: use an Instant",
                    path.display()
                );
            }
        }
    }
    assert!(looked_at > 100, "the sources are elsewhere now: {looked_at}");
}

/// Fewer crates than this mean that their root files are elsewhere now.
const FEWEST_ROOTS: usize = 30;

#[test]
fn no_module_imports_from_one_that_imports_from_it() {
    let roots: Vec<PathBuf> = members().iter().flat_map(|manifest| root_files(manifest)).collect();
    assert!(roots.len() >= FEWEST_ROOTS, "only {} crates were found: {roots:?}", roots.len());
    let mut found = Vec::new();
    for root in roots {
        let graph = read_crate(&root).unwrap_or_else(|error| panic!("{error}"));
        let shown = root.strip_prefix(repository()).unwrap_or(&root).display();
        found.extend(circles(&graph).iter().map(|circle| format!("{shown}: {circle}")));
    }
    assert!(
        found.is_empty(),
        "{} circles: move what both sides need to a file of its own\n{}",
        found.len(),
        found.join("\n")
    );
}

/// The root files of a member's library and programs, by cargo's conventions.
fn root_files(manifest: &str) -> Vec<PathBuf> {
    let source = repository().join(manifest).with_file_name("src");
    let programs = source.join("bin").read_dir().into_iter().flatten();
    let programs = programs.map(|entry| entry.expect("it is whole").path());
    let programs = programs.map(|path| if path.is_dir() { path.join("main.rs") } else { path });
    let own = ["lib.rs", "main.rs"].map(|name| source.join(name));
    own.into_iter().chain(programs).filter(|path| path.is_file()).collect()
}

/// The libraries that run inside of a supervisor. What its clients share with it lies below them: the wire
/// contracts, the keys of plugins, sanitized texts.
const SUPERVISOR_LIBRARIES: [&str; 9] = [
    "talon_audit",
    "talon_conformance",
    "talon_egress",
    "talon_event_log",
    "talon_guard",
    "talon_jail",
    "talon_plugin",
    "talon_plugin_client",
    "talon_supervisor",
];

/// `talon` has two kinds of verbs. Those in `client` ask a supervisor through its sockets, so they may not
/// name what runs inside of it, nor reach it through the verbs in `local`, which do.
#[test]
fn client_verbs_know_the_supervisor_by_its_api_alone() {
    let mut open = vec![repository().join("supervisor/cli/src/client")];
    let mut looked_at = 0;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                path.read_dir().expect("it is there").map(|entry| entry.expect("it is whole").path()),
            );
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("it is text");
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for forbidden in SUPERVISOR_LIBRARIES {
            assert!(!words.contains(&forbidden), "{} names {forbidden}", path.display());
        }
        assert!(!text.contains("crate::local"), "{} names crate::local", path.display());
        looked_at += 1;
    }
    assert!(looked_at > 30, "the client verbs are elsewhere now: {looked_at}");
}

/// The manifests of the workspace's members.
fn members() -> Vec<String> {
    let root = read("Cargo.toml");
    let list =
        root.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).expect("there are members");
    let members: Vec<String> = list
        .lines()
        .filter_map(|line| {
            line.trim().strip_prefix('"')?.split('"').next().map(|m| format!("{m}/Cargo.toml"))
        })
        .collect();
    assert!(
        members.len() > 10 && members.iter().all(|m| Path::new(&repository().join(m)).exists()),
        "{members:?}"
    );
    members
}
