//! The command line as its three users meet it: outputs, exit codes, `talon exec`.

use talon_tests::{Builder, Scratch, cli, cli_with, example, program};

fn out(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

// Promises: CLI-1
#[tokio::test]
async fn exit_codes_tell_who_said_no() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let cases: [(&[&str], i32); 7] = [
        (&["call", "misbehave.echo", "text=hi"], 0),
        (&["call", "misbehave.error", "text=no"], 1),
        (&["call", "misbehave"], 2),
        (&["call", "misbehave.ecco"], 3),
        (&["call", "misbehave.wrong_id"], 3),
        (&["call", "misbehave.hang", "--timeout", "200ms"], 4),
        (&["call", "misbehave.grpc_error"], 4),
    ];
    for (args, code) in cases {
        let output = supervisor.cli(args).await;
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    }
}

#[tokio::test]
async fn nobody_there_is_said_with_what_to_do() {
    let scratch = Scratch::new();
    let socket = scratch.join("none.sock");
    let output = cli(&["--socket", socket.to_str().expect("text"), "status"]).await;
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(err(&output).contains("talon serve"), "{}", err(&output));
}

// Promises: CLI-9
#[tokio::test]
async fn json_is_for_programs() {
    let supervisor =
        Builder::new().misbehave(&[], "").plugin("hello", &program("hello"), &[], "").start().await;
    for args in [
        &["plugin", "list", "--output", "json"][..],
        &["plugin", "show", "misbehave", "--output", "json"],
        &["status", "--output", "json"],
        &["call", "misbehave.echo", "text=hi", "--output", "json"],
        &["doctor", "--output", "json"],
    ] {
        let output = supervisor.cli(args).await;
        let parsed: Result<serde_json::Value, _> = serde_json::from_slice(&output.stdout);
        assert!(parsed.is_ok(), "{args:?}: {}", out(&output));
    }
}

// Promises: CLI-6
#[tokio::test]
async fn arguments_come_from_files_and_raw_is_the_content_alone() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let file = supervisor.scratch.write("text.txt", "from a file\n");
    let argument = format!("text={}", file.display());
    let output = supervisor.cli(&["call", "misbehave.echo", "--arg-file", &argument, "--raw"]).await;
    assert_eq!(out(&output).trim_end(), "from a file", "{output:?}");
    let missing = supervisor.cli(&["call", "misbehave.echo", "--arg-file", "text=/nonexistent"]).await;
    assert_ne!(missing.status.code(), Some(0));
    assert!(err(&missing).contains("/nonexistent"), "{}", err(&missing));
}

// Promises: CLI-7, RULE-3
#[tokio::test]
async fn exec_runs_one_plugin_without_a_daemon() {
    let hello = program("hello");
    let path = hello.to_str().expect("text");
    let output = cli(&["exec", path, "greet", "name=World"]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        out(&output).contains("World") && out(&output).starts_with("[plugin_output]"),
        "{}",
        out(&output)
    );
    let wrong = cli(&["exec", path, "greed", "name=World"]).await;
    assert_eq!(wrong.status.code(), Some(3), "{wrong:?}");
    assert!(out(&wrong).contains("greet") || err(&wrong).contains("greet"), "the nearest name: {wrong:?}");
    let csv = example("csv-query");
    let rows =
        cli(&["exec", csv.to_str().expect("text"), "query", "sql=select max(moons) from planets"]).await;
    assert!(out(&rows).contains("146"), "{rows:?}");
    let scratch = Scratch::new();
    let quitter = scratch.script("quitter", "#!/bin/sh\necho I cannot >&2\nexit 3\n");
    let failed = cli(&["exec", quitter.to_str().expect("text"), "anything"]).await;
    assert_eq!(failed.status.code(), Some(4), "{failed:?}");
    assert!(err(&failed).contains("I cannot"), "its last words are shown: {}", err(&failed));
}

