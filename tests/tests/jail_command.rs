//! `talon jail` as the author of a plugin meets it, and what `talon doctor` says of the jail.

use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use serde_json::Value;
use talon_tests::{Builder, Scratch, cli, in_uid_range, is_root, program, skip};
use tokio::io::{AsyncBufReadExt, BufReader};

/// The uids that `talon jail run` gives.
const UIDS: std::ops::RangeInclusive<u32> = 80_000..=89_999;

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn run(options: &[&str], command: &[&str]) -> Output {
    cli(&[&["jail", "run"], options, &["--"], command].concat()).await
}

async fn sh(options: &[&str], script: &str) -> Output {
    run(options, &["/bin/sh", "-c", script]).await
}

/// Open to everybody, as the uid inside is another one.
fn open(scratch: &Scratch, name: &str) -> String {
    let path = scratch.join(name);
    std::fs::create_dir_all(&path).expect("a directory");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
    path.to_str().expect("text").to_owned()
}

// Promises: CLI-19
#[tokio::test]
async fn output_and_end_of_the_command_are_ours() {
    let output = sh(&[], "echo to stdout; echo to stderr >&2; cat; exit 7").await;
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(out(&output), "to stdout\n");
    assert!(err(&output).ends_with("to stderr\n"), "{}", err(&output));
    let killed = sh(&[], "kill -KILL $$").await;
    assert_eq!(killed.status.code(), Some(137), "{killed:?}");
    let raw = sh(&[], r"printf 'a\033[31m\000b'").await;
    assert_eq!(raw.stdout, b"a\x1b[31m\0b", "bytes come through as they are");
}

// Promises: CLI-19
#[tokio::test]
async fn it_is_the_jail_that_plugins_get() {
    let script = "id -u; cat /proc/self/status; echo \"$HOME $TMPDIR\"; cat /etc/passwd; ls /proc";
    let output = sh(&[], script).await;
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "/run/plugin/h /tmp"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("root:"), "the host's passwd is not there: {text}");
    let uid: u32 = text.lines().next().and_then(|line| line.parse().ok()).expect("a uid");
    if is_root() {
        assert!(UIDS.contains(&uid), "{uid}");
    }
    let hidden = sh(&[], "cat /etc/shadow /proc/1/environ; ls /home /root").await;
    assert_ne!(hidden.status.code(), Some(0), "{hidden:?}");
    assert_eq!(out(&hidden), "");
}

// Promises: CLI-20
#[tokio::test]
async fn files_are_there_when_they_are_granted() {
    let scratch = Scratch::new();
    let file = scratch.write("data/file.txt", "granted");
    let (dir, file) = (scratch.join("data"), file.to_str().expect("text").to_owned());
    let dir = dir.to_str().expect("text");
    let none = run(&[], &["/bin/cat", &file]).await;
    assert_ne!(none.status.code(), Some(0), "{none:?}");
    for grant in [dir, &file] {
        let read = run(&["--read", grant], &["/bin/cat", &file]).await;
        assert_eq!(out(&read), "granted", "{read:?}");
    }
    let changed = sh(&["--read", dir], &format!("echo spoiled > {file}")).await;
    assert_ne!(changed.status.code(), Some(0), "{changed:?}");
    let place = open(&scratch, "place");
    let written = sh(&["--write", &place], &format!("echo kept > {place}/new")).await;
    assert_eq!(written.status.code(), Some(0), "{written:?}");
    assert_eq!(std::fs::read_to_string(format!("{place}/new")).expect("it was written"), "kept\n");
    let missing = run(&["--read", "/nonexistent/x"], &["/bin/true"]).await;
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    assert!(err(&missing).contains("--read /nonexistent/x"), "{}", err(&missing));
}

#[tokio::test]
async fn programs_and_scripts_outside_the_system_run_without_a_grant() {
    let scratch = Scratch::new();
    let hello = scratch.install(&program("hello"), "bin/hello");
    let by_descriptor = run(&[], &[hello.to_str().expect("text")]).await;
    assert!(
        err(&by_descriptor).contains("talon exec"),
        "a plugin by hand says how it is meant: {by_descriptor:?}"
    );
    let script = scratch.script("tool", "#!/bin/sh\necho \"I am $0 $1\"\n");
    let script = script.to_str().expect("text");
    let by_path = run(&[], &[script, "--flag"]).await;
    assert_eq!(out(&by_path), format!("I am {script} --flag\n"), "{by_path:?}");
    let foreign = scratch.script("foreign", &format!("#!{}\n", hello.display()));
    let refused = run(&[], &[foreign.to_str().expect("text")]).await;
    assert_eq!(refused.status.code(), Some(126), "{refused:?}");
    assert!(err(&refused).contains("--execute"), "{}", err(&refused));
}

