//! Misbehaviour before the first call.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tokio::net::UnixListener;

use crate::fault_kinds::StartFault;
use crate::options::{Dialect, Options};

/// Longer than any test's `start_timeout`.
const LATE_DELAY: Duration = Duration::from_secs(20);

/// What a host sets.
const COOKIE: (&str, &str) = ("TALON_PLUGIN_MAGIC_COOKIE", "d3a7c1f0-talon-plugin");

/// How many lines a flood has: more than a host reads at once.
const FLOOD_LINES: usize = 20_000;

/// Creates the socket and prints the line, or misbehaves. `None`: there is nothing to serve, and the process
/// stays alive.
pub(crate) async fn run(options: &Options) -> anyhow::Result<Option<UnixListener>> {
    let started_by_a_host = std::env::var_os(COOKIE.0).is_some_and(|value| value == COOKIE.1);
    anyhow::ensure!(
        started_by_a_host || options.lie == StartFault::NoCookie,
        "this program is started by a host: {} is not set",
        COOKIE.0
    );
    let directory = std::env::var_os("PLUGIN_UNIX_SOCKET_DIR")
        .or_else(|| std::env::var_os("TMPDIR"))
        .map(PathBuf::from)
        .context("neither PLUGIN_UNIX_SOCKET_DIR nor TMPDIR is set: this program is started by a host")?;
    let socket = directory.join("misbehave.sock");
    if let Some(end) = misbehave_before(options, &directory, &socket).await? {
        return Ok(end);
    }
    let listener = UnixListener::bind(&socket)?;
    if options.lie == StartFault::OpenSocket {
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777))?;
    }
    let address = socket.display();
    let version = match (options.lie, std::env::var("PLUGIN_PROTOCOL_VERSIONS")) {
        (StartFault::AnyVersion, Ok(offered)) => offered,
        _ => "1".to_owned(),
    };
    print_line(&match options.dialect {
        Dialect::GoPlugin => format!("1|{version}|unix|{address}|grpc\n"),
        Dialect::Opentalon => format!("1|unix|{address}\n"),
    })?;
    misbehave_after(options, listener).await
}

/// The misbehaviour instead of a socket and a correct line; `None` if there is none, or if a correct line
/// follows.
async fn misbehave_before(
    options: &Options,
    directory: &Path,
    socket: &Path,
) -> anyhow::Result<Option<Option<UnixListener>>> {
    let address = socket.display();
    let print_line = |text: &str| print_line(text).map(|()| Some(None));
    match options.lie {
        StartFault::ExitAtOnce => {
            eprintln!("misbehave: I give up at once");
            std::process::exit(3);
        }
        StartFault::ExitZero => std::process::exit(0),
        StartFault::Crash => std::process::abort(),
        StartFault::Silent => return Ok(Some(None)),
        StartFault::Garbage => return print_line("hello, I am a program that shakes no hands\n"),
        StartFault::Binary => {
            std::io::stdout().write_all(&[0xff, 0xfe, 0x00, 0x1b, b'[', b'2', b'J', b'\n'])?;
            return Ok(Some(None));
        }
        StartFault::HalfLine => return print_line("1|1|unix|/tmp/half"),
        StartFault::EndlessLine => {
            let piece = vec![b'x'; 1 << 20];
            let mut stdout = std::io::stdout();
            for _ in 0..1024 {
                stdout.write_all(&piece)?;
            }
            return Ok(Some(None));
        }
        StartFault::EndlessBanner => loop {
            writeln!(std::io::stdout(), "starting, please wait …")?;
        },
        StartFault::Banner => {
            print_line("Loading settings …\nPress Ctrl-C to stop\n\n")?;
        }
        StartFault::WrongCore => return print_line(&format!("2|1|unix|{address}|grpc\n")),
        StartFault::WrongVersion => return print_line(&format!("1|99|unix|{address}|grpc\n")),
        StartFault::NetRpc => return print_line(&format!("1|1|unix|{address}|netrpc\n")),
        StartFault::Tls => return print_line(&format!("1|1|unix|{address}|grpc|{}\n", "MIIB".repeat(40))),
        StartFault::Multiplexed => return print_line(&format!("1|1|unix|{address}|grpc||true\n")),
        StartFault::Tcp => return print_line("1|1|tcp|127.0.0.1:1|grpc\n"),
        StartFault::ForeignSocket => {
            let foreign = options.path.as_ref().context("--path is missing")?.display().to_string();
            return print_line(&format!("1|1|unix|{foreign}|grpc\n"));
        }
        StartFault::LinkedSocket => {
            symlink(options.path.as_ref().context("--path is missing")?, socket)?;
            return print_line(&format!("1|1|unix|{address}|grpc\n"));
        }
        StartFault::NotASocket => {
            std::fs::write(socket, "a file")?;
            return print_line(&format!("1|1|unix|{address}|grpc\n"));
        }
        StartFault::MissingSocket => return print_line(&format!("1|1|unix|{address}|grpc\n")),
        StartFault::LongAddress => return print_line(&format!("1|1|unix|/{}|grpc\n", "a".repeat(10_000))),
        StartFault::RootAddress => return print_line("1|1|unix|/|grpc\n"),
        StartFault::AbstractAddress => {
            let name = format!("@misbehave-{}", std::process::id());
            let listener = UnixListener::bind(format!("\0{}", &name[1..]))?;
            print_line(&format!("1|1|unix|{name}|grpc\n"))?;
            return Ok(Some(Some(listener)));
        }
        StartFault::Late => tokio::time::sleep(LATE_DELAY).await,
        StartFault::Syncs => nix::unistd::syncfs(std::fs::File::open(directory)?)
            .context("it may not write out a file system")?,
        _ => {}
    }
    Ok(None)
}

/// The misbehaviour after the line.
async fn misbehave_after(options: &Options, listener: UnixListener) -> anyhow::Result<Option<UnixListener>> {
    match options.lie {
        StartFault::Twice => {
            let second = options.path.as_ref().context("--path is missing")?.display().to_string();
            print_line(&format!("1|1|unix|{second}|grpc\n"))?;
            Ok(Some(listener))
        }
        StartFault::HangAfter => std::future::pending().await,
        StartFault::CloseSocket => {
            drop(listener);
            Ok(None)
        }
        StartFault::NotGrpc => {
            let (mut connection, _) = listener.accept().await?;
            tokio::io::AsyncWriteExt::write_all(&mut connection, b"220 smtp.example ready\r\n").await?;
            std::future::pending().await
        }
        StartFault::ExitAfter => std::process::exit(4),
        StartFault::Floods => {
            let mut stderr = std::io::BufWriter::new(std::io::stderr());
            for line in 0..FLOOD_LINES {
                writeln!(stderr, "line {line} of very many")?;
            }
            stderr.flush()?;
            Ok(Some(listener))
        }
        StartFault::Grandchild => {
            std::process::Command::new("sleep").arg("1000").spawn()?;
            Ok(Some(listener))
        }
        _ => Ok(Some(listener)),
    }
}

fn print_line(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}