// Promises: CLI-55
#[tokio::test]
async fn exec_takes_a_cookie_a_service_and_keys_of_an_entry() {
    let scratch = Scratch::new();
    scratch.install(&program("hello"), "bin/hello");
    let bin = scratch.path().join("bin");
    let vendor = scratch.script(
        "vendor",
        &format!(
            "#!/bin/sh\nif [ \"$VENDOR_PLUGIN\" != 7f3a ]; then\n  echo 'These are not meant to be executed directly.' >&2\n  \
             exit 1\nfi\nexport TALON_PLUGIN_MAGIC_COOKIE=d3a7c1f0-talon-plugin\nexec {}/hello\n",
            bin.display()
        ),
    );
    let path = vendor.to_str().expect("text");
    let shown = format!("sandbox.fs.execute=[\"{}\"]", bin.display());
    let without = cli(&["exec", path, "--entry", &shown, "--list"]).await;
    assert_eq!(without.status.code(), Some(4), "{without:?}");
    assert!(err(&without).contains("its own magic cookie"), "{}", err(&without));
    let with = ["exec", path, "--cookie", "VENDOR_PLUGIN=7f3a", "--entry", &shown];
    let greeted = cli(&[&with[..], &["greet", "name=World"]].concat()).await;
    assert_eq!(greeted.status.code(), Some(0), "{greeted:?}");
    assert!(out(&greeted).contains("World"), "{greeted:?}");
    let service = cli(&[&with[..], &["--service", "vendor.v1.KV", "--list"]].concat()).await;
    assert_eq!(service.status.code(), Some(4), "{service:?}");
    assert!(err(&service).contains("does not serve PluginService as vendor.v1.KV"), "{}", err(&service));
    let unknown = cli(&[&with[..], &["--entry", "sevice=x", "--list"]].concat()).await;
    assert_eq!(unknown.status.code(), Some(6), "{unknown:?}");
    assert!(err(&unknown).contains("service"), "the nearest key is named: {}", err(&unknown));
}

// Promises: SDK-10
#[tokio::test]
async fn a_plugin_that_is_run_by_hand_says_how_it_is_meant() {
    let output = tokio::process::Command::new(program("hello")).output().await.expect("it starts");
    assert_ne!(output.status.code(), Some(0));
    assert!(err(&output).contains("talon exec"), "{}", err(&output));
}

// Promises: CONF-7
#[tokio::test]
async fn config_errors_come_all_at_once_with_their_places() {
    let scratch = Scratch::new();
    let file = scratch.write(
        "talon.yaml",
        "plugins:\n  tools:\n    max_restart: 3\n    health_check_interval: soon\nguard:\n  max_response_bytes: -1\n",
    );
    let output = cli(&["config", "check", "--config", file.to_str().expect("text")]).await;
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let text = format!("{}{}", out(&output), err(&output));
    for words in ["talon.yaml:3", "max_restarts", "talon.yaml:4", "soon", "talon.yaml:6"] {
        assert!(text.contains(words), "{words:?} is missing: {text}");
    }
    let serve = cli(&["serve", "--config", file.to_str().expect("text")]).await;
    assert_eq!(serve.status.code(), Some(6), "{serve:?}");
}

// Promises: CONF-12
#[tokio::test]
async fn config_show_tells_where_values_come_from() {
    let scratch = Scratch::new();
    let file = scratch.write("talon.yaml", "plugins:\n  tools:\n    max_restarts: 7\n");
    let shown = cli_with(
        &["config", "show", "--config", file.to_str().expect("text")],
        &[("TALON_GUARD__TIMEOUT", "11s")],
    )
    .await;
    let text = out(&shown);
    let line = |key: &str| text.lines().find(|line| line.contains(key)).unwrap_or_default().to_owned();
    assert!(line("max_restarts").contains('7') && line("max_restarts").contains("talon.yaml:3"), "{text}");
    assert!(text.contains("TALON_GUARD__TIMEOUT"), "{text}");
}

// Promises: CLI-10
#[tokio::test]
async fn colour_is_for_terminals() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let piped = supervisor.cli(&["plugin", "list"]).await;
    assert!(!out(&piped).contains('\u{1b}'), "{}", out(&piped));
    let forced = supervisor.cli(&["plugin", "list", "--color", "always"]).await;
    assert!(out(&forced).contains('\u{1b}'), "{}", out(&forced));
}

// Promises: CLI-11
#[tokio::test]
async fn no_color_turns_colour_off_on_a_terminal() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let line =
        format!("{} --socket {} plugin list", program("talon").display(), supervisor.socket().display());
    let on_terminal = async |no_color: Option<&str>| {
        let mut command = tokio::process::Command::new("script");
        command
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .env("TERM", "xterm")
            .env_remove("NO_COLOR");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let output = command.stdin(std::process::Stdio::null()).output().await.expect("script is installed");
        assert!(output.status.success(), "{output:?}");
        out(&output)
    };
    assert!(on_terminal(None).await.contains('\u{1b}'));
    assert!(!on_terminal(Some("1")).await.contains('\u{1b}'));
}
