//! What was acknowledged is there, and nothing half is, whatever is killed when.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_store::{Engine, NewSession, PageRequest, SessionId, Store, StoreOptions, View};
use talon_tests::message_batches::{batch, first_of};
use talon_tests::state::{OnDisconnect, ValueNumbers, Writer, assert_kept};
use talon_tests::{Builder, kills, program};

/// How often the supervisor is killed, and how often those who append are: usually. The moments come from one seed, so these are
/// the first of the 200 of `make long`.
const KILLS: usize = 30;
/// How often what keeps state is killed while its supervisor lives. Each time it is waited for longer before
/// it is started again, so these few take seconds.
const SERVICE_ROUNDS: u32 = 5;
/// How many numbers a round has for its writes.
const NUMBERS_PER_ROUND: u32 = 1 << 20;
/// From which the moments are drawn at which processes are killed.
const SEED: u64 = 0x7a10_4005;
/// What is added to a round's number for the second process of it, which draws moments of its own.
const SECOND_PROCESS: u32 = 1 << 16;
/// The most writes that a process lives for. On average it is half of them: a few commits of sixteen writers.
const LONGEST_LIFE: u64 = 160;

/// After how many acknowledged writes of this round a process is killed: at other moments in each.
fn lifetime(round: u32) -> usize {
    // SplitMix64: one step is enough to tell rounds apart.
    let mut drawn = SEED.wrapping_add(u64::from(round).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    1 + usize::try_from((drawn ^ (drawn >> 31)) % LONGEST_LIFE).expect("it is small")
}

// Promises: STATE-1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_plugin_was_told_survives_the_supervisors_death() {
    let rounds = u32::try_from(kills(KILLS)).expect("a small number");
    let mut acknowledged = ValueNumbers::new();
    let mut writes = 0;
    let mut builder = Builder::new();
    for round in 0..rounds {
        let when = format!("round {round}, seed {SEED:#x}");
        // Alive, and of no other use: it is its socket that is written to.
        let supervisor = builder.plugin("hello", &program("hello"), &[], "").start().await;
        let mut writer =
            Writer::start(&supervisor, "hello", round * NUMBERS_PER_ROUND, OnDisconnect::End).await;
        assert_kept(&acknowledged, &writer.found().await, &when);
        writes += writer.read_acknowledged(lifetime(round), &mut acknowledged).await;
        // What is acknowledged until it dies counts too.
        let rest = tokio::spawn(async move {
            let mut rest = ValueNumbers::new();
            let more = writer.read_acknowledged(usize::MAX, &mut rest).await;
            writer.ended().await;
            (rest, more)
        });
        let stopped = supervisor.end(Signal::SIGKILL).await;
        let (rest, more) = rest.await.unwrap_or_else(|error| panic!("{when}: {error}"));
        acknowledged.extend(rest);
        writes += more;
        assert_eq!(stopped.processes, Vec::<u32>::new(), "{when}: {}", stopped.log);
        builder = Builder::on_leftovers(stopped.left);
        println!("{when}: {writes} writes until now");
    }
    let supervisor = builder.plugin("hello", &program("hello"), &[], "").start().await;
    let mut writer =
        Writer::start(&supervisor, "hello", rounds * NUMBERS_PER_ROUND, OnDisconnect::Retry).await;
    assert_kept(&acknowledged, &writer.found().await, "at the end");
    writer.stop(&mut acknowledged).await;
    println!("{writes} writes to {} keys were acknowledged in {rounds} rounds", acknowledged.len());
    assert!(writes >= rounds as usize);
    assert!(supervisor.stop().await.status.success());
}

// Promises: STATE-1, STATE-8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_plugin_was_told_survives_the_death_of_what_keeps_it() {
    let supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").start().await;
    let before = supervisor.client.plugin("hello").await;
    let mut acknowledged = ValueNumbers::new();
    let mut writer = Writer::start(&supervisor, "hello", 0, OnDisconnect::Retry).await;
    writer.found().await;
    for round in 0..SERVICE_ROUNDS {
        let taken = writer.read_acknowledged(lifetime(round), &mut acknowledged).await;
        assert_eq!(taken, lifetime(round), "the writer ended");
        let service = supervisor.state_service().await;
        assert_eq!(service.restarts, u64::from(round), "{service:?}");
        kill(Pid::from_raw(service.pid.cast_signed()), Signal::SIGKILL).expect("it runs");
        let back = |now: &talon_proto::host::StateStatus| {
            now.state == "serving" && now.restarts == u64::from(round) + 1
        };
        // The writer's pipe is read meanwhile: it continues as soon as it can.
        tokio::join!(supervisor.wait_state_service("a service that serves again", back), async {
            writer.read_acknowledged(1, &mut acknowledged).await
        });
    }
    writer.read_acknowledged(lifetime(SERVICE_ROUNDS), &mut acknowledged).await;
    let found = writer.stop(&mut acknowledged).await;
    assert_kept(&acknowledged, &found, "at the end");
    let after = supervisor.client.plugin("hello").await;
    assert_eq!(
        (after.state.as_str(), after.instances[0].pid, after.deaths),
        ("ready", before.instances[0].pid, 0),
        "the plugin did not notice"
    );
    let told = supervisor.cli(&["status"]).await;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains(&format!("started again {SERVICE_ROUNDS} times")), "{told}");
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert_eq!(stopped.processes, Vec::<u32>::new());
}