// Promises: CLI-19
#[tokio::test]
async fn what_did_not_run_has_codes_of_its_own() {
    let scratch = Scratch::new();
    let plain = scratch.write("plain", "text");
    let profile = scratch.write("bad.toml", "default = \"maybe\"\n");
    let plain = plain.to_str().expect("text");
    let profile = profile.to_str().expect("text");
    let cases: [(&[&str], &[&str], i32, &str); 6] = [
        (&[], &["no-such-command"], 127, "PATH"),
        (&[], &["/nonexistent/program"], 127, "/nonexistent/program"),
        (&[], &[plain], 126, "chmod +x"),
        (&["--profile", profile], &["true"], 125, "bad.toml"),
        (&["--profile", "strickt"], &["true"], 2, "strict, "),
        (&["--memory", "much"], &["true"], 2, "--memory"),
    ];
    for (options, command, code, says) in cases {
        let output = run(options, command).await;
        assert_eq!(output.status.code(), Some(code), "{options:?} {command:?}: {output:?}");
        assert!(err(&output).contains(says), "{says:?} is missing: {}", err(&output));
    }
}

// Promises: CLI-20
#[tokio::test]
async fn tmp_is_its_own_and_executable_only_by_switch() {
    let script = "printf '#!/bin/sh\\necho ran\\n' > /tmp/x; chmod +x /tmp/x; /tmp/x";
    let refused = sh(&[], script).await;
    assert_ne!(refused.status.code(), Some(0), "{refused:?}");
    let allowed = sh(&["--tmp-exec"], script).await;
    assert_eq!(out(&allowed), "ran\n", "{allowed:?}");
}

#[tokio::test]
async fn too_much_memory_ends_it_and_is_said() {
    // Everything that it reads is kept; the pipe gives a gibibyte unless it is stopped.
    let hog = "head -c 1073741824 /dev/zero | tail -c 1073741824 > /dev/null";
    let output = sh(&["--memory", "64MiB"], &format!("{hog}; exit 0")).await;
    assert_eq!(output.status.code(), Some(137), "{output:?}");
    assert!(err(&output).contains("--memory"), "{}", err(&output));
}

// Promises: CLI-20
#[tokio::test]
async fn the_network_is_what_was_asked_for() {
    let interfaces = "cat /proc/net/dev | grep -c :";
    let (none, loopback) = (sh(&[], interfaces).await, sh(&["--network", "loopback"], interfaces).await);
    assert_eq!((out(&none), out(&loopback)), ("1\n".into(), "1\n".into()), "{none:?} {loopback:?}");
    let full = sh(&["--network", "full"], "readlink /proc/self/ns/net").await;
    let own = std::fs::read_link("/proc/self/ns/net").expect("a namespace").display().to_string();
    assert_eq!(out(&full).trim_end(), own, "{full:?}");
    let apart = sh(&[], "readlink /proc/self/ns/net").await;
    assert_ne!(out(&apart).trim_end(), own, "{apart:?}");
}

#[tokio::test]
async fn the_report_names_each_protection() {
    let text = run(&["--report"], &["/bin/true"]).await;
    for word in ["PROTECTION", "landlock", "system-calls", "exit code 0"] {
        assert!(err(&text).contains(word), "{word}: {}", err(&text));
    }
    let json = run(&["--report", "--output", "json"], &["/bin/true"]).await;
    let lines: Vec<Value> = err(&json)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let [begun, ended] = lines.as_slice() else { panic!("two lines: {lines:?}") };
    let protections = begun["protections"].as_array().expect("a list");
    for name in
        ["no-new-privs", "capabilities", "namespaces", "filesystem", "landlock", "network", "system-calls"]
    {
        let holds = protections.iter().find(|line| line["protection"] == name).map(|line| &line["holds"]);
        assert_eq!(holds, Some(&Value::from("yes")), "{name}: {begun}");
    }
    assert_eq!(ended["ended"], "exit code 0");
}

// Promises: CLI-21
#[tokio::test]
async fn a_signal_goes_to_the_command_and_nothing_is_left() {
    let mut talon = tokio::process::Command::new(program("talon"))
        .args(["jail", "run", "--report", "--output", "json", "--", "/bin/sh", "-c"])
        // The second one outlives its parent and holds the pipes.
        .arg("trap 'exit 9' TERM; sleep 1000 & while :; do sleep 1; done")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("talon starts");
    let mut lines = BufReader::new(talon.stderr.take().expect("a pipe")).lines();
    let begun = lines.next_line().await.expect("a pipe").expect("a line");
    let begun: Value = serde_json::from_str(&begun).expect("JSON");
    let uid = u32::try_from(begun["uid"].as_u64().expect("a uid")).expect("a uid");
    let pid = rustix::process::Pid::from_raw(talon.id().expect("it runs").try_into().expect("a pid"));
    rustix::process::kill_process(pid.expect("a pid"), rustix::process::Signal::TERM).expect("it runs");
    let status = talon.wait().await.expect("it ends");
    // The shell may not have set its trap yet.
    assert!(matches!(status.code(), Some(9 | 143)), "{status:?}");
    if is_root() {
        assert!(in_uid_range(&(uid..=uid)).is_empty(), "processes of its uid");
    }
}

