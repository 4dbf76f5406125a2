use std::fs::create_dir_all;

use super::*;

/// What a process sees of its machine.
struct Machine {
    root: tempfile::TempDir,
    look: CgroupLookup,
}

impl Machine {
    /// A machine whose version 2 is mounted, with a root that has these controllers.
    fn new(controllers: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        create_dir_all(&proc).unwrap();
        let look =
            CgroupLookup { proc, systemd: root.path().join("no systemd"), container_marks: Vec::new() };
        let machine = Self { look, root };
        machine.group("", "", controllers);
        fs::remove_file(machine.path("").join("cgroup.type")).unwrap();
        machine.mounted("/");
        machine.we_are_in("/");
        machine
    }

    fn path(&self, group: &str) -> PathBuf {
        self.root.path().join("cgroup two").join(group)
    }

    fn mounted(&self, part: &str) {
        let at = self.path("").display().to_string().replace(' ', "\\040");
        let at = at.trim_end_matches('/');
        let text = format!(
            "22 1 0:5 / /proc rw - proc proc rw\n\
             31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - tmpfs tmpfs rw\n\
             32 31 0:29 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
             41 31 0:38 {part} {at} rw,relatime shared:3 master:1 - cgroup2 cgroup2 rw\n"
        );
        fs::write(self.look.proc.join("mountinfo"), text).unwrap();
    }

    fn we_are_in(&self, group: &str) {
        fs::write(self.look.proc.join("cgroup"), format!("8:pids:/somewhere\n0::{group}\n")).unwrap();
    }

    fn group(&self, group: &str, procs: &str, controllers: &str) {
        let dir = self.path(group);
        create_dir_all(&dir).unwrap();
        for (file, text) in [
            ("cgroup.procs", procs),
            ("cgroup.controllers", controllers),
            ("cgroup.subtree_control", ""),
            ("cgroup.type", "domain\n"),
        ] {
            fs::write(dir.join(file), text).unwrap();
        }
    }

    fn refusal(&self) -> String {
        self.look.find().unwrap_err().to_string()
    }
}

fn we() -> String {
    format!("{}\n", std::process::id())
}

#[test]
fn the_root_is_divided_without_moving() {
    let machine = Machine::new("cpuset cpu io memory hugetlb pids\n");
    fs::write(machine.path("cgroup.procs"), "1\n2\n3\n").unwrap();
    let place = machine.look.find().unwrap();
    assert_eq!(place.base, machine.path(""));
    assert!(!place.must_move);
    assert_eq!(place.controllers, ["memory", "pids", "cpu", "io"]);
}

#[test]
fn a_group_of_our_own_is_divided_after_moving() {
    let machine = Machine::new("");
    machine.group("a/talon.service", &we(), "memory pids\n");
    machine.we_are_in("/a/talon.service");
    let place = machine.look.find().unwrap();
    assert_eq!(place.base, machine.path("a/talon.service"));
    assert!(place.must_move);
    assert_eq!(place.controllers, ["memory", "pids"]);
    // The same seen from a container, in which only a part is mounted.
    machine.mounted("/deep/inside");
    machine.we_are_in("/deep/inside/a/talon.service");
    assert_eq!(machine.look.find().unwrap().base, machine.path("a/talon.service"));
}

#[test]
fn one_that_was_started_in_its_leaf_divides_what_is_above() {
    let machine = Machine::new("memory pids\n");
    machine.group("unit", "", "memory pids\n");
    machine.group("unit/supervisor", &we(), "");
    machine.we_are_in("/unit/supervisor");
    let place = machine.look.find().unwrap();
    assert_eq!(place.base, machine.path("unit"));
    assert!(!place.must_move);
    // A group that is only called so is like any other.
    machine.group("unit", "1\n", "memory pids\n");
    assert!(machine.refusal().contains("unit/supervisor lacks the controllers memory and pids"));
    machine.group("supervisor", &we(), "memory pids\n");
    machine.we_are_in("/supervisor");
    let place = machine.look.find().unwrap();
    assert_eq!((place.base, place.must_move), (machine.path("supervisor"), true));
}

// Promises: HANDOVER-13
#[test]
fn what_an_earlier_supervisor_divided_is_found_again() {
    let machine = Machine::new("memory pids\n");
    let ours = "unit/talon-0123456789abcdef";
    // systemd since 254 puts us into the leaf (DelegateSubgroup=supervisor), where the earlier one was.
    machine.group("unit", "", "memory pids\n");
    machine.group("unit/supervisor", &we(), "");
    machine.group(ours, "", "memory pids\n");
    machine.group(&format!("{ours}/plugin"), "17\n18\n", "memory pids\n");
    machine.we_are_in("/unit/supervisor");
    let place = machine.look.find().unwrap();
    assert_eq!((place.base, place.must_move), (machine.path("unit"), false));
    // Before, it puts us into the unit's own group, whose controllers the earlier one took back; its leaf is
    // still there.
    machine.group("unit", &we(), "memory pids\n");
    machine.group("unit/supervisor", "", "");
    machine.we_are_in("/unit");
    let place = machine.look.find().unwrap();
    assert_eq!((place.base, place.must_move), (machine.path("unit"), true));
}

