//! What a plugin's read and durable write cost over its socket, next to SQLite alone on the same disk and to
//! a bare gRPC call over the same kind of socket, in the same run.
//!
//! `cargo bench -p talon-bench --bench state`, once `talon-state` is built in release. The table at the end
//! compares sums over turns: the time of an fsync varies with the other users of the disk by far more than
//! the differences measured here.

use std::os::fd::AsFd;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use hyper_util::rt::TokioIo;
use talon_control::Control;
use talon_proto::state::operator_client::OperatorClient;
use talon_proto::state::state_client::StateClient;
use talon_proto::state::state_server::{State, StateServer};
use talon_proto::state::{
    AttachOperator, AttachPlugin, CompareAndSetRequest, CompareAndSetResponse, DeleteRequest, DeleteResponse,
    DescribeRequest, FromState, GetRequest, GetResponse, KeysRequest, KeysResponse, Layers, Open, SetRequest,
    SetResponse, Sqlite, ToState, from_state, open, to_state,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Runtime;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

use talon_bench::stock::sqlite::{self, KEYS, VALUE_BYTES, key_name, unique_value};

type Plugin = StateClient<Channel>;

const CALLERS: [u32; 3] = [1, 16, 64];
/// If set, this program is the bare gRPC server, on the socket that the variable names.
const ECHO: &str = "TALON_BENCH_ECHO";

/// Answers at once.
struct Echo;

#[tonic::async_trait]
impl State for Echo {
    async fn get(&self, _: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        Ok(Response::new(GetResponse { value: Some(vec![7; VALUE_BYTES]) }))
    }

    async fn set(&self, _: Request<SetRequest>) -> Result<Response<SetResponse>, Status> {
        Ok(Response::new(SetResponse {}))
    }

    async fn delete(&self, _: Request<DeleteRequest>) -> Result<Response<DeleteResponse>, Status> {
        Ok(Response::new(DeleteResponse::default()))
    }

    async fn keys(&self, _: Request<KeysRequest>) -> Result<Response<KeysResponse>, Status> {
        Ok(Response::new(KeysResponse::default()))
    }

    async fn compare_and_set(
        &self,
        _: Request<CompareAndSetRequest>,
    ) -> Result<Response<CompareAndSetResponse>, Status> {
        Ok(Response::new(CompareAndSetResponse::default()))
    }
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    if let Some(socket) = std::env::var_os(ECHO) {
        let served = async {
            let listener = UnixListener::bind(socket).expect("a socket");
            let incoming = UnixListenerStream::new(listener);
            Server::builder().serve_with_incoming(StateServer::new(Echo), incoming).await
        };
        return runtime.block_on(served).expect("it serves");
    }
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let bench = runtime.block_on(Bench::start());
    bench.gets(&mut criterion, &runtime);
    bench.sets(&mut criterion, &runtime);
    bench.side_by_side(&runtime);
    criterion.final_summary();
}

/// The service, the bare server and SQLite.
struct Bench {
    plugin: Plugin,
    echo: Plugin,
    raw: rusqlite::Connection,
    operator: OperatorClient<Channel>,
    children: [Child; 2],
    _control: Control<ToState, FromState>,
    _directory: tempfile::TempDir,
}

impl Drop for Bench {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _gone = child.kill();
            let _ended = child.wait();
        }
    }
}

