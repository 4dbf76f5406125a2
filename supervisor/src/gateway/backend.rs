//! The gateway's connections to host and agent. Both know it as the gateway, and hold each of its requests to the ceiling.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;

use talon_guard::Origin;
use talon_proto::agent::AttachClient;

use super::configuration::role_name;
use crate::agent::AgentSupervisor;
use crate::config::Role;
use crate::peer::{OwnService, Peer};

/// The peer that the gateway's connection to the host is. Without a request's own statement it is nobody.
pub(super) fn gateway_peer(ceiling: Role) -> impl Fn(u32, u32, u32) -> Peer {
    move |uid, gid, pid| Peer {
        uid,
        gid,
        pid,
        rights: Some((ceiling, Origin::Program)),
        allowed: None,
        service: Some(OwnService::Gateway),
        delegation: None,
    }
}

/// A connection to the agent, of which the agent gets one end once it runs. The other one is returned.
pub(super) fn connect_agent(
    agent: &AgentSupervisor,
    ceiling: Role,
    (uid, gid, pid): (u32, u32, u32),
) -> io::Result<OwnedFd> {
    let about = AttachClient {
        uid,
        gid,
        pid,
        // Nobody's name: each request names its own.
        sender: "gw:talon/gateway".to_owned(),
        role: role_name(ceiling).to_owned(),
        origin: "program".to_owned(),
        delegates: true,
    };
    let (ours, theirs) = net::UnixStream::pair()?;
    agent.attach(about, ours.into(), None)?;
    Ok(theirs.into())
}
