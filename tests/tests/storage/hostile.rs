//! A storage backend that hangs, dies and lies: what is noticed of it, what becomes of it, and what is not noticed.

use std::os::unix::fs::PermissionsExt as _;

use talon_tests::{Builder, Supervisor, repository, skip, target};

use crate::{ends_clean, serves, state};

/// A supervisor whose plugins' state is kept by `hostile_backend.py`.
async fn with_hostile_backend() -> Supervisor {
    let builder = Builder::new();
    let scratch = builder.scratch();
    let script = scratch.install(&repository().join("tests/storage/hostile_backend.py"), "backend/main.py");
    let data = scratch.join("kept");
    std::fs::create_dir_all(&data).expect("the scratch directory takes directories");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    let environment = target().join("python").canonicalize().expect("it is there");
    let helper = repository().join("plugins-examples/python").canonicalize().expect("it is there");
    let (here, python) = (script.parent().expect("it is in a directory"), environment.join("bin/python"));
    let entry = format!(
        "env: {{ PYTHONPATH: {helper:?}, PYTHONDONTWRITEBYTECODE: \"1\" }}\nstart_timeout: 60s\n\
         backoff_initial: 10ms\nbackoff_max: 100ms\n\
         sandbox: {{ fs: {{ read: [{here:?}, {helper:?}], execute: [{environment:?}], write: [{data:?}] }} }}"
    );
    let (script, data) = (script.display().to_string(), data.display().to_string());
    builder
        .state("plugins: { engine: plugin, action: hostile.store }")
        .plugin("hostile", &python, &[&script, &data], &entry)
        .misbehave(&[], "")
        .start()
        .await
}

async fn set(supervisor: &Supervisor, key: &str, value: &str) -> Result<String, String> {
    state(supervisor, &[("op", "set"), ("key", key), ("value", value)]).await
}

async fn get(supervisor: &Supervisor, key: &str) -> Result<String, String> {
    state(supervisor, &[("op", "get"), ("key", key)]).await
}

// Promises: EXT-173, EXT-174
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_bad_backend_does_is_an_error_or_is_made_good() {
    let python = target().join("python/bin/python");
    if !python.exists() {
        let why = format!("there is no {}, which `make plugins` installs", python.display());
        return skip("what_a_bad_backend_does_is_an_error_or_is_made_good", &why);
    }
    let supervisor = with_hostile_backend().await;
    serves(&supervisor).await;
    let done = || Ok("set".to_owned());
    assert_eq!(set(&supervisor, "plain", "value").await, done());

    // A write that is not answered, and one whose process dies before its answer, are made once, and acknowledged.
    for fault in ["hang-once", "die-once"] {
        assert_eq!(set(&supervisor, fault, "kept").await, done(), "{fault}");
        assert_eq!(get(&supervisor, fault).await, Ok("kept".to_owned()), "{fault}");
    }
    // A revision that is none is no acknowledgement; the value says that the write was done.
    let nonsense = async {
        let answered = set(&supervisor, "revision", "done").await;
        (answered, get(&supervisor, "revision").await)
    };
    // 64 MB are refused by the guard, and the neighbour's key is read meanwhile.
    let huge = async {
        assert_eq!(set(&supervisor, "huge", "small").await, done());
        (get(&supervisor, "huge").await, get(&supervisor, "plain").await)
    };
    let (nonsense, huge) = tokio::join!(nonsense, huge);
    assert_eq!(nonsense, (done(), Ok("done".to_owned())));
    assert!(huge.0.as_ref().is_err_and(|error| error.len() < 2000), "{huge:?}");
    assert_eq!(huge.1, Ok("value".to_owned()));
    // Another key's value does not pass for this one's.
    assert_eq!(set(&supervisor, "other", "mine").await, done());
    let other = get(&supervisor, "other").await;
    assert!(other.as_ref().is_err_and(|error| !error.contains("value of plain")), "{other:?}");
    // What is acknowledged and lost is not noticed, as the documentation says: `talon conformance` finds such a backend.
    assert_eq!(set(&supervisor, "lose", "gone").await, done());
    assert_eq!(get(&supervisor, "lose").await, Ok("(nothing)".to_owned()));
    let page =
        std::fs::read_to_string(repository().join("docs/extensions/storage-backend.md")).expect("the page");
    assert!(page.contains("acknowledges a write and forgets it"), "the page names what is not noticed");

    assert_eq!(get(&supervisor, "plain").await, Ok("value".to_owned()));
    ends_clean(supervisor).await;
}
