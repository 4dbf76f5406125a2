//! The package and its units on a real systemd: a machine is booted for each test, in a container.

use talon_tests::{Machine, package, program, skip};

/// A machine with the package installed and a plugin in its place, or `None` where there can be none.
fn installed(test: &str) -> Option<Machine> {
    if let Some(reason) = Machine::missing_requirement() {
        skip(test, &reason);
        return None;
    }
    let package = match package("0.1.0-1") {
        Ok(package) => package,
        Err(reason) => {
            skip(test, &reason);
            return None;
        }
    };
    let machine = match Machine::boot() {
        Ok(machine) => machine,
        Err(reason) => {
            skip(test, &reason);
            return None;
        }
    };
    machine.shared.install(&package, "talon.deb");
    machine.shared.install(&program("hello"), "hello");
    machine.sh("mkdir -p /usr/lib/talon/plugins && cp /in/hello /usr/lib/talon/plugins/");
    machine.sh("dpkg -i /in/talon.deb 2>&1");
    Some(machine)
}

const CALL: &str = "talon call hello.greet name=Ada";

// Promises: PACKAGE-1, UNIT-5
#[test]
fn the_package_installs_serves_and_is_purged_without_a_trace() {
    let Some(machine) = installed("the_package_installs_serves_and_is_purged_without_a_trace") else {
        return;
    };
    // READY came, or dpkg's start of the unit would not have ended well.
    assert_eq!(machine.show("talon.service", "SubState"), "running", "{}", machine.diagnostics());
    let status = "systemctl show --value --property=StatusText talon.service";
    machine.until("a status that counts", status, |text| text.starts_with("1 plugin: 1 ready"));
    let main = machine.show("talon.service", "MainPID");
    let status = machine.sh(&format!("cat /proc/{main}/status"));
    let user = machine.sh("id -u talon");
    assert!(status.contains(&format!("Uid:\t{user}\t{user}\t{user}\t{user}")), "{status}");
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    // SYS_ADMIN, SETPCAP, SETUID, SETGID, KILL, CHOWN.
    assert!(status.contains("CapBnd:\t00000000002001e1"), "{status}");
    assert!(machine.sh(CALL).contains("Ada"));
    let shown = machine.sh("talon plugin show hello --output json");
    assert!(shown.contains("\"uid\": 70001"), "{shown}");
    // Members of the group may call, and no other user may connect.
    machine.sh("useradd ann && useradd -G talon-clients ben");
    assert!(machine.sh(&format!("runuser -u ben -- {CALL}")).contains("Ada"));
    machine.sh(&format!("! runuser -u ann -- {CALL}"));

    // The socket outlives the service, and a client that connects starts it again.
    machine.sh("systemctl stop talon.service 2>/dev/null");
    let stopped = || (machine.show("talon.service", "ActiveState"), machine.show("talon.service", "Result"));
    assert_eq!(stopped(), ("inactive".to_owned(), "success".to_owned()), "{}", machine.diagnostics());
    assert_eq!(machine.sh("ps -e -o uid=,comm= | awk '$1 >= 70000' || true"), "");
    assert!(machine.sh(&format!("runuser -u ben -- {CALL}")).contains("Ada"));
    machine.sh("systemctl stop talon.socket talon.service");
    assert_eq!(stopped(), ("inactive".to_owned(), "success".to_owned()), "{}", machine.diagnostics());
    assert_eq!(machine.sh("ps -e -o uid=,comm= | awk '$1 >= 70000' || true"), "");
    machine.sh("dpkg --purge talon 2>&1");
    let left = "find / -xdev \\( -name '*talon*' -o -nouser -o -nogroup \\) ! -path '/in/*' ! -path '/proc/*' \
                ! -path '/usr/lib/talon/plugins*' ! -path '/usr/lib/talon' ! -path '/var/log/journal/*' \
                ! -path '/var/lib/systemd/*' ! -path '/etc/hostname' 2>/dev/null || true";
    assert_eq!(machine.sh(left), "");
    machine.sh("! getent passwd talon && ! getent group talon-clients");
}

// Promises: UNIT-6
#[test]
fn a_killed_supervisor_comes_back_and_a_frozen_one_is_ended_by_the_watchdog() {
    let test = "a_killed_supervisor_comes_back_and_a_frozen_one_is_ended_by_the_watchdog";
    let Some(machine) = installed(test) else { return };
    let main = || machine.show("talon.service", "MainPID");
    let restarts = || machine.show("talon.service", "NRestarts");
    let first = main();
    machine.sh(&format!("kill -KILL {first}"));
    let is_another = |before: &str, now: &str| now != "0" && now != before && !now.is_empty();
    machine.until("another supervisor", "systemctl show --value -p MainPID talon.service", |now| {
        is_another(&first, now)
    });
    machine.until("its readiness", "systemctl is-active talon.service", |state| state == "active");
    assert_eq!(restarts(), "1", "{}", machine.diagnostics());
    assert!(machine.sh(CALL).contains("Ada"));

    let second = main();
    machine.sh(&format!("kill -STOP {second}"));
    machine.until("a third one", "systemctl show --value -p MainPID talon.service", |now| {
        is_another(&second, now)
    });
    machine.until("its readiness", "systemctl is-active talon.service", |state| state == "active");
    assert_eq!(restarts(), "2", "{}", machine.diagnostics());
    assert!(machine.sh(CALL).contains("Ada"));
    let journal = machine.sh("journalctl --no-pager -o cat UNIT=talon.service");
    assert!(journal.contains("Watchdog timeout"), "{journal}");
    // Nothing of the former two is left.
    let plugins = machine.sh("ps -e -o comm= | grep -c '^hello$'");
    assert_eq!(plugins, "1", "{}", machine.sh("ps axf"));
}

