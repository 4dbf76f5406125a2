//! Execs another program with descriptors from a test's service manager, as `sd_listen_fds(3)` specifies:
//! from 3 on, named in the environment, with this process's pid.
//!
//! `talon-handed SOCKET COMMAND [ARGS]`

use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// The first descriptor of the protocol.
const FIRST: i32 = 3;

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args_os().skip(1);
    let (Some(socket), Some(command)) = (words.next(), words.next()) else {
        bail!("usage: talon-handed SOCKET COMMAND [ARGS]");
    };
    let mut stream = UnixStream::connect(socket).context("the test's manager")?;
    let (count, mut handed) = receive(&stream)?;
    ensure!(handed.len() == count, "{} of {count} descriptors came", handed.len());
    let mut names = String::new();
    stream.read_to_string(&mut names)?;
    drop(stream);
    // The connection has the first number, and the descriptors those after it: each moves down by one.
    for (place, descriptor) in (FIRST..).zip(&mut handed) {
        *descriptor = descriptor.try_clone()?;
        ensure!(descriptor.as_raw_fd() == place, "descriptor {place} is somebody else's");
        fcntl_setfd(&*descriptor, FdFlags::empty())?;
    }
    let mut become_it = Command::new(command);
    become_it.args(words);
    if count > 0 {
        become_it
            .env("LISTEN_PID", std::process::id().to_string())
            .env("LISTEN_FDS", count.to_string())
            .env("LISTEN_FDNAMES", names);
    }
    Err(become_it.exec().into())
}

fn receive(stream: &UnixStream) -> anyhow::Result<(usize, Vec<OwnedFd>)> {
    let mut count = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    recvmsg(stream, &mut [IoSliceMut::new(&mut count)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let rights = |message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    };
    Ok((count[0].into(), ancillary.drain().filter_map(rights).flatten().collect()))
}
