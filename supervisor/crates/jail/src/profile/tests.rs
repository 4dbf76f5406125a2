//! Reading profiles.

use proptest::prelude::*;

use super::load::{BUILT_IN, REQUIRED_CALLS};
use super::never::forbidding_group;
use super::rule::GroupAction;
use super::syscalls::Architecture;
use super::*;
use crate::network::Network;

const ANY: Network = Network::Host { connect: None, bind: None };

fn refusal(text: &str) -> String {
    Profile::parse(text, "/etc/x/mine.toml").unwrap_err().to_string()
}

/// A group on line 3 of a profile that is right otherwise.
fn with_group(group: &str) -> String {
    format!("description = \"d\"\nextends = \"strict\"\n{group}")
}

#[test]
fn the_built_in_ones_are_whole() {
    assert_eq!(Profile::names().collect::<Vec<_>>(), ["strict", "ports", "wide"]);
    for name in Profile::names() {
        let profile = Profile::builtin(name).unwrap();
        assert_eq!(profile.name(), name);
        assert!(!profile.description().is_empty());
        for network in [Network::None, Network::Loopback, ANY] {
            let compiled = profile.compile(&network).unwrap();
            assert_eq!((compiled.name.as_str(), compiled.learn), (name, false));
            // seccompiler refuses 4,096 instructions and more; this is room for what is added in front.
            assert!(compiled.filters.iter().all(|filter| (4..4096).contains(&filter.len())));
        }
    }
    assert!(Profile::builtin("Strict").is_none());
}

#[test]
fn each_call_has_one_place_and_each_place_a_reason() {
    for (name, text) in BUILT_IN.iter().chain(&[("never", include_str!("../../profiles/never.toml"))]) {
        let profile = parser::parse_file(text, name).unwrap();
        let mut whys: Vec<_> = profile.groups.iter().map(|group| group.why.as_str()).collect();
        assert!(whys.iter().all(|why| why.split(' ').count() > 2), "{name}: a reason is a sentence");
        whys.sort_unstable();
        whys.dedup();
        assert_eq!(whys.len(), profile.groups.len(), "{name}: a reason is there twice");
        let whole = profile.groups.iter().filter(|group| group.when.is_empty() && group.networks.is_empty());
        let mut calls: Vec<_> = whole
            .filter(|group| group.verdict == GroupAction::Allow)
            .flat_map(|group| &group.calls)
            .collect();
        let count = calls.len();
        calls.sort_unstable();
        calls.dedup();
        assert_eq!(calls.len(), count, "{name}: a call is allowed twice");
    }
}

