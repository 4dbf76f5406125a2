//! The throw-away environment: private files where it matters, a private network with listeners, and the
//! attack programs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use rustix::mount::{MountFlags, mount, mount_bind};

use crate::choice::Choice;
use crate::column::Side;
use crate::targets::{ADDRESS, BIN, FOREIGN, OWN, PEER_STATE, SECRET, TALON_CONFIG, USER, WORLD};
use crate::{column, listeners};

/// The attacks' source, included so that it need not be found at run time.
const SOURCES: &[(&str, &str)] = &[
    ("attack.h", include_str!("../../../jail/attacks/attack.h")),
    ("main.c", include_str!("../../../jail/attacks/main.c")),
    ("say.c", include_str!("../../../jail/attacks/say.c")),
    ("files.c", include_str!("../../../jail/attacks/files.c")),
    ("proc.c", include_str!("../../../jail/attacks/proc.c")),
    ("exec.c", include_str!("../../../jail/attacks/exec.c")),
    ("processes.c", include_str!("../../../jail/attacks/processes.c")),
    ("privilege.c", include_str!("../../../jail/attacks/privilege.c")),
    ("mounts.c", include_str!("../../../jail/attacks/mounts.c")),
    ("kernel.c", include_str!("../../../jail/attacks/kernel.c")),
    ("network.c", include_str!("../../../jail/attacks/network.c")),
    ("sockets.c", include_str!("../../../jail/attacks/sockets.c")),
    ("resources.c", include_str!("../../../jail/attacks/resources.c")),
    ("memory.c", include_str!("../../../jail/attacks/memory.c")),
    ("kernel_memory.c", include_str!("../../../jail/attacks/kernel_memory.c")),
    ("terminal.c", include_str!("../../../jail/attacks/terminal.c")),
    ("lifecycle.c", include_str!("../../../jail/attacks/lifecycle.c")),
    ("helper.c", include_str!("../../../jail/attacks/helper.c")),
];

/// Pids in the outer namespace begin here, so that none of them also exists inside a jail.
const FIRST_PID: u32 = 20_000;

pub(crate) fn run(choice: &Choice) -> anyhow::Result<()> {
    ensure!(std::process::id() == 1, "only the first process of a namespace of its own may change this much");
    // Read before anything is covered: the file may be below a covered directory.
    let attacks = choice.attacks.as_ref().map(fs::read).transpose().context("cannot read the attacks")?;
    cover()?;
    // Where that is not allowed, pids may collide, and an attack on another process may hit itself: it would
    // look open.
    fs::write("/proc/sys/kernel/ns_last_pid", FIRST_PID.to_string())
        .context("cannot choose the next process number")?;
    files()?;
    programs(attacks)?;
    let up = Command::new(attack_program()).args(["--helper", "loopback", ADDRESS]).status()?;
    ensure!(up.success(), "the outer namespace has no loopback interface");
    listeners::start()?;
    let mut failed = Vec::new();
    for side in sides(choice) {
        let status = driver(side)?.arg("drive").arg(side.name()).args(choice.arguments()).status()?;
        if !status.success() {
            failed.push(format!("{}: {status}", side.name()));
        }
    }
    ensure!(failed.is_empty(), "the attacks could not be driven as {}", failed.join(", "));
    Ok(())
}

/// The user's columns first: two of them show that the checks can fail.
fn sides(choice: &Choice) -> Vec<Side> {
    let chosen = choice.columns();
    let has = |side: Side| chosen.iter().any(|column: &column::Column| column.side == side);
    let mut sides = Vec::new();
    if has(Side::User) {
        sides.push(Side::User);
    }
    if has(Side::Root) && real_uid() == Some(0) {
        sides.push(Side::Root);
    }
    sides
}

