//! The scripts of `plugins-examples/lua`, with their own tests.

use std::fs;
use std::path::Path;

use talon_lua_engine::{Limits, Script, run_tests};

// Promises: LUA-9
#[test]
fn every_script_loads_and_passes_its_tests() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../plugins-examples/lua");
    let readme = fs::read_to_string(dir.join("README.md")).expect("it is there");
    let mut scripts = 0;
    for entry in fs::read_dir(&dir).expect("it is there") {
        let file = entry.expect("an entry").file_name().into_string().expect("a text");
        let Some(name) = file.strip_suffix(".lua").filter(|name| !name.ends_with("_test")) else { continue };
        let tests_file = format!("{name}_test.lua");
        let source = fs::read(dir.join(&file)).expect("it is read");
        let tests =
            fs::read(dir.join(&tests_file)).unwrap_or_else(|_| panic!("{file} has no tests beside it"));
        let limits = Limits::default();
        if let Err(error) = Script::load(&file, &source, &limits, &[]) {
            panic!("{file}: {error}");
        }
        let report = run_tests((&file, &source), (&tests_file, &tests), &limits, &[]);
        let report = report.unwrap_or_else(|error| panic!("{tests_file}: {error}"));
        assert_eq!(report.first_failure(), None);
        assert!(readme.contains(&format!("`{file}`")), "{file} is not in the README");
        scripts += 1;
    }
    assert!(scripts >= 11, "there are {scripts}");
}
