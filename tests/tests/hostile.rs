//! What a plugin, or a client, that attacks the supervisor gets: nothing. One test an attack, each by real
//! processes and a plugin in a real jail.

use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;

use talon_tests::exposition::parse;
use talon_tests::{Builder, Supervisor, http, is_root, program, skip};

/// An unused uid, for supervisors without privileges.
const USER: u32 = 64_900;

const SECRET: (&str, &str) = ("HOSTILE_TEST_SECRET", "very-secret");

/// A supervisor without privileges, whose plugins share its uid, and stand in no jail: what is tested is the
/// second wall, since in the first one they do not even see the door.
async fn unprivileged(test: &str) -> Option<Supervisor> {
    let builder = Builder::new().env(SECRET.0, SECRET.1);
    let scratch = builder.scratch();
    let talon = scratch.install(&program("talon"), "bin/talon");
    scratch.install(&program("talon-state"), "bin/talon-state");
    let misbehave = scratch.install(&program("misbehave"), "bin/misbehave");
    let builder = builder.plugin("misbehave", &misbehave, &[], "sandbox: { mode: off }");
    if !is_root() {
        return Some(builder.start().await);
    }
    if std::process::Command::new("setpriv").arg("--version").output().is_err() {
        skip(test, "setpriv is not installed");
        return None;
    }
    for path in [builder.scratch().path().to_owned(), builder.scratch().join("plugins")] {
        chown(path, Some(USER), Some(USER)).expect("root may give its directory away");
    }
    let user = USER.to_string();
    let run = format!("shift; exec {} \"$@\"", talon.display());
    let words = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups", "sh", "-c", &run, "sh"];
    Some(builder.wrapped(&words).start().await)
}

// Promises: BAD-19
#[tokio::test]
async fn a_plugin_of_the_supervisors_own_uid_reads_nothing_of_it() {
    let test = "a_plugin_of_the_supervisors_own_uid_reads_nothing_of_it";
    let Some(supervisor) = unprivileged(test).await else { return };
    let status = supervisor.client.call("misbehave", "status", &[]).await.content;
    let shared = format!("Uid:\t{}", if is_root() { USER } else { nix::unistd::getuid().as_raw() });
    assert!(status.contains(&shared), "the plugin shares the supervisor's uid: {status}");
    for file in ["environ", "mem", "maps", "exe"] {
        let path = format!("/proc/{}/{file}", supervisor.pid());
        let answer = supervisor.client.call("misbehave", "read", &[("path", &path)]).await;
        assert!(answer.error.contains("Permission denied"), "{file}: {answer:?}");
    }
    // Its own is there, so that it is not the plugin's inability.
    let own = supervisor.client.call("misbehave", "read", &[("path", "/proc/self/environ")]).await;
    assert!(own.content.contains("bytes"), "{own:?}");
    assert!(supervisor.stop().await.processes.is_empty());
}

// Promises: BAD-19
#[tokio::test]
async fn a_plugin_of_the_supervisors_own_uid_is_no_administrator() {
    let test = "a_plugin_of_the_supervisors_own_uid_is_no_administrator";
    let Some(supervisor) = unprivileged(test).await else { return };
    let socket = supervisor.socket().display().to_string();
    let answer = supervisor.client.call("misbehave", "knock", &[("path", &socket)]).await;
    let refused =
        answer.content == "0 bytes" || ["reset", "Broken pipe"].iter().any(|how| answer.error.contains(how));
    assert!(refused, "{answer:?}");
    let stopped = supervisor.stop().await;
    assert!(stopped.log.contains("closed to a plugin"), "{}", stopped.log);
    assert!(stopped.processes.is_empty());
}

// Promises: BAD-20
#[tokio::test]
async fn a_plugin_of_its_own_uid_cannot_even_knock() {
    let test = "a_plugin_of_its_own_uid_cannot_even_knock";
    if !is_root() {
        return skip(test, "plugins have uids of their own only under root");
    }
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let socket = supervisor.socket().display().to_string();
    let answer = supervisor.client.call("misbehave", "knock", &[("path", &socket)]).await;
    assert!(answer.error.contains("No such file"), "{answer:?}");
    let environ = format!("/proc/{}/environ", supervisor.pid());
    let answer = supervisor.client.call("misbehave", "read", &[("path", &environ)]).await;
    assert!(answer.error.contains("No such file"), "{answer:?}");
}

/// One HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames here are small").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

// Promises: BAD-21
#[tokio::test]
async fn a_flood_of_frames_leaves_the_log_alone() {
    // As many as a connection may send, on one after the other.
    const CONNECTIONS: usize = 10;
    const FRAMES: usize = 2_000;
    let supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").start().await;
    let socket = supervisor.socket();
    tokio::task::spawn_blocking(move || {
        for _ in 0..CONNECTIONS {
            let mut socket = UnixStream::connect(&socket).expect("it listens");
            socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("it reads");
            socket.write_all(&frame(4, 0, 0, b"")).expect("it reads");
            // Answers to PINGs that were never sent, each of which the HTTP/2 library logs; then a
            // PING of ours, whose answer means that all of them were read.
            socket.write_all(&frame(6, 1, 0, b"12345678").repeat(FRAMES)).expect("it reads");
            socket.write_all(&frame(6, 0, 0, b"all-read")).expect("it reads");
            let (mut all, mut chunk) = (Vec::<u8>::new(), [0; 4096]);
            while !all.windows(8).any(|window| window == b"all-read") {
                let read = socket.read(&mut chunk).expect("it answers");
                assert!(read > 0, "the connection ended");
                all.extend(&chunk[..read]);
            }
        }
    })
    .await
    .expect("the attacker ends");
    let greeting = supervisor.client.call("hello", "greet", &[("name", "you")]).await;
    assert!(greeting.content.contains("you"), "{greeting:?}");
    let stopped = supervisor.stop().await;
    assert!(stopped.log.lines().count() < 200, "{} lines", stopped.log.lines().count());
}