/// The uid that our uid 0 is mapped to: not 0 if an ordinary user made the outer namespace.
fn real_uid() -> Option<u32> {
    fs::read_to_string("/proc/self/uid_map").ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Our own program as root, or as a user without rights.
fn driver(side: Side) -> anyhow::Result<Command> {
    let program = format!("{BIN}/talon-hostile");
    let real = real_uid().context("/proc/self/uid_map")?;
    Ok(match side {
        Side::Root => Command::new(program),
        Side::User if real == 0 => {
            let mut command = Command::new(program);
            command.uid(USER).gid(USER);
            command
        }
        Side::User => {
            // In a nested namespace, in which the user has its own uid and no rights over the outer one.
            let mut command = Command::new("unshare");
            command.arg("--user").arg(format!("--map-user={real}")).arg(format!("--map-group={real}"));
            command.arg(program);
            command
        }
    })
}

/// Mounts our own file systems over the machine's directories, so that an attack cannot damage them.
fn cover() -> anyhow::Result<()> {
    let places: &[(&str, &std::ffi::CStr)] = &[
        ("/tmp", c"mode=1777,size=1g"),
        ("/run", c"mode=0755,size=64m"),
        ("/root", c"mode=0755,size=1m"),
        ("/home", c"mode=0755,size=1m"),
        ("/var/tmp", c"mode=1777,size=64m"),
        ("/dev/shm", c"mode=1777,size=1g"),
    ];
    for (place, options) in places {
        mount("tmpfs", *place, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, *options)
            .with_context(|| format!("cannot cover {place}"))?;
    }
    // The directory with the set-uid program needs a file system without nosuid.
    fs::create_dir(WORLD)?;
    mount("tmpfs", WORLD, "tmpfs", MountFlags::empty(), c"mode=0755,size=1g")
        .context("cannot make the world")?;
    Ok(())
}

/// Secrets and directories that only a jail protects from an attack.
fn files() -> anyhow::Result<()> {
    let secret = format!("{SECRET}: if a hostile program shows this, a door is open\n");
    for path in [PEER_STATE, TALON_CONFIG, "/root/.ssh/id_ed25519", "/home/operator/.ssh/id_ed25519"] {
        write(path, &secret)?;
    }
    for place in [OWN, &format!("{OWN}/s"), &format!("{OWN}/h"), "/run/talon/plugins/peer", BIN] {
        fs::create_dir_all(place)?;
        fs::set_permissions(place, Permissions::from_mode(0o777))?;
    }
    // Readable for every user, as on a misconfigured machine.
    cover_file("/etc/shadow", &format!("root:{secret}"))?;
    cover_file("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
}

fn write(path: &str, text: &str) -> anyhow::Result<()> {
    let parent = Path::new(path).parent().context("a file lies in a directory")?;
    fs::create_dir_all(parent)?;
    fs::write(path, text).with_context(|| path.to_owned())
}

/// Replaces a file of the machine by one of ours.
fn cover_file(path: &str, text: &str) -> anyhow::Result<()> {
    let ours = format!("{WORLD}/cover{}", path.replace('/', "-"));
    write(&ours, text)?;
    mount_bind(&ours, path).with_context(|| format!("cannot cover {path}"))
}

/// The attack program, in three places, and our own, which another uid may not be able to reach at its
/// original path.
fn programs(attacks: Option<Vec<u8>>) -> anyhow::Result<()> {
    match attacks {
        Some(program) => fs::write(attack_program(), program)?,
        None => compile()?,
    }
    fs::set_permissions(attack_program(), Permissions::from_mode(0o755))?;
    fs::create_dir_all(Path::new(FOREIGN).parent().context("it has one")?)?;
    for (copy, mode) in [(FOREIGN, 0o755), ("/tmp/world/bin/attack-setuid", 0o4755)] {
        fs::copy(attack_program(), copy)?;
        fs::set_permissions(copy, Permissions::from_mode(mode))?;
    }
    fs::copy("/proc/self/exe", format!("{BIN}/talon-hostile"))?;
    fs::set_permissions(format!("{BIN}/talon-hostile"), Permissions::from_mode(0o755))?;
    Ok(())
}

fn compile() -> anyhow::Result<()> {
    let source = format!("{WORLD}/source");
    for (name, text) in SOURCES {
        write(&format!("{source}/{name}"), text)?;
    }
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", &attack_program()])
        .args(SOURCES.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".c")))
        .arg("-lrt")
        .current_dir(&source)
        .status()
        .context("cannot start cc (install gcc)")?;
    ensure!(built.success(), "the attacks do not compile: {built}");
    Ok(())
}

/// The program with all attacks.
pub(crate) fn attack_program() -> String {
    format!("{BIN}/attack")
}
