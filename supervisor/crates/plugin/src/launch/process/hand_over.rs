//! What another supervisor needs to take over a process.

use std::io;
use std::time::SystemTime;

use talon_control::fd_bundle::Packer;
use talon_egress::Proxy;
use talon_jail::MonitorParts;
use talon_plugin_client::connect::ClientIdentity;
use talon_plugin_client::handshake::{Address, Handshake};
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::Dialect;

use super::Process;
use crate::handover::{
    AddressRecord, DirRecord, InnerSocketRecord, InstanceCounters, MonitorRecord, ProcessRecord,
};
use crate::stdio::SharedPipe;

/// The data that another supervisor needs to take over a ready process.
#[derive(Debug)]
pub(in crate::launch) struct HandoverState {
    /// Of the spec that it was started from; `None`: the spec has no fingerprint.
    pub(in crate::launch) fingerprint: Option<String>,
    pub(in crate::launch) digest: String,
    pub(in crate::launch) handshake: Handshake,
    /// The dialect it is called in.
    pub(in crate::launch) dialect: Dialect,
    /// The client certificate, if its connections are encrypted.
    pub(in crate::launch) identity: Option<ClientIdentity>,
    pub(in crate::launch) report: talon_jail::Report,
    pub(in crate::launch) stdout: SharedPipe,
    pub(in crate::launch) stderr: SharedPipe,
}

impl Process {
    /// The data that another supervisor needs to take it over, with duplicates of its descriptors. Changes
    /// nothing.
    ///
    /// # Errors
    /// `NotFound` if it has ended or is not ready, and when there are too many open files.
    pub(crate) fn hand_over(
        &self,
        name: &PluginName,
        instance: u32,
        counted: InstanceCounters,
        packer: &mut Packer,
    ) -> io::Result<ProcessRecord> {
        let inner = &self.inner;
        let ready = self.handover_state.get().ok_or(io::ErrorKind::NotFound)?;
        let HandoverState { handshake, .. } = ready;
        let MonitorParts { monitor, program, control, pidfd, program_pidfd } = inner.monitor.share()?;
        let (inside, listening) = inner.dir.sockets().duplicate_fds()?;
        let sockets = inner.sockets.lock();
        let proxy = sockets.proxy.as_ref().map(Proxy::socket).transpose()?;
        let proxied = sockets.proxy.as_ref().map(Proxy::sockets_inside).transpose()?.unwrap_or_default();
        let state = sockets.state.as_ref().map(|state| state.socket()).transpose()?;
        let model = sockets.model.as_ref().map(|model| model.socket()).transpose()?;
        drop(sockets);
        let group = inner.group.lock().as_ref().map(|group| group.dir().to_owned());
        let (stdout, stderr) = (ready.stdout.duplicate_fd()?, ready.stderr.duplicate_fd()?);
        // Nothing fails from here on, so every packed descriptor is mentioned in the document.
        let mut add = |descriptor| packer.add(descriptor);
        Ok(ProcessRecord {
            plugin: name.as_str().to_owned(),
            instance,
            fingerprint: ready.fingerprint.clone().ok_or(io::ErrorKind::NotFound)?,
            digest: ready.digest.clone(),
            program,
            monitor: MonitorRecord {
                who: monitor,
                control: add(control),
                pidfd: add(pidfd),
                program: add(program_pidfd),
            },
            stdout: add(stdout),
            stderr: add(stderr),
            dir: DirRecord {
                name: inner.dir.name().to_owned(),
                inside: inside.map(&mut add),
                listening: listening.map(&mut add),
            },
            view: inner.view.lock().as_ref().map(|view| view.to_handover()),
            group,
            proxy: proxy.map(&mut add),
            inside: proxied
                .into_iter()
                .map(|(socket, purpose)| InnerSocketRecord::new(add(socket), &purpose))
                .collect(),
            state: state.map(&mut add),
            model: model.map(&mut add),
            identity: ready.identity.as_ref().map(ClientIdentity::hand_over),
            handshake: handshake.dialect,
            dialect: ready.dialect,
            address: match &handshake.address {
                Address::Unix(path) => AddressRecord::Unix(path.clone()),
                Address::Tcp(address) => AddressRecord::Tcp(*address),
            },
            server_cert: handshake.server_cert.clone(),
            report: ready.report.clone(),
            starts: counted.starts,
            ready_since_unix_ms: unix_ms(counted.ready_since),
            start_to_ready_us: counted.start_to_ready.and_then(|took| u64::try_from(took.as_micros()).ok()),
        })
    }
}

fn unix_ms(at: Option<SystemTime>) -> u64 {
    let since = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