// Promises: UNIT-7
#[test]
fn plugins_live_through_a_restart_and_an_upgrade_of_the_package() {
    let test = "plugins_live_through_a_restart_and_an_upgrade_of_the_package";
    let Some(machine) = installed(test) else { return };
    let ready = || machine.until("readiness", "systemctl is-active talon.service", |state| state == "active");
    ready();
    assert!(machine.sh(CALL).contains("Ada"));
    let processes = || machine.sh("pgrep -x hello; pgrep -x talon-monitor | sort -n");
    let main = || machine.show("talon.service", "MainPID");
    let (before, first) = (processes(), main());
    machine.sh("systemctl restart talon.service");
    assert_ne!(main(), first);
    assert!(processes().starts_with(before.lines().next().expect("it runs")), "{}", machine.diagnostics());
    assert!(machine.sh(CALL).contains("Ada"));

    let second = main();
    let newer = package("0.1.0-2").expect("the first one could be made");
    machine.shared.install(&newer, "newer.deb");
    machine.sh("dpkg -i /in/newer.deb 2>&1");
    ready();
    assert_ne!(main(), second, "{}", machine.diagnostics());
    assert!(processes().starts_with(before.lines().next().expect("it runs")), "{}", machine.diagnostics());
    assert!(machine.sh(CALL).contains("Ada"));
    assert_eq!(machine.show("talon.service", "NRestarts"), "0", "nothing of this was a failure");

    // One that does not even start, and the old one back.
    machine.sh("cp /usr/bin/talon /in/talon.good && printf '#!/bin/sh\\nexit 1\\n' >/usr/bin/talon.new");
    machine.sh("chmod 755 /usr/bin/talon.new && mv /usr/bin/talon.new /usr/bin/talon");
    machine.sh("! systemctl restart talon.service");
    machine.sh(
        "dpkg -i /in/talon.deb 2>&1; systemctl reset-failed talon.service; systemctl start talon.service",
    );
    ready();
    assert!(machine.sh(CALL).contains("Ada"), "{}", machine.diagnostics());
}

// Promises: UNIT-8
#[test]
fn a_reload_touches_what_changed_and_a_bad_one_nothing() {
    let test = "a_reload_touches_what_changed_and_a_bad_one_nothing";
    let Some(machine) = installed(test) else { return };
    machine.until("readiness", "systemctl is-active talon.service", |state| state == "active");
    let hello = machine.sh("pgrep -x hello");
    machine.sh("cp /in/hello /usr/lib/talon/plugins/second && systemctl reload talon.service");
    machine.until("the second plugin", "talon call second.greet name=Ben", |said| said.contains("Ben"));
    assert!(machine.sh("pgrep -x hello").contains(&hello));
    machine.sh("echo 'guard: { timeout: never }' >>/etc/talon/talon.yaml; ! systemctl reload talon.service");
    assert_eq!(machine.show("talon.service", "ActiveState"), "active", "{}", machine.diagnostics());
    assert!(machine.sh(CALL).contains("Ada"));
}

// Promises: UNIT-9
#[test]
fn keys_reach_the_configuration_and_no_environment() {
    let test = "keys_reach_the_configuration_and_no_environment";
    let Some(machine) = installed(test) else { return };
    machine.sh(
        "printf 'hunter2\\n' >/etc/talon/credentials/greeting && chmod 600 /etc/talon/credentials/greeting",
    );
    machine.sh(
        "sed -i 's|^    plugin_dir:.*|&\\n    overrides: { hello: { credentials: { c: { header: X, value: \"${credential:key_greeting}\" } } } }|' \
         /etc/talon/talon.yaml",
    );
    machine.sh("systemctl restart talon.service");
    machine.until("readiness", "systemctl is-active talon.service", |state| state == "active");
    let main = machine.show("talon.service", "MainPID");
    assert_eq!(machine.sh(&format!("grep -c hunter2 /proc/{main}/environ || true")), "0");
    assert!(machine.sh(CALL).contains("Ada"));
    machine.sh("rm /etc/talon/credentials/greeting; ! systemctl restart talon.service");
    let journal = machine.sh("journalctl --no-pager -o cat -u talon.service");
    assert!(
        journal.contains("there is no credential key_greeting") && !journal.contains("hunter2"),
        "{journal}"
    );
}
