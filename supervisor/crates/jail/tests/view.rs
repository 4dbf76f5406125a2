//! What a program sees of the files, and what it can do with them.
//!
//! Run as root, each program has a separate uid; run unprivileged, a user namespace and its supervisor's uid.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::{self, File, Permissions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::Path;
use std::process::Command;

use common::*;
use talon_jail::{Access, BindMount, JailSpec, Mode, Program, SpawnError, Status, View};

/// The script in a private root, with a separate uid where that is possible.
fn inside(test: u32, script: &str) -> JailSpec {
    let mut spec = sh(script);
    spec.identity = is_root().then(|| nobody(test));
    isolated(spec)
}

fn view(spec: &mut JailSpec) -> &mut View {
    &mut spec.isolation.as_mut().unwrap().view
}

/// What it printed, its errors too.
fn said(spec: &JailSpec) -> String {
    let jailed = start(spec).unwrap();
    assert_eq!(*status(&jailed, "filesystem"), Status::Enforced);
    let outcome = finish(jailed);
    outcome.stdout + &outcome.stderr
}

fn refusal(spec: &JailSpec) -> String {
    match start(spec) {
        Err(SpawnError::Step { step, reason }) if step == "filesystem" => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was started"),
    }
}

/// A directory that everybody may enter, as those of operators are.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    directory
}

