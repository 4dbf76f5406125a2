//! The file rules: what may be done below which path.
//!
//! Rights add up downwards. `/tmp`, `/dev/shm` and the private directory are writable for the program. So for
//! Landlock, a read-only entry below one of them is writable too, and only its read-only mount protects it.
//! Without a private root there is no rule for `/tmp`, and read-only entries stay so.

use std::os::fd::AsFd;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AddRuleError, AddRulesError, BitFlags, PathBeneath, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError,
};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open};

use crate::spec::Isolation;
use crate::stage::request::Plan;
use crate::stage::root::DEVICES;
use crate::stage::root::open::{is_absence, no_follow};
use crate::stage::step_error::StepError;
use crate::view::Access;

/// Where a program's private directory is mounted as well.
const PRIVATE_MOUNTS: &[&str] = &["/tmp", "/dev/shm"];

/// What may be done below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// List directories. A private root contains only what the program may know of.
    List,
    Read,
    Execute,
    Write,
    /// Write, and execute what was written.
    WriteAndExecute,
    /// Read and write, but no ioctl commands.
    Device,
}

/// One file or directory with its rights.
#[derive(Debug, PartialEq, Eq)]
struct Grant<'v> {
    path: &'v Path,
    allowed: Allowed,
    /// Whether a link on its path may be followed. Trusted links of the host were resolved before, and any
    /// other link is untrusted.
    links: bool,
    /// Whether it is an error if it does not exist.
    needed: bool,
}

/// Identifies a file, whatever its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InodeId(u64, u64);

impl InodeId {
    pub(super) fn of(stat: &Stat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }
}

/// Adds a rule for each part of the view, and returns the files that got one.
pub(super) fn files(
    mut ruleset: RulesetCreated,
    abi: ABI,
    plan: &Plan,
    isolation: &Isolation,
) -> Result<(RulesetCreated, Vec<InodeId>), StepError> {
    let mut granted = Vec::new();
    for grant in grants(isolation, plan.private.get().is_some()) {
        let what = |verb| format!("cannot {verb} {}", grant.path.display());
        let opened = if grant.links {
            open(grant.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        } else {
            no_follow(grant.path)
        };
        let file = match opened {
            Ok(file) => file,
            // What the program cannot reach needs no rule.
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
            granted.push(InodeId::of(&stat));
        }
    }
    let Some(program) = &plan.program else { return Ok((ruleset, granted)) };
    let rule = PathBeneath::new(program.as_fd(), rights(Allowed::Execute, abi, FileType::RegularFile));
    match (&mut ruleset).add_rule(rule) {
        Ok(_) => {}
        // A memory file has no path. Landlock allows the use of such files to every holder of a descriptor.
        Err(error) if has_no_path(&error) => {}
        Err(error) => return Err(StepError::new(format!("cannot allow the program itself: {error}"))),
    }
    Ok((ruleset, granted))
}

/// The rules for the view. Without a private root they apply to the host's files: entries that are shown at
/// another path get their real path then, and those that would replace the host's are left out.
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
        grants.extend(PRIVATE_MOUNTS.iter().map(|path| optional(path, own)));
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

/// The kernel's rights. Making device files is never allowed.
pub(super) fn rights(allowed: Allowed, abi: ABI, kind: FileType) -> BitFlags<AccessFs> {
    let all = AccessFs::from_all(abi);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
    // A device that is granted explicitly is meant to be used; one in a granted directory is there by chance.
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
