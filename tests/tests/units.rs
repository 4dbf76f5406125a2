//! The unit files: what systemd's own tools say of them, and what they promise.

use std::process::{Command, Output};

use talon_tests::{Scratch, program, repository, skip};

/// The exposure that the service may have at most, times ten.
const EXPOSURE: &str = "30";

fn systemd_analyze(test: &str, args: &[&str]) -> Option<Output> {
    match Command::new("systemd-analyze").args(args).env("SYSTEMD_COLORS", "0").output() {
        Ok(output) => Some(output),
        Err(_) => {
            skip(test, "systemd-analyze is not installed (package systemd)");
            None
        }
    }
}

fn unit(name: &str) -> String {
    repository().join("deploy/systemd").join(name).display().to_string()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

// Promises: UNIT-3
#[test]
fn the_service_is_rated_at_three_or_better() {
    let service = unit("talon.service");
    let threshold = format!("--threshold={EXPOSURE}");
    let Some(output) = systemd_analyze(
        "the_service_is_rated_at_three_or_better",
        &["security", "--offline=true", &threshold, &service],
    ) else {
        return;
    };
    assert!(output.status.success(), "{}", said(&output));
}

// Promises: UNIT-4
#[test]
fn systemd_knows_every_line_of_the_units() {
    for name in
        ["talon.service", "talon.socket", "talon-admin.socket", "talon-gateway.socket", "talon-watch.service"]
    {
        let Some(output) = systemd_analyze("systemd_knows_every_line_of_the_units", &["verify", &unit(name)])
        else {
            return;
        };
        let said = said(&output);
        let complaints: Vec<_> = said
            .lines()
            // Programs and pages that are not installed here; and the one line that is for newer versions.
            .filter(|line| !line.contains("is not executable") && !line.contains("failed with code 16"))
            .filter(|line| !line.contains("DelegateSubgroup"))
            // Units of the machine that the tests run on.
            .filter(|line| line.contains("talon"))
            .collect();
        assert!(complaints.is_empty(), "{said}");
    }
}

/// What the scorecard in the docs says is what systemd says now.
// Promises: UNIT-3
#[test]
fn the_scorecard_in_the_docs_is_todays() {
    let test = "the_scorecard_in_the_docs_is_todays";
    let service = unit("talon.service");
    let Some(output) =
        systemd_analyze(test, &["security", "--offline=true", "--json=short", "--no-pager", &service])
    else {
        return;
    };
    let lines: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("it writes JSON");
    let page = std::fs::read_to_string(repository().join("docs/packages.md")).expect("the page is there");
    for line in &lines {
        let (name, exposure) = (line["name"].as_str().unwrap_or_default(), line["exposure"].as_str());
        let open =
            exposure.is_some_and(|exposure| exposure.parse::<f64>().is_ok_and(|exposure| exposure > 0.0));
        let row = page.lines().any(|row| {
            row.starts_with(&format!("| `{}` | {} |", name.replace('|', "\\|"), exposure.unwrap_or_default()))
        });
        assert!(row == open, "{name} has {exposure:?}, and docs/packages.md says otherwise");
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All lists of capabilities that are added anywhere in a document.
fn added(value: &serde_json::Value, key: &str, found: &mut Vec<Vec<String>>) {
    match value {
        serde_json::Value::Object(entries) => {
            for (name, value) in entries {
                if name == key
                    && let Some(list) = value.as_array()
                {
                    let mut list: Vec<_> =
                        list.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
                    list.sort();
                    found.push(list);
                }
                added(value, key, found);
            }
        }
        serde_json::Value::Array(entries) => entries.iter().for_each(|entry| added(entry, key, found)),
        _ => {}
    }
}

// Promises: PACKAGE-2
#[test]
fn what_is_deployed_elsewhere_asks_for_the_same_capabilities() {
    let service = read("deploy/systemd/talon.service");
    let line =
        service.lines().find_map(|line| line.strip_prefix("AmbientCapabilities=")).expect("it has some");
    let mut names: Vec<String> =
        line.split_whitespace().map(|name| name.trim_start_matches("CAP_").to_owned()).collect();
    names.sort();
    for (path, key) in [("deploy/compose.yaml", "cap_add"), ("deploy/kubernetes/talon.yaml", "add")] {
        let documents: Vec<serde_json::Value> =
            serde_saphyr::from_multiple(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut found = Vec::new();
        documents.iter().for_each(|document| added(document, key, &mut found));
        assert_eq!(found, std::slice::from_ref(&names), "{path}");
    }
    // There is no reader of Nomad's language here: its one line is looked at.
    let job = read("deploy/talon.nomad.hcl");
    let list = job.lines().find_map(|line| line.trim().strip_prefix("cap_add")).expect("it adds some");
    let mut list: Vec<_> = list.split('"').skip(1).step_by(2).map(|name| name.to_uppercase()).collect();
    list.sort();
    assert_eq!(list, names, "deploy/talon.nomad.hcl");
}

#[test]
fn every_configuration_that_is_handed_out_is_a_good_one() {
    let manifest: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(&read("deploy/kubernetes/talon.yaml")).expect("it is YAML");
    let in_manifest =
        manifest[0]["data"]["talon.yaml"].as_str().expect("the first document is the map").to_owned();
    let job = read("deploy/talon.nomad.hcl");
    let in_job = job.split("<<EOF\n").nth(1).and_then(|rest| rest.split("\nEOF").next()).expect("it has one");
    let scratch = Scratch::new();
    for (name, text) in [
        // The package makes that group; here is only root's.
        ("packaged", read("deploy/talon.yaml").replace("group: talon-clients", "group: root")),
        ("example", read("deploy/talon.example.yaml")),
        ("agent", read("deploy/talon.agent.example.yaml")),
        ("kubernetes", in_manifest),
        ("nomad", in_job.to_owned()),
    ] {
        let path = scratch.write(&format!("{name}.yaml"), &text);
        let output = Command::new(program("talon"))
            // Their plugins are where they will be installed.
            .args(["config", "check", "--skip-plugins", "--config"])
            .arg(path)
            .env("GITLAB_TOKEN", "x")
            .output()
            .expect("talon starts");
        assert!(output.status.success(), "{name}: {}", said(&output));
    }
}
