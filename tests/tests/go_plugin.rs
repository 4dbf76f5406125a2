//! Programs that HashiCorp's own go-plugin serves, unchanged, in the jail; the traps that they set for their
//! hosts; and our SDK under a host of theirs. The programs are built from `tests/go/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use talon_tests::{Builder, Supervisor, go_program, program};

/// Short enough that a plugin which never gets ready is given up soon; long enough for a loaded machine.
const SHORT_START: &str = "start_timeout: 20s";

/// What dies is not started again, or soon.
const DIES_ONCE: &str = "max_restarts: 0";
const COMES_BACK: &str = "max_restarts: 3\nbackoff_initial: 10ms";

/// A supervisor with a program of go-plugin and a neighbour that must not notice.
async fn started(builder: Builder, command: &Path, args: &[&str], more: &str) -> Supervisor {
    let restarts = if more.contains("max_restarts") { "" } else { DIES_ONCE };
    let more = format!("{SHORT_START}\n{restarts}\n{more}");
    builder.plugin("hello", &program("hello"), &[], "").plugin("gopher", command, args, &more).start().await
}

/// The same with a shell script before the program, which lies beside it as `program`.
async fn wrapped(built: &Path, script: &str, args: &[&str], more: &str) -> Supervisor {
    let builder = Builder::new();
    let scratch = builder.scratch();
    scratch.install(built, "wrapped/program");
    scratch.script("wrapped/run.sh", &format!("#!/bin/sh\n{script}\n"));
    scratch.write("wrapped/plugin.yaml", "command: run.sh\n");
    let directory = scratch.join("wrapped");
    started(builder, &directory, args, more).await
}

async fn answers(supervisor: &Supervisor, action: &str, args: &[(&str, &str)], content: &str) {
    let answer = supervisor.client.call("gopher", action, args).await;
    assert_eq!(answer.content, content, "{answer:?}\n{}", supervisor.log());
}

/// It serves, and ends with its supervisor as a program of go-plugin does: in order, and with nothing left
/// behind.
async fn serves(supervisor: Supervisor) {
    answers(&supervisor, "echo", &[("text", "hi")], "hi").await;
    ends_in_order(supervisor).await;
}

/// go-plugin's Shutdown stops the server inside the handler, so that the caller sees its connection break.
async fn ends_in_order(supervisor: Supervisor) {
    supervisor.client.stop("gopher").await.expect("it stops");
    supervisor.client.wait_state("gopher", "stopped").await;
    // Printed after Serve came back. SIGTERM would have ended the program at once.
    supervisor.client.wait_log("gopher", "its server has ended").await;
    leaves_nothing(supervisor).await;
}

async fn leaves_nothing(supervisor: Supervisor) {
    let neighbour = supervisor.client.call("hello", "greet", &[("name", "neighbour")]).await;
    assert!(neighbour.content.contains("neighbour"), "{neighbour:?}");
    assert_eq!(supervisor.client.plugin("hello").await.deaths, 0);
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert_eq!(stopped.processes, Vec::<u32>::new());
    assert_eq!(stopped.sockets, Vec::<PathBuf>::new());
}

/// It has failed, or was refused where another try would end the same way; its reason holds the words.
async fn fails_saying(supervisor: Supervisor, words: &[&str]) {
    let ended = |p: &talon_proto::host::Plugin| matches!(p.state.as_str(), "failed" | "refused");
    let plugin = supervisor.client.wait_for("gopher", "failed or refused", ended).await;
    for word in words {
        assert!(plugin.reason.contains(word), "{word:?} is not in the reason: {}", plugin.reason);
    }
    assert!(plugin.reason.len() < 4096, "a reason of {} bytes is not bounded", plugin.reason.len());
    let refused = supervisor.client.call("gopher", "echo", &[("text", "x")]).await;
    assert_eq!(refused.reason, "unavailable", "{refused:?}");
    leaves_nothing(supervisor).await;
}

