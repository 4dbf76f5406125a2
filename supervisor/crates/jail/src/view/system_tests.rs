use super::*;

fn view(network: &Network) -> View {
    View::system((70_001, 80_001), Path::new("/run/plugin/h"), network)
}

fn text<'v>(view: &'v View, at: &str) -> &'v str {
    &view.files.iter().find(|file| file.at == Path::new(at)).unwrap().text
}

#[test]
fn nothing_of_it_is_secret_or_writable() {
    let view = view(&Network::Host { connect: None, bind: None });
    for secret in
        ["/etc/shadow", "/etc/ssh", "/etc/talon", "/etc/ssl/private", "/root", "/home", "/run", "/var"]
    {
        assert!(!view.contains(Path::new(secret)), "{secret}");
        assert!(!view.shown.iter().any(|shown| Path::new(secret).starts_with(&shown.at)), "{secret}");
    }
    assert!(view.shown.iter().all(|shown| shown.access != Access::Write && !shown.needed));
    assert_eq!(view.check(), Ok(()));
}

#[test]
fn it_is_the_user_plugin_of_its_own_passwd() {
    let view = view(&Network::None);
    assert!(text(&view, "/etc/passwd").starts_with("plugin:x:70001:80001:plugin:/run/plugin/h:/bin/sh\n"));
    assert!(text(&view, "/etc/group").starts_with("plugin:x:80001:\n"));
    assert!(text(&view, "/etc/hosts").contains("127.0.0.1 localhost"));
    assert!(!view.contains(Path::new("/etc/resolv.conf")));
}

#[test]
fn a_home_cannot_add_a_line_to_passwd() {
    for home in ["/h\nroot:x:0:0::/:/bin/sh", "/a:b"] {
        let text = passwd(70_001, 80_001, Path::new(home));
        assert!(text.starts_with("plugin:x:70001:80001:plugin:/:/bin/sh\nnobody:"), "{text}");
    }
    assert_eq!(passwd(OVERFLOW_UID, OVERFLOW_UID, Path::new("/")).lines().count(), 1);
}

#[test]
fn names_are_found_as_the_host_does_only_with_its_network() {
    let view = view(&Network::Host { connect: None, bind: None });
    assert!(view.files.iter().all(|file| file.at != Path::new("/etc/hosts")));
    if Path::new("/etc/resolv.conf").exists() {
        assert!(view.contains(Path::new("/etc/resolv.conf")));
    }
}

#[test]
fn programs_are_found_through_the_hosts_own_links() {
    let view = view(&Network::None);
    for program in ["/bin/sh", "/usr/bin/env"] {
        assert!(view.can_execute(Path::new(program)), "{program}");
    }
    assert!(view.contains(Path::new("/usr/lib")) && !view.can_execute(Path::new("/usr/lib")));
}

#[test]
fn links_are_told_by_where_they_lead() {
    let into = |at: &str, to: &str| leads_into_usr(Path::new(at), Path::new(to));
    assert!(into("/bin", "usr/bin"));
    assert!(into("/etc/os-release", "../usr/lib/os-release"));
    assert!(into("/etc/localtime", "/usr/share/zoneinfo/UTC"));
    assert!(!into("/etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf"));
    assert!(!into("/bin", "usr/../opt"));
    assert!(!into("/bin", "/usrlocal/bin"));
}

// Promises: JAIL-44
#[test]
fn names_are_asked_for_over_tcp_where_ports_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("resolv.conf");
    fs::write(&file, "nameserver 192.0.2.1\noptions edns0").unwrap();
    let text = resolver_over_tcp(&file).unwrap();
    assert_eq!(text, "nameserver 192.0.2.1\noptions edns0\noptions use-vc\n");
    fs::write(&file, "#".repeat(17 << 10)).unwrap();
    assert_eq!(resolver_over_tcp(&file), None);
    assert_eq!(resolver_over_tcp(&directory.path().join("none")), None);
}
