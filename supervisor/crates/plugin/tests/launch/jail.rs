//! What a plugin that the registry starts has around it. What each protection is worth is for the jail's own
//! tests.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use talon_jail::Mode;
use talon_plugin::Plugin;
use talon_plugin_config::PluginSpec;
use talon_plugin_config::discover::{SpecDefaults, scan};
use talon_plugin_config::spec::{NetworkAccess, SandboxFs};

use super::{Host, call_with, host, name, spec};

/// What comes of something that a jail may forbid.
async fn tried(plugin: &Plugin, what: &str, path: impl AsRef<Path>) -> String {
    call_with(plugin, "try", &[("what", what), ("path", path.as_ref().to_str().unwrap())]).await
}

/// A directory of the host's that everybody may use.
fn place(host: &Host, name: &str) -> std::path::PathBuf {
    let dir = host.dir.path().join(name);
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::write(dir.join("file"), "found").unwrap();
    dir
}

fn named(text: &str) -> PluginSpec {
    PluginSpec { name: name(text), ..spec("serve") }
}

// Promises: JAIL-32
#[tokio::test]
async fn a_plugin_sees_its_own_files_and_the_systems_alone() {
    let host = host(20);
    let other = place(&host, "other");
    let plugin = host.up(spec("serve")).await;
    for absent in [other.join("file"), host.dir.path().join("data"), "/etc/shadow".into(), "/root".into()] {
        for what in ["read", "list"] {
            let outcome = tried(&plugin, what, &absent).await;
            assert!(outcome.contains("No such file"), "{}: {outcome}", absent.display());
        }
    }
    assert!(tried(&plugin, "read", "/etc/passwd").await.contains("plugin:x:"));
    assert!(tried(&plugin, "write", "/usr/x").await.contains("(os error"));
    assert_eq!(tried(&plugin, "write", "/tmp/x").await, "fine ");
    assert!(!Path::new("/tmp/x").exists());
    let snapshot = plugin.snapshot();
    for line in ["filesystem", "namespaces", "system-calls", "network"] {
        assert!(!snapshot.not_enforced.iter().any(|text| text.starts_with(line)), "{snapshot:?}");
    }
    host.done().await;
}

