//! `talon mcp import`: what becomes of an editor's list of MCP servers.

use serde_json::{Value, json};
use talon_tests::{Scratch, cli, cli_with};

const SECRET: &str = "ghp_0123456789abcdefghij";

fn list(scratch: &Scratch) -> String {
    let servers = json!({
        "mcpServers": {
            "GitHub": { "command": "sh", "args": ["--api-key", SECRET], "env": { "GITHUB_TOKEN": SECRET, "LEVEL": "5$" } },
            "files": { "command": "/bin/sh", "args": ["-c", "x", scratch.path()], "disabled": true, "cwd": "/", "autoApprove": [] },
            "far": { "url": "https://mcp.example.org/mcp", "headers": { "Authorization": SECRET } },
            "npx": { "command": "npx", "args": ["-y", "@scope/pkg"] },
            "old": { "type": "sse", "url": "https://mcp.example.org/sse" },
            "box": { "command": "docker", "args": ["run", "x"] },
            "me": { "command": "talon", "args": ["mcp"] },
            "odd": 17,
        }
    });
    let text = format!("// what an editor keeps\n{}", servers.to_string().replace("}}}", "},}}"));
    scratch.write("mcp.json", &text).to_str().expect("our paths are text").to_owned()
}

// Promises: MCP-13
#[tokio::test]
async fn every_server_is_told_of_and_no_secret_is() {
    let scratch = Scratch::new();
    let file = list(&scratch);
    let shown = cli(&["mcp", "import", &file]).await;
    let json = cli(&["mcp", "import", &file, "--output", "json"]).await;
    for output in [&shown, &json] {
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(!text.contains(SECRET), "{text}");
    }
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    let told: Vec<(&str, &str)> = value["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| (server["server"].as_str().unwrap(), server["result"].as_str().unwrap()))
        .collect();
    let expected = [
        ("GitHub", "taken_over"),
        ("files", "taken_over"),
        ("far", "taken_over"),
        ("npx", "taken_over"),
        ("old", "taken_over"),
        ("box", "left_out"),
        ("me", "left_out"),
        ("odd", "left_out"),
    ];
    assert_eq!(told, expected, "{value:#}");
    assert_eq!(
        value["variables"],
        json!(["FAR_AUTHORIZATION", "GITHUB_API_KEY", "GITHUB_TOKEN"]),
        "{value:#}"
    );
    assert_eq!(value["problems"], json!([]), "{value:#}");
    let notes = value["servers"].to_string();
    for word in [
        "is called github",
        "cwd",
        "autoApprove",
        "--install",
        "https://mcp.example.org/sse",
        "container",
        "Talon itself",
        "no object",
        "run `talon mcp login old`",
    ] {
        assert!(notes.contains(word), "{word}: {value:#}");
    }
}

// Promises: MCP-13
#[tokio::test]
async fn what_is_written_is_a_configuration_and_a_second_time_changes_nothing() {
    let scratch = Scratch::new();
    let file = list(&scratch);
    let config = scratch.join("talon.yaml");
    let config = config.to_str().unwrap();
    // What a supervisor would refuse is a problem, and so would be a launcher that is not installed.
    scratch.script("launchers/npx", "#!/bin/sh\n");
    let path = scratch.join("launchers");
    let path = [("PATH", path.to_str().unwrap())];
    let first = cli_with(&["mcp", "import", &file, "--write", config], &path).await;
    assert!(String::from_utf8_lossy(&first.stdout).contains("written to"), "{first:?}");
    let text = std::fs::read_to_string(config).unwrap();
    assert!(!text.contains(SECRET) && text.contains("${GITHUB_TOKEN}") && text.contains("5$$"), "{text}");

    let variables = [("GITHUB_TOKEN", "a"), ("GITHUB_API_KEY", "b"), ("FAR_AUTHORIZATION", "c")];
    let checked = cli_with(&["config", "check", "--config", config], &variables).await;
    assert_eq!(checked.status.code(), Some(0), "{checked:?}\n{text}");
    let unset = cli(&["config", "check", "--config", config]).await;
    assert_eq!(unset.status.code(), Some(6), "a variable that is missing is said: {unset:?}");

    let second = cli(&["mcp", "import", &file, "--write", config]).await;
    assert!(String::from_utf8_lossy(&second.stdout).contains("nothing to add"), "{second:?}");
    assert_eq!(std::fs::read_to_string(config).unwrap(), text);
}

// Promises: CLI-56
#[tokio::test]
async fn clients_need_none_of_the_servers_secrets() {
    let scratch = Scratch::new();
    let file = list(&scratch);
    let run = scratch.join("run");
    let config = scratch.write("talon.yaml", &format!("runtime_dir: {}\n", run.display()));
    let config = config.to_str().unwrap();
    cli(&["mcp", "import", &file, "--write", config]).await;
    for verb in [&["plugin", "list"][..], &["status"], &["call", "github.x"], &["session", "list"]] {
        let output = cli(&[verb, &["--config", config]].concat()).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(5), "{verb:?}: {said}");
        assert!(said.contains(run.to_str().unwrap()), "the socket is the configuration's: {said}");
    }
    let unset = scratch.write("unset.yaml", "runtime_dir: ${NOT_SET}/run\n");
    let output = cli(&["plugin", "list", "--config", unset.to_str().unwrap()]).await;
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("NOT_SET"), "{output:?}");
}

#[tokio::test]
async fn what_is_in_a_file_stays_and_where_it_has_plugins_the_block_is_said() {
    let scratch = Scratch::new();
    let file = list(&scratch);
    let mine = "# mine\nguard:\n  timeout: 5s   # short";
    let config = scratch.write("talon.yaml", mine);
    cli(&["mcp", "import", &file, "--write", config.to_str().unwrap()]).await;
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.starts_with(mine) && text.contains("\nplugins:\n"), "{text}");

    let mine = "plugins:\n  tools:\n    plugins:\n      github:\n        command: /bin/sh   # another\n";
    let config = scratch.write("other.yaml", mine);
    let said = cli(&["mcp", "import", &file, "--write", config.to_str().unwrap()]).await;
    assert_eq!(std::fs::read_to_string(&config).unwrap(), mine);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("there already") && said.contains("Put these below"), "{said}");
    assert!(!said.contains("      github:\n") && said.contains("      far:\n"), "{said}");

    // A file that continues in a way that a block cannot follow is left alone.
    for odd in ["{guard: {timeout: 5s}}\n", "guard:\n  timeout: 5s\n...\n"] {
        let config = scratch.write("odd.yaml", odd);
        let said = cli(&["mcp", "import", &file, "--write", config.to_str().unwrap()]).await;
        assert_eq!(std::fs::read_to_string(&config).unwrap(), odd, "{said:?}");
        assert!(String::from_utf8_lossy(&said.stdout).contains("by hand"), "{said:?}");
    }
}

#[tokio::test]
async fn a_file_that_is_none_says_where_and_what() {
    let scratch = Scratch::new();
    for (text, words) in [
        ("{\n  \"mcpServers\": {\n    \"a\": oops\n", "line 3"),
        ("{}", "mcpServers"),
        ("[]", "mcpServers"),
        ("", "line 1"),
        ("{\"mcpServers\": {}}", "mcpServers"),
    ] {
        let file = scratch.write("mcp.json", text);
        let output = cli(&["mcp", "import", file.to_str().unwrap()]).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{text}: {said}");
    }
    for path in ["/dev/zero", "/nowhere/mcp.json", "/etc"] {
        let output = cli(&["mcp", "import", path]).await;
        assert_eq!(output.status.code(), Some(2), "{path}: {output:?}");
    }
}
