//! `talon setup`, and the supervisor that `talon ask` starts: from an empty home directory to a first answer.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use talon_tests::{Scratch, Terminal, is_root, program, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinHandle;

/// An Ollama with a model for embeddings and one that answers. Dropping it ends it.
struct FakeOllama {
    port: u16,
    task: JoinHandle<()>,
}

impl FakeOllama {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // It ends with its client.
                tokio::spawn(serve(stream));
            }
        });
        Self { port, task }
    }
}

impl Drop for FakeOllama {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers one request, as Ollama's API documentation has it, and closes.
async fn serve(mut stream: TcpStream) {
    let mut request = Vec::new();
    let (path, body) = loop {
        let mut buffer = [0; 4096];
        let Ok(read @ 1..) = stream.read(&mut buffer).await else { return };
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse().ok()).flatten()
        });
        if body.len() >= length.unwrap_or(0) {
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            break (path, serde_json::from_str(body).unwrap_or(Value::Null));
        }
    };
    let answer = match path.as_str() {
        "/api/tags" => json!({ "models": [{ "name": "embed:latest" }, { "name": "tiny:1b" }] }).to_string(),
        "/api/show" if body["model"] == "tiny:1b" => {
            json!({ "capabilities": ["completion", "tools"], "model_info": { "tiny.context_length": 8192 } })
                .to_string()
        }
        "/api/show" => json!({ "capabilities": ["embedding"] }).to_string(),
        _ => ["I am ", "here."]
            .map(|piece| {
                let done = piece.ends_with('.');
                let message = json!({ "role": "assistant", "content": piece });
                format!(
                    "{}\n",
                    json!({ "model": "tiny:1b", "message": message, "done": done, "done_reason": "stop" })
                )
            })
            .concat(),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    // The client may be gone.
    let _ = stream.write_all((head + &answer).as_bytes()).await;
}

/// A home directory where there was never a talon.
struct Home(Scratch);

impl Home {
    fn new() -> Self {
        let scratch = Scratch::new();
        let state = scratch.join("state");
        std::fs::create_dir(&state).expect("a scratch directory is writable");
        // Root's plugins have uids of their own and pass through it; a user's share it with its owner.
        let mode = if is_root() { 0o711 } else { 0o700 };
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        Self(scratch)
    }

    fn file(&self) -> String {
        std::fs::read_to_string(self.0.join(".config/talon/talon.yaml")).expect("the file was written")
    }

    /// The variables of a process in it. Root's own places are the machine's, so they are named.
    fn variables(&self, ollama: &str) -> Vec<(&'static str, String)> {
        let at = |name: &str| self.0.join(name).to_str().expect("our paths are text").to_owned();
        vec![
            ("HOME", at("")),
            ("TALON_CONFIG", at(".config/talon/talon.yaml")),
            ("RUNTIME_DIRECTORY", at("run")),
            ("STATE_DIRECTORY", at("state")),
            ("XDG_STATE_HOME", at("local-state")),
            ("XDG_RUNTIME_DIR", at("user")),
            ("OLLAMA_HOST", ollama.to_owned()),
        ]
    }

    fn has_supervisor(&self) -> bool {
        self.0.join("run/host.sock").exists()
    }

    /// A service manager for this user: a script that notes how it is called, and runs the program.
    fn user_manager(&self) -> String {
        for dir in ["user/systemd", "bin"] {
            std::fs::create_dir_all(self.0.join(dir)).expect("a scratch directory is writable");
        }
        self.0.write("user/systemd/private", "");
        let noted = self.0.join("noted");
        let script = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$@\" >{}\nwhile [ \"$1\" != -- ]; do shift; done\nshift\n\"$@\" 2>/dev/null &\n",
            noted.display()
        );
        let file = self.0.write("bin/systemd-run", &script);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        format!("{}:{}", self.0.join("bin").display(), std::env::var("PATH").expect("there is a PATH"))
    }

    fn talon(&self, ollama: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program("talon"));
        command.args(args).envs(self.variables(ollama)).kill_on_drop(true);
        command.env_remove("ANTHROPIC_API_KEY").env_remove("OPENAI_API_KEY").env_remove("XDG_DATA_HOME");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn run(&self, ollama: &str, args: &[&str]) -> (Option<i32>, String) {
        let Output { status, stdout, stderr } =
            self.talon(ollama, args).output().await.expect("talon starts");
        (status.code(), String::from_utf8_lossy(&[stderr, stdout].concat()).into_owned())
    }
}

