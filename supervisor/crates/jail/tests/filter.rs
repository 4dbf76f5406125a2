//! What the system call filter refuses, asked of the kernel by a program behind it, and that runtimes work.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use common::*;
use talon_jail::{
    Access, BindMount, ExitStatus, Isolation, JailSpec, JailedProgram, LoopbackListeners, Mode, Network,
    ObservedCall, Profile, SpawnError, Status,
};

const PYTHON: &str = "/usr/bin/python3";
const ANY: Network = Network::Host { connect: None, bind: None };

fn behind(mut wanted: JailSpec, profile: &Profile, network: Network) -> JailSpec {
    let profile = profile.compile(&network).unwrap();
    wanted.isolation =
        Some(Isolation { view: system(), network, listeners: LoopbackListeners::default(), profile });
    wanted
}

fn signal(outcome: &Outcome) -> Option<i32> {
    match outcome.status {
        ExitStatus::Signal { signal, .. } => Some(signal),
        _ => None,
    }
}

fn strict() -> Profile {
    Profile::builtin("strict").unwrap()
}

/// Whether a program is there; says so when a test goes without.
fn is_there(program: &str) -> bool {
    let there = Path::new(program).exists();
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}

/// A Python program that can make any system call: `call(number, …)` gives 0 or the name of the error.
fn python(script: &str) -> JailSpec {
    let prelude = "\
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
errno.errorcode[errno.EOPNOTSUPP] = 'EOPNOTSUPP'  # which has another name too
def call(number, *arguments):
    ctypes.set_errno(0)
    done = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments])
    return errno.errorcode[ctypes.get_errno()] if done == -1 else 0
";
    spec(&[PYTHON, "-c", &format!("{prelude}{script}")])
}

/// The errors of some calls, by a program behind `profile` and `network`.
fn errors(profile: &Profile, network: Network, calls: &[(&str, libc::c_long, &[u64])]) -> Vec<String> {
    let script: String = calls
        .iter()
        .map(|(_, number, arguments)| {
            let arguments: String = arguments.iter().map(|argument| format!(", {argument}")).collect();
            format!("print(call({number}{arguments}), flush=True)\n")
        })
        .collect();
    let outcome = run(&behind(python(&script), profile, network));
    assert_eq!(outcome.status, ExitStatus::Code(0), "{}", outcome.stderr);
    calls.iter().zip(outcome.stdout.lines()).map(|((name, ..), error)| format!("{name} {error}")).collect()
}