/// What is in some of its directories, seen from outside: Landlock keeps it from listing those that are only
/// there because something below them is shown.
fn names_in<const N: usize>(spec: &JailSpec, directories: [&str; N]) -> [String; N] {
    let jailed = start(spec).unwrap();
    line(&jailed.stdout);
    let names = directories.map(|directory| {
        let entries = fs::read_dir(format!("/proc/{}/root{directory}", jailed.pid)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.join(" ")
    });
    jailed.monitor.kill_all().unwrap();
    finish(jailed);
    names
}

// Promises: JAIL-1
#[test]
fn it_sees_the_system_and_nothing_else() {
    let [root, run, tmp, dev] =
        names_in(&inside(40, "echo up; exec sleep 1000"), ["/", "/run", "/tmp", "/dev"]);
    let known = [
        ".jail", "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "tmp", "usr",
    ];
    assert!(root.split(' ').all(|name| known.contains(&name)), "{root}");
    assert_eq!((run.as_str(), tmp.as_str()), ("plugin", ""));
    assert_eq!(dev, "fd full null random shm stderr stdin stdout urandom zero");
    let secret =
        "/etc/shadow /etc/ssh /etc/talon /etc/ssl/private /etc/machine-id /root /home /var /sys /run/user";
    let look = format!("for path in {secret}; do test -e $path && echo $path; done; exit 0");
    assert_eq!(said(&inside(40, &look)), "");
}

#[test]
fn it_is_the_user_plugin() {
    let spec = inside(41, "id -un; getent passwd plugin; getent hosts localhost >/dev/null && echo local");
    let text = said(&spec);
    let uid = spec.identity.map_or(rustix::process::getuid().as_raw(), |identity| identity.uid);
    assert!(text.starts_with(&format!("plugin\nplugin:x:{uid}:")), "{text}");
    assert!(text.ends_with(":plugin:/run/plugin/h:/bin/sh\nlocal\n"), "{text}");
}

// Promises: JAIL-2
#[test]
fn every_mount_is_as_tight_as_it_can_be() {
    let mounts = said(&inside(42, "cat /proc/self/mountinfo"));
    let mut roots = 0;
    for line in mounts.lines() {
        let columns: Vec<_> = line.split(' ').collect();
        let (at, flags) = (columns[4], columns[5].split(',').collect::<Vec<_>>());
        let has = |flag: &str| flags.contains(&flag);
        let own = ["/tmp", "/dev/shm", "/run/plugin/s", "/run/plugin/t", "/run/plugin/h"].contains(&at);
        // Covers of /proc are copies of /dev/null.
        let device = at.starts_with("/dev/") && !own || at.starts_with("/proc/");
        let programs = ["/usr", "/bin", "/sbin", "/lib"].iter().any(|place| at.starts_with(place));
        roots += usize::from(at == "/");
        assert!(has("nosuid"), "{line}");
        assert!(has("nodev") || device, "{line}");
        assert!(has("noexec") || programs, "{line}");
        assert_eq!(has("rw"), own, "{line}");
        assert!(!line.contains("shared:") && !line.contains("master:"), "{line}");
    }
    assert_eq!(roots, 1, "{mounts}");
}

// Promises: JAIL-2
#[test]
fn what_is_shown_cannot_be_changed() {
    let places =
        "/ /usr /usr/bin/env /etc /etc/passwd /run /run/plugin /dev /dev/null /proc/sys/kernel/hostname";
    // Changing the times of a file is refused for what is read-only before anything is asked about its owner,
    // and does no harm where it is not.
    let text = said(&inside(43, &format!("for path in {places}; do touch -c $path; done")));
    for place in places.split(' ') {
        assert!(text.contains(&format!("'{place}': Read-only file system")), "{place}: {text}");
    }
}

// Promises: JAIL-6
#[test]
fn devices_work() {
    let script = "echo x >/dev/null && head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c; \
                  head -c 4 /dev/random | wc -c; echo x >/dev/full; cat </dev/stdin";
    let text = said(&inside(44, script));
    assert!(text.starts_with("4\n4\n4\n"), "{text}");
    assert!(text.contains("No space left") || text.contains("I/O error"), "{text}");
}

// Promises: JAIL-5
#[test]
fn processes_are_its_own_and_what_tells_of_the_kernel_is_empty() {
    let text = said(&inside(45, "cd /proc; echo [0-9]*; test -e /proc/1 || echo hidden"));
    assert_eq!(text, "2\nhidden\n");
    let covered = "kcore kmsg keys key-users kallsyms config.gz cmdline timer_list vmallocinfo sysrq-trigger";
    let look = format!("cd /proc; for file in {covered}; do test ! -e $file || cat $file; done | wc -c");
    assert_eq!(said(&inside(45, &look)), "0\n");
    let look =
        "cd /proc; for directory in acpi asound scsi; do test ! -e $directory || ls -A $directory; done";
    assert_eq!(said(&inside(45, look)), "");
}

// Promises: JAIL-3
#[test]
fn its_private_place_is_its_own_and_bounded() {
    let mut spec = inside(46, "stat -c '%a %U' /run/plugin/s /run/plugin/h /tmp /dev/shm | sort -u");
    assert_eq!(said(&spec), "700 plugin\n");

    let fill =
        "dd if=/dev/zero of=/tmp/x bs=16k; dd if=/dev/zero of=/dev/shm/y count=1; stat -c %s /run/plugin/t/x";
    spec.argv[2] = fill.into();
    view(&mut spec).private.bytes = 1 << 20;
    let text = said(&spec);
    assert_eq!(text.matches("No space left").count(), 2, "{text}");
    let size: u64 = text.lines().find_map(|line| line.parse().ok()).unwrap();
    assert!((1..=1 << 20).contains(&size), "{text}");

    spec.argv[2] = "for n in $(seq 100); do touch /tmp/$n; done; ls /tmp | wc -l".into();
    view(&mut spec).private.inodes = 30;
    let text = said(&spec);
    let count: u64 = text.lines().find_map(|line| line.parse().ok()).unwrap();
    assert!(text.contains("No space left") && (1..30).contains(&count), "{text}");
}

// Promises: JAIL-4
#[test]
fn its_private_directories_stay_where_they_are() {
    let script = "cd /run/plugin; mv s z; rmdir h; mkdir n; ln -s /etc s/link; ls -A . s";
    let text = said(&inside(47, script));
    assert_eq!(text.matches("mv: ").count() + text.matches("rmdir: ").count(), 2, "{text}");
    assert!(text.starts_with(".:\nh\nm\ns\nt\n\ns:\nlink\n"), "{text}");
}

// Promises: JAIL-3
#[test]
fn what_it_writes_can_be_executed_only_if_that_is_granted() {
    let script =
        "cp /bin/true /tmp/t && /tmp/t && echo ran; cp /bin/true /dev/shm/t && /dev/shm/t && echo ran";
    let mut spec = inside(48, script);
    let text = said(&spec);
    assert!(text.matches("Permission denied").count() == 2 && !text.contains("ran\n"), "{text}");
    view(&mut spec).private.exec = true;
    assert_eq!(said(&spec), "ran\nran\n");
}

// Promises: JAIL-3
#[test]
fn the_supervisor_reaches_its_private_place_and_nothing_is_left_of_it() {
    let jailed = start(&inside(49, "echo up >/run/plugin/s/file; echo up; exec sleep 1000")).unwrap();
    line(&jailed.stdout);
    let private = jailed.private.as_ref().unwrap().try_clone().unwrap();
    let below = |path: &str| format!("/proc/self/fd/{}/{path}", private.as_raw_fd());
    assert_eq!(fs::read_to_string(below("s/file")).unwrap(), "up\n");
    assert!(fs::write(below("intruder"), "").is_err());
    jailed.monitor.kill_all().unwrap();
    finish(jailed);
    assert!(!Path::new("/run/plugin").exists());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(" /run/plugin "), "{mounts}");
}