/// A process that appends, and its acknowledgements, which one of our threads reads.
struct Appender {
    child: Child,
    told: mpsc::Receiver<String>,
    reader: JoinHandle<()>,
}

impl Appender {
    fn start(database: &str, session: SessionId, name: &str) -> Self {
        let mut child = Command::new(program("talon-session-writer"))
            .args([database, &session.to_string(), name])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let (sender, told) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The receiver is gone once the test has failed.
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, told, reader }
    }

    fn take(&self, most: usize, into: &mut Vec<Append>) {
        into.extend(self.told.iter().take(most).map(|line| Append::read(&line)));
    }

    fn kill(mut self, into: &mut Vec<Append>) {
        self.child.kill().expect("it is ours");
        let status = self.child.wait().expect("it is ours");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");
        self.take(usize::MAX, into);
        self.reader.join().expect("it only reads");
    }
}

/// One that was acknowledged.
struct Append {
    sequence: u64,
    writer: String,
    number: u32,
}

impl Append {
    fn read(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let ["append", sequence, writer, number] = words.as_slice() else { panic!("{line:?}") };
        Self {
            sequence: sequence.parse().expect("a number"),
            writer: (*writer).to_owned(),
            number: number.parse().expect("a number"),
        }
    }
}

/// Every append is there as a whole or not at all, its messages side by side and in order, and every
/// acknowledged one is where it was said to be.
async fn check(store: &Store, session: SessionId, acknowledged: &[Append], when: &str) {
    const PAGE: u32 = 1000;
    let (mut messages, mut request) = (Vec::new(), PageRequest::first(PAGE));
    loop {
        let page = store.sessions().messages(session, View::All, &request).await;
        let page = page.unwrap_or_else(|error| panic!("{when}: {error}"));
        messages.extend(page.items);
        let Some(next) = page.next else { break };
        request = PageRequest::after(next, PAGE);
    }
    assert!(messages.iter().zip(1..).all(|(message, number)| message.sequence == number), "{when}: a gap");
    let mut at = 0;
    while at < messages.len() {
        let (writer, number) =
            first_of(&messages[at].content).unwrap_or_else(|what| panic!("{when}: {what}"));
        for expected in batch(&writer, number) {
            let found = messages.get(at).map(|message| message.content.as_str());
            assert_eq!(found, Some(expected.content.as_str()), "{when}: {writer} {number} is half there");
            at += 1;
        }
    }
    for Append { sequence, writer, number } in acknowledged {
        let index = usize::try_from(sequence - 1).expect("sessions here are short");
        let found = messages.get(index).map(|message| first_of(&message.content));
        assert_eq!(found, Some(Ok((writer.clone(), *number))), "{when}: message {sequence}");
    }
}

// Promises: STATE-2
#[test]
fn what_was_appended_to_a_session_survives_the_death_of_those_who_append() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("agent/agent.db");
    let database = path.to_str().expect("our paths are text");
    let open = || StoreOptions::new(Engine::Sqlite { path: path.clone() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts");
    let new = async || {
        let store = open().open().await.expect("it opens");
        let new = NewSession { sender: "s".into(), channel: "c".into(), ..NewSession::default() };
        let session = store.sessions().create(new).await.expect("it takes one").id;
        store.close().await;
        session
    };
    let rounds = u32::try_from(kills(KILLS)).expect("a small number");
    let mut all = Vec::new();
    for round in 0..rounds {
        let when = format!("round {round}, seed {SEED:#x}");
        let session = runtime.block_on(new());
        let mut acknowledged = Vec::new();
        let one = Appender::start(database, session, "one");
        let other = Appender::start(database, session, "other");
        // Both write when the first is killed; the other continues over what that left.
        one.take(1, &mut acknowledged);
        other.take(lifetime(round) / 8, &mut acknowledged);
        one.kill(&mut acknowledged);
        other.take(lifetime(round + SECOND_PROCESS) / 8, &mut acknowledged);
        other.kill(&mut acknowledged);
        // Opened while the log is as the killed left it.
        runtime.block_on(async {
            let store = open().open().await.unwrap_or_else(|error| panic!("{when}: {error}"));
            check(&store, session, &acknowledged, &when).await;
            store.close().await;
        });
        println!("{when}: {} appends", acknowledged.len());
        all.push((session, acknowledged));
    }
    // And no round has lost what an earlier one had.
    runtime.block_on(async {
        let store = open().open().await.expect("it opens");
        for (session, acknowledged) in &all {
            check(&store, *session, acknowledged, "at the end").await;
        }
        store.close().await;
    });
    let appends: usize = all.iter().map(|(_, acknowledged)| acknowledged.len()).sum();
    println!("{appends} appends to {rounds} sessions were acknowledged");
    assert!(appends > rounds as usize);
}