// Promises: OTHER-1
#[tokio::test]
async fn a_program_of_go_plugin_runs_unchanged() {
    let Some(plugin) = go_program("a_program_of_go_plugin_runs_unchanged", "plugin") else { return };
    let supervisor = started(Builder::new(), &plugin, &[], "config: { root: /srv }").await;
    answers(&supervisor, "settings", &[], r#"{"root":"/srv"}"#).await;
    answers(&supervisor, "environment", &[("name", "PLUGIN_MULTIPLEX_GRPC")], "").await;
    answers(&supervisor, "environment", &[("name", "PLUGIN_CLIENT_CERT")], "").await;
    // It logs with hclog: a line of JSON is shown as its message.
    supervisor.client.wait_log("gopher", "plugin address").await;
    serves(supervisor).await;
}

// Promises: OTHER-1
#[tokio::test]
async fn cookie_versions_and_service_are_settings() {
    let Some(plugin) = go_program("cookie_versions_and_service_are_settings", "plugin") else { return };
    let args =
        ["-cookie", "ACME_COOKIE=yes, I am", "-versions", "4,5,6", "-service", "acme.tools.v1.ToolService"];
    let more = "cookie: { key: ACME_COOKIE, value: 'yes, I am' }\napp_versions: [3, 4, 5]\nservice: acme.tools.v1.ToolService";
    let supervisor = started(Builder::new(), &plugin, &args, more).await;
    // The highest that both know.
    answers(&supervisor, "version", &[], "5").await;
    serves(supervisor).await;
}

// Promises: OTHER-1
#[tokio::test]
async fn a_program_without_the_methods_is_told_which_they_are() {
    let test = "a_program_without_the_methods_is_told_which_they_are";
    let Some(plugin) = go_program(test, "plugin") else { return };
    let supervisor = started(Builder::new(), &plugin, &[], "service: proto.KV").await;
    let words = [
        "it does not serve PluginService as proto.KV",
        "serves the methods of opentalon.plugin.v1.PluginService",
        "docs/go-plugin.md",
    ];
    fails_saying(supervisor, &words).await;
}

// Promises: OTHER-1
#[tokio::test]
async fn each_of_several_versions_is_agreed_on_when_it_is_offered() {
    let test = "each_of_several_versions_is_agreed_on_when_it_is_offered";
    let Some(plugin) = go_program(test, "plugin") else { return };
    for (offered, agreed) in [("[1]", "1"), ("[1, 2]", "2"), ("[3, 2, 1]", "3"), ("[2, 7]", "2")] {
        let more = format!("app_versions: {offered}");
        let supervisor = started(Builder::new(), &plugin, &["-versions", "1,2,3"], &more).await;
        answers(&supervisor, "version", &[], agreed).await;
        serves(supervisor).await;
    }
}

// Promises: OTHER-2
#[tokio::test]
async fn auto_mtls_with_certificates_of_p_521() {
    let Some(plugin) = go_program("auto_mtls_with_certificates_of_p_521", "plugin") else { return };
    let more = format!("tls: auto-mtls\nconnections: 2\n{COMES_BACK}");
    let supervisor = started(Builder::new(), &plugin, &[], &more).await;
    let certificate = async || {
        let asked = supervisor.client.call("gopher", "environment", &[("name", "PLUGIN_CLIENT_CERT")]).await;
        assert!(asked.content.starts_with("-----BEGIN CERTIFICATE-----"), "{asked:?}");
        asked.content
    };
    let first = certificate().await;
    answers(&supervisor, "offer", &[], "offered").await;
    // The next process has new certificates, on both sides.
    let ended = supervisor.client.call("gopher", "end", &[]).await;
    assert!(!ended.error.is_empty(), "{ended:?}");
    let again = |p: &talon_proto::host::Plugin| p.state == "ready" && p.deaths == 1;
    supervisor.client.wait_for("gopher", "ready again", again).await;
    assert_ne!(certificate().await, first);
    serves(supervisor).await;
}

// Promises: OTHER-4
#[tokio::test]
async fn its_broker_is_held_open_and_never_called() {
    let Some(plugin) = go_program("its_broker_is_held_open_and_never_called", "plugin") else { return };
    let supervisor = started(Builder::new(), &plugin, &[], "timeout: 20s").await;
    // Each offer waits until the news of it is taken; there is no end to how often it may offer.
    for _ in 0..200 {
        answers(&supervisor, "offer", &[], "offered").await;
    }
    serves(supervisor).await;
}

// Promises: OTHER-5
#[tokio::test]
async fn output_that_is_streamed_is_drained_and_blocks_no_call() {
    let test = "output_that_is_streamed_is_drained_and_blocks_no_call";
    let Some(plugin) = go_program(test, "plugin") else { return };
    let supervisor = started(Builder::new(), &plugin, &["-stdio"], "timeout: 20s").await;
    answers(&supervisor, "print", &[("bytes", "200000")], "printed").await;
    supervisor.client.wait_log("gopher", "the last of its output").await;
    serves(supervisor).await;
}

#[tokio::test]
async fn output_that_no_host_can_drain_costs_the_call_that_prints_it_and_no_other() {
    let test = "output_that_no_host_can_drain_costs_the_call_that_prints_it_and_no_other";
    let Some(plugin) = go_program(test, "plugin") else { return };
    let supervisor = started(Builder::new(), &plugin, &[], "actions: { print: { timeout: 1s } }").await;
    if supervisor.client.call("gopher", "streams", &[]).await.content == "true" {
        // Only go-plugin before version 1.1, which Debian 12 has, makes pipes without another end.
        answers(&supervisor, "print", &[("bytes", "200000")], "printed").await;
        return leaves_nothing(supervisor).await;
    }
    let answer = supervisor.client.call("gopher", "print", &[("bytes", "200000")]).await;
    assert_eq!(answer.reason, "timed_out", "{answer:?}");
    assert!(answer.error.contains("gopher"), "{answer:?}");
    answers(&supervisor, "echo", &[("text", "hi")], "hi").await;
    supervisor.client.stop("gopher").await.expect("it stops");
    supervisor.client.wait_state("gopher", "stopped").await;
    leaves_nothing(supervisor).await;
}

#[tokio::test]
async fn a_line_that_makes_the_real_host_panic_is_a_log_line() {
    let test = "a_line_that_makes_the_real_host_panic_is_a_log_line";
    let Some(plugin) = go_program(test, "plugin") else { return };
    for line in [r#"{"@message": 1}"#, r#"{"@level": [], "@message": {}, "@timestamp": null}"#, "{"] {
        let supervisor = started(Builder::new(), &plugin, &["-say", line], "").await;
        supervisor.client.wait_log("gopher", line.split(' ').next().expect("it has words")).await;
        serves(supervisor).await;
    }
}

// Promises: OTHER-6
#[tokio::test]
async fn a_grandchild_that_holds_the_pipes_delays_nothing() {
    let Some(plugin) = go_program("a_grandchild_that_holds_the_pipes_delays_nothing", "plugin") else {
        return;
    };
    let supervisor = wrapped(&plugin, "sleep 1000 &\nexec ./program \"$@\"", &[], COMES_BACK).await;
    let before = supervisor.plugin_processes();
    // A crash is seen although the pipes stay open, and its own grandchild goes with it.
    supervisor.client.call("gopher", "end", &[]).await;
    let again = |p: &talon_proto::host::Plugin| p.state == "ready" && p.deaths == 1;
    supervisor.client.wait_for("gopher", "ready again", again).await;
    assert_eq!(supervisor.plugin_processes().len(), before.len(), "one grandchild, not two");
    serves(supervisor).await;
}

// Promises: OTHER-6
#[tokio::test]
async fn a_shell_whose_child_is_the_plugin_ends_with_it() {
    let Some(plugin) = go_program("a_shell_whose_child_is_the_plugin_ends_with_it", "plugin") else {
        return;
    };
    // Without exec: the process that is started is the shell.
    let supervisor = wrapped(&plugin, "./program \"$@\"\ntrue", &[], "").await;
    serves(supervisor).await;
    // The same for a plugin that would not end on request.
    let supervisor = wrapped(&plugin, "./program \"$@\"\nsleep 1000", &[], "grace_period: 300ms").await;
    answers(&supervisor, "echo", &[("text", "hi")], "hi").await;
    leaves_nothing(supervisor).await;
}

#[tokio::test]
async fn field_7_is_understood() {
    let Some(plugin) = go_program("field_7_is_understood", "plugin") else { return };
    // Lines of other versions of the library: none, and one that says no. The pipe makes the shell its
    // parent, too.
    for line in [r"s/|$//", r"s/|grpc|$/|grpc||false/"] {
        let script = format!("./program \"$@\" | sed -u '{line}'");
        let supervisor = wrapped(&plugin, &script, &[], "").await;
        serves(supervisor).await;
    }
}

macro_rules! start_faults {
    ($($name:ident: $($script:literal)? [$($arg:literal),*] $more:literal says $words:expr;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let Some(plugin) = go_program(stringify!($name), "plugin") else { return };
                let script: &str = concat!($($script)?);
                let supervisor = if script.is_empty() {
                    started(Builder::new(), &plugin, &[$($arg),*], $more).await
                } else {
                    wrapped(&plugin, script, &[$($arg),*], $more).await
                };
                fails_saying(supervisor, &$words).await;
            }
        )*
    };
}