// Promises: JAIL-17
#[test]
fn what_no_profile_opens_is_refused() {
    if !is_there(PYTHON) {
        return;
    }
    let calls: &[(&str, libc::c_long, &[u64])] = &[
        ("mount", libc::SYS_mount, &[0, 0, 0, 0, 0]),
        ("umount2", libc::SYS_umount2, &[0, 0]),
        ("unshare", libc::SYS_unshare, &[0]),
        ("unshare(NEWUSER)", libc::SYS_unshare, &[0x1000_0000]),
        ("setns", libc::SYS_setns, &[u64::MAX, 0]),
        ("clone(NEWUSER)", libc::SYS_clone, &[0x1000_0011, 0, 0, 0, 0]),
        ("keyctl", libc::SYS_keyctl, &[0, 0, 0]),
        ("add_key", libc::SYS_add_key, &[0, 0, 0, 0, 0]),
        ("ptrace", libc::SYS_ptrace, &[0, 0, 0, 0]),
        ("process_vm_readv", libc::SYS_process_vm_readv, &[1, 0, 0, 0, 0, 0]),
        ("bpf", libc::SYS_bpf, &[0, 0, 0]),
        ("perf_event_open", libc::SYS_perf_event_open, &[0, 0, 0, 0, 0]),
        ("userfaultfd", libc::SYS_userfaultfd, &[0]),
        ("init_module", libc::SYS_init_module, &[0, 0, 0]),
        ("kexec_load", libc::SYS_kexec_load, &[0, 0, 0, 0]),
        ("reboot", libc::SYS_reboot, &[0, 0, 0, 0]),
        ("clock_settime", libc::SYS_clock_settime, &[99, 0]),
        ("sethostname", libc::SYS_sethostname, &[0, 0]),
        ("chroot", libc::SYS_chroot, &[0]),
        ("prctl(SET_MM)", libc::SYS_prctl, &[35, 0, 0, 0, 0]),
        ("TIOCSTI", libc::SYS_ioctl, &[0, 0x5412, 0]),
        ("TIOCSTI with bits above", libc::SYS_ioctl, &[0, 0x1_0000_5412, 0]),
        ("TIOCLINUX", libc::SYS_ioctl, &[0, 0x541c, 0]),
    ];
    let ends = |error: &str| calls.iter().map(|(name, ..)| format!("{name} {error}")).collect::<Vec<_>>();
    for name in Profile::names() {
        assert_eq!(errors(&Profile::builtin(name).unwrap(), ANY, calls), ends("EPERM"), "{name}");
    }

    let unknown: &[(&str, libc::c_long, &[u64])] = &[
        ("clone3", libc::SYS_clone3, &[0, 0]),
        ("io_uring_setup", libc::SYS_io_uring_setup, &[0, 0]),
        ("io_uring_enter", libc::SYS_io_uring_enter, &[u64::MAX, 0]),
        ("io_uring_register", libc::SYS_io_uring_register, &[u64::MAX, 0]),
        ("a call of tomorrow", 3000, &[]),
        ("none", -1, &[]),
    ];
    let ends: Vec<_> = unknown.iter().map(|(name, ..)| format!("{name} ENOSYS")).collect();
    assert_eq!(errors(&strict(), ANY, unknown), ends);
}

/// Without the filter the same calls get other answers, or the test above would prove nothing.
#[test]
fn the_filter_is_what_refuses() {
    if !is_there(PYTHON) {
        return;
    }
    let script = format!(
        "print(call({}, 0), call({}, 0, 0x1541, 0), call({}, 0, 0))",
        libc::SYS_unshare,
        libc::SYS_ioctl,
        libc::SYS_clone3
    );
    let free = run(&python(&script)).stdout;
    let bound = run(&behind(python(&script), &strict(), Network::None)).stdout;
    assert_eq!((free.trim(), bound.trim()), ("0 ENOTTY EINVAL", "EPERM ENOTTY ENOSYS"));
}