#[test]
fn defects_are_named_with_their_line_and_a_way_out() {
    let cases = [
        ("calls = [\"raed\"]\nwhy = \"w\"", "line 4: unknown system call `raed` (did you mean `read`?)"),
        ("why = \"w\"\ncalls = [\n\"read\",\n\"fstatatt\"]", "line 7: unknown system call `fstatatt` ("),
        ("why = \"w\"\ncalls = [\"zzzzzzzzzzzz\"]", "names are the kernel's"),
        ("why = \" \"\ncalls = [\"sync\"]", "line 4: say in `why`"),
        ("calls = [\"sync\"]", "missing field `why`"),
        ("why = \"w\"\ncalls = []", "from 1 to 256 calls"),
        (
            "why = \"w\"\ncalls = [\"mount\"]",
            "line 5: `mount` is open to no profile: changes what is mounted",
        ),
        ("why = \"w\"\ncalls = [\"clone3\"]", "`clone3` is open to no profile"),
        ("why = \"w\"\ncalls = [\"sync\"]\nerrno = \"EPERM\"", "line 6: `errno` belongs into an [[answer]]"),
        (
            "why = \"w\"\ncalls = [\"sync\"]\nwhen = [{ arg = 6, is = [1] }]",
            "line 6: `arg` counts from 0 to 5",
        ),
        ("why = \"w\"\ncalls = [\"sync\"]\nwhen = [{ arg = 0 }]", "one of `is`"),
        ("why = \"w\"\ncalls = [\"sync\"]\nwhen = [{ arg = 0, is = [1], is_not = [2] }]", "one of `is`"),
        ("why = \"w\"\ncalls = [\"sync\"]\nwhen = [{ arg = 0, mask = 1, is_not = [2] }]", "one of `is`"),
        ("why = \"w\"\ncalls = [\"sync\"]\nwhen = [{ arg = 0, any_bit = 0 }]", "one of `is`"),
        ("why = \"w\"\ncalls = [\"sync\"]\nwhen = [{ arg = 0, any_bit = 1, wide = true }]", "`wide` is for"),
        ("why = \"w\"\ncalls = [\"sync\"]\nwhen = [{ arg = 0, is = [] }]", "from 1 to 64 values"),
        ("why = \"w\"\ncalls = [\"sync\"]\nwhen = [{ arg = 0, mask = 1, is = [2] }]", "outside the mask"),
        ("why = \"w\"\ncalls = [\"sync\"]\nwhen = [{ arg = 0, is = [-1] }]", "line 6: invalid value"),
        ("why = \"w\"\ncalls = [\"sync\"]\nwhat = 1", "line 6: unknown field `what`"),
        ("why = \"w\"\ncalls = [\"sync\"]\nnetwork = [\"wifi\"]", "line 6: unknown variant `wifi`"),
    ];
    for (group, expected) in cases {
        let refusal = refusal(&with_group(&format!("[[allow]]\n{group}")));
        assert!(refusal.starts_with("profile /etc/x/mine.toml, line "), "{refusal}");
        assert!(refusal.contains(expected), "{refusal}\nis not\n{expected}");
    }
    let answer = |rest| with_group(&format!("[[answer]]\nwhy = \"w\"\ncalls = [\"sync\"]\n{rest}"));
    assert!(refusal(&answer("errno = \"EWHAT\"")).contains("line 6: `errno` is one of EPERM,"));
    assert!(refusal(&answer("when = [{ arg = 0, is = [1] }]")).contains("has no `when`"));

    assert!(refusal("extends = \"strict\"").contains("missing field `description`"));
    assert!(refusal("description = \"\"").contains("line 1: say in `description`"));
    assert!(refusal("description = \"d\"\ndefault = \"allow\"").contains("line 2: unknown variant `allow`"));
    assert!(refusal("description = \"d\"\nlandlock_abi = 0").contains("line 2: `landlock_abi` is a number"));
    assert!(
        refusal("description = \"d\"\nextends = \"strickt\"")
            .contains("line 2: `extends` names no built-in profile: `strickt` (one of strict, ports, wide)")
    );
    assert!(refusal("description = \"d\"").contains("no program can start without `brk`"));
    assert!(refusal("[[[").contains("line 1"));
}

#[test]
fn a_profile_of_ones_own_stands_alone_or_extends() {
    let calls: Vec<_> = REQUIRED_CALLS.iter().map(|call| format!("{call:?}")).collect();
    let alone = format!(
        "description = \"least\"\nlandlock_abi = 3\n[[allow]]\nwhy = \"it starts\"\ncalls = [{}]",
        calls.join(", ")
    );
    let alone = Profile::parse(&alone, "/etc/talon/profiles/least.toml").unwrap();
    assert_eq!((alone.name(), alone.description()), ("least", "least"));
    assert_eq!(alone.compile(&ANY).unwrap().landlock_abi, 3);

    let more = Profile::parse(&with_group("[[allow]]\nwhy = \"w\"\ncalls = [\"sync\"]"), "more").unwrap();
    assert_eq!(more.compile(&ANY).unwrap().landlock_abi, 2);
    assert_eq!(more.groups.len(), Profile::builtin("strict").unwrap().groups.len() + 1);
}

#[test]
fn names_of_the_other_machine_are_no_typos() {
    // `open` is x86_64's alone.
    for name in ["open", "openat", "fork", "arch_prctl"] {
        Profile::parse(&with_group(&format!("[[allow]]\nwhy = \"w\"\ncalls = [{name:?}]")), "p").unwrap();
    }
    assert!(Architecture::Aarch64.number("open").is_none());
    assert_eq!(
        [Architecture::X86_64, Architecture::Aarch64].map(|machine| machine.number("read")),
        [Some(0), Some(63)]
    );
}