start_faults! {
    a_version_that_nobody_offered: ["-versions", "2,3"] "app_versions: [7, 8]"
        says ["version 2", "7, 8", "app_versions"];
    the_older_wire_protocol: ["-netrpc"] "" says ["netrpc", "grpc"];
    the_wrong_cookie: ["-cookie", "OTHER=1"] "" says ["exit code 1", "cookie"];
    another_service_than_was_asked_for: ["-service", "acme.tools.v1.ToolService"] ""
        says ["Unimplemented", "opentalon.plugin.v1.PluginService", "`service`"];
    a_socket_path_that_is_too_long_and_exit_code_0: ["-long-socket", "200"] ""
        says ["exit code 0", "could not make its socket"];
    multiplexing_with_yamux: r#"./program "$@" | sed -u 's/|grpc|$/|grpc||true/'"# [] "" says ["yamux", "turn"];
    a_certificate_unasked: r#"PLUGIN_CLIENT_CERT=x exec ./program "$@""# [] "" says ["TLS", "tls: auto-mtls"];
    a_certificate_that_is_not_its_servers: r#"./program "$@" | sed -u 's/....$/AAAA/'"# [] "tls: auto-mtls"
        says ["certificate", "not the one in its handshake"];
    a_certificate_that_is_no_base64:
        r#"./program "$@" | sed -u 's/|grpc|./|grpc|!/'"# [] "tls: auto-mtls" says ["sixth field", "base64"];
    a_certificate_that_is_none:
        r#"./program "$@" | sed -u 's/|grpc|.*/|grpc|AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/'"#
        [] "tls: auto-mtls" says ["sixth field", "X.509"];
    a_certificate_without_end:
        r#"./program "$@" | sed -u "s/\$/$(head -c 5000 /dev/zero | tr '\0' A)/""# [] "tls: auto-mtls"
        says ["handshake line is longer than"];
    auto_mtls_that_the_plugin_did_not_hear_of: r#"unset PLUGIN_CLIENT_CERT; exec ./program "$@""# [] "tls: auto-mtls"
        says ["holds no certificate", "tls to off"];
    a_certificate_of_somebody_who_does_not_speak_tls:
        r#"certificate=$PLUGIN_CLIENT_CERT; unset PLUGIN_CLIENT_CERT; der=$(printf '%s\n' "$certificate" | sed '/-----/d' | tr -d '\n='); ./program "$@" | sed -u "s@|grpc|\$@|grpc|$der@""#
        [] "tls: auto-mtls" says ["TLS with it failed", "tls to off"];
}