/// Calls that are partly forbidden, and their allowed uses: these get as far as the kernel's own errors. The
/// descriptor 999 and the address 0 do not exist.
#[test]
fn what_reaches_beyond_the_program_is_refused() {
    if !is_there(PYTHON) {
        return;
    }
    const FASTOPEN: u64 = 0x2000_0000;
    let calls: &[(&str, libc::c_long, &[u64], &str)] = &[
        ("the monitor's limits", libc::SYS_prlimit64, &[1, 7, 0, 0], "EPERM"),
        ("its own limits", libc::SYS_prlimit64, &[0, 7, 0, 0], "0"),
        ("a limit is set", libc::SYS_prlimit64, &[0, 7, 1, 0], "EFAULT"),
        ("dumps are read", libc::SYS_prlimit64, &[0, 4, 0, 0], "0"),
        ("dumps", libc::SYS_prlimit64, &[0, 4, 1, 0], "EINVAL"),
        ("dumps, from a round address", libc::SYS_prlimit64, &[0, 4, 1 << 32, 0], "EINVAL"),
        ("dumps, by the older call", libc::SYS_setrlimit, &[4, 1], "EINVAL"),
        ("another, by the older call", libc::SYS_setrlimit, &[7, 1], "EFAULT"),
        ("the monitor's cores", libc::SYS_sched_setaffinity, &[1, 0, 0], "EPERM"),
        ("its own cores", libc::SYS_sched_setaffinity, &[0, 8, 1], "EFAULT"),
        ("the monitor's class", libc::SYS_sched_setscheduler, &[1, 0, 1], "EPERM"),
        ("its own class", libc::SYS_sched_setscheduler, &[0, 0, 1], "EFAULT"),
        ("the monitor's order", libc::SYS_setpriority, &[0, 1, 19], "EPERM"),
        ("its own order", libc::SYS_setpriority, &[0, 0, 19], "0"),
        ("its uid's order", libc::SYS_setpriority, &[2, 0, 19], "EPERM"),
        ("the monitor's disk", libc::SYS_ioprio_set, &[1, 1, 0], "EPERM"),
        ("its own disk", libc::SYS_ioprio_set, &[1, 0, 0], "0"),
        ("its uid's disk", libc::SYS_ioprio_set, &[3, 0, 0], "EPERM"),
        ("setuid", libc::SYS_fchmod, &[999, 0o4755], "EPERM"),
        ("sticky", libc::SYS_fchmod, &[999, 0o1777], "EBADF"),
        ("setgid", libc::SYS_fchmodat, &[999, 0, 0o2755], "EPERM"),
        ("setuid by the newest call", libc::SYS_fchmodat2, &[999, 0, 0o4755, 0], "EPERM"),
        ("made setuid", libc::SYS_openat, &[999, 0, 0o101, 0o4755], "EPERM"),
        ("made setgid without a name", libc::SYS_openat, &[999, 0, 0o2020_0002, 0o2755], "EPERM"),
        ("not made", libc::SYS_openat, &[999, 0, 0, 0o6755], "EFAULT"),
        ("a node, setuid", libc::SYS_mknodat, &[999, 0, 0o10_4755, 0], "EPERM"),
        ("a lease", libc::SYS_fcntl, &[0, 1024, 0], "EPERM"),
        ("notes of changes", libc::SYS_fcntl, &[0, 1026, 0], "EPERM"),
        ("flags", libc::SYS_fcntl, &[999, 1, 0], "EBADF"),
        ("fast open", libc::SYS_sendto, &[999, 0, 0, FASTOPEN, 0, 0], "EOPNOTSUPP"),
        ("sending", libc::SYS_sendto, &[999, 0, 0, 0, 0, 0], "EBADF"),
        ("fast open of a message", libc::SYS_sendmsg, &[999, 0, FASTOPEN], "EOPNOTSUPP"),
        ("fast open of messages", libc::SYS_sendmmsg, &[999, 0, 0, FASTOPEN], "EOPNOTSUPP"),
        ("fast open to come", libc::SYS_setsockopt, &[999, 6, 30, 0, 0], "EOPNOTSUPP"),
        ("fast open as a server", libc::SYS_setsockopt, &[999, 6, 23, 0, 0], "EOPNOTSUPP"),
        ("another option", libc::SYS_setsockopt, &[999, 6, 1, 0, 0], "EBADF"),
    ];
    let made: Vec<_> =
        calls.iter().map(|(name, number, arguments, _)| (*name, *number, *arguments)).collect();
    let expected: Vec<_> = calls.iter().map(|(name, .., error)| format!("{name} {error}")).collect();
    for name in Profile::names() {
        assert_eq!(errors(&Profile::builtin(name).unwrap(), ANY, &made), expected, "{name}");
    }
    #[cfg(target_arch = "x86_64")]
    {
        let older: &[(&str, libc::c_long, &[u64])] = &[
            ("chmod", libc::SYS_chmod, &[0, 0o4755]),
            ("creat", libc::SYS_creat, &[0, 0o2755]),
            ("open", libc::SYS_open, &[0, 0o101, 0o4755]),
            ("mknod", libc::SYS_mknod, &[0, 0o10_4755, 0]),
        ];
        let ends: Vec<_> = older.iter().map(|(name, ..)| format!("{name} EPERM")).collect();
        assert_eq!(errors(&strict(), ANY, older), ends);
        let plain: Vec<(&str, libc::c_long, &[u64])> = vec![
            ("chmod", libc::SYS_chmod, &[0, 0o755]),
            ("creat", libc::SYS_creat, &[0, 0o755]),
            ("open", libc::SYS_open, &[0, 0, 0o4755]),
        ];
        let ends: Vec<_> = plain.iter().map(|(name, ..)| format!("{name} EFAULT")).collect();
        assert_eq!(errors(&strict(), ANY, &plain), ends);
    }
}

