//! The compiled filters against what the profiles say, on both machines.

use super::*;
use crate::profile::rule::{ArgumentTest, Condition};
use crate::profile::simulate::{SimulatedCall, verdict};

const MACHINES: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];
const ANY: Network = Network::Host { connect: None, bind: None };

fn networks() -> [Network; 3] {
    [Network::None, Network::Loopback, ANY]
}

fn filters_of(name: &str, network: &Network, machine: Architecture) -> Vec<Vec<Instruction>> {
    compile(&Profile::builtin(name).unwrap(), network, machine, false).unwrap().filters
}

fn eperm() -> u32 {
    libc::SECCOMP_RET_ERRNO | libc::EPERM as u32
}

fn enosys() -> u32 {
    libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32
}

/// What the files say, read without compiling anything.
fn said(profile: &Profile, network: &Network, learn: bool, name: &str, arguments: &[u64; 6]) -> u32 {
    let refusal = match profile.default {
        DefaultAction::Errno => eperm(),
        DefaultAction::Kill => libc::SECCOMP_RET_KILL_PROCESS,
    };
    let of = |groups: &'static [CallGroup]| {
        groups.iter().filter(|group| group.matches(network) && group.calls.contains(&name))
    };
    let own = || profile.groups.iter().filter(|group| group.matches(network) && group.calls.contains(&name));
    let answer = |group: &CallGroup| match group.verdict {
        GroupAction::Allow => libc::SECCOMP_RET_ALLOW,
        GroupAction::Answer(None) => refusal,
        GroupAction::Answer(Some(number)) => libc::SECCOMP_RET_ERRNO | number as u32,
    };
    if let Some(never) = of(&NEVER.groups).find(|group| holds(&group.when, arguments)) {
        return answer(never);
    }
    if own().any(|group| group.verdict == GroupAction::Allow && holds(&group.when, arguments)) {
        return libc::SECCOMP_RET_ALLOW;
    }
    if learn {
        return libc::SECCOMP_RET_USER_NOTIF;
    }
    own().find(|group| group.verdict != GroupAction::Allow).map_or(refusal, answer)
}

fn holds(when: &[Condition], arguments: &[u64; 6]) -> bool {
    when.iter().all(|condition| {
        let whole = arguments[usize::from(condition.arg)];
        let value = if condition.wide { whole } else { u64::from(whole as u32) };
        let one_of = |values: &[u32], value| values.iter().any(|known| u64::from(*known) == value);
        match &condition.test {
            ArgumentTest::Is { mask: u32::MAX, values } => one_of(values, value),
            ArgumentTest::Is { mask, values } => one_of(values, value & u64::from(*mask)),
            ArgumentTest::IsNot(values) => !one_of(values, value),
            ArgumentTest::AnyBit(bits) => value & u64::from(*bits) != 0,
        }
    })
}

