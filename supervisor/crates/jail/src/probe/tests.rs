use rustix::thread::CapabilitySet;

use super::facts::{CgroupsMissing, MachineFacts};
use super::feature_probe::{FeatureError, FeatureProbe};
use super::*;

fn trial() -> FeatureProbe {
    let names = ["mount", "pid", "ipc", "uts", "cgroup", "net"];
    FeatureProbe {
        in_user_namespace: false,
        user: Ok(()),
        namespaces: names.map(|name| (name.to_owned(), Ok(()))).to_vec(),
        loopback: Ok(()),
        low_ports: Ok(()),
        proc: Ok(()),
        tmpfs: Ok(()),
        landlock: Ok(()),
        filter: Ok(()),
    }
}

/// A machine that gives everything.
fn best() -> MachineFacts {
    MachineFacts {
        uid: 0,
        held: CapabilitySet::all(),
        kernel: "6.18.0".into(),
        landlock: Ok(7),
        actions: vec!["errno".into(), "user_notif".into()],
        features: Ok(trial()),
        userns_switch: None,
        cgroup_controllers: Ok(vec!["memory", "pids", "cpu"]),
        pidfd: Ok(()),
        lowered: Vec::new(),
    }
}

fn no_group() -> Result<Vec<&'static str>, CgroupsMissing> {
    Err(CgroupsMissing {
        why: "the cgroup is not ours".into(),
        remedy: "set Delegate=yes in the service".into(),
    })
}

fn unprivileged() -> MachineFacts {
    MachineFacts {
        uid: 1000,
        held: CapabilitySet::empty(),
        features: Ok(FeatureProbe { in_user_namespace: true, ..trial() }),
        cgroup_controllers: no_group(),
        ..best()
    }
}

/// As in a container of the usual kind: its filter refuses the calls.
fn contained() -> MachineFacts {
    let refused = || Err::<(), _>(FeatureError::new("EPERM: Operation not permitted"));
    let trial = trial();
    let namespaces = trial.namespaces.iter().map(|(name, _)| (name.clone(), refused())).collect();
    let trial = FeatureProbe {
        in_user_namespace: true,
        user: refused(),
        namespaces,
        proc: refused(),
        tmpfs: refused(),
        ..trial
    };
    MachineFacts { features: Ok(trial), ..unprivileged() }
}

// Promises: CLI-16
#[test]
fn each_machine_has_its_tier() {
    let no_controllers = MachineFacts { cgroup_controllers: no_group(), ..best() };
    let no_setuid = MachineFacts { held: CapabilitySet::SYS_ADMIN, ..best() };
    let mut nothing = contained();
    nothing.landlock = Err(FeatureError::new("ENOSYS"));
    let mut landlock_alone = contained();
    for facts in [&mut nothing, &mut landlock_alone] {
        facts.features.as_mut().unwrap().filter = Err(FeatureError::new("EINVAL"));
    }
    let mut no_proc = unprivileged();
    no_proc.features.as_mut().unwrap().proc = Err(FeatureError::new("EPERM"));
    let unknown = MachineFacts { features: Err(FeatureError::new("the trial ended half-way")), ..best() };
    for (what, facts, tier) in [
        ("everything", best(), Tier::RootCgroup),
        ("no controllers", no_controllers, Tier::Root),
        ("root that may not change its uid", no_setuid, Tier::UserNamespaces),
        ("an ordinary user", unprivileged(), Tier::UserNamespaces),
        ("a masked /proc", no_proc, Tier::Bare),
        ("a container", contained(), Tier::Bare),
        ("Landlock alone", landlock_alone, Tier::Bare),
        ("nothing", nothing, Tier::None),
        ("what could not be tried is not there", unknown, Tier::Bare),
    ] {
        assert_eq!(Tier::of(&facts), tier, "{what}");
    }
}