/// `openat2` has the mode in memory. Programs that write to the host do not have it, all others keep it.
#[test]
fn no_file_on_the_host_becomes_set_user_id() {
    if !is_there(PYTHON) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    // struct open_how: flags, mode, resolve.
    let script = format!(
        "import os, struct
def opened(path, flags, mode):
    name, how = ctypes.create_string_buffer(path.encode()), struct.pack('QQQ', flags, mode, 0)
    how = ctypes.create_string_buffer(how, 24)
    return call({}, -100, ctypes.addressof(name), ctypes.addressof(how), 24)
print(opened('/usr', 0, 0), opened('{path}/new', os.O_CREAT | os.O_WRONLY, 0o4755))",
        libc::SYS_openat2
    );
    let behind = |access| {
        let mut wanted = behind(python(&script), &strict(), Network::None);
        let view = &mut wanted.isolation.as_mut().unwrap().view;
        view.shown.push(BindMount { at: path.into(), from: path.into(), access, needed: true });
        run(&wanted)
    };
    let outcome = behind(Access::Write);
    assert_eq!(outcome.stdout, "ENOSYS ENOSYS\n", "{}", outcome.stderr);
    assert!(!directory.path().join("new").exists());
    let outcome = behind(Access::Read);
    assert!(matches!(outcome.stdout.as_str(), "0 EROFS\n" | "0 EACCES\n"), "{}", outcome.stdout);
}

// Promises: JAIL-19, JAIL-44
#[test]
fn sockets_follow_the_network() {
    if !is_there(PYTHON) {
        return;
    }
    let calls: &[(&str, libc::c_long, &[u64])] = &[
        ("unix", libc::SYS_socket, &[1, 1, 0]),
        ("pair", libc::SYS_socketpair, &[2, 1, 0, 0]),
        ("tcp", libc::SYS_socket, &[2, 1 | 0x80000, 0]),
        ("udp6", libc::SYS_socket, &[10, 2, 0]),
        ("raw", libc::SYS_socket, &[2, 3, 255]),
        ("ping", libc::SYS_socket, &[2, 2, 1]),
        ("netlink", libc::SYS_socket, &[16, 3, 0]),
        ("packet", libc::SYS_socket, &[17, 3, 0]),
        ("vsock", libc::SYS_socket, &[40, 1, 0]),
        ("alg", libc::SYS_socket, &[38, 5, 0]),
    ];
    let none = [
        "unix 0",
        "pair EPERM",
        "tcp EAFNOSUPPORT",
        "udp6 EAFNOSUPPORT",
        "raw EAFNOSUPPORT",
        "ping EAFNOSUPPORT",
        "netlink EAFNOSUPPORT",
        "packet EAFNOSUPPORT",
        "vsock EAFNOSUPPORT",
        "alg EAFNOSUPPORT",
    ];
    let any = [
        "unix 0",
        "pair EPERM",
        "tcp 0",
        "udp6 0",
        "raw EPERM",
        "ping EPROTONOSUPPORT",
        "netlink EAFNOSUPPORT",
        "packet EAFNOSUPPORT",
        "vsock EAFNOSUPPORT",
        "alg EAFNOSUPPORT",
    ];
    assert_eq!(errors(&strict(), Network::None, calls), none);
    assert_eq!(errors(&strict(), Network::Loopback, calls), any);
    assert_eq!(errors(&strict(), ANY, calls), any);
    // No rule limits UDP to ports, so there is none where TCP is limited.
    let ports = Network::Host { connect: Some(vec![443]), bind: None };
    let listed = any.map(|line| if line == "udp6 0" { "udp6 EACCES" } else { line });
    if talon_jail::probe(&stage()).protections.iter().any(|line| line.detail().contains("TCP ports")) {
        assert_eq!(errors(&strict(), ports, calls), listed);
    } else {
        eprintln!(
            "skipped sockets_follow_the_network with ports: Landlock has no rule for them here (Linux 6.7)"
        );
    }
}

