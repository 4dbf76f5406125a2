//! A supervisor that is an ordinary user with the unit's capabilities gives plugins what root's gives them.

use std::os::unix::fs::{PermissionsExt, chown};

use talon_tests::{Builder, Stopped, Supervisor, is_root, program, repository, skip};

/// Unused, like the service's uid before its user is created.
const SERVICE: u32 = 54_321;

/// The capabilities of the unit, as setpriv takes them.
fn capabilities() -> Vec<String> {
    let unit = std::fs::read_to_string(repository().join("deploy/systemd/talon.service"))
        .expect("the unit is there");
    let line = unit.lines().find_map(|line| line.strip_prefix("AmbientCapabilities=")).expect("it has some");
    let bounding = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    assert_eq!(bounding, Some(line), "nothing of root's beside them");
    line.split_whitespace().map(|name| name.trim_start_matches("CAP_").to_lowercase()).collect()
}

/// A supervisor of the service's user with these capabilities, on directories as the unit makes them.
fn service(capabilities: &[String]) -> Builder {
    let builder = Builder::new();
    for (name, mode) in [("run", 0o711), ("data", 0o711)] {
        let dir = builder.scratch().join(name);
        std::fs::create_dir(&dir).expect("the scratch directory takes directories");
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        chown(&dir, Some(SERVICE), Some(SERVICE)).expect("root gives away what it likes");
    }
    as_service(builder, capabilities)
}

fn as_service(builder: Builder, capabilities: &[String]) -> Builder {
    let uid = SERVICE.to_string();
    let all: String = capabilities.iter().map(|name| format!(",+{name}")).collect();
    let (inherited, ambient) = (format!("--inh-caps=-all{all}"), format!("--ambient-caps=-all{all}"));
    builder.wrapped(&[
        "setpriv",
        "--reuid",
        &uid,
        "--regid",
        &uid,
        "--clear-groups",
        "--no-new-privs",
        &inherited,
        &ambient,
    ])
}

fn with_plugins(builder: Builder) -> Builder {
    builder.plugin("hello", &program("hello"), &[], "").misbehave(&[], "")
}

/// What of a jail's does not hold, of all plugins, but for where the cgroup was looked for.
async fn not_enforced(supervisor: &Supervisor) -> Vec<(String, String)> {
    let plugins = supervisor.client.status().await.plugins;
    let lines = plugins.into_iter().flat_map(|plugin| {
        let name = plugin.name;
        plugin.not_enforced.into_iter().map(move |line| (name.clone(), line))
    });
    lines.collect()
}

// Promises: UNIT-1
#[tokio::test]
async fn the_units_user_gives_what_root_gives() {
    let test = "the_units_user_gives_what_root_gives";
    if !is_root() {
        return skip(test, "only root can give an ordinary user capabilities");
    }
    let root = with_plugins(Builder::new()).start().await;
    let user = with_plugins(service(&capabilities())).start().await;
    assert_eq!(not_enforced(&user).await, not_enforced(&root).await, "{}", user.log());
    let status = std::fs::read_to_string(format!("/proc/{}/status", user.pid())).expect("it runs");
    assert!(status.contains(&format!("Uid:\t{SERVICE}\t{SERVICE}\t{SERVICE}\t{SERVICE}")), "{status}");

    let mut uids = vec![SERVICE];
    for name in ["hello", "misbehave"] {
        let instance = user.client.plugin(name).await.instances[0].clone();
        let status = std::fs::read_to_string(format!("/proc/{}/status", instance.pid)).expect("it runs");
        for none in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert!(status.contains(&format!("{none}:\t0000000000000000")), "{status}");
        }
        assert!(!uids.contains(&instance.uid) && instance.uid >= 65_600, "{instance:?}");
        uids.push(instance.uid);
    }
    let answer = user.client.call("misbehave", "echo", &[("text", "hi")]).await;
    assert!(answer.content.contains("hi"), "{answer:?}");
    drop(root);

    // What it leaves is its user's to take up again.
    let Stopped { processes, sockets, left, log, .. } = user.stop().await;
    assert_eq!((processes, sockets), (vec![], vec![]), "{log}");
    assert!(!log.contains("cannot be removed"), "{log}");
    let again = with_plugins(as_service(Builder::on_leftovers(left), &capabilities())).start().await;
    let instance = again.client.plugin("hello").await.instances[0].clone();
    assert!(uids.contains(&instance.uid), "a plugin keeps its uid");
}

// Promises: UNIT-2
#[tokio::test]
async fn each_capability_of_the_unit_is_needed() {
    let test = "each_capability_of_the_unit_is_needed";
    if !is_root() {
        return skip(test, "only root can give an ordinary user capabilities");
    }
    let all = capabilities();
    let whole = service(&all).misbehave(&[], "").start().await;
    let held = not_enforced(&whole).await;
    drop(whole);
    for lacking in &all {
        let rest: Vec<_> = all.iter().filter(|name| *name != lacking).cloned().collect();
        let builder = service(&rest).misbehave(&[], "");
        if lacking == "setpcap" {
            // Without it the bounding set stays as it is, which is said.
            let supervisor = builder.start().await;
            assert_ne!(not_enforced(&supervisor).await, held);
            continue;
        }
        // What keeps state is jailed like a plugin, and comes first.
        let refused = builder.start_refused().await;
        assert!(!refused.status.success(), "it starts without {lacking}");
    }
}
