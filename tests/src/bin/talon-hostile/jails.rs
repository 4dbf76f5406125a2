//! Our own jail, with the supervisor's options.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::fs::{Mode as FileMode, OFlags};
use talon_jail::{
    Access, BindMount, Group, Groups, Identity, InheritedFds, Isolation, JailSpec, JailedProgram, Limits,
    LoopbackListeners, Mode, Network, PrivateTmpfs, Profile, Program, Stage, Status, View,
};

use crate::attack::{ATTACK_TIME, Running, first_line};
use crate::column::{Net, Side};
use crate::outer::attack_program;
use crate::targets::{ATTACKER, BIN, GRANTED_PORT, NEIGHBOUR, NEIGHBOUR_UID, PRIVATE};

/// How long an attack keeps the memory that it got. The monitor checks at least once a second; the rest is
/// for busy machines.
const HOLD_MS: &str = "3000";

/// How long a jail may take to be built; it takes a few milliseconds.
const START_TIME: Duration = Duration::from_secs(20);

/// Starts jails.
pub(crate) struct Jails {
    stage: Stage,
    groups: Option<Groups>,
    side: Side,
    net: Net,
}

impl Jails {
    /// With the column's network; `groups` if control groups are available.
    pub(crate) fn new(stage: Stage, groups: Option<Groups>, side: Side, net: Net) -> Self {
        Self { stage, groups, side, net }
    }

    /// For the next column.
    pub(crate) fn into_parts(self) -> (Stage, Option<Groups>) {
        (self.stage, self.groups)
    }

    /// An attack, in a separate jail.
    pub(crate) fn attack(
        &self,
        name: &str,
        environment: &[(String, String)],
        terminal: bool,
    ) -> anyhow::Result<(Running, Option<OwnedFd>)> {
        let place = Path::new(PRIVATE);
        let mut environment = environment.to_vec();
        let program = format!("{PRIVATE}-program");
        for (key, value) in [
            ("OWN_DIR", format!("{PRIVATE}/t")),
            ("HOME", format!("{PRIVATE}/h")),
            ("SOCKET_DIR", format!("{PRIVATE}/s")),
            ("TMPDIR", format!("{PRIVATE}/t")),
            ("PROGRAM", program.clone()),
            ("HOLD_MS", HOLD_MS.into()),
        ] {
            environment.push((key.into(), value));
        }
        let spec = self.spec(ATTACKER, place, &program, &["attack", name], environment)?;
        let terminal = if terminal { Some(pseudo_terminal()?) } else { None };
        let stdin = terminal.as_ref().map(|(_, slave)| slave.as_fd());
        let (jailed, group) = self.start(&spec, stdin)?;
        // The master stays open while the attack runs, or the terminal would hang up.
        Ok((Running::Jailed { jailed: Box::new(jailed), group }, terminal.map(|(master, _)| master)))
    }

    /// Another plugin, which serves; and the path of its socket outside.
    pub(crate) fn neighbour(&self) -> anyhow::Result<(Running, JailReport, PathBuf)> {
        let place = Path::new(NEIGHBOUR);
        let inside = format!("{NEIGHBOUR}/s/plugin.sock");
        let arguments = ["attack", "--helper", "serve", &inside];
        let spec =
            self.spec(NEIGHBOUR_UID, place, &format!("{NEIGHBOUR}-program"), &arguments, Vec::new())?;
        let (jailed, group) = self.start(&spec, None)?;
        let word = first_line(jailed.stdout.as_fd(), ATTACK_TIME)?;
        if word.as_deref() != Some("serving") {
            let why = first_line(jailed.stderr.as_fd(), Duration::from_millis(100))?;
            bail!("the neighbour does not serve: {word:?} {why:?}");
        }
        let private = jailed.private.as_ref().context("the neighbour has no private directory")?;
        let socket = format!("/proc/self/fd/{}/s/plugin.sock", private.as_raw_fd());
        let told = report_lines(&jailed);
        Ok((Running::Jailed { jailed: Box::new(jailed), group }, told, socket.into()))
    }