/// A port where no server listens.
const NO_OLLAMA: &str = "127.0.0.1:9";

// Promises: CLI-67
#[tokio::test]
async fn three_commands_lead_from_an_empty_home_to_an_answer() {
    let ollama = FakeOllama::start().await;
    let address = format!("127.0.0.1:{}", ollama.port);
    let home = Home::new();
    let (code, said) = home.run(&address, &["setup", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("tiny:1b (can call tools)") && said.contains("next: `talon ask"), "{said}");
    let log = std::fs::File::create(home.0.join("log")).expect("a scratch directory is writable");
    let mut serving = home.talon(&address, &["serve"]).stderr(log).spawn().expect("talon starts");
    until("the agent's socket", || home.0.join("run/agent.sock").exists()).await;
    let (code, said) = home.run(&address, &["ask", "Where are you?"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("I am here.") && said.contains("ollama/tiny:1b"), "{said}");
    let pid = serving.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("it runs");
    kill_process(pid, Signal::TERM).expect("it runs");
    assert!(serving.wait().await.expect("it is our child").success());
}

// Promises: CLI-68
#[tokio::test]
async fn two_commands_lead_from_an_empty_home_to_an_answer() {
    let ollama = FakeOllama::start().await;
    let address = format!("127.0.0.1:{}", ollama.port);
    let home = Home::new();
    // Nothing is started for a script, nor without an agent in the configuration.
    let empty = home.0.write("empty.yaml", "");
    let empty = empty.to_str().expect("our paths are text");
    let (code, said) = home.run(&address, &["--config", empty, "ask", "Where are you?", "--start"]).await;
    assert!(code == Some(5) && said.contains("list a provider and its models"), "{said}");
    let (code, said) = home.run(&address, &["setup", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = home.run(&address, &["ask", "Where are you?"]).await;
    assert!(code == Some(5) && said.contains("--start"), "{said}");
    assert!(!home.has_supervisor());
    let (code, said) = home.run(&address, &["ask", "Where are you?", "--start"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("I am here."), "{said}");
    assert!(said.contains("`talon stop` ends it, and it ends after 30m without a client"), "{said}");
    // The next one finds it.
    let (code, said) = home.run(&address, &["ask", "Where are you?", "--start"]).await;
    assert!(code == Some(0) && !said.contains("started"), "{said}");
    let (code, said) = home.run(&address, &["stop"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(!home.has_supervisor());
}

// Promises: CLI-68
#[tokio::test]
async fn at_a_terminal_a_chat_starts_a_supervisor_which_ends_when_it_is_idle() {
    let ollama = FakeOllama::start().await;
    let address = format!("127.0.0.1:{}", ollama.port);
    for columns in [200, 80, 20] {
        let home = Home::new();
        let (code, said) = home.run(&address, &["setup", "--yes"]).await;
        assert_eq!(code, Some(0), "{said}");
        let mut command = std::process::Command::new(program("talon"));
        command.arg("chat").envs(home.variables(&address)).env("NO_COLOR", "1");
        command.env("TALON_USER__IDLE_EXIT", "200ms");
        let mut terminal = Terminal::start(&mut command, columns, 40);
        let joined = |screen: &str| screen.replace('\n', "");
        terminal.wait_for("the note", |screen| joined(screen).contains("it ends after 200ms")).await;
        terminal.wait_for("an editor", |_| !terminal.not_restored().is_empty()).await;
        terminal.press("Where are you?\r");
        terminal.wait_text("I am here.").await;
        assert!(home.has_supervisor());
        terminal.wait_for("an editor", |_| !terminal.not_restored().is_empty()).await;
        terminal.press("\u{4}");
        assert!(terminal.ended().await.success(), "{}", terminal.contents());
        until("its end", || !home.has_supervisor()).await;
    }
}

// Promises: CLI-68
#[tokio::test]
async fn a_user_with_a_service_manager_gets_a_unit() {
    let ollama = FakeOllama::start().await;
    let address = format!("127.0.0.1:{}", ollama.port);
    let home = Home::new();
    let path = home.user_manager();
    let (code, said) = home.run(&address, &["setup", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    let mut ask = home.talon(&address, &["ask", "Where are you?", "--start"]);
    let output = ask.env("PATH", path).env("SOME_KEY", "sk-secret").output().await.expect("talon starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("systemd unit talon-user"), "{said}");
    let noted = std::fs::read_to_string(home.0.join("noted")).expect("it was called");
    for arg in ["--user", "--property=Delegate=yes", "--setenv=SOME_KEY", "--for-user"] {
        assert!(noted.lines().any(|line| line == arg), "{arg}: {noted}");
    }
    assert!(!noted.contains("sk-secret"), "{noted}");
    let (code, said) = home.run(&address, &["stop"]).await;
    assert_eq!(code, Some(0), "{said}");
}

// Promises: CLI-68
#[tokio::test]
async fn a_supervisor_that_cannot_start_is_reported_with_its_last_words() {
    let home = Home::new();
    let mut setup = home.talon(NO_OLLAMA, &["setup", "--yes"]);
    assert!(setup.env("ANTHROPIC_API_KEY", "k").status().await.expect("talon starts").success());
    // Where its runtime directory should be is a file.
    home.0.write("run", "");
    let (code, said) = home.run(NO_OLLAMA, &["ask", "Hello", "--start"]).await;
    assert!(code == Some(5) && said.contains("its last words"), "{said}");
    assert!(said.contains("serve.log"), "{said}");
}

// Promises: CLI-67
#[tokio::test]
async fn an_existing_file_stays_and_what_is_missing_is_named() {
    let home = Home::new();
    let (code, said) = home.run(NO_OLLAMA, &["setup", "--yes"]).await;
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("no Ollama listens") && said.contains("ANTHROPIC_API_KEY"), "{said}");
    assert!(!home.0.join(".config").exists(), "nothing is written");
    let (code, said) = home.run(NO_OLLAMA, &["setup"]).await;
    assert_eq!(code, Some(2), "{said}");
    let mut with_key = home.talon(NO_OLLAMA, &["setup", "--yes"]);
    let output = with_key.env("ANTHROPIC_API_KEY", "sk-secret").output().await.expect("talon starts");
    assert!(output.status.success(), "{output:?}");
    let written = home.file();
    assert!(written.contains("api_key_env: ANTHROPIC_API_KEY") && !written.contains("secret"), "{written}");
    let about = home.0.join(".config/talon/talon.yaml").metadata().expect("it was written");
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    let (code, said) = home.run(NO_OLLAMA, &["setup", "--yes"]).await;
    assert!(code == Some(3) && said.contains("is there already"), "{said}");
    assert_eq!(home.file(), written);
}

// Promises: CLI-67
#[tokio::test]
async fn a_person_sees_the_file_and_is_asked_once() {
    let ollama = FakeOllama::start().await;
    let address = format!("127.0.0.1:{}", ollama.port);
    for columns in [200, 80, 20] {
        for (answer, code) in [("\r", 3), ("y\r", 0)] {
            let home = Home::new();
            let mut command = std::process::Command::new(program("talon"));
            command
                .arg("setup")
                .envs(home.variables(&address))
                .env("NO_COLOR", "1")
                .env_remove("XDG_DATA_HOME");
            let mut terminal = Terminal::start(&mut command, columns, 60);
            let screen = terminal.wait_text("[y/N]").await;
            assert!(screen.contains("agent:\n  enabled: true"), "{screen}");
            terminal.press(answer);
            assert_eq!(terminal.ended().await.code(), Some(code), "{}", terminal.contents());
            assert_eq!(home.0.join(".config/talon/talon.yaml").exists(), code == 0);
        }
    }
}
