//! The hostile suite: every attack in every column that this user can have, held against
//! `tests/jail/expected.toml`.

use std::process::Command;

use talon_tests::{program, skip};

// Promises: JAIL-31
#[test]
fn what_tries_to_get_out_of_the_jail_stays_in() {
    let test = "what_tries_to_get_out_of_the_jail_stays_in";
    for (tool, package) in [("unshare", "util-linux"), ("cc", "gcc")] {
        if Command::new(tool).arg("--version").output().is_err() {
            return skip(test, &format!("{tool} is not installed (package {package})"));
        }
    }
    let namespaces = Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).output();
    if !namespaces.is_ok_and(|output| output.status.success()) {
        return skip(
            test,
            "this machine gives its users no user namespaces, which keep the suite away from it",
        );
    }
    let suite = program("talon-hostile");
    let table =
        suite.ancestors().nth(2).expect("a program lies in target/<profile>").join("hostile-table.md");
    // Somebody else's table, where root has run the suite before.
    let table = if std::fs::write(&table, "").is_ok() { vec!["--table".into(), table] } else { Vec::new() };
    let output = Command::new(suite).args(table).output().expect("the suite starts");
    let told =
        format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    println!("{told}");
}