// Promises: JAIL-1
#[test]
fn grants_give_what_they_say_at_their_own_path() {
    let host = directory();
    for name in ["read", "execute", "write", "write/fixed"] {
        let path = host.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        fs::copy("/bin/true", path.join("tool")).unwrap();
    }
    let script = "for place in read execute write write/fixed; do echo $place; cat $place/tool >/dev/null && \
                  echo -n r; (echo x >$place/new) 2>/dev/null && echo -n w; $place/tool 2>/dev/null && echo -n x; \
                  echo; done";
    let mut spec = inside(50, script);
    spec.cwd = host.path().into();
    for (name, access) in [
        ("read", Access::Read),
        ("execute", Access::Execute),
        ("write", Access::Write),
        ("write/fixed", Access::Read),
    ] {
        view(&mut spec).grant(&host.path().join(name), access);
    }
    assert_eq!(said(&spec), "read\nr\nexecute\nrx\nwrite\nrw\nwrite/fixed\nr\n");
    assert_eq!(fs::read_to_string(host.path().join("write/new")).unwrap(), "x\n");
}

// Promises: JAIL-8
#[test]
fn a_grant_that_is_missing_is_refused_by_its_name_and_the_rest_is_left_out() {
    let mut spec = inside(51, "test ! -e /srv/none && echo out");
    let missing =
        BindMount { at: "/srv/none".into(), from: "/srv/none".into(), access: Access::Read, needed: false };
    view(&mut spec).shown.push(missing);
    assert_eq!(said(&spec), "out\n");
    view(&mut spec).grant(Path::new("/srv/none"), Access::Read);
    let reason = refusal(&spec);
    assert!(reason.starts_with("cannot show /srv/none: No such file"), "{reason}");
    assert!(reason.contains("create it"), "{reason}");

    // Everything is as it was for one that may go on without.
    spec.mode = Mode::BestEffort;
    spec.argv[2] = "stat -c %d:%i / /..; cat /proc/self/mountinfo".into();
    let jailed = start(&spec).unwrap();
    assert!(matches!(status(&jailed, "filesystem"), Status::Missing(text) if text.contains("/srv/none")));
    let outcome = finish(jailed);
    let root = fs::metadata("/").unwrap();
    let root = format!("{}:{}", root.dev(), root.ino());
    assert_eq!(outcome.stdout.lines().take(2).collect::<Vec<_>>(), [&root, &root]);
    assert!(!outcome.stdout.contains("/run/plugin"), "{}", outcome.stdout);
}

