//! The command line as a program: exit codes, help, and closed output pipes. No supervisor runs here.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use assert_cmd::assert::OutputAssertExt;

/// `talon` in an isolated environment, without this machine's configuration.
fn talon(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_talon"));
    command
        .env_clear()
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .env("RUNTIME_DIRECTORY", home.join("run"));
    command
        .env("TALON_HOST_SOCKET", home.join("run/host.sock"))
        .env("PATH", std::env::var_os("PATH").unwrap());
    command.env("TALON_CONFIG", home.join("talon.yaml"));
    std::fs::write(home.join("talon.yaml"), "").unwrap();
    command
}

fn stderr_of(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    stderr
}

// Promises: CLI-2
#[test]
fn without_a_supervisor_every_client_verb_says_how_to_start_one() {
    let home = tempfile::tempdir().unwrap();
    for verb in [
        "status",
        "call hello.greet",
        "plugin list",
        "plugin show x",
        "plugin start x",
        "event list",
        "event list --follow",
        "event watch",
        "event watch --follow",
        "events",
        "events --follow",
        "top --once",
        "ask hello",
        "chat",
        "session list",
        "approval list",
        "approval rules",
        "forget anna",
        "memory list",
        "model list",
    ] {
        let stderr = stderr_of(talon(home.path()).args(verb.split(' ')), 5);
        assert!(stderr.contains("no supervisor at") && stderr.contains("talon serve"), "{verb}: {stderr}");
    }
}

// Promises: CLI-2
#[test]
fn a_dead_socket_says_that_its_supervisor_ended() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("host.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let stderr = stderr_of(talon(home.path()).arg("status").arg("--socket").arg(&path), 5);
    assert!(stderr.contains("its supervisor has exited"), "{stderr}");
}

// Promises: CLI-5
#[test]
fn something_else_behind_the_socket_is_no_hang() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("host.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let other = std::thread::spawn(move || drop(listener.accept()));
    stderr_of(talon(home.path()).arg("status").arg("--socket").arg(&path), 5);
    other.join().unwrap();
}

// Promises: CLI-1
#[test]
fn a_wrong_command_line_is_2() {
    let home = tempfile::tempdir().unwrap();
    for line in
        ["fly", "call", "call hello", "call hello.greet name", "call a.b x=1 x=2", "exec /nonexistent act"]
    {
        stderr_of(talon(home.path()).args(line.split(' ')), 2);
    }
}

// Promises: CLI-2
#[test]
fn a_wrong_configuration_is_6_and_all_of_it_is_said() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("bad.yaml");
    std::fs::write(&config, "guard:\n  timeout: 30\n  max_response_byte: 1\n").unwrap();
    for verb in ["config check", "config show", "serve"] {
        let stderr = stderr_of(talon(home.path()).args(verb.split(' ')).arg("--config").arg(&config), 6);
        assert!(stderr.contains("2 problems") && stderr.contains("max_response_bytes"), "{verb}: {stderr}");
    }
}

// Promises: CLI-8
#[test]
fn a_file_that_is_no_plugin_is_told_from_one_that_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("tool");
    std::fs::write(&file, "#!/bin/sh\n").unwrap();
    let stderr = stderr_of(talon(home.path()).arg("exec").arg(&file).arg("act"), 2);
    assert!(stderr.contains("chmod +x"), "{stderr}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o777)).unwrap();
    stderr_of(talon(home.path()).arg("exec").arg(&file).arg("act"), 3);
}

/// Two named places that are wrong; falling back to another supervisor would be worse than an error.
#[test]
fn a_configuration_that_was_named_is_not_passed_over_on_the_way_to_a_supervisor() {
    let home = tempfile::tempdir().unwrap();
    let mut command = talon(home.path());
    command.env_remove("TALON_HOST_SOCKET").env("TALON_CONFIG", home.path().join("missing.yaml"));
    let stderr = stderr_of(command.arg("status"), 6);
    assert!(stderr.contains("missing.yaml"), "{stderr}");
}