impl Bench {
    async fn start() -> Self {
        // On a disk: a memory file system has no fsync.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory below target");
        let at = |name: &str| directory.path().join(name);
        let (ours, theirs) = talon_control::pair().expect("a pair");
        let state =
            Command::new(talon_tests::program("talon-state")).stdin(theirs).spawn().expect("the service");
        let control = Control::new(ours).expect("a socket");
        let path = at("state/state.db").to_str().expect("a text").to_owned();
        let engine = Some(open::Engine::Sqlite(Sqlite { path, max_bytes: 0 }));
        let open = Open {
            engine,
            layers: Layers::KeyValues.into(),
            exclusive: true,
            for_restore: false,
            examined: false,
        };
        say(&control, to_state::Kind::Open(open), None::<&net::UnixStream>).await;
        let ready = control.receive().await.expect("an answer").expect("an answer").message.kind;
        assert!(matches!(ready, Some(from_state::Kind::Ready(_))), "{ready:?}");
        let uid =
            std::fs::metadata(directory.path()).map(|found| std::os::unix::fs::MetadataExt::uid(&found));
        let attach = AttachPlugin {
            id: 1,
            plugin: "bench".into(),
            uid: uid.expect("it is there"),
            quota_bytes: u64::MAX / 2,
            quota_keys: u64::MAX / 2,
        };
        let listener = net::UnixListener::bind(at("k")).expect("a socket");
        say(&control, to_state::Kind::AttachPlugin(attach), Some(&listener)).await;
        let (kept, handed) = net::UnixStream::pair().expect("a pair");
        say(&control, to_state::Kind::AttachOperator(AttachOperator {}), Some(&handed)).await;
        let echo = Command::new(std::env::current_exe().expect("this program"))
            .env(ECHO, at("echo"))
            .stdin(Stdio::null())
            .spawn()
            .expect("the bare server");
        let bench = Self {
            plugin: StateClient::new(channel(&at("k")).await),
            echo: StateClient::new(channel(&at("echo")).await),
            raw: sqlite::open(&at("raw/state.db")).expect("a new database"),
            operator: OperatorClient::new(over(kept).await),
            children: [state, echo],
            _control: control,
            _directory: directory,
        };
        for number in 0..KEYS {
            let mut plugin = bench.plugin.clone();
            plugin.set(SetRequest { key: key_name(number), value: unique_value() }).await.expect("a write");
        }
        bench
    }

    /// Writes and commits since the start.
    async fn counters(&self) -> (u64, u64) {
        let described =
            self.operator.clone().describe(DescribeRequest::default()).await.expect("an answer").into_inner();
        (described.writes, described.commits)
    }

    fn gets(&self, criterion: &mut Criterion, runtime: &Runtime) {
        let mut group = criterion.benchmark_group("get");
        group.throughput(Throughput::Elements(1));
        let mut number = 0;
        group.bench_function("rusqlite/1", |bench| {
            bench.iter(|| {
                number += 1;
                raw_get(&self.raw, number);
            });
        });
        for (who, client) in [("grpc", &self.echo), ("state", &self.plugin)] {
            for callers in CALLERS {
                group.bench_with_input(BenchmarkId::new(who, callers), &callers, |bench, &callers| {
                    bench.iter_custom(|calls| runtime.block_on(timed(client, callers, calls, get)));
                });
            }
        }
        group.finish();
    }

    fn sets(&self, criterion: &mut Criterion, runtime: &Runtime) {
        let mut group = criterion.benchmark_group("set");
        group.throughput(Throughput::Elements(1));
        let mut number = 0;
        group.bench_function("rusqlite/1", |bench| {
            bench.iter(|| {
                number += 1;
                raw_set(&self.raw, number);
            });
        });
        for callers in CALLERS {
            group.bench_with_input(BenchmarkId::new("state", callers), &callers, |bench, &callers| {
                bench.iter_custom(|calls| runtime.block_on(timed(&self.plugin, callers, calls, set)));
            });
        }
        group.finish();
    }