    fn start(
        &self,
        spec: &JailSpec,
        stdin: Option<BorrowedFd<'_>>,
    ) -> anyhow::Result<(JailedProgram, Option<Group>)> {
        let program = File::open(attack_program())?;
        let group = self.groups.as_ref().map(|groups| groups.create(&spec.name, &spec.limits)).transpose()?;
        let given =
            InheritedFds { program: Some(program.as_fd()), stdin, group: group.as_ref().map(Group::procs) };
        let jailed =
            talon_jail::spawn(&self.stage, spec, &given, START_TIME).context("the jail was refused")?;
        Ok((jailed, group))
    }

    fn spec(
        &self,
        uid: u32,
        place: &Path,
        program_at: &str,
        argv: &[&str],
        env: Vec<(String, String)>,
    ) -> anyhow::Result<JailSpec> {
        let identity = (self.side == Side::Root).then_some(Identity { uid, gid: uid });
        Ok(JailSpec {
            name: place.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            program: Program::Descriptor,
            argv: argv.iter().map(Into::into).collect(),
            env: env.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
            cwd: "/".into(),
            identity,
            limits: limits(),
            mode: Mode::Enforce,
            isolation: Some(self.isolation(identity, place, program_at)?),
        })
    }

    fn isolation(
        &self,
        identity: Option<Identity>,
        place: &Path,
        program_at: &str,
    ) -> anyhow::Result<Isolation> {
        let network = match self.net {
            Net::None => Network::None,
            Net::Loopback => Network::Loopback,
            Net::Full => Network::Host { connect: None, bind: None },
            Net::Ports => Network::Host { connect: Some(vec![GRANTED_PORT]), bind: Some(Vec::new()) },
        };
        let ids = identity.map_or_else(
            || (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
            |identity| (identity.uid, identity.gid),
        );
        let mut view = View::system(ids, &place.join("h"), &network);
        // A granted directory with a set-uid program.
        view.shown.push(BindMount {
            at: BIN.into(),
            from: BIN.into(),
            access: Access::Execute,
            needed: true,
        });
        view.private = PrivateTmpfs {
            at: place.into(),
            bytes: PRIVATE_BYTES,
            inodes: PRIVATE_INODES,
            ..PrivateTmpfs::default()
        };
        view.program_at = Some(program_at.into());
        let profile = Profile::builtin("strict").context("there is no profile strict")?.compile(&network)?;
        Ok(Isolation { view, network, listeners: LoopbackListeners::default(), profile })
    }
}

/// The size limit of a private directory; the attacks try six times as much.
const PRIVATE_BYTES: u64 = 32 << 20;

/// The same for files, of which they try five times as many.
const PRIVATE_INODES: u64 = 1000;

/// A plugin's default limits, except for memory: the attacks stop at 512 MiB, so that they fit on every
/// machine.
fn limits() -> Limits {
    Limits { memory_bytes: 192 << 20, data_bytes: Some(256 << 20), ..Limits::default() }
}

fn pseudo_terminal() -> anyhow::Result<(OwnedFd, OwnedFd)> {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name.as_c_str(), flags, FileMode::empty())?;
    Ok((master, slave))
}

/// The value in a report when a protection is active.
pub(crate) const ENFORCED: &str = "enforced";

/// What a jail's report says, protection by protection.
pub(crate) type JailReport = Vec<(String, String)>;

/// A report as pairs of texts, for the judge.
fn report_lines(jailed: &JailedProgram) -> JailReport {
    let words = |status: &Status| match status {
        Status::Enforced => ENFORCED.to_owned(),
        Status::StandIn(text) => format!("stand-in: {text}"),
        Status::Missing(text) => format!("missing: {text}"),
    };
    jailed.report.iter().map(|line| (line.name.clone(), words(&line.status))).collect()
}