#[test]
fn exec_told_to_end_leaves_neither_a_process_nor_a_directory() {
    let home = tempfile::tempdir().unwrap();
    let plugin = home.path().join("sleeper");
    // Known by its argument: the number that it has for itself is one of its own namespace.
    let nap = format!("1000.{}", std::process::id());
    std::fs::write(&plugin, format!("#!/bin/sh\necho started >&2\nexec sleep {nap}\n")).unwrap();
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    // With a separate uid the plugin needs access to its file.
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let private = || {
        let names = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("talon-")).count()
    };
    let sleeps = || {
        let processes =
            std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path().join("cmdline"));
        processes.filter_map(|path| std::fs::read_to_string(path).ok()).any(|line| line.contains(&nap))
    };
    for signal in ["-INT", "-TERM", "-HUP"] {
        let mut child =
            talon(home.path()).arg("exec").arg(&plugin).arg("act").stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line == "sleeper: started"), "{signal}");
        assert_eq!(private(), 1);
        assert!(Command::new("kill").arg(signal).arg(child.id().to_string()).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(4), "{signal}");
        assert!(lines.any(|line| line.contains("interrupted")), "{signal}");
        assert_eq!(private(), 0, "{signal}");
        assert!(!sleeps(), "{signal}");
    }
}

// Promises: CLI-15
#[test]
fn output_that_nobody_reads_is_no_panic() {
    let home = tempfile::tempdir().unwrap();
    for verb in ["completions bash", "config reference", "config show", "--help"] {
        let mut child = talon(home.path());
        child.args(verb.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() && stderr.is_empty(), "{verb}: {status} {stderr}");
    }
}

// Promises: CLI-15
#[test]
fn a_full_disk_is_told() {
    let home = tempfile::tempdir().unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = talon(home.path());
    let stderr = stderr_of(command.args(["config", "reference"]).stdout(full), 70);
    assert!(stderr.contains("cannot write the output"), "{stderr}");
}

// Promises: CLI-10
#[test]
fn colour_stays_out_of_pipes_unless_it_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let run = |color: &[&str]| {
        let output = talon(home.path()).arg("doctor").args(color).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!run(&[]).contains('\u{1b}'));
    assert!(!run(&["--color", "never"]).contains('\u{1b}'));
    assert!(run(&["--color", "always"]).contains('\u{1b}'));
}

// Promises: CLI-9
#[test]
fn doctor_speaks_json() {
    let home = tempfile::tempdir().unwrap();
    let output = talon(home.path()).args(["doctor", "--output", "json"]).output().unwrap();
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks: Vec<&str> =
        value["checks"].as_array().unwrap().iter().filter_map(|c| c["check"].as_str()).collect();
    assert!(checks.contains(&"config") && checks.contains(&"runtime dir"), "{checks:?}");
    assert!(checks.iter().any(|check| check.starts_with("jail: ")), "{checks:?}");
}

// Promises: CLI-13
#[test]
fn man_pages_and_completions_are_made() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("man");
    talon(home.path()).arg("man").arg(&dir).assert().success();
    for page in ["talon.1", "talon-call.1", "talon-plugin-logs.1", "talon-chat.1", "talon-session-show.1"] {
        assert!(dir.join(page).is_file(), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        talon(home.path()).args(["completions", shell]).assert().success();
    }
}

/// The help texts are a part of the interface: a change of them is looked at.
// Promises: CLI-14
#[test]
fn help_is_as_written() {
    let home = tempfile::tempdir().unwrap();
    for verb in [
        "",
        "serve",
        "call",
        "exec",
        "conformance",
        "jail run",
        "jail profiles",
        "ask",
        "chat",
        "session",
        "session list",
        "session show",
        "session verify",
        "session resume",
        "session set",
        "session plan",
        "session compact",
        "session delete",
        "approval",
        "approval list",
        "approval show",
        "approval approve",
        "approval deny",
        "approval answer",
        "approval rules",
        "approval revoke",
        "forget",
        "memory",
        "memory list",
        "memory search",
        "memory show",
        "memory forget",
        "model",
        "model list",
        "plugin",
        "plugin logs",
        "event",
        "event list",
        "event watch",
        "events",
        "gateway",
        "gateway open",
        "token",
        "token create",
        "token list",
        "token revoke",
        "status",
        "top",
        "watch",
        "shell-init",
        "config",
        "config patch",
        "config history",
        "doctor",
        "guard check",
        "guard raw",
        "state",
        "state list",
        "state get",
        "state set",
        "state delete",
        "state purge",
        "export",
        "import",
        "backup",
        "restore",
        "mcp",
        "mcp import",
        "mcp login",
        "mcp logout",
        "new",
        "lua",
        "lua check",
        "lua run",
        "lua test",
        "lua repl",
    ] {
        let mut command = talon(home.path());
        command.args(verb.split(' ').filter(|word| !word.is_empty())).arg("--help").env("COLUMNS", "100");
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let name =
            if verb.is_empty() { "talon".to_owned() } else { format!("talon-{}", verb.replace(' ', "-")) };
        insta::assert_snapshot!(name, text);
    }
}