/// Values around those that the conditions on a call's argument name, some with bits that the kernel drops.
fn interesting(profile: &Profile, name: &str, arg: u8) -> Vec<u64> {
    let groups = NEVER.groups.iter().chain(&profile.groups).filter(|group| group.calls.contains(&name));
    let tests = groups.flat_map(|group| &group.when).filter(|condition| condition.arg == arg);
    let mut tests = tests.peekable();
    let mut all = vec![0];
    if tests.peek().is_some() || arg == 0 {
        all.push(1 << 32);
    }
    for condition in tests {
        match &condition.test {
            ArgumentTest::Is { mask, values } if *mask != u32::MAX => {
                all.extend(values.iter().flat_map(|value| [*value, value | !mask].map(u64::from)));
                all.push(mask.wrapping_add(1).into());
            }
            ArgumentTest::Is { values, .. } | ArgumentTest::IsNot(values) => {
                let around =
                    |value: &u32| [value.wrapping_sub(1), *value, value.wrapping_add(1)].map(u64::from);
                all.extend(values.iter().flat_map(around));
                all.extend(values.first().map(|value| u64::from(*value) | 1 << 32));
            }
            ArgumentTest::AnyBit(bits) => {
                all.extend([*bits, !bits, bits & bits.wrapping_neg(), 1 << 31].map(u64::from));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// How many arguments the next test varies, from the first on.
const VARIED: u8 = 4;

// Promises: JAIL-18
#[test]
fn filters_do_what_the_files_say() {
    let mut kill = Profile::builtin("strict").unwrap();
    kill.default = DefaultAction::Kill;
    // `ports` has the groups of `strict`.
    let profiles = ["strict", "wide"].map(|name| Profile::builtin(name).unwrap()).into_iter().chain([kill]);
    for profile in profiles {
        for (machine, network, learn) in MACHINES
            .into_iter()
            .flat_map(|machine| networks().into_iter().map(move |network| (machine, network)))
            .flat_map(|(machine, network)| [(machine, network.clone(), false), (machine, network, true)])
        {
            let filters = compile(&profile, &network, machine, learn).unwrap().filters;
            for number in 0..=machine.highest_number() {
                let Some(name) = machine.name(number) else { continue };
                let mut all = vec![[0; 6]];
                for arg in 0..VARIED {
                    let values = interesting(&profile, name, arg);
                    let with = |before: [u64; 6], value| {
                        let mut arguments = before;
                        arguments[usize::from(arg)] = value;
                        arguments
                    };
                    let more = |before: [u64; 6]| values.iter().map(move |value| with(before, *value));
                    all = all.into_iter().flat_map(more).collect();
                }
                for arguments in all {
                    let call = SimulatedCall { number, audit: machine.audit(), arguments };
                    let (is, should) =
                        (verdict(&filters, &call), said(&profile, &network, learn, name, &arguments));
                    assert_eq!(
                        is, should,
                        "{}, {network:?}, {machine:?}: {name}{arguments:x?}: {is:#x}",
                        profile.name
                    );
                }
            }
        }
    }
}

#[test]
fn conditions_look_at_no_argument_that_is_not_varied() {
    let mut groups = NEVER.groups.clone();
    groups.extend(Profile::names().flat_map(|name| Profile::builtin(name).unwrap().groups));
    assert!(groups.iter().flat_map(|group| &group.when).all(|condition| condition.arg < VARIED));
}

/// What no profile may open, written down a second time: the data files must not be able to lose one.
const FORBIDDEN: &[&str] = &[
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "pidfd_getfd",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "move_mount",
    "open_tree",
    "mount_setattr",
    "unshare",
    "setns",
    "keyctl",
    "add_key",
    "request_key",
    "bpf",
    "perf_event_open",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "userfaultfd",
    "reboot",
    "clock_settime",
    "settimeofday",
    "adjtimex",
    "clock_adjtime",
    "sethostname",
    "setdomainname",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "iopl",
    "ioperm",
    "open_by_handle_at",
    "name_to_handle_at",
    "fanotify_init",
    "fanotify_mark",
    "syslog",
    "vhangup",
    "modify_ldt",
    "move_pages",
    "migrate_pages",
    "process_madvise",
];

// Promises: JAIL-18
#[test]
fn what_is_forbidden_is_so_in_every_profile() {
    for (machine, network, name) in MACHINES
        .into_iter()
        .flat_map(|machine| networks().into_iter().map(move |network| (machine, network)))
        .flat_map(|(machine, network)| Profile::names().map(move |name| (machine, network.clone(), name)))
    {
        let filters = filters_of(name, &network, machine);
        let learning = compile(&Profile::builtin(name).unwrap(), &network, machine, true).unwrap().filters;
        let refused = |call: &str, arguments: &[u64], by: u32| {
            let call = SimulatedCall::new(machine, call, arguments);
            for filters in [&filters, &learning] {
                assert_eq!(verdict(filters, &call), by, "{name}, {network:?}, {machine:?}: {call:x?}");
            }
        };
        for call in FORBIDDEN.iter().filter(|call| machine.number(call).is_some()) {
            refused(call, &[], eperm());
        }
        for call in ["clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"] {
            refused(call, &[], enosys());
        }
        for flag in [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000] {
            refused("clone", &[flag], eperm());
            refused("clone", &[flag | 17], eperm());
            refused("clone", &[flag | 0x7f_0000_0000], eperm());
        }
        for request in [0x5412, 0x541c, 0x5423, 0x1_0000_5412, u64::MAX << 32 | 0x5412] {
            refused("ioctl", &[0, request], eperm());
        }
        refused("prctl", &[35], eperm());
        refused("personality", &[0x4_0000], eperm());

        let family = libc::SECCOMP_RET_ERRNO | libc::EAFNOSUPPORT as u32;
        // Packet, netlink, the kernel's cryptography, virtual machines, Bluetooth, XDP.
        for (number, kind) in [(17, 3), (16, 3), (38, 5), (40, 1), (31, 3), (44, 3)] {
            // Netlink's protocol 16 is the generic one, by which much else is reached.
            refused("socket", &[number, kind, 16], family);
            refused("socket", &[number | 1 << 32, kind, 16], family);
        }
        for inet in [2, 10] {
            let [raw, multipath] = match network {
                Network::None => [family; 2],
                _ => [eperm(), libc::SECCOMP_RET_ERRNO | libc::EPROTONOSUPPORT as u32],
            };
            for kind in [3, 3 | 0x80000, 3 | 0x800, 10, 4] {
                refused("socket", &[inet, kind, 0], raw);
            }
            refused("socket", &[inet, 1, 262], multipath);
            refused("socket", &[inet, 2, 1], multipath);
        }
    }
}

/// Calls that are partly allowed, and a use that is not: the call, its arguments, and the answer if it is not
/// allowed.
const IN_PART: &[(&str, &[u64], Option<i32>)] = &[
    ("prlimit64", &[1, 7, 0], Some(libc::EPERM)),
    ("prlimit64", &[4321, 7, 1], Some(libc::EPERM)),
    ("prlimit64", &[1 << 32, 7, 1], None),
    ("prlimit64", &[0, 4, 0], None),
    ("prlimit64", &[0, 4, 0x7fff_1234], Some(libc::EINVAL)),
    // A structure may well lie where the low half of its address is zero.
    ("prlimit64", &[0, 4, 0x7fff_0000_0000], Some(libc::EINVAL)),
    ("prlimit64", &[0, 4 | 1 << 32, 8], Some(libc::EINVAL)),
    ("setrlimit", &[4, 8], Some(libc::EINVAL)),
    ("setrlimit", &[7, 8], None),
    ("getrlimit", &[4, 8], None),
    ("sched_setaffinity", &[1], Some(libc::EPERM)),
    ("sched_setaffinity", &[2], None),
    ("sched_setscheduler", &[1], Some(libc::EPERM)),
    ("sched_setscheduler", &[0], None),
    ("sched_setparam", &[1], Some(libc::EPERM)),
    ("sched_setattr", &[1], Some(libc::EPERM)),
    ("setpriority", &[0, 1], Some(libc::EPERM)),
    ("setpriority", &[0, 0], None),
    ("setpriority", &[2, 0], Some(libc::EPERM)),
    ("ioprio_set", &[1, 1], Some(libc::EPERM)),
    ("ioprio_set", &[1, 0], None),
    ("ioprio_set", &[3, 70_000], Some(libc::EPERM)),
    ("chmod", &[8, 0o4755], Some(libc::EPERM)),
    ("chmod", &[8, 0o1777], None),
    ("fchmod", &[8, 0o2755], Some(libc::EPERM)),
    ("fchmodat", &[8, 8, 0o6755], Some(libc::EPERM)),
    ("fchmodat", &[8, 8, 0o755], None),
    ("fchmodat2", &[8, 8, 0o4000], Some(libc::EPERM)),
    ("creat", &[8, 0o4755], Some(libc::EPERM)),
    ("creat", &[8, 0o755], None),
    ("open", &[8, 0o101, 0o4755], Some(libc::EPERM)),
    ("open", &[8, 0o2020_0002, 0o2755], Some(libc::EPERM)),
    ("open", &[8, 0o101, 0o755], None),
    ("open", &[8, 0o20_0000, 0o4755], None),
    ("openat", &[8, 8, 0o101, 0o2755], Some(libc::EPERM)),
    ("openat", &[8, 8, 0o2020_0002, 0o4755], Some(libc::EPERM)),
    ("openat", &[8, 8, 0, u64::MAX], None),
    ("mknod", &[8, 0o10_4755], Some(libc::EPERM)),
    ("mknod", &[8, 0o10_0755], None),
    ("mknodat", &[8, 8, 0o10_2755], Some(libc::EPERM)),
    ("mkdirat", &[8, 8, 0o2755], None),
    ("fcntl", &[8, 1024, 0], Some(libc::EPERM)),
    ("fcntl", &[8, 1026, 0], Some(libc::EPERM)),
    ("fcntl", &[8, 1040, 0], Some(libc::EPERM)),
    ("fcntl", &[8, 1025, 0], None),
    ("fcntl", &[8, 1030, 0], None),
    ("sendto", &[8, 8, 1, 0x2000_4000], Some(libc::EOPNOTSUPP)),
    ("sendto", &[8, 8, 1, 0x4000], None),
    ("sendmsg", &[8, 8, 0x2000_0000], Some(libc::EOPNOTSUPP)),
    ("sendmsg", &[8, 8, 0x4000], None),
    ("sendmmsg", &[8, 8, 1, 0x2000_0000], Some(libc::EOPNOTSUPP)),
    ("setsockopt", &[8, 6, 23], Some(libc::EOPNOTSUPP)),
    ("setsockopt", &[8, 6, 30], Some(libc::EOPNOTSUPP)),
    ("setsockopt", &[8, 6, 1], None),
    ("setsockopt", &[8, 1, 23], None),
];

#[test]
fn what_is_closed_in_part_is_so_in_every_profile() {
    for (machine, name) in
        MACHINES.into_iter().flat_map(|machine| Profile::names().map(move |name| (machine, name)))
    {
        let filters = filters_of(name, &ANY, machine);
        let learning = compile(&Profile::builtin(name).unwrap(), &ANY, machine, true).unwrap().filters;
        for (call, arguments, answer) in IN_PART.iter().filter(|(call, ..)| machine.number(call).is_some()) {
            let expected =
                answer.map_or(libc::SECCOMP_RET_ALLOW, |errno| libc::SECCOMP_RET_ERRNO | errno as u32);
            for filters in [&filters, &learning] {
                let is = verdict(filters, &SimulatedCall::new(machine, call, arguments));
                assert_eq!(is, expected, "{name}, {machine:?}: {call}{arguments:x?}: {is:#x}");
            }
        }
    }
}

#[test]
fn sockets_follow_the_network() {
    let allowed = |name: &str, network: &Network, family: u64| {
        let filters = filters_of(name, network, Architecture::X86_64);
        let call = |kind| SimulatedCall::new(Architecture::X86_64, "socket", &[family, kind, 0]);
        [1, 2].map(|kind| verdict(&filters, &call(kind | 0x80000)) == libc::SECCOMP_RET_ALLOW)
    };
    for network in networks() {
        let [unix, inet, inet6] = [1, 2, 10].map(|family| allowed("strict", &network, family));
        assert_eq!(unix, [true; 2]);
        assert_eq!([inet, inet6], [[network != Network::None; 2]; 2]);
        assert_eq!(allowed("strict", &network, 16), [false; 2]);
        assert_eq!(allowed("wide", &network, 16), [network != Network::None; 2]);
    }
}

#[test]
fn other_machines_are_killed_and_new_calls_are_unknown() {
    let kill = libc::SECCOMP_RET_KILL_PROCESS;
    for machine in MACHINES {
        let filters = filters_of("strict", &ANY, machine);
        let of = |number, audit| verdict(&filters, &SimulatedCall { number, audit, arguments: [0; 6] });
        let read = machine.number("read").unwrap();
        assert_eq!(of(read, machine.audit()), libc::SECCOMP_RET_ALLOW);
        // 32-bit x86, 32-bit ARM, the other one, none.
        let other = MACHINES.into_iter().find(|other| *other != machine).unwrap();
        for audit in [0x4000_0003, 0x4000_0028, other.audit(), 0] {
            assert_eq!(of(read, audit), kill, "{audit:#x}");
            assert_eq!(of(machine.highest_number() + 1, audit), kill);
        }
        for new in [machine.highest_number() + 1, 0x3fff_ffff, u32::MAX] {
            assert_eq!(of(new, machine.audit()), enosys(), "{new:#x}");
        }
        let x32 = if machine == Architecture::X86_64 { kill } else { enosys() };
        for number in [X32, X32 | 1, X32 | 520, 0x8000_0000, u32::MAX - 1] {
            assert_eq!(of(number, machine.audit()), x32, "{number:#x}");
        }
    }
}

#[test]
fn a_profile_that_kills_does_so_for_all_but_what_libraries_fall_back_from() {
    let text = "description = \"d\"\nextends = \"strict\"\ndefault = \"kill\"";
    let filters =
        compile(&Profile::parse(text, "k").unwrap(), &ANY, Architecture::X86_64, false).unwrap().filters;
    let of = |name, arguments: &[u64]| {
        verdict(&filters, &SimulatedCall::new(Architecture::X86_64, name, arguments))
    };
    let kill = libc::SECCOMP_RET_KILL_PROCESS;
    for (name, arguments) in [("mount", [0; 2]), ("sync", [0; 2]), ("ioctl", [0, 0x5412]), ("socket", [2, 3])]
    {
        assert_eq!(of(name, &arguments), kill, "{name}");
    }
    assert_eq!(of("clone3", &[]), enosys());
    assert_eq!(of("ioctl", &[0, 1]), libc::SECCOMP_RET_ERRNO | libc::ENOTTY as u32);
    assert_eq!(of("socket", &[16, 3]), libc::SECCOMP_RET_ERRNO | libc::EAFNOSUPPORT as u32);
    assert_eq!(of("read", &[]), libc::SECCOMP_RET_ALLOW);
}

#[test]
fn named_ports_ask_for_landlock_that_has_them() {
    let abi = |name: &str, network: &Network| {
        Profile::builtin(name).unwrap().compile(network).unwrap().landlock_abi
    };
    assert_eq!([abi("strict", &ANY), abi("ports", &ANY), abi("wide", &ANY)], [2, 4, 2]);
    assert_eq!(abi("strict", &Network::Host { connect: Some(vec![443]), bind: None }), 4);
    assert_eq!(abi("strict", &Network::Host { connect: None, bind: Some(vec![]) }), 4);
}

#[test]
fn profiles_become_one_short_program() {
    for machine in MACHINES {
        for name in Profile::names() {
            let filters = filters_of(name, &Network::None, machine);
            // Joined alone they have more than a thousand.
            assert!(
                matches!(&filters[..], [one] if one.len() < 500),
                "{name} of {machine:?}: {:?}",
                filters.iter().map(Vec::len).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn a_profile_too_large_for_the_kernel_is_refused() {
    let all: String = (0..32)
        .map(|i| {
            format!(
                "[[allow]]\nwhy = \"w\"\ncalls = [\"ioctl\"]\nwhen = [{{ arg = 1, is = [{}] }}]\n",
                (0..32).map(|j| format!("{}", i * 32 + j)).collect::<Vec<_>>().join(",")
            )
        })
        .collect();
    let profile =
        Profile::parse(&format!("description = \"d\"\nextends = \"strict\"\n{all}"), "huge").unwrap();
    let refusal = profile.compile(&ANY).unwrap_err().to_string();
    assert!(refusal.starts_with("profile huge: cannot become a filter"), "{refusal}");
}