#[test]
fn a_group_with_others_in_it_is_left_alone() {
    let machine = Machine::new("memory pids\n");
    for others in ["1\n", "0\n", "1\n2\n"] {
        machine.group("session", &(we() + others), "memory pids\n");
        machine.we_are_in("/session");
        let refusal = machine.refusal();
        assert!(refusal.contains("other processes are in the cgroup"), "{refusal}");
        assert!(refusal.contains("Delegate=yes"), "{refusal}");
    }
}

// Promises: CLI-53
#[test]
fn the_way_to_a_cgroup_is_that_of_the_machine() {
    let is_root = rustix::process::geteuid().is_root();
    let mut machine = Machine::new("memory pids\n");
    machine.group("session", &(we() + "1\n"), "memory pids\n");
    machine.we_are_in("/session");
    let bare = machine.refusal();
    let expected =
        if is_root { "in a group of its own: docs/operations.md" } else { "have root make a group" };
    assert!(bare.contains(expected), "{bare}");
    machine.look.container_marks = vec![machine.root.path().to_owned()];
    assert!(machine.refusal().contains("container's first process"), "{}", machine.refusal());
    machine.look.systemd = machine.root.path().to_owned();
    let user = if is_root { "" } else { " --user" };
    let expected = format!("systemd-run{user} --scope -p Delegate=yes talon serve");
    assert!(machine.refusal().contains(&expected), "{}", machine.refusal());
}

#[test]
fn what_belongs_to_systemd_is_left_alone() {
    let mut machine = Machine::new("memory pids\n");
    machine.look.systemd = machine.root.path().to_owned();
    machine.group("talon.service", &we(), "memory pids\n");
    machine.we_are_in("/talon.service");
    let group = machine.path("talon.service");
    if !rustix::process::geteuid().is_root() {
        // Only root can write to what was not delegated.
        assert_eq!(machine.look.find().unwrap().base, group);
        return;
    }
    assert!(machine.refusal().contains("belongs to systemd"), "{}", machine.refusal());
    let flags = rustix::fs::XattrFlags::empty();
    match rustix::fs::setxattr(&group, "user.delegate", b"1", flags) {
        Ok(()) => assert_eq!(machine.look.find().unwrap().base, group),
        Err(errno) => eprintln!("skipped the mark of systemd: no user attributes here: {errno}"),
    }
}

#[test]
fn each_thing_that_is_missing_is_named() {
    let machine = Machine::new("hugetlb\n");
    assert!(machine.refusal().contains("lacks the controllers memory and pids"), "{}", machine.refusal());
    machine.group("", "", "cpu memory\n");
    fs::remove_file(machine.path("cgroup.type")).unwrap();
    assert!(machine.refusal().contains("lacks the controllers pids"), "{}", machine.refusal());
    for outside in ["/../x", "/.."] {
        machine.we_are_in(outside);
        assert!(machine.refusal().contains("outside of what is mounted"), "{}", machine.refusal());
    }
    machine.we_are_in("/gone");
    assert!(machine.refusal().contains("not delegated"), "{}", machine.refusal());
    fs::write(machine.look.proc.join("cgroup"), "1:name=systemd:/\n").unwrap();
    assert!(machine.refusal().contains("no cgroup of version 2"), "{}", machine.refusal());
    fs::write(machine.look.proc.join("mountinfo"), "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n")
        .unwrap();
    assert!(machine.refusal().contains("no cgroup v2 is mounted"), "{}", machine.refusal());
    fs::remove_file(machine.look.proc.join("mountinfo")).unwrap();
    assert!(machine.refusal().contains("cannot read /proc/self/mountinfo"), "{}", machine.refusal());
}

#[test]
fn the_usual_mount_is_preferred_and_escapes_are_read() {
    let mounts = "9 1 0:3 / /tmp/other rw - cgroup2 none rw\n\
                  8 1 0:3 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n\
                  broken line\n7 1 0:3 / - cgroup2\n";
    assert_eq!(v2_mount(mounts).unwrap().1, Path::new("/sys/fs/cgroup/unified"));
    assert_eq!(v2_mount("1 1 0:3 /a\\134 /b\\040c\\ rw - cgroup2 x rw").unwrap().1, Path::new("/b c\\"));
    assert_eq!(v2_mount(""), None);
    assert_eq!(unescape("\\040\\999\\7\\"), Path::new(" \\999\\7\\"));
}
