//! Programs in Go, built from `tests/go/` with the libraries that Debian packages, HashiCorp's go-plugin
//! among them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use talon_harness::{repository, skip, target};

/// Where Debian puts Go's libraries.
const LIBRARIES: &str = "/usr/share/gocode";
/// Names a directory whose libraries come before them, as in GOPATH. With another version of go-plugin in
/// `src/github.com/hashicorp/go-plugin`, the tests are about that one.
const GOPATH_VARIABLE: &str = "TALON_TEST_GOPATH";

/// What the build needs, and the packages that contain it.
const NEEDED: [(&str, &str); 6] = [
    ("/usr/bin/go", "golang-go"),
    ("/usr/bin/protoc", "protobuf-compiler"),
    ("/usr/bin/protoc-gen-go", "protoc-gen-go"),
    ("/usr/bin/protoc-gen-go-grpc", "protoc-gen-go-grpc"),
    ("/usr/share/gocode/src/google.golang.org/grpc", "golang-google-grpc-dev"),
    ("/usr/share/gocode/src/github.com/hashicorp/go-plugin", "golang-github-hashicorp-go-plugin-dev"),
];

/// The messages that the programs exchange: where the file is, the file, its Go package.
const MESSAGES: [(&str, &str, &str); 3] = [
    ("proto", "opentalon/plugin/v1/plugin.proto", "talon/example/plugin"),
    ("tests/go/plugin", "stdio.proto", "talon/example/stdio"),
    ("tests/go/kv", "kv.proto", "talon/example/kv"),
];

/// The program whose source is `tests/go/NAME`. It is cached, and rebuilt when its source has changed.
/// `None`, and a message with the test's name: this machine cannot build it.
///
/// # Panics
/// When it does not build.
#[must_use]
pub fn go_program(test: &str, name: &str) -> Option<PathBuf> {
    for (path, package) in NEEDED {
        if !Path::new(path).exists() {
            skip(test, &format!("there is no {path} (tests/scripts/deps.sh test installs {package})"));
            return None;
        }
    }
    let place = target().join("go").join(match gopath() {
        Some(path) => format!("tests-{}", path.file_name().unwrap_or_default().display()),
        None => "tests".to_owned(),
    });
    let (built, stamp) = (place.join(name), place.join(format!("{name}.stamp")));
    let made_of = digest(name);
    let is_current = || std::fs::read_to_string(&stamp).is_ok_and(|kept| kept == made_of) && built.is_file();
    if is_current() {
        return Some(built);
    }
    std::fs::create_dir_all(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    // Every test is a separate process; one of them builds, and the others wait for it.
    let turn = File::create(place.join("lock")).expect("our own directory takes a file");
    turn.lock().expect("a lock is waited for");
    if !is_current() {
        build(name, &place, &built);
        std::fs::write(&stamp, &made_of).expect("our own directory takes a file");
    }
    Some(built)
}

/// The directory of other libraries, if one is named.
fn gopath() -> Option<PathBuf> {
    std::env::var_os(GOPATH_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A digest of a program's source and compiler.
fn digest(name: &str) -> String {
    let root = repository();
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.join("tests/go").join(name))
        .unwrap_or_else(|error| panic!("tests/go/{name}: {error}"))
        .map(|entry| entry.expect("the source can be listed").path())
        .collect();
    files.extend(MESSAGES.map(|(directory, file, _)| root.join(directory).join(file)));
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        digest.update(std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    }
    digest.update(run(Command::new("/usr/bin/go").arg("version")));
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn build(name: &str, place: &Path, built: &Path) {
    let root = repository();
    let messages = place.join("src");
    std::fs::create_dir_all(&messages).expect("our own directory takes directories");
    for (directory, file, package) in MESSAGES {
        let to = format!("M{file}={package}:{}", messages.display());
        run(Command::new("/usr/bin/protoc")
            .current_dir(root.join(directory))
            .env("PATH", "/usr/bin:/bin")
            .args(["-I", ".", &format!("--go_out={to}"), &format!("--go-grpc_out={to}"), file]));
    }
    let other = gopath().map_or_else(String::new, |path| format!("{}:", path.display()));
    let libraries = format!("{other}{}:{LIBRARIES}", place.display());
    // Built under a name that no test runs, then renamed.
    let new = place.join(format!(".{name}.new"));
    run(Command::new("/usr/bin/go")
        .current_dir(root.join("tests/go").join(name))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("GO111MODULE", "off")
        .env("CGO_ENABLED", "0")
        .env("GOCACHE", target().join("go/cache"))
        .env("GOPATH", libraries)
        .args(["build", "-trimpath", "-ldflags=-s -w", "-o"])
        .arg(&new));
    std::fs::rename(&new, built).expect("a file of our own can be renamed");
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