// Promises: OTHER-3
#[tokio::test]
async fn a_plugin_that_does_not_know_auto_mtls_is_refused() {
    let hello = program("hello");
    let supervisor = started(Builder::new(), &hello, &[], "tls: auto-mtls").await;
    fails_saying(supervisor, &["holds no certificate", "go-plugin", "tls to off"]).await;
}

/// Runs go-plugin's own host over one of our plugins and gives what it printed.
fn hosted(host: &Path, plugin: &Path, env: &[(&str, &str)]) -> String {
    let output = Command::new(host)
        .args(["-action", "greet", "-argument", "name=host"])
        .arg(plugin)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the host starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

// Promises: OTHER-7
#[test]
fn our_sdk_runs_under_a_real_host_of_go_plugin() {
    let Some(host) = go_program("our_sdk_runs_under_a_real_host_of_go_plugin", "host") else { return };
    let hello = program("hello");
    let scratch = talon_tests::Scratch::new();
    let sockets = scratch.path().to_str().expect("our paths are text");
    // With nothing of Talon's, and with what it gives its plugins besides; but for a socket of ours, which
    // only we hand over.
    let talons = [
        ("PLUGIN_UNIX_SOCKET_DIR", sockets),
        ("TALON_PLUGIN_NAME", "hello"),
        ("TALON_PLUGIN_INSTANCE", "0"),
        ("OPENTALON_GRPC_MAX_MSG_BYTES", "8388608"),
    ];
    for env in [&[("TMPDIR", sockets)][..], &talons] {
        let said = hosted(&host, &hello, env);
        for line in [
            "version 1",
            "ping answered",
            // What it does not have costs it nothing: the broker's stream was opened before.
            "its output stream: Unimplemented",
            "answered call-1",
            "ended with exit status 0",
        ] {
            assert!(said.contains(line), "{line:?} is not in what the host said:\n{said}");
        }
        assert!(said.contains("host"), "{said}");
        let left = talon_tests::sockets_below(scratch.path());
        assert_eq!(left, Vec::<PathBuf>::new(), "it has removed its socket");
    }
}