/// Sends these frames until the connection ends, and reads the answers.
fn flood(socket: &std::path::Path, frames: &[u8]) {
    let mut write = UnixStream::connect(socket).expect("it listens");
    write.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("it reads");
    let mut read = write.try_clone().expect("there are descriptors");
    let reading = std::thread::spawn(move || {
        let mut answers = [0; 64 << 10];
        while read.read(&mut answers).is_ok_and(|count| count > 0) {}
    });
    let many = frames.repeat(1000);
    while write.write_all(&many).is_ok() {}
    reading.join().expect("it ends with the connection");
}

// Promises: WIRE-15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_floods_is_cut_off_and_counted_and_the_others_are_served() {
    let supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").start().await;
    let floods = [
        frame(4, 0, 0, b""),
        frame(6, 0, 0, b"answer-m"),
        frame(6, 1, 0, b"unasked!"),
        frame(8, 0, 0, &[0, 0, 0, 1]),
        frame(2, 0, 1, &[0, 0, 0, 0, 16]),
        frame(0xfa, 0, 0, &[0; 64]),
    ];
    let count = floods.len();
    let attackers: Vec<_> = floods
        .into_iter()
        .map(|frames| {
            let socket = supervisor.socket();
            tokio::task::spawn_blocking(move || flood(&socket, &frames))
        })
        .collect();
    for _ in 0..200 {
        let greeting = supervisor.client.call("hello", "greet", &[("name", "you")]).await;
        assert!(greeting.content.contains("you"), "{greeting:?}");
    }
    for attacker in attackers {
        attacker.await.expect("its connection ends");
    }
    let page = parse(&http::get(&supervisor.admin(), "/metrics").await.body);
    assert_eq!(page["talon_connections_flooded_total"].sum(&[]), count as f64);
    let stopped = supervisor.stop().await;
    assert!(stopped.log.contains("control frames without end"), "{}", stopped.log);
}

// Promises: WIRE-17
#[tokio::test]
async fn a_client_is_cut_off_at_the_configured_number_of_frames() {
    // Fewer than the default, and more than an ordinary client sends.
    let supervisor = Builder::new()
        .plugin("hello", &program("hello"), &[], "")
        .config("host:\n  frames:\n    control_burst: 256\n    control_per_second: 100")
        .start()
        .await;
    let socket = supervisor.socket();
    tokio::task::spawn_blocking(move || {
        let mut socket = UnixStream::connect(&socket).expect("it listens");
        socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("it reads");
        // One write, which is read within less than the seven seconds that would earn the rest.
        socket.write_all(&frame(2, 0, 1, &[0, 0, 0, 0, 16]).repeat(1_000)).expect("it reads");
        let mut answers = Vec::new();
        // Its end is a reset, if something was not read.
        let _ = socket.read_to_end(&mut answers);
    })
    .await
    .expect("its connection ends");
    let greeting = supervisor.client.call("hello", "greet", &[("name", "you")]).await;
    assert!(greeting.content.contains("you"), "{greeting:?}");
    let stopped = supervisor.stop().await;
    assert!(stopped.log.contains("256 at once and 100 a second are allowed"), "{}", stopped.log);
}

// Promises: BAD-21
#[tokio::test]
async fn a_flood_of_empty_lines_holds_up_nobody() {
    let supervisor = Builder::new()
        .plugin("hello", &program("hello"), &[], "")
        // Sixteen million lines take as long as a machine needs that has other things to do.
        .misbehave(&[], "instances: 2\ntimeout: 100s")
        .start()
        .await;
    let client = supervisor.client.clone();
    // An empty line costs the plugin one byte, and us a whole line.
    let args = [("bytes", "8000000"), ("stream", "stderr"), ("line", "\u{200b}")];
    let flood = async {
        tokio::join!(client.call("misbehave", "print", &args), client.call("misbehave", "print", &args))
    };
    let greetings = async {
        for _ in 0..20 {
            let greeting = client.call("hello", "greet", &[("name", "you")]).await;
            assert!(greeting.content.contains("you"), "{greeting:?}");
        }
    };
    let ((first, second), ()) = tokio::join!(flood, greetings);
    assert_eq!((first.content.as_str(), second.content.as_str()), ("printed", "printed"));
    let counters = client.plugin("misbehave").await.counters.expect("it has counters");
    assert!(counters.log_lines_dropped > 1_000_000, "{counters:?}");
    let stopped = supervisor.stop().await;
    assert!(stopped.processes.is_empty());
}
