//! Correct and incorrect uses of the plugin's state. Every attempt reports its result, so that a test can
//! compare it with the expected one.

use std::error::Error as _;
use std::fs::{self, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use nix::sys::signal::{Signal, kill};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use talon_error_chain::append_causes;
use talon_proto::state::state_client::StateClient;
use talon_proto::state::{
    CompareAndSetRequest, DeleteRequest, GetRequest, KeysRequest, QuotaExceeded, SetRequest,
};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// Longer than any operation that is answered, so that a missing answer differs from a refusal.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(20);

/// Performs a state operation on a socket, the plugin's own unless another is named; returns the result, or
/// in `Err` the error.
pub(crate) async fn ask(socket: Option<&str>, op: &str, key: &str, value: Vec<u8>) -> anyhow::Result<String> {
    let own = || std::env::var_os("TALON_STATE_SOCKET").map(PathBuf::from);
    let Some(socket) = socket.map(PathBuf::from).or_else(own) else {
        anyhow::bail!("TALON_STATE_SOCKET is not set");
    };
    let asked = async {
        let connect = tower::service_fn(move |_| {
            let socket = socket.clone();
            async move { tokio::net::UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://localhost").connect_with_connector(connect).await;
        let mut client = StateClient::new(channel?);
        let key = key.to_owned();
        let answer = match op {
            "get" => client.get(GetRequest { key }).await.map(|answer| match answer.into_inner().value {
                Some(value) => String::from_utf8_lossy(&value).into_owned(),
                None => "(nothing)".to_owned(),
            }),
            "set" => client.set(SetRequest { key, value }).await.map(|_| "set".to_owned()),
            "delete" => client
                .delete(DeleteRequest { key })
                .await
                .map(|answer| format!("existed: {}", answer.into_inner().existed)),
            "keys" => client
                .keys(KeysRequest { prefix: key, ..KeysRequest::default() })
                .await
                .map(|answer| answer.into_inner().keys.join(" ")),
            "increment" => increment(&mut client, key).await.map(|count| count.to_string()),
            other => anyhow::bail!("there is no {other}"),
        };
        answer.map_err(|status| anyhow::Error::msg(describe_status(&status)))
    };
    match tokio::time::timeout(OPERATION_TIMEOUT, asked).await {
        Ok(answer) => answer,
        Err(_) => anyhow::bail!("no answer within {} s", OPERATION_TIMEOUT.as_secs()),
    }
}

/// Adds one to a number by comparison.
async fn increment(client: &mut StateClient<Channel>, key: String) -> Result<u64, Status> {
    loop {
        let expected = client.get(GetRequest { key: key.clone() }).await?.into_inner().value;
        let text = expected.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let count = text.parse().unwrap_or(0) + 1;
        let value = Some(u64::to_string(&count).into_bytes());
        let swap = CompareAndSetRequest { key: key.clone(), expected, value };
        if client.compare_and_set(swap).await?.into_inner().swapped {
            return Ok(count);
        }
    }
}

fn describe_status(status: &Status) -> String {
    let text = format!("{:?}: {}", status.code(), status.message());
    let mut text = append_causes(text, status.source());
    if let Some(QuotaExceeded { resource, used, limit, wanted }) = QuotaExceeded::of(status) {
        text = format!("{text}; {resource}: {used} of {limit}, wanted {wanted}");
    }
    text
}

/// Tries to access a path in every way, one result a line.
pub(crate) fn attempts_at(path: &Path) -> String {
    let sent =
        |mut stream: UnixStream| io::Write::write_all(&mut stream, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let elsewhere = std::env::temp_dir().join("taken");
    let tries: [(&str, io::Result<()>); 10] = [
        ("stat", fs::symlink_metadata(path).map(drop)),
        ("read", fs::File::open(path).map(drop)),
        ("write", OpenOptions::new().write(true).open(path).map(drop)),
        ("make", OpenOptions::new().write(true).create_new(true).open(path.join("made")).map(drop)),
        ("list", fs::read_dir(path).map(drop)),
        ("find", find(path)),
        ("link", fs::hard_link(path, &elsewhere)),
        ("move", fs::rename(path, &elsewhere)),
        ("connect to", UnixStream::connect(path).and_then(sent)),
        ("remove", fs::remove_file(path)),
    ];
    lines(tries.map(|(what, went)| (what, went.err().map(|error| error.to_string()))))
}

/// Whether its directory lists it. Parent directories of a shown path exist, with nothing else in them.
fn find(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path.parent().unwrap_or(path))? {
        if Some(entry?.file_name().as_os_str()) == path.file_name() {
            return Ok(());
        }
    }
    Err(io::Error::from(io::ErrorKind::NotFound))
}

/// Tries to access a process in every way, one result a line.
pub(crate) fn attempts_on(pid: i32) -> String {
    let proc = |file: &str| fs::File::open(format!("/proc/{pid}/{file}")).map(drop);
    let process = Pid::from_raw(pid);
    let mut buffer = [0];
    let traced = process_vm_readv(
        process,
        &mut [IoSliceMut::new(&mut buffer)],
        &[RemoteIoVec { base: 0x40_0000, len: 1 }],
    );
    let tries: [(&str, io::Result<()>); 7] = [
        ("see", fs::metadata(format!("/proc/{pid}")).map(drop)),
        ("read the status of", proc("status")),
        ("read the environment of", proc("environ")),
        ("open the memory of", proc("mem")),
        ("read the memory of", traced.map(drop).map_err(io::Error::from)),
        ("ask for", kill(process, None).map_err(io::Error::from)),
        ("kill", kill(process, Signal::SIGKILL).map_err(io::Error::from)),
    ];
    lines(tries.map(|(what, went)| (what, went.err().map(|error| error.to_string()))))
}

fn lines<const N: usize>(tries: [(&str, Option<String>); N]) -> String {
    let line = |(what, failed): (&str, Option<String>)| {
        failed.map_or_else(|| format!("{what}: DONE"), |error| format!("{what}: {error}"))
    };
    tries.map(line).join("\n")
}