// Promises: JAIL-43
#[test]
fn the_hosts_files_are_not_watched_in_strict() {
    if !is_there(PYTHON) {
        return;
    }
    let calls: &[(&str, libc::c_long, &[u64])] =
        &[("init", libc::SYS_inotify_init1, &[0]), ("add", libc::SYS_inotify_add_watch, &[0, 0, 1])];
    assert_eq!(errors(&strict(), Network::None, calls), ["init ENOSYS", "add ENOSYS"]);
    let wide = Profile::builtin("wide").unwrap();
    assert_eq!(errors(&wide, Network::None, calls)[0], "init 0");
}

// Promises: JAIL-17
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_x32_and_of_32_bits_end_the_process() {
    if !is_there(PYTHON) {
        return;
    }
    for number in [0x4000_0000_i64 | libc::SYS_getpid, 0x4000_0000 | 520, 0x7fff_ffff] {
        let outcome = run(&behind(python(&format!("print(call({number}))")), &strict(), ANY));
        assert_eq!(signal(&outcome), Some(libc::SIGSYS), "{number:#x}: {}", outcome.stdout);
    }
    // mov eax, 20 (getpid); int 0x80; ret
    let script = "\
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex('b814000000cd80c3'))
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
print(ctypes.CFUNCTYPE(ctypes.c_int)(at)())";
    let free = run(&python(script));
    let outcome = run(&behind(python(script), &strict(), ANY));
    // A kernel without 32-bit calls kills it anyway.
    let expected = if free.status == ExitStatus::Code(0) { libc::SIGSYS } else { libc::SIGSEGV };
    assert_eq!(signal(&outcome), Some(expected));
}

// Promises: JAIL-17
#[test]
fn a_profile_may_kill() {
    if !is_there(PYTHON) {
        return;
    }
    let text = "description = \"d\"\nextends = \"strict\"\ndefault = \"kill\"";
    let kill = Profile::parse(text, "kill").unwrap();
    let outcome = run(&behind(sh("exit 3"), &kill, Network::None));
    assert_eq!(outcome.status, ExitStatus::Code(3));
    let script = format!("call({}, 0)", libc::SYS_unshare);
    let outcome = run(&behind(python(&script), &kill, Network::None));
    assert_eq!(signal(&outcome), Some(libc::SIGSYS));
    // What runtimes fall back from does not kill.
    let script = format!("print(call({}, 16, 3, 0), call({}, 0, 0))", libc::SYS_socket, libc::SYS_clone3);
    let outcome = run(&behind(python(&script), &kill, Network::None));
    assert_eq!(outcome.stdout, "EAFNOSUPPORT ENOSYS\n");
}

// Promises: JAIL-20
#[test]
fn children_stay_behind_the_filter() {
    if !is_there(PYTHON) {
        return;
    }
    let inner = format!("print(call({}, 0))", libc::SYS_unshare);
    let script = format!("import subprocess, sys; subprocess.run([sys.executable, '-c', {:?}])", {
        let argv = python(&inner).argv;
        argv[2].to_str().unwrap().to_owned()
    });
    assert_eq!(run(&behind(spec(&[PYTHON, "-c", &script]), &strict(), Network::None)).stdout, "EPERM\n");
}

#[test]
fn the_report_says_whether_it_holds() {
    let line = |jailed: &JailedProgram| status(jailed, "system-calls").clone();
    let jailed = start(&behind(sh("grep Seccomp: /proc/self/status"), &strict(), Network::None)).unwrap();
    assert_eq!(line(&jailed), Status::Enforced);
    assert!(jailed.learner.is_none());
    assert_eq!(finish(jailed).stdout, "Seccomp:\t2\n");

    let jailed = start(&sh("grep Seccomp: /proc/self/status")).unwrap();
    assert_eq!(line(&jailed), Status::Missing("not asked for".into()));
    assert_eq!(finish(jailed).stdout, "Seccomp:\t0\n");

    let mut off = behind(sh("exit 0"), &strict(), Network::None);
    off.mode = Mode::Off;
    let jailed = start(&off).unwrap();
    assert!(matches!(line(&jailed), Status::Missing(text) if text.contains("off")));
    finish(jailed);
}