    /// All take turns, and their sums are compared.
    fn side_by_side(&self, runtime: &Runtime) {
        const ROUNDS: u32 = 10;
        const GETS: u32 = 1000;
        const SETS: u32 = 50;
        let mut number = 0;
        let mut raw = [Duration::ZERO; 2];
        let mut table = [Row::default(); CALLERS.len()];
        for _ in 0..ROUNDS {
            let since = Instant::now();
            for _ in 0..GETS {
                number += 1;
                raw_get(&self.raw, number);
            }
            raw[0] += since.elapsed() / GETS;
            let since = Instant::now();
            for _ in 0..SETS {
                number += 1;
                raw_set(&self.raw, number);
            }
            raw[1] += since.elapsed() / SETS;
            for (callers, row) in CALLERS.into_iter().zip(&mut table) {
                let gets = GETS * callers.min(4);
                row.bare += runtime.block_on(timed(&self.echo, callers, gets.into(), get)) / gets;
                row.get += runtime.block_on(timed(&self.plugin, callers, gets.into(), get)) / gets;
                let sets = SETS * callers;
                let before = runtime.block_on(self.counters());
                row.set += runtime.block_on(timed(&self.plugin, callers, sets.into(), set)) / sets;
                let after = runtime.block_on(self.counters());
                row.writes += after.0 - before.0;
                row.commits += after.1 - before.1;
            }
        }
        let one = table[0].set;
        println!("\nper operation; raw SQLite: get {:.1?}, set {:.1?}", raw[0] / ROUNDS, raw[1] / ROUNDS);
        println!(
            "callers  bare call        get  get/bare  get/raw         set  sets: times 1's  times raw's  fsyncs/write"
        );
        for (callers, row) in CALLERS.into_iter().zip(table) {
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let fsyncs = row.commits as f64 / row.writes.max(1) as f64;
            println!(
                "{callers:>7} {:>10} {:>10} {:>9.2} {:>8.1} {:>11} {:>16.1} {:>12.1} {fsyncs:>13.3}",
                format!("{:.1?}", row.bare / ROUNDS),
                format!("{:.1?}", row.get / ROUNDS),
                ratio(row.get, row.bare),
                ratio(row.get, raw[0]),
                format!("{:.1?}", row.set / ROUNDS),
                ratio(one, row.set),
                ratio(raw[1], row.set),
            );
        }
    }
}

/// Sums over all rounds, of one number of callers.
#[derive(Clone, Copy, Default)]
struct Row {
    bare: Duration,
    get: Duration,
    set: Duration,
    writes: u64,
    commits: u64,
}

fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

async fn get(mut client: Plugin, number: u64) {
    let answer = client.get(GetRequest { key: key_name(number) }).await.expect("a read").into_inner();
    assert_eq!(answer.value.map(|value| value.len()), Some(VALUE_BYTES));
}

async fn set(mut client: Plugin, number: u64) {
    client.set(SetRequest { key: key_name(number), value: unique_value() }).await.expect("a write");
}

/// The time that so many calls take with so many callers, over one connection.
async fn timed<F>(client: &Plugin, callers: u32, calls: u64, one: fn(Plugin, u64) -> F) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let next = Arc::new(AtomicU64::new(0));
    let since = Instant::now();
    let calling = (0..u64::from(callers).min(calls)).map(|_| {
        let (client, next) = (client.clone(), Arc::clone(&next));
        async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls {
                    break;
                }
                one(client.clone(), number).await;
            }
        }
    });
    futures_util::future::join_all(calling).await;
    since.elapsed()
}

async fn say(control: &Control<ToState, FromState>, kind: to_state::Kind, descriptor: Option<&impl AsFd>) {
    let message = ToState { kind: Some(kind) };
    control.send(&message, descriptor.map(AsFd::as_fd)).await.expect("it listens");
}

/// Waits for a server that is being started.
async fn channel(socket: &Path) -> Channel {
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    for _ in 0..2000 {
        tick.tick().await;
        let socket: PathBuf = socket.to_owned();
        let connector = tower::service_fn(move |_| {
            let socket = socket.clone();
            async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(socket).await?)) }
        });
        if let Ok(channel) = Endpoint::from_static("http://talon").connect_with_connector(connector).await {
            return channel;
        }
    }
    panic!("no server listens on {}", socket.display());
}

async fn over(stream: net::UnixStream) -> Channel {
    stream.set_nonblocking(true).expect("a socket");
    let mut stream = Some(UnixStream::from_std(stream).expect("a socket"));
    let connector = tower::service_fn(move |_| {
        let stream = stream.take();
        async move { stream.map(TokioIo::new).ok_or_else(|| std::io::Error::other("it ended")) }
    });
    Endpoint::from_static("http://talon").connect_with_connector(connector).await.expect("it is connected")
}

fn raw_get(raw: &rusqlite::Connection, number: u64) -> Vec<u8> {
    sqlite::get(raw, number).expect("a value")
}

fn raw_set(raw: &rusqlite::Connection, number: u64) {
    sqlite::set(raw, number).expect("a write");
}