// Promises: JAIL-7
#[test]
fn a_link_that_somebody_else_planted_is_not_followed() {
    if skipped_without_root("a_link_that_somebody_else_planted_is_not_followed") {
        return;
    }
    let host = directory();
    let link = host.path().join("link");
    symlink("/etc", &link).unwrap();
    let mut spec = inside(52, &format!("cat {}/hostname >/dev/null && echo followed", link.display()));
    view(&mut spec).grant(&link, Access::Read);
    assert_eq!(said(&spec), "followed\n");
    lchown(&link, Some(nobody(52).uid), None).unwrap();
    let reason = refusal(&spec);
    assert!(reason.contains(&format!("belongs to uid {}", nobody(52).uid)), "{reason}");
}

// Promises: JAIL-33
#[test]
fn what_a_program_plants_shows_another_nothing() {
    let host = directory();
    let [work, secret] = ["work", "secret"].map(|name| host.path().join(name));
    fs::create_dir_all(work.join("sub")).unwrap();
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("key"), "hidden").unwrap();
    // Whatever uids the programs have, both may use all of it, and the path leads through a link of the
    // operator's.
    for path in [&work, &work.join("sub"), &secret] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    symlink("../secret", work.join("operators")).unwrap();
    for plant in ["ln -s ../secret sub", "mv operators sub"] {
        let mut first =
            inside(59, &format!("cd {} && mv sub old && {plant} && echo planted", work.display()));
        view(&mut first).grant(&work, Access::Write);
        assert_eq!(said(&first), "planted\n");

        let script = format!("cat {0}/sub/key; cat {0}/sub/*", work.display());
        let mut second = inside(60, &script);
        view(&mut second).grant(&work.join("sub"), Access::Read);
        for mode in [Mode::Enforce, Mode::BestEffort] {
            second.mode = mode;
            let reason = refusal(&second);
            assert!(reason.contains("sub in it belongs to uid"), "{plant}: {reason}");
        }
        fs::remove_file(work.join("sub")).unwrap();
        fs::rename(work.join("old"), work.join("sub")).unwrap();
    }
    // What it may write can be shown to another as it is.
    fs::write(work.join("sub/result"), "found").unwrap();
    let mut second = inside(60, &format!("cat {}/sub/*", work.display()));
    view(&mut second).grant(&work.join("sub"), Access::Read);
    assert_eq!(said(&second), "found");
}

// Promises: JAIL-34
#[test]
fn a_socket_is_shown_to_be_written_to_or_not_at_all() {
    let host = directory();
    let socket = host.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for (access, refused) in [(Access::Read, true), (Access::Execute, true), (Access::Write, false)] {
        let mut spec = inside(61, &format!("test -S {} && echo there", socket.display()));
        view(&mut spec).grant(&socket, access);
        if refused {
            assert!(refusal(&spec).contains("is a socket"));
        } else {
            assert_eq!(said(&spec), "there\n");
        }
    }
}

// Promises: JAIL-7
#[test]
fn a_mount_point_inside_a_grant_is_never_a_link() {
    let host = directory();
    fs::create_dir(host.path().join("data")).unwrap();
    symlink("/", host.path().join("data/sub")).unwrap();
    let mut spec = inside(53, "exit 0");
    view(&mut spec).grant(&host.path().join("data"), Access::Write);
    let at = host.path().join("data/sub/etc");
    view(&mut spec).shown.push(BindMount { at, from: "/usr".into(), access: Access::Read, needed: true });
    let reason = refusal(&spec);
    assert!(reason.contains("without a symbolic link"), "{reason}");
}

// Promises: JAIL-2
#[test]
fn set_uid_files_give_nothing() {
    if skipped_without_root("set_uid_files_give_nothing") {
        return;
    }
    let host = directory();
    let tool = host.path().join("id");
    fs::copy("/usr/bin/id", &tool).unwrap();
    fs::set_permissions(&tool, Permissions::from_mode(0o4755)).unwrap();
    let mut spec = inside(54, &format!("{} -u", tool.display()));
    view(&mut spec).grant(host.path(), Access::Execute);
    assert_eq!(said(&spec).trim(), nobody(54).uid.to_string());
}