#[test]
fn a_filter_that_cannot_be_loaded_refuses_the_program() {
    for filters in [vec![], vec![vec![]], vec![vec![(0xffff, 0, 0, 0)]], vec![vec![(6, 0, 0, 0); 5000]]] {
        let mut wanted = behind(sh("exit 0"), &strict(), Network::None);
        wanted.isolation.as_mut().unwrap().profile.filters = filters;
        let Err(SpawnError::Step { step, reason }) = start(&wanted) else { panic!("it was started") };
        assert_eq!(step, "system-calls");
        assert!(reason.contains("`strict`"), "{reason}");
        wanted.mode = Mode::BestEffort;
        let jailed = start(&wanted).unwrap();
        assert!(matches!(status(&jailed, "system-calls"), Status::Missing(_)));
        finish(jailed);
    }
}

/// What runtimes do at their start and after: each ends with "fine".
///
/// By hand, with the same result: Go (HTTP, child processes, signals), Java 17 and 25 (HTTP server and
/// client, child processes, garbage collection on all cores), a PyInstaller bundle, `npm`, `python -m venv`.
#[test]
fn runtimes_work_behind_strict() {
    const MODULES: &str = "\
import ssl, threading, subprocess, asyncio, multiprocessing, sqlite3, tempfile, shutil, socket, os, mmap, select
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert subprocess.run(['/bin/echo', 'x'], capture_output=True).stdout == b'x\\n'
async def both():
    server = await asyncio.start_unix_server(lambda r, w: w.close(), path)
    r, w = await asyncio.open_unix_connection(path)
    assert await r.read() == b''
    p = await asyncio.create_subprocess_exec('/bin/true'); assert await p.wait() == 0
where = tempfile.mkdtemp(); path = where + '/s'
asyncio.run(both())
here, there = multiprocessing.Pipe()
p = multiprocessing.get_context('fork').Process(target=lambda: there.send(1)); p.start(); p.join()
assert here.recv() == 1
sqlite3.connect(where + '/db').execute('create table t (a)')
open(where + '/f', 'w').write('x'); shutil.copy2(where + '/f', where + '/g')
ssl.create_default_context(); os.urandom(4); os.cpu_count(); os.sched_getaffinity(0)
shutil.rmtree(where); print('fine')";
    const NODE: &str = "\
const { Worker } = require('worker_threads'), fs = require('fs'), net = require('net'), os = require('os');
const where = fs.mkdtempSync(os.tmpdir() + '/n');
new Worker(\"require('worker_threads').parentPort.postMessage(1)\", { eval: true }).on('message', () => {
  require('crypto').pbkdf2('a', 'b', 10, 8, 'sha256', () => {
    const server = net.createServer(c => c.end()).listen(where + '/s', () => {
      net.connect(where + '/s').on('close', () => {
        server.close(); require('child_process').execFileSync('/bin/true');
        fs.rmSync(where, { recursive: true }); os.cpus(); console.log('fine');
      }).resume();
    });
  });
});";
    const NAMES: &str = "import socket; s = socket.create_server(('127.0.0.1', 0)); \
        socket.create_connection(s.getsockname()); socket.getaddrinfo('127.0.0.1', 1); print('fine')";
    const SHELL: &str =
        "ls -la /usr >&2 && cp -a /usr/lib/os-release \"$TMPDIR/copy\" && rm \"$TMPDIR/copy\" && echo fine";
    let programs: &[(&[&str], Network)] = &[
        (&["/bin/sh", "-c", SHELL], Network::None),
        (&[PYTHON, "-c", MODULES], Network::None),
        (&[PYTHON, "-c", NAMES], ANY),
        (&["/usr/bin/node", "-e", NODE], Network::None),
        (&["/usr/bin/perl", "-e", "(fork // die) || exit; wait; print \"fine\\n\""], Network::None),
        (&["/usr/bin/java", "-version"], Network::None),
        (&["/usr/bin/java", "-version"], ANY),
    ];
    for (argv, network) in programs {
        if !is_there(argv[0]) {
            continue;
        }
        let mut wanted = behind(spec(argv), &strict(), network.clone());
        wanted.identity = is_root().then(|| nobody(60));
        let directory = tempfile::tempdir().unwrap();
        let owner = wanted.identity.map(|identity| identity.uid);
        std::os::unix::fs::chown(directory.path(), owner, owner).unwrap();
        wanted.env.push(("TMPDIR".into(), directory.path().into()));
        let view = &mut wanted.isolation.as_mut().unwrap().view;
        let show =
            |path: &Path, access| BindMount { at: path.into(), from: path.into(), access, needed: false };
        view.shown.push(show(directory.path(), Access::Write));
        // Debian's Java has its settings there.
        for path in ["/etc/alternatives", "/etc/java-17-openjdk", "/etc/ssl"] {
            view.shown.push(show(Path::new(path), Access::Read));
        }
        let outcome = run(&wanted);
        assert_eq!(outcome.status, ExitStatus::Code(0), "{argv:?}: {}", outcome.stderr);
        assert!(outcome.stdout == "fine\n" || argv[1] == "-version", "{argv:?}: {}", outcome.stdout);
    }
}