// Promises: JAIL-32
#[tokio::test]
async fn grants_are_what_they_say() {
    let host = host(21);
    let (read, execute, write) = (place(&host, "read"), place(&host, "execute"), place(&host, "write"));
    for dir in [&read, &execute, &write] {
        std::fs::write(dir.join("run"), "#!/bin/sh\necho ran\n").unwrap();
        std::fs::set_permissions(dir.join("run"), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut granted = spec("serve");
    granted.sandbox.fs = SandboxFs {
        read: Some(vec![read.clone()]),
        execute: Some(vec![execute.clone()]),
        write: Some(vec![write.clone()]),
    };
    let plugin = host.up(granted).await;
    for dir in [&read, &execute, &write] {
        assert_eq!(tried(&plugin, "read", dir.join("file")).await, "fine found");
        let runs = tried(&plugin, "run", dir.join("run")).await == "fine ran\n";
        assert_eq!(runs, dir == &execute, "{}", dir.display());
        let writes = tried(&plugin, "write", dir.join("new")).await == "fine ";
        assert_eq!(writes, dir == &write, "{}", dir.display());
    }
    assert_eq!(std::fs::read_to_string(write.join("new")).unwrap(), "written");
    assert_eq!(plugin.spec().sandbox.grants().len(), 3);
    host.done().await;
}

// Promises: JAIL-32
#[tokio::test]
async fn talons_own_files_are_never_granted() {
    let host = host(22);
    let root = host.dir.path();
    std::os::unix::fs::symlink(root.join("data"), root.join("link")).unwrap();
    // Where plugins share our uid, one of them could have made it.
    let link = if rustix::process::geteuid().is_root() { "Talon's own" } else { "belongs to uid" };
    for (number, (path, says)) in [
        ("data", "Talon's own"),
        ("run/p", "Talon's own"),
        ("", "Talon's own"),
        ("link", link),
        ("absent", "absent"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut greedy = named(&format!("greedy-{number}"));
        greedy.sandbox.fs.read = Some(vec![if path.is_empty() { root.to_owned() } else { root.join(path) }]);
        host.refused(greedy, &[says]).await;
    }
    host.done().await;
}

// Promises: JAIL-35
#[tokio::test]
async fn a_socket_that_is_handed_over_is_served_on() {
    let host = host(23);
    let plugin = host.up(PluginSpec { connections: 2, ..spec("handed") }).await;
    let text = super::call(&plugin, "env").await;
    assert!(text.lines().any(|line| line == "TALON_LISTEN_FD=0"), "{text}");
    plugin.restart().await.unwrap();
    super::call(&plugin, "where").await;
    plugin.stop().await.unwrap();
    // Those whose dialect has no such thing are not handed one.
    let mut without = named("without");
    (without.args, without.dialect) =
        (vec!["handed".to_owned()], talon_plugin_config::spec::Dialect::OpenTalon);
    host.refused(without, &["exit code 1"]).await;
    host.done().await;
}

#[tokio::test]
async fn the_network_is_what_was_granted() {
    let host = host(24);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap().to_string();
    for (network, reaches) in [
        (NetworkAccess::None, false),
        (NetworkAccess::Loopback, false),
        (NetworkAccess::Proxy, false),
        (NetworkAccess::Full, true),
    ] {
        let mut plugin = named(network.as_str());
        plugin.sandbox.network = network;
        let plugin = host.up(plugin).await;
        let outcome = tried(&plugin, "tcp", &here).await;
        assert_eq!(outcome == "fine ", reaches, "{}: {outcome}", network.as_str());
    }
    host.done().await;
}

// Promises: JAIL-39
#[tokio::test]
async fn the_proxy_lets_through_what_is_listed() {
    let host = host(25);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap().to_string();
    let mut plugin = spec("serve");
    plugin.sandbox.network = NetworkAccess::Proxy;
    plugin.sandbox.allow = vec![here.clone()];
    let plugin = host.up(plugin).await;
    let answer = tried(&plugin, "proxy", &here).await;
    assert!(answer.starts_with("fine HTTP/1.1 200"), "{answer}");
    let answer = tried(&plugin, "proxy", "denied.example.org:443").await;
    assert!(answer.starts_with("fine HTTP/1.1 403"), "{answer}");
    let logged = plugin.logs().recent;
    assert!(logged.iter().any(|line| line.text.contains("denied.example.org:443")), "{logged:#?}");
    plugin.stop().await.unwrap();
    let mut broken = named("broken");
    broken.sandbox.network = NetworkAccess::Proxy;
    broken.sandbox.allow = vec!["everything".to_owned()];
    host.refused(broken, &["sandbox.allow", "HOST:PORT"]).await;
    host.done().await;
}

// Promises: JAIL-46
#[tokio::test]
async fn the_proxy_is_found_inside_by_programs_that_know_nothing_of_it() {
    let host = host(28);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap().to_string();
    let mut plugin = spec("serve");
    plugin.sandbox.network = NetworkAccess::Proxy;
    plugin.sandbox.allow =
        vec!["10.0.0.5:443".to_owned(), here.clone(), "no-such-host.invalid:443".to_owned()];
    plugin.env.insert("https_proxy".to_owned(), "http://127.0.0.1:9".to_owned());
    let plugin = host.up(plugin).await;
    let answer = tried(&plugin, "http-proxy", &here).await;
    assert!(answer.starts_with("fine HTTP/1.1 200"), "{answer}");
    let answer = tried(&plugin, "http-proxy", "denied.example.org:443").await;
    assert!(answer.starts_with("fine HTTP/1.1 403"), "{answer}");
    // Nothing else answers there, and nothing of the host's.
    assert!(tried(&plugin, "tcp", "127.0.0.1:3129").await.contains("refused"));
    assert!(tried(&plugin, "tcp", &here).await.contains("refused"));
    // A name is an address inside, and the reason why it is not reached stands in the log.
    assert!(tried(&plugin, "read", "/etc/hosts").await.contains("127.83.0.1 no-such-host.invalid\n"));
    assert_eq!(tried(&plugin, "tcp-read", "no-such-host.invalid:443").await, "fine ");
    let logged = plugin.logs().recent;
    let has = |part: &str| logged.iter().any(|line| line.text.contains(part));
    assert!(has("no-such-host.invalid:443") && has("its env sets HTTPS_PROXY, https_proxy"), "{logged:#?}");
    let env = super::call(&plugin, "env").await;
    let value = |name: &str| env.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    assert_eq!(value("HTTP_PROXY"), Some("http://127.0.0.1:3128"));
    assert_eq!(value("http_proxy"), Some("http://127.0.0.1:3128"));
    // The operator's word counts in both cases.
    assert_eq!((value("HTTPS_PROXY"), value("https_proxy")), (None, Some("http://127.0.0.1:9")));
    // The host's loopback is listed, so that the plugin's own is not exempt.
    assert_eq!(value("NO_PROXY"), Some("no-such-host.invalid"));
    assert!(!plugin.snapshot().not_enforced.iter().any(|line| line.starts_with("network")));
    host.done().await;
}

// Promises: JAIL-48
#[tokio::test]
async fn a_private_authority_is_trusted_beside_the_systems() {
    let host = host(29);
    let ca_file = host.dir.path().join("data/company.pem");
    let text = "-----BEGIN CERTIFICATE-----\ncompany\n-----END CERTIFICATE-----\n";
    std::fs::create_dir_all(ca_file.parent().unwrap()).unwrap();
    std::fs::write(&ca_file, text).unwrap();
    let mut trusting = spec("serve");
    trusting.sandbox.ca_file = Some(ca_file.clone());
    let plugin = host.up(trusting).await;
    let env = super::call(&plugin, "env").await;
    let path = env.lines().find_map(|line| line.strip_prefix("SSL_CERT_FILE=")).unwrap();
    let seen = tried(&plugin, "read", path).await;
    assert!(seen.ends_with(text), "{seen}");
    assert!(tried(&plugin, "write", path).await.contains("(os error"));
    assert!(tried(&plugin, "read", &ca_file).await.contains("No such file"));
    plugin.stop().await.unwrap();
    let mut missing = named("missing");
    missing.sandbox.ca_file = Some("/does/not/exist.pem".into());
    host.refused(missing, &["sandbox.ca_file", "/does/not/exist.pem"]).await;
    host.done().await;
}

// Promises: JAIL-36
#[tokio::test]
async fn an_interpreter_elsewhere_is_named_with_its_grant() {
    let host = host(26);
    let own = place(&host, "own");
    std::fs::create_dir(own.join("bin")).unwrap();
    std::fs::copy("/bin/sh", own.join("bin/sh")).unwrap();
    let script = own.join("plugin");
    std::fs::write(&script, format!("#!{}/bin/sh\nexit 3\n", own.display())).unwrap();
    for path in [&own, &script] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let own = own.canonicalize().unwrap();
    let missing = PluginSpec { program: script.clone(), ..named("missing") };
    let line = format!("plugins.tools.overrides.missing.sandbox.fs.execute: [\"{}\"]", own.display());
    host.refused(missing, &["its interpreter", &line]).await;
    let mut granted = PluginSpec { program: script, ..named("granted") };
    granted.sandbox.fs.execute = Some(vec![own]);
    host.refused(granted, &["exit code 3"]).await;
    host.done().await;
}

// Promises: JAIL-36
#[tokio::test]
async fn a_profile_that_cannot_be_had_refuses_its_plugin_alone() {
    let host = host(27);
    let profiles = place(&host, "profiles");
    std::fs::set_permissions(&profiles, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(profiles.join("broken.toml"), "description = \"x\"\nallow = 3\n").unwrap();
    let plugins = place(&host, "plugins");
    std::fs::set_permissions(&plugins, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (plugin, profile) in [("good", "strict"), ("bad", "broken"), ("lost", "absent")] {
        let dir = plugins.join(plugin);
        std::fs::create_dir(&dir).unwrap();
        let manifest = format!("command: /bin/true\nsandbox: {{ profile: {profile} }}\n");
        std::fs::write(dir.join("plugin.yaml"), manifest).unwrap();
    }
    let mut defaults = SpecDefaults::default();
    defaults.sandbox.profile_dir = Some(profiles);
    for (plugin, profile) in [("bad", "broken"), ("lost", "absent")] {
        let word = serde_json::json!({ "sandbox": { "profile": profile } });
        defaults.overrides.insert(plugin.to_owned(), serde_json::from_value(word).unwrap());
    }
    let found = scan(&plugins, &defaults);
    assert_eq!(found.plugins.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["good"]);
    let reasons: Vec<_> = found.refused.iter().map(|refused| refused.reason.as_str()).collect();
    assert!(reasons[0].starts_with("sandbox.profile: ") && reasons[0].contains("broken.toml"), "{reasons:?}");
    assert!(reasons[1].contains("absent.toml"), "{reasons:?}");
    host.done().await;
}

#[tokio::test]
async fn without_a_jail_nothing_is_claimed() {
    let host = host(28);
    let mut off = spec("serve");
    off.sandbox.mode = Mode::Off;
    let plugin = host.up(off).await;
    assert!(tried(&plugin, "list", "/root").await.starts_with("fine ") || !super::is_root());
    let lines = plugin.snapshot().not_enforced;
    for name in ["filesystem", "network", "system-calls", "namespaces"] {
        assert!(lines.iter().any(|line| line.starts_with(name)), "{name} is not in {lines:?}");
    }
    let warned = plugin.logs().recent;
    assert!(warned.iter().any(|line| line.text.starts_with("not enforced: filesystem")), "{warned:#?}");
    host.done().await;
}