// Promises: JAIL-9
#[test]
fn a_program_by_descriptor_is_seen_at_its_path_while_it_is_the_checked_one() {
    let host = directory();
    let path = host.path().join("program");
    fs::copy("/bin/sh", &path).unwrap();
    let file = File::open(&path).unwrap();
    let seen = Path::new("/opt/plugin/program");
    let script = format!("{} -c 'echo again'; touch -c {0}", seen.display());
    let mut spec = inside(55, &script);
    spec.program = Program::Descriptor;
    view(&mut spec).program_at = Some(seen.into());
    let started = || talon_jail::spawn(&stage(), &spec, &with_program(&file), LONG);
    let outcome = finish(started().unwrap());
    assert_eq!(outcome.stdout, "again\n");
    assert!(outcome.stderr.contains("Read-only"), "{}", outcome.stderr);

    fs::remove_file(&path).unwrap();
    fs::copy("/bin/true", &path).unwrap();
    let error = started().map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("filesystem: the program is no longer the file"), "{error}");
}

#[test]
fn entries_may_lie_in_its_private_place() {
    let host = directory();
    fs::write(host.path().join("file"), "shown").unwrap();
    let mut spec = inside(56, "cat /run/plugin/s/host /run/plugin/beside /tmp/a/b/file; ls -A /tmp/jail/run");
    let from = host.path().join("file");
    for at in ["/run/plugin/s/host", "/run/plugin/beside"] {
        let entry = BindMount { at: at.into(), from: from.clone(), access: Access::Read, needed: true };
        view(&mut spec).shown.push(entry);
    }
    let entry =
        BindMount { at: "/tmp/a/b".into(), from: host.path().into(), access: Access::Read, needed: true };
    view(&mut spec).shown.push(entry);
    let text = said(&spec);
    assert!(text.starts_with("shownshownshown"), "{text}");
    view(&mut spec).shown.retain(|shown| !shown.at.starts_with("/run/plugin"));
    view(&mut spec).private.at = "/tmp/jail/run".into();
    assert!(said(&spec).contains("shownh\nm\ns\nt\n"));
}

#[test]
fn languages_and_certificates_are_there() {
    let script = "import ssl, pwd, os, tempfile, socket; tempfile.TemporaryFile(); os.urandom(4); \
                  ssl.create_default_context(); print(pwd.getpwuid(os.getuid()).pw_name)";
    if Path::new("/usr/bin/python3").exists() {
        assert_eq!(said(&inside(57, &format!("/usr/bin/python3 -c '{script}'"))), "plugin\n");
    } else {
        eprintln!("skipped a part of languages_and_certificates_are_there: no python3");
    }
    if Path::new("/etc/ssl/certs/ca-certificates.crt").exists() {
        let text =
            said(&inside(57, "grep -c BEGIN /etc/ssl/certs/ca-certificates.crt; ls -L /etc/localtime"));
        assert!(!text.starts_with("0\n"), "{text}");
    }
}

// Promises: JAIL-16
#[test]
fn no_further_user_namespace_can_be_made_in_one() {
    if is_root() {
        eprintln!("skipped no_further_user_namespace_can_be_made_in_one: root makes none to begin with");
        return;
    }
    let text = said(&inside(58, "unshare --user true; cat /proc/sys/user/max_user_namespaces"));
    assert!(text.contains("No space left") && text.starts_with("0\n"), "{text}");
}

#[test]
fn a_container_that_covers_parts_of_proc_is_named_with_the_way_out() {
    let script = "mount --bind /dev/null /proc/meminfo && \
                  exec setpriv --ambient-caps=-all --inh-caps=-all \"$0\" --isolated /bin/true";
    let output = Command::new("unshare")
        .args(["--user", "--map-user=1000", "--map-group=1000", "--keep-caps", "--mount", "sh", "-c", script])
        .arg(env!("CARGO_BIN_EXE_jail-fixture"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.starts_with("memory-group: cannot watch the memory of its processes: Operation not permitted"),
        "{said}"
    );
    assert!(said.contains("uncovered /proc"), "{said}");
}