// Promises: JAIL-21
#[test]
fn learning_lets_through_and_tells() {
    if !is_there(PYTHON) {
        return;
    }
    let script = format!(
        "print(call({sync}), call({sync}), call({ioctl}, 0, 0x1541, 0), call({prctl}, 33, 0), call({unshare}, 0), \
         call({clone3}, 0, 0), call({socket}, 17, 3, 0))",
        sync = libc::SYS_sync,
        ioctl = libc::SYS_ioctl,
        prctl = libc::SYS_prctl,
        unshare = libc::SYS_unshare,
        clone3 = libc::SYS_clone3,
        socket = libc::SYS_socket,
    );
    let mut wanted = behind(python(&script), &strict(), Network::None);
    let profile = strict().compile_learning(&Network::None).unwrap();
    wanted.isolation.as_mut().unwrap().profile = profile;
    let mut jailed = start(&wanted).unwrap();
    assert!(matches!(status(&jailed, "system-calls"), Status::StandIn(text) if text.contains("learning")));
    let learner = jailed.learner.take().unwrap();
    let outcome = finish(jailed);
    // What no profile opens stays closed: it has nothing to be learned.
    assert_eq!(outcome.stdout, "0 0 ENOTTY EINVAL EPERM ENOSYS EAFNOSUPPORT\n", "{}", outcome.stderr);
    let used = learner.finish();
    let told: Vec<_> = used
        .iter()
        .map(|ObservedCall { name, arguments, times, .. }| (name.unwrap(), arguments.as_slice(), *times))
        .collect();
    let expected: [(_, &[_], _); 3] =
        [("ioctl", &[(1, 0x1541)], 1), ("prctl", &[(0, 33)], 1), ("sync", &[], 2)];
    let mut sorted = told.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);

    let learned = Profile::parse(&strict().render_learned(&used, "python3 -c …"), "learned").unwrap();
    let mut wanted = behind(python(&script), &learned, Network::None);
    wanted.mode = Mode::Enforce;
    assert_eq!(run(&wanted).stdout, "0 0 ENOTTY EINVAL EPERM ENOSYS EAFNOSUPPORT\n");
}

#[test]
fn learning_ends_with_the_program_even_if_nobody_listens() {
    let mut wanted = behind(sh("sync; echo done"), &strict(), Network::None);
    wanted.isolation.as_mut().unwrap().profile = strict().compile_learning(&Network::None).unwrap();
    let mut jailed = start(&wanted).unwrap();
    drop(jailed.learner.take());
    assert_eq!(finish(jailed).stdout, "done\n");
}
