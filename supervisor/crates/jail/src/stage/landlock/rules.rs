//! The rules about files: who may do what below which path.
//!
//! Rights add up downwards. What is shown to be read below `/tmp`, `/dev/shm` or the private directory may be written
//! to as far as Landlock goes, since all of these are the program's to write: there the read-only mount alone keeps it
//! from writing. Without a private root there is no rule for `/tmp`, and reading stays reading.

use std::os::fd::AsFd;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AddRuleError, AddRulesError, BitFlags, PathBeneath, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError,
};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open};

use crate::spec::Isolation;
use crate::stage::request::Plan;
use crate::stage::root::open::{is_absence, plainly};
use crate::stage::step::StepError;
use crate::view::Access;

/// The devices that every program gets: they hold nothing and lead nowhere.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Where a program's private place appears as well.
const PRIVATE_TOO: &[&str] = &["/tmp", "/dev/shm"];

/// What may be done below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// List directories. What is in a private root is what it may know of.
    List,
    Read,
    Execute,
    Write,
    /// Write, and execute what was written.
    WriteAndExecute,
    /// Read and write, but give no commands.
    Device,
}

/// One file or directory that something may be done with.
#[derive(Debug, PartialEq, Eq)]
struct Grant<'v> {
    path: &'v Path,
    allowed: Allowed,
    /// Whether a link on its path may be followed. Those of the host's that may be were followed before, and what
    /// is one now was planted.
    links: bool,
    /// Whether it is an error if it is not there.
    needed: bool,
}

/// A file, by which it is known whatever its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inode(u64, u64);

impl Inode {
    pub(super) fn of(stat: &Stat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }
}

/// Adds a rule for each part of the view, and tells what got one.
pub(super) fn files(
    mut ruleset: RulesetCreated,
    abi: ABI,
    plan: &Plan,
    isolation: &Isolation,
) -> Result<(RulesetCreated, Vec<Inode>), StepError> {
    let mut granted = Vec::new();
    for grant in grants(isolation, plan.private.get().is_some()) {
        let what = |verb| format!("cannot {verb} {}", grant.path.display());
        let opened = if grant.links {
            open(grant.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        } else {
            plainly(grant.path)
        };
        let file = match opened {
            Ok(file) => file,
            // What it cannot reach needs no rule.
            Err(errno) if !grant.needed && is_absence(errno) => continue,
            Err(errno) => {
                let advice = "its uid must be allowed to enter each directory above it";
                return Err(StepError::errno(&what("open"), errno.raw_os_error(), advice));
            }
        };
        let stat =
            fstat(&file).map_err(|errno| StepError::errno(&what("look at"), errno.raw_os_error(), ""))?;
        let rule = PathBeneath::new(&file, rights(grant.allowed, abi, FileType::from_raw_mode(stat.st_mode)));
        ruleset = ruleset
            .add_rule(rule)
            .map_err(|error| StepError::new(format!("{}: {error} (show something else)", what("allow"))))?;
        if grant.allowed != Allowed::List {
            granted.push(Inode::of(&stat));
        }
    }
    let Some(program) = &plan.program else { return Ok((ruleset, granted)) };
    let rule = PathBeneath::new(program.as_fd(), rights(Allowed::Execute, abi, FileType::RegularFile));
    match (&mut ruleset).add_rule(rule) {
        Ok(_) => {}
        // It is in memory and has no path. Landlock lets such files be used by whoever holds them.
        Err(error) if has_no_path(&error) => {}
        Err(error) => return Err(StepError::new(format!("cannot allow the program itself: {error}"))),
    }
    Ok((ruleset, granted))
}

/// The view as Landlock sees it. Without a private root these are the host's files: what is shown elsewhere than
/// it is has its real path then, and whatever the private root would put in place of the host's is left out.
fn grants(isolation: &Isolation, private_root: bool) -> Vec<Grant<'_>> {
    let view = &isolation.view;
    let optional = |path, allowed| Grant { path: Path::new(path), allowed, links: true, needed: false };
    let own = if view.private.exec { Allowed::WriteAndExecute } else { Allowed::Write };

    let mut grants: Vec<_> = view
        .shown
        .iter()
        .map(|shown| Grant {
            path: if private_root { &shown.at } else { &shown.from },
            allowed: match shown.access {
                Access::Read => Allowed::Read,
                Access::Execute => Allowed::Execute,
                Access::Write | Access::Connect => Allowed::Write,
            },
            links: false,
            needed: shown.needed,
        })
        .collect();
    grants.push(Grant { path: &view.private.at, allowed: own, links: true, needed: private_root });
    grants.push(optional("/proc", Allowed::Read));
    grants.extend(DEVICES.iter().map(|device| optional(device, Allowed::Device)));
    if private_root {
        grants.push(Grant { path: Path::new("/"), allowed: Allowed::List, links: true, needed: true });
        grants.extend(PRIVATE_TOO.iter().map(|path| optional(path, own)));
        grants.extend(view.files.iter().map(|file| Grant {
            path: &file.at,
            allowed: Allowed::Read,
            links: true,
            needed: true,
        }));
        grants.extend(view.program_at.iter().map(|path| Grant {
            path,
            allowed: Allowed::Execute,
            links: true,
            needed: false,
        }));
    }
    grants
}

/// The kernel's words for it. Device files are never made, whatever is allowed.
pub(super) fn rights(allowed: Allowed, abi: ABI, kind: FileType) -> BitFlags<AccessFs> {
    let all = AccessFs::from_all(abi);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
    // A device that is shown by itself is shown to be used; one that lies in a directory is there by chance.
    let commands = if device { BitFlags::EMPTY } else { AccessFs::IoctlDev.into() };
    let write = all & !(AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | commands);
    let rights = match allowed {
        Allowed::List => AccessFs::ReadDir.into(),
        Allowed::Read => read,
        Allowed::Execute => read | AccessFs::Execute,
        Allowed::Write => write,
        Allowed::WriteAndExecute => write | AccessFs::Execute,
        Allowed::Device => AccessFs::ReadFile | AccessFs::WriteFile,
    };
    if kind == FileType::Directory { rights & all } else { rights & AccessFs::from_file(abi) }
}

fn has_no_path(error: &RulesetError) -> bool {
    let RulesetError::AddRules(AddRulesError::Fs(AddRuleError::AddRuleCall { source, .. })) = error else {
        return false;
    };
    source.raw_os_error() == Some(libc::EBADFD)
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