#[test]
fn a_file_is_bounded_and_so_are_messages() {
    assert!(refusal(&"#".repeat((256 << 10) + 1)).contains("262145 bytes, the most is 262144"));
    let long = "x".repeat(200_000);
    for text in [
        with_group(&format!("[[allow]]\nwhy = \"w\"\ncalls = [\"{long}\"]")),
        with_group(&format!("{long} = 1")),
        format!("description = \"d\"\nextends = \"{long}\""),
    ] {
        assert!(refusal(&text).len() < 1000);
    }
    let calls = format!("[{}\"read\"]", "\"read\",".repeat(256));
    assert!(refusal(&with_group(&format!("[[allow]]\nwhy = \"w\"\ncalls = {calls}"))).contains("256 calls"));
    let groups = "[[allow]]\nwhy = \"w\"\ncalls = [\"sync\"]\n".repeat(257);
    assert!(refusal(&with_group(&groups)).contains("more than 256 groups"));
    let values: Vec<String> = (0..60).map(|value| value.to_string()).collect();
    let is = format!("is = [{}]", values.join(","));
    let group = format!(
        "[[allow]]\nwhy = \"w\"\ncalls = [\"sync\"]\nwhen = [{{ arg = 0, {is} }}, {{ arg = 1, {is} }}]"
    );
    assert!(refusal(&with_group(&group)).contains("3600 combinations, the most is 128"));
    assert!(!refusal(&with_group("\u{1b}[2J = 1")).contains('\u{1b}'));
}

fn used(name: &'static str, arguments: &[(u8, u32)]) -> ObservedCall {
    let number = Architecture::X86_64.number(name).unwrap();
    ObservedCall { name: Some(name), number, arguments: arguments.to_vec(), times: 1 }
}

#[test]
fn what_was_learned_is_a_profile() {
    let strict = Profile::builtin("strict").unwrap();
    let seen = [
        used("sync", &[]),
        used("shmget", &[]),
        used("ioctl", &[(1, 0x1234)]),
        used("ioctl", &[(1, 0x77)]),
        used("setsockopt", &[(1, 1), (2, 26)]),
        used("setsockopt", &[(1, 6), (2, 31)]),
        used("mknod", &[(1, 0o020_644)]),
        ObservedCall { name: None, number: 400, arguments: vec![], times: 3 },
    ];
    let text = strict.render_learned(&seen, "run \"it\" \\ with\nlines\u{1b}");
    let profile = Profile::parse(&text, "learned").unwrap();
    assert!(profile.description().contains("run \"it\" \\ with lines"), "{text}");
    let filters = super::compile::compile(&profile, &ANY, Architecture::X86_64, false).unwrap().filters;
    let open = |name: &str, arguments: &[u64]| {
        let call = simulate::SimulatedCall::new(Architecture::X86_64, name, arguments);
        simulate::verdict(&filters, &call) == libc::SECCOMP_RET_ALLOW
    };
    for (name, arguments, expected) in [
        ("sync", [0; 3], true),
        ("shmget", [0; 3], true),
        ("shmat", [0; 3], false),
        ("ioctl", [0, 0x77, 0], true),
        ("ioctl", [0, 0x1234, 0], true),
        ("ioctl", [0, 0x1235, 0], false),
        ("ioctl", [0, 0x5401, 0], true),
        ("setsockopt", [0, 1, 26], true),
        ("setsockopt", [0, 1, 50], false),
        ("setsockopt", [0, 6, 31], true),
        ("mknod", [0, 0x2000 | 0o600, 0], true),
        ("mknod", [0, 0x6000 | 0o600, 0], false),
    ] {
        assert_eq!(open(name, &arguments), expected, "{name}{arguments:x?}\n{text}");
    }
    // Nothing seen is a profile too.
    Profile::parse(&strict.render_learned(&[], ""), "learned").unwrap();
    // One of one's own is extended by way of what it extends.
    let own = Profile::parse(&with_group(""), "own").unwrap();
    assert!(
        own.render_learned(&seen, "x")
            .contains("extends = \"strict\"\n# The groups of `own` have to be copied")
    );
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = Profile::parse(&text, "p");
    }

    #[test]
    fn no_shuffled_profile_panics(cut in 0..8000_usize, with in "[\\[\\]{}=\",a-z0-9\n ]{0,8}") {
        let (_, text) = BUILT_IN[0];
        let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let _ = Profile::parse(&format!("{}{with}{}", &text[..cut], &text[cut..]), "p");
    }

    #[test]
    fn nothing_learned_makes_a_profile_that_cannot_be_read(
        command in "\\PC{0,300}",
        seen in prop::collection::vec((0..470_u32, prop::collection::vec((0..6_u8, any::<u32>()), 0..3)), 0..40),
    ) {
        let machine = Architecture::X86_64;
        let seen: Vec<ObservedCall> = seen.into_iter().map(|(number, arguments)| {
            ObservedCall { name: machine.name(number), number, arguments, times: 1 }
        }).filter(|used| used.name.is_none_or(|name| forbidding_group(name).is_none())).collect();
        let text = Profile::builtin("strict").unwrap().render_learned(&seen, &command);
        prop_assert!(Profile::parse(&text, "learned").is_ok(), "{text}");
    }
}
