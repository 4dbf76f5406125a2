//! The private root: a tmpfs with everything that exists for the program.
//!
//! | order | what | why there |
//! |---|---|---|
//! | nesting | inside a user namespace of ours, no further ones | the sysctl is in the host's `/proc`, which is unmounted later |
//! | propagation | mounts do not propagate between us and the host | before the first mount |
//! | root | a small tmpfs, mounted over `/`, where it hides nothing from us | everything else is mounted on it |
//! | private | the program's writable directory, and its `/tmp` and `/dev/shm` | other entries may be in it |
//! | shown | the host files of the view, outer entries before inner ones | |
//! | program | the checked file itself, at its path | may be in a shown directory |
//! | made | files and links | |
//! | devices | five of the host's, none of which accesses hardware | |
//! | processes | `/proc` of our own pid namespace, with information about the kernel covered | |
//! | seal | the root, and the private directory except its subdirectories, become read-only | nothing is created in them from now on |
//! | pivot | the new root becomes `/`; the host's is unmounted with all its mounts | |
//!
//! Every host path is opened before anything is mounted at it, and everything of ours is made below a
//! descriptor of the new root, both without following links. Until the pivot nothing has changed for this
//! process, so `best-effort` can continue without a private root; a failure after the pivot is fatal.

mod bind;
mod devices;
mod mount_error;
pub(super) mod open;
mod private;
mod proc;
mod tree;

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{fchdir, pivot_root, umask};

pub(super) use self::devices::DEVICES;
use self::mount_error::failed;
use self::private::PrivateMount;
pub(super) use self::proc::PROC_ADVICE;
use self::tree::RootTree;
use super::namespaces;
use super::request::Plan;
use super::step_error::StepError;
use crate::report::Status;
use crate::view::{PROBE_FILE, View};

/// Sets up the program's private root. Runs in the new namespaces.
pub(super) fn set_up(plan: &Plan) -> Result<Option<Status>, StepError> {
    let (Some(isolation), Some(held)) = (plan.isolation(), plan.namespaces.get()) else {
        return Ok(Some(namespaces::missing(plan)));
    };
    if held.user {
        proc::forbid_nesting();
    }
    // Files are made with their exact mode, whatever the supervisor's umask is.
    let mask = umask(rustix::fs::Mode::empty());
    let built = build(plan, &isolation.view);
    umask(mask);
    let (private, hidden) = built?;
    plan.private.set(private).expect("this step is taken once");
    Ok(Some(if hidden {
        Status::Enforced
    } else {
        Status::StandIn("it sees that its monitor exists, as this kernel cannot hide it in /proc".into())
    }))
}

/// Builds the root and enters it. Returns a descriptor of the private directory, and whether the monitor is
/// hidden in `/proc`.
fn build(plan: &Plan, view: &View) -> Result<(OwnedFd, bool), StepError> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(failed("cannot take its mounts off the host's"))?;
    let tree = RootTree::over_root()?;
    match fill(&tree, plan, view) {
        Ok(filled) => {
            enter(&tree).map_err(StepError::fatal)?;
            Ok(filled)
        }
        Err(error) => {
            tree.unmount().map_err(StepError::fatal)?;
            Err(error)
        }
    }
}

fn fill(tree: &RootTree, plan: &Plan, view: &View) -> Result<(OwnedFd, bool), StepError> {
    let private = PrivateMount::mount(tree, &view.private, plan.spec.identity)?;
    let mut entries: Vec<_> = view.shown.iter().collect();
    // An inner entry's mount point is in the outer one.
    entries.sort_by_key(|shown| shown.at.components().count());
    for (index, shown) in entries.iter().enumerate() {
        let inside = entries[..index].iter().any(|outer| shown.at.starts_with(&outer.at));
        bind::mount_entry(tree, shown, inside)?;
    }
    if let (Some(at), Some(file)) = (&view.program_at, &plan.program) {
        let inside = entries.iter().any(|outer| at.starts_with(&outer.at));
        bind::mount_program(tree, at, file, inside)?;
    }
    for file in &view.files {
        tree.write(&file.at, file.text.as_bytes())?;
    }
    tree.write(Path::new(PROBE_FILE), b"")?;
    for link in &view.links {
        tree.link(&link.at, &link.to)?;
    }
    devices::make(tree)?;
    let hidden = proc::mount(tree)?;
    let private = private.seal()?;
    tree.seal()?;
    Ok((private, hidden))
}

/// Makes the new root the only one.
fn enter(tree: &RootTree) -> Result<(), StepError> {
    fchdir(tree.root()).map_err(failed("cannot enter the private root"))?;
    // With both names the same, the old root ends up on top of the new one, and is what "." leads to then.
    pivot_root(".", ".").map_err(|errno| {
        StepError::errno(
            "cannot make the private root its root",
            errno.raw_os_error(),
            "the host's root must be a mount, not the first memory file system of the boot (initramfs)",
        )
    })?;
    unmount(".", UnmountFlags::DETACH).map_err(failed("cannot take the host's files away"))?;
    rustix::process::chdir("/").map_err(failed("cannot enter the private root"))?;
    // Unlike "/" itself, "/.." leads to the topmost mount on the root.
    let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    let new = rustix::fs::fstat(tree.root().as_fd()).map(identity);
    let (now, top) = (rustix::fs::stat("/").map(identity), rustix::fs::stat("/..").map(identity));
    if new.is_ok() && now == new && top == new {
        Ok(())
    } else {
        Err(StepError::new("the host's files are still there beside the private root; please report this"))
    }
}