// Promises: CLI-17
#[test]
fn enforce_accepts_the_first_three_and_these_lack_nothing_that_it_asks() {
    for facts in [best(), MachineFacts { cgroup_controllers: no_group(), ..best() }, unprivileged()] {
        let machine = Machine::from_facts(&facts);
        assert!(machine.accepted_by_enforce(), "{}: {:?}", machine.tier.name(), machine.protections);
    }
    let machine = Machine::from_facts(&contained());
    assert!(!machine.accepted_by_enforce());
    let refused: Vec<_> = machine.missing().map(|line| line.name).collect();
    assert_eq!(refused, ["own-uid", "process-count", "namespaces", "filesystem", "network", "memory-group"]);
}

// Promises: CLI-17
#[test]
fn a_tier_does_not_hide_a_filter_that_is_missing() {
    let facts = MachineFacts { landlock: Err(FeatureError::new("EOPNOTSUPP")), ..best() };
    let machine = Machine::from_facts(&facts);
    assert_eq!(machine.tier, Tier::RootCgroup);
    assert!(!machine.accepted_by_enforce());
    let old = Machine::from_facts(&MachineFacts { landlock: Ok(1), ..best() });
    assert!(old.missing().any(|line| line.detail() == "the kernel has ABI 1, profiles ask 2"));
}

// Promises: CLI-17
#[test]
fn whatever_lacks_says_how_to_get_it() {
    let switched_off =
        MachineFacts { userns_switch: Some("sysctl user.max_user_namespaces=10000"), ..contained() };
    for facts in [best(), unprivileged(), contained(), switched_off] {
        let machine = Machine::from_facts(&facts);
        for line in &machine.protections {
            assert!(!line.detail().is_empty(), "{}", line.name);
            assert_eq!(line.status != Status::Enforced, !line.remedy.is_empty(), "{line:?}");
        }
        let names = |line: &ProtectionSupport| line.name;
        assert_eq!(
            machine.protections.iter().map(names).collect::<std::collections::BTreeSet<_>>().len(),
            15
        );
    }
    let text = format!("{:?}", Machine::from_facts(&unprivileged()).report());
    assert!(text.contains("share uid 1000") && text.contains("(run the supervisor as root"), "{text}");
}

#[test]
fn root_is_told_which_capability_it_lacks_and_not_to_become_root() {
    let facts = MachineFacts { held: CapabilitySet::all() - CapabilitySet::SETUID, ..best() };
    let machine = Machine::from_facts(&facts);
    let own_uid = machine.protections.iter().find(|line| line.name == "own-uid").unwrap();
    assert_eq!(own_uid.remedy, "give the supervisor CAP_SETUID");
}

#[test]
fn loopback_is_not_promised_where_it_cannot_be_brought_up() {
    let trial =
        FeatureProbe { loopback: Err(FeatureError::new("EPERM: Operation not permitted")), ..trial() };
    let machine = Machine::from_facts(&MachineFacts { features: Ok(trial), ..best() });
    let network = machine.protections.iter().find(|line| line.name == "network").unwrap();
    assert!(network.detail().contains("CAP_NET_ADMIN"), "{}", network.detail());
    assert!(machine.accepted_by_enforce());
}

#[test]
fn a_proxy_that_cannot_listen_inside_is_told_with_what_it_needs() {
    let refused = || Err(FeatureError::new("EACCES: Permission denied"));
    for (trial, capability) in [
        (FeatureProbe { loopback: refused(), low_ports: refused(), ..trial() }, "CAP_NET_ADMIN"),
        (FeatureProbe { low_ports: refused(), ..trial() }, "CAP_NET_BIND_SERVICE"),
    ] {
        let machine = Machine::from_facts(&MachineFacts { features: Ok(trial), ..best() });
        let network = machine.protections.iter().find(|line| line.name == "network").unwrap().detail();
        for part in [capability, "TALON_PROXY_SOCKET", "EACCES"] {
            assert!(network.contains(part), "{network}");
        }
    }
}