// Promises: CLI-19
#[tokio::test]
async fn without_root_it_keeps_the_uid_in_a_user_namespace() {
    const NOBODY: &str = "54321";
    if !is_root() {
        return skip("without_root_it_keeps_the_uid_in_a_user_namespace", "the other tests run without root");
    }
    let scratch = Scratch::new();
    let talon = scratch.install(&program("talon"), "talon");
    let unprivileged = async |args: &[&str]| {
        tokio::process::Command::new("setpriv")
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
            .arg(&talon)
            .args(args)
            .env("HOME", scratch.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("setpriv is there")
    };
    let doctor = unprivileged(&["doctor", "--output", "json"]).await;
    let doctor: Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
    if doctor["machine"]["tier"] != "user-namespaces" {
        let reason = format!("this machine keeps user namespaces for root: {}", doctor["machine"]);
        return skip("without_root_it_keeps_the_uid_in_a_user_namespace", &reason);
    }
    assert_eq!(doctor["machine"]["accepted_by_enforce"], true, "{doctor}");
    let output =
        unprivileged(&["jail", "run", "--", "/bin/sh", "-c", "id -u; id -un; cat /etc/shadow"]).await;
    assert_eq!(out(&output), format!("{NOBODY}\nplugin\n"), "{output:?}");
    let uid = unprivileged(&["jail", "run", "--uid", "70000", "--", "/bin/true"]).await;
    assert_eq!(uid.status.code(), Some(125), "{uid:?}");
    assert!(err(&uid).contains("root"), "it says what to do: {}", err(&uid));
}

// Promises: CLI-22
#[tokio::test]
async fn what_was_learned_is_a_profile() {
    let scratch = Scratch::new();
    let file = scratch.join("own.toml");
    let path = file.to_str().expect("text");
    let nothing = run(&["--learn", path], &["/bin/true"]).await;
    assert_eq!(nothing.status.code(), Some(0), "{nothing:?}");
    assert!(err(&nothing).contains("learned nothing") && !file.exists(), "{nothing:?}");
    if !std::path::Path::new("/usr/bin/perl").exists() {
        return skip(
            "what_was_learned_is_a_profile",
            "there is no perl here, which makes odd calls without a compiler",
        );
    }
    // Semaphores of System V are outside the default profile. EPERM is 1; ENOENT, that it does not exist yet,
    // is 2.
    let command = ["/usr/bin/perl", "-e", "semget(4711, 1, 0); exit $!"];
    assert_eq!(run(&[], &command).await.status.code(), Some(1), "strict has no semget");
    let learned = run(&["--learn", path], &command).await;
    assert_eq!(learned.status.code(), Some(2), "{learned:?}");
    let text = std::fs::read_to_string(&file).expect("the profile was written");
    assert!(text.contains("extends = \"strict\"") && text.contains("semget"), "{text}");
    let tried = run(&["--profile", path], &command).await;
    assert_eq!(tried.status.code(), Some(2), "what was learned is allowed: {tried:?}");
    let again = run(&["--learn", path], &command).await;
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(err(&again).contains("--learn"), "a file that is there stays: {}", err(&again));
}

#[tokio::test]
async fn profiles_can_be_listed_read_and_completed() {
    let list = cli(&["jail", "profiles"]).await;
    assert!(out(&list).contains("strict"), "{list:?}");
    let text = cli(&["jail", "profiles", "strict"]).await;
    assert!(out(&text).contains("why = "), "{text:?}");
    let unknown = cli(&["jail", "profiles", "lax"]).await;
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
    let completions = cli(&["completions", "bash"]).await;
    let choices = out(&completions).lines().filter(|line| line.contains("strict")).count();
    assert!(choices > 0, "profile names are offered");
}

// Promises: CLI-18
#[tokio::test]
async fn doctor_shows_what_is_asked_and_what_holds() {
    let hello = program("hello");
    let supervisor = Builder::new()
        .plugin("hello", &hello, &[], "")
        .plugin("open", &hello, &[], "sandbox: { mode: off }")
        .start()
        .await;
    let config = supervisor.config().to_str().expect("text").to_owned();
    let output = supervisor.cli(&["doctor", "--config", &config, "--output", "json"]).await;
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let protections = value["protections"].as_array().expect("a list");
    let line = |name: &str| {
        let found = protections.iter().find(|line| line["protection"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {value}"))
    };
    let no_new_privs = line("no-new-privs");
    assert_eq!(no_new_privs["asked"], "enforce, 1 off");
    assert_eq!(no_new_privs["enforced"], serde_json::json!({ "plugins": 2, "enforced": 1, "stand_in": 0 }));
    let table = supervisor.cli(&["doctor", "--config", &config]).await;
    let text = out(&table);
    assert!(text.contains("1 of 2") && text.contains("1 off: open"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100 || line.contains('/')), "{text}");
}
