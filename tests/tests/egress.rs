//! `network: proxy` for programs that were not written for it: real HTTP clients, in an MCP server by somebody
//! else, against the local imitation of a service with a certificate of a private authority.
//!
//! The supervisor has names for the service in an `/etc/hosts` of its own mount namespace, which needs root.
//! `tests/scripts/deps.sh test` installs the clients; without one its test is skipped by name.

use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Map, Value, json};
use talon_tests::{Builder, Scratch, ServerScript, Supervisor, example, is_root, repository, skip, target};

#[path = "../../plugins-examples/oidc/tests/issuer/mod.rs"]
#[expect(dead_code, reason = "the plugin's own tests use all of it")]
mod issuer;

const PYTHON: &str = "/usr/bin/python3";
const NODE: &str = "/usr/bin/node";
const GO: &str = "/usr/bin/go";
const JAVA: &str = "/usr/bin/java";
const CURL: &str = "/usr/bin/curl";

/// A name with an entry of its own, one below a domain with a star, and one that is not listed.
const NAMED: &str = "api.example.test";
const STARRED: &str = "eu.wild.example.test";
const DENIED: &str = "denied.example.test";

fn source(name: &str) -> PathBuf {
    repository().join("tests/egress").join(name)
}

/// Whether something that a test needs is missing, with its package.
fn is_missing(test: &str, needs: &[(&Path, &str)]) -> bool {
    if !is_root() {
        skip(test, "it needs root: the names of its service are in an /etc/hosts of its own");
        return true;
    }
    for (path, package) in needs {
        if !path.exists() {
            let path = path.display();
            skip(test, &format!("there is no {path} (tests/scripts/deps.sh test installs {package})"));
            return true;
        }
    }
    false
}

/// A certificate for the names of a service, and its key. Writes their authority to `ca.pem`.
fn certificate(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "Company authority");
    let key = || KeyPair::generate().expect("a key is made");
    let authority = CertifiedIssuer::self_signed(params, key()).expect("it signs itself");
    scratch.write("ca.pem", &authority.pem());
    let names = [NAMED, STARRED, "127.0.0.1"].map(str::to_owned);
    let (key, params) = (key(), CertificateParams::new(names).expect("they are names"));
    let certificate = params.signed_by(&key, &authority).expect("it is signed");
    (scratch.write("service.pem", &certificate.pem()), scratch.write("service.key", &key.serialize_pem()))
}

/// A supervisor for which the names of the service lead to this machine.
fn in_hosts(builder: Builder) -> Builder {
    let hosts = format!("127.0.0.1 localhost {NAMED} {STARRED} {DENIED}\n");
    let hosts = builder.scratch().write("hosts", &hosts).display().to_string();
    let mount = format!("mount --bind {hosts} /etc/hosts && exec \"$@\"");
    builder.wrapped(&["unshare", "--mount", "sh", "-c", &mount, "sh"])
}

/// The local imitation of a service.
struct Service {
    /// Held until the end.
    _script: ServerScript,
    https: u16,
    http: u16,
}

impl Service {
    /// Starts it with a certificate for its names.
    fn start(scratch: &Scratch) -> Self {
        let (certificate, key) = certificate(scratch);
        let script = ServerScript::start(PYTHON, &source("service.py"), &[&certificate, &key]);
        Self { https: script.port(0), http: script.port(1), _script: script }
    }

    /// A supervisor with one MCP server that runs these clients.
    async fn supervisor(&self, builder: Builder, clients: &Map<String, Value>, more: &str) -> Supervisor {
        let (https, http) = (self.https, self.http);
        let server = builder.scratch().install(&source("server.py"), "server.py");
        let ca_file = builder.scratch().join("ca.pem");
        let allow: Vec<String> = [NAMED, "*.wild.example.test", "127.0.0.1"]
            .iter()
            .flat_map(|host| [format!("{host}:{https}"), format!("{host}:{http}")])
            .collect();
        let settings = format!(
            "dialect: mcp\nlimits: {{ memory_bytes: 2GiB }}\nsandbox:\n  network: proxy\n  allow: {}\n  ca_file: {}\n{more}",
            Value::from(allow),
            ca_file.display(),
        );
        let clients = Value::Object(clients.clone()).to_string();
        let builder = builder.plugin("fetcher", &server, &[&clients], &settings);
        in_hosts(builder).start().await
    }
}

/// What a client says of a URL.
async fn fetched(supervisor: &Supervisor, client: &str, url: &str) -> String {
    let answer = supervisor.client.call("fetcher", "fetch", &[("client", client), ("url", url)]).await;
    assert!(answer.error.is_empty(), "{client} {url}: {answer:?}");
    answer.content
}

/// How a client finds a host: by the address that its name has inside, or by the variables of a proxy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finds {
    Names,
    NamesAndVariables,
}

/// Tries a client: all that it is to reach it reaches, and of what is denied it says so.
async fn tries(service: &Service, supervisor: &Supervisor, client: &str, finds: Finds) {
    let mut places = vec![(NAMED, "https", service.https), (NAMED, "http", service.http)];
    if finds == Finds::NamesAndVariables {
        let more = [(STARRED, "https", service.https), (STARRED, "http", service.http)];
        places.extend(more);
    }
    for (host, scheme, port) in places {
        let said = fetched(supervisor, client, &format!("{scheme}://{host}:{port}/x?y=z")).await;
        let expected = format!("reached {host}:{port} over {scheme} with GET /x?y=z");
        assert!(
            said.contains(&expected),
            "{client}, {scheme}://{host}: {said}\n{:#?}",
            supervisor.client.logs("fetcher").await
        );
    }
    for (scheme, port) in [("https", service.https), ("http", service.http)] {
        let said = fetched(supervisor, client, &format!("{scheme}://{DENIED}:{port}/")).await;
        assert!(!said.contains("reached "), "{client}: {said}");
        if finds == Finds::NamesAndVariables {
            let says = ["403", "Forbidden", "allow-list"].iter().any(|words| said.contains(words));
            assert!(says, "{client}, {scheme}: {said}");
            supervisor
                .client
                .wait_log("fetcher", &format!("{DENIED}:{port} is not on this plugin's allow-list"))
                .await;
        }
    }
}

fn command(words: &[&str]) -> Value {
    json!(words)
}

// Promises: JAIL-46, JAIL-47, JAIL-48
#[tokio::test]
async fn python_reaches_its_hosts() {
    let python = target().join("egress/python/bin/python");
    let needs = [(Path::new(PYTHON), "python3"), (python.as_path(), "Python's HTTP clients")];
    if is_missing("python_reaches_its_hosts", &needs) {
        return;
    }
    let builder = Builder::new();
    let service = Service::start(builder.scratch());
    let program = builder.scratch().install(&source("client.py"), "client.py").display().to_string();
    let libraries = target().join("egress/python").display().to_string();
    let python = python.display().to_string();
    let mut clients = Map::new();
    for library in ["requests", "httpx", "urllib", "aiohttp", "aiohttp-trust-env"] {
        clients.insert(library.to_owned(), command(&[&python, &program, library]));
    }
    let grant = format!("  fs: {{ execute: [{libraries}], read: [{program}] }}");
    let supervisor = service.supervisor(builder, &clients, &grant).await;
    for library in ["requests", "httpx", "urllib", "aiohttp-trust-env"] {
        tries(&service, &supervisor, library, Finds::NamesAndVariables).await;
    }
    tries(&service, &supervisor, "aiohttp", Finds::Names).await;
}

// Promises: JAIL-46, JAIL-47, JAIL-48
#[tokio::test]
async fn node_reaches_its_hosts() {
    let modules = target().join("egress/node");
    let newer = target().join("mcp/node22/bin/node");
    let needs = [
        (Path::new(PYTHON), "python3"),
        (Path::new(NODE), "nodejs"),
        (modules.as_path(), "Node's HTTP clients"),
        (newer.as_path(), "Node 22"),
    ];
    if is_missing("node_reaches_its_hosts", &needs) {
        return;
    }
    let newer = newer.canonicalize().expect("it exists");
    let builder = Builder::new();
    let service = Service::start(builder.scratch());
    let program = builder.scratch().install(&source("client.mjs"), "client.mjs").display().to_string();
    let modules = modules.display().to_string();
    let mut clients = Map::new();
    for library in ["fetch", "node:https", "undici", "undici-env", "axios"] {
        clients.insert(library.to_owned(), command(&[NODE, &program, library, &modules]));
        let newer = newer.display().to_string();
        clients.insert(format!("{library}-22"), command(&[&newer, &program, library, &modules]));
    }
    let grant = format!(
        "  fs: {{ execute: [{}], read: [{program}, {modules}] }}",
        newer.parent().expect("it lies in a directory").display()
    );
    let supervisor = service.supervisor(builder, &clients, &grant).await;
    // Debian's Node is older than the switch; undici knows the variables if it is asked to.
    for library in ["fetch", "node:https", "undici"] {
        tries(&service, &supervisor, library, Finds::Names).await;
    }
    for library in ["undici-env", "axios", "fetch-22", "undici-22", "node:https-22"] {
        tries(&service, &supervisor, library, Finds::NamesAndVariables).await;
    }
}

// Promises: JAIL-46, JAIL-47, JAIL-48
#[tokio::test]
async fn curl_and_go_reach_their_hosts() {
    let needs = [(Path::new(PYTHON), "python3"), (Path::new(CURL), "curl"), (Path::new(GO), "golang-go")];
    if is_missing("curl_and_go_reach_their_hosts", &needs) {
        return;
    }
    let builder = Builder::new();
    let service = Service::start(builder.scratch());
    let program = builder.scratch().join("client-go");
    let output = Command::new(GO)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("CGO_ENABLED", "0"), ("GOFLAGS", "-mod=mod"), ("GOPROXY", "off")])
        .env("HOME", builder.scratch().path())
        .args(["build", "-o"])
        .arg(&program)
        .arg(source("client.go"))
        .output()
        .expect("Go starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut clients = Map::new();
    clients.insert("curl".to_owned(), command(&[CURL, "--silent", "--show-error", "--fail"]));
    clients.insert("go".to_owned(), command(&[&program.display().to_string()]));
    let grant = format!("  fs: {{ execute: [{}] }}", program.display());
    let supervisor = service.supervisor(builder, &clients, &grant).await;
    for client in ["curl", "go"] {
        tries(&service, &supervisor, client, Finds::NamesAndVariables).await;
    }
    // An address has no name inside: the proxy of the variables leads to it, in plain HTTP too.
    for (scheme, port) in [("https", service.https), ("http", service.http)] {
        let said = fetched(&supervisor, "curl", &format!("{scheme}://127.0.0.1:{port}/")).await;
        assert!(said.contains(&format!("reached 127.0.0.1:{port} over {scheme}")), "{said}");
    }
}

// Promises: JAIL-46, JAIL-48
#[tokio::test]
async fn java_reaches_its_hosts() {
    let needs = [(Path::new(PYTHON), "python3"), (Path::new(JAVA), "default-jre-headless")];
    if is_missing("java_reaches_its_hosts", &needs) {
        return;
    }
    let builder = Builder::new();
    let service = Service::start(builder.scratch());
    let program = builder.scratch().install(&source("Client.java"), "Client.java").display().to_string();
    let mut clients = Map::new();
    clients.insert("java".to_owned(), command(&[JAVA, &program]));
    // As docs/egress.md says it for what has no address inside.
    let proxied = ["http", "https"]
        .map(|kind| [format!("-D{kind}.proxyHost=127.0.0.1"), format!("-D{kind}.proxyPort=3128")]);
    let mut words = vec![JAVA.to_owned()];
    words.extend(proxied.concat());
    words.push(program.clone());
    clients.insert("java-proxy".to_owned(), json!(words));
    let grant = format!("  fs: {{ read: [{program}] }}");
    let supervisor = service.supervisor(builder, &clients, &grant).await;
    tries(&service, &supervisor, "java", Finds::Names).await;
    for (scheme, port) in [("https", service.https), ("http", service.http)] {
        let said = fetched(&supervisor, "java-proxy", &format!("{scheme}://{STARRED}:{port}/")).await;
        assert!(said.contains(&format!("reached {STARRED}:{port} over {scheme}")), "{said}");
    }
}

/// A block of docs/mcp-servers.md below a heading.
fn documented(heading: &str, language: &str) -> String {
    let page = std::fs::read_to_string(repository().join("docs/mcp-servers.md")).expect("the page is there");
    let section = page.split("\n## ").find(|section| section.lines().next() == Some(heading)).expect(heading);
    let block = section.split(&format!("```{language}\n")).nth(1).and_then(|rest| rest.split("```").next());
    block.unwrap_or_else(|| panic!("{heading}: no {language}")).to_owned()
}

/// The entries of two browsers, as documented, with another site: its name is one of the list.
// Promises: JAIL-46
#[tokio::test]
async fn browsers_visit_what_is_listed() {
    const CHROMIUM: &str = "/usr/lib/chromium/chromium";
    let packages = target().join("mcp/browser");
    let needs =
        [(Path::new(CHROMIUM), "nothing for it: apt-get install chromium"), (&packages, "it after that")];
    if is_missing("browsers_visit_what_is_listed", &needs) {
        return;
    }
    let packages = packages.canonicalize().expect("it exists").display().to_string();
    let builder = Builder::new();
    let service = Service::start(builder.scratch());
    let http = service.http;
    let settings =
        builder.scratch().write("playwright.json", &documented("playwright", "json")).display().to_string();
    let mut lines = String::new();
    for name in ["playwright", "chrome-devtools"] {
        let entry = documented(name, "yaml")
            .replace("[/opt/mcp/browser]", &format!("[{packages}, {settings}]"))
            .replace("/opt/mcp/browser/playwright.json", &settings)
            .replace("/opt/mcp/browser", &packages)
            .replace("[\"www.example.org:443\"]", &format!("[\"{NAMED}:{http}\", \"127.0.0.1:{http}\"]"));
        let entry = entry.strip_prefix("plugins:\n  tools:\n    plugins:\n").expect("it begins at the top");
        lines.push_str(entry);
    }
    let builder = builder.tools(&format!("start_timeout: 55s\nplugins:\n{}", unindented(&lines)));
    let supervisor = in_hosts(builder).start().await;
    let url = format!("http://{NAMED}:{http}/");
    for (plugin, action) in [("playwright", "browser_navigate"), ("chrome-devtools", "new_page")] {
        let answer = supervisor.client.call(plugin, action, &[("url", &url)]).await;
        let logs = supervisor.client.logs(plugin).await;
        assert!(answer.error.is_empty() && answer.content.contains(&url), "{answer:?}\n{logs:#?}");
    }
    let shown = supervisor.client.show("playwright").await.settings.expect("it has some");
    assert_eq!((shown.sandbox_mode.as_str(), shown.sandbox_profile.as_str()), ("enforce", "strict"));
}

/// Lines of a config file two levels further to the left.
fn unindented(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect()
}

/// An MCP server over HTTP, for a plugin with a `url`.
fn remote(args: &[&Path]) -> ServerScript {
    ServerScript::start(PYTHON, &repository().join("tests/mcp/http_server.py"), args)
}

// Promises: JAIL-48
#[tokio::test]
async fn a_url_behind_a_private_authority_is_reached() {
    if !Path::new(PYTHON).exists() {
        return skip("a_url_behind_a_private_authority_is_reached", "there is no Python");
    }
    let builder = Builder::new();
    let (certificate, key) = certificate(builder.scratch());
    let remote = remote(&[Path::new("--tls"), &certificate, &key]);
    let url = format!("https://127.0.0.1:{}/mcp", remote.port(0));
    let ca_file = builder.scratch().join("ca.pem");
    let trusting = format!("sandbox: {{ ca_file: {} }}", ca_file.display());
    let strange = "max_restarts: 0\nstart_timeout: 15s";
    let supervisor = builder.url("trusting", &url, &trusting).url("strange", &url, strange).start().await;
    let client = &supervisor.client;
    let answer = client.call("trusting", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi", "{:#?}", client.logs("trusting").await);
    let reason = client.wait_state("strange", "failed").await.reason;
    assert!(reason.contains("UnknownIssuer") && reason.contains("ca_file"), "{reason}");
}

// Promises: JAIL-39
#[tokio::test]
async fn the_list_that_a_refusal_prints_is_enough() {
    if !Path::new(PYTHON).exists() {
        return skip("the_list_that_a_refusal_prints_is_enough", "there is no Python");
    }
    let remote = remote(&[]);
    let url = format!("http://localhost:{}/mcp", remote.port(0));
    let refused = "max_restarts: 0\nstart_timeout: 15s";
    let supervisor = Builder::new().url("mcp", &url, refused).start().await;
    let reason = supervisor.client.wait_state("mcp", "failed").await.reason;
    let printed = reason.split("sandbox.allow: ").nth(1).and_then(|rest| rest.split(']').next());
    let printed = printed.unwrap_or_else(|| panic!("it prints no list: {reason}"));
    let allowed = format!("sandbox: {{ allow: {printed}] }}");
    let supervisor = Builder::new().url("mcp", &url, &allowed).start().await;
    let answer = supervisor.client.call("mcp", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi", "{:#?}", supervisor.client.logs("mcp").await);
}

// Promises: EXT-49
#[tokio::test]
async fn an_auth_provider_reaches_its_issuer_alone() {
    if is_missing("an_auth_provider_reaches_its_issuer_alone", &[]) {
        return;
    }
    let (issuer, key) = (issuer::Issuer::start().await, issuer::SigningKey::new("one"));
    issuer.publish(&[&key]);
    let port = issuer.url.split(['/', ':']).find_map(|part| part.parse::<u16>().ok()).expect("it has a port");
    let settings = |port: u16| {
        let config = json!({"issuer": issuer.url, "audience": ["talon"], "ca_pem": issuer.ca_pem});
        let allow =
            json!([format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
        format!("config: {config}\nsandbox: {{ network: proxy, allow: {allow} }}")
    };
    let supervisor = Builder::new()
        .plugin("oidc", &example("oidc"), &[], &settings(port))
        .plugin("elsewhere", &example("oidc"), &[], &settings(9))
        .start()
        .await;
    let token = key.sign(&issuer.claims());
    let args = [("scheme", "bearer"), ("credential", token.as_str()), ("peer", "{}")];
    let answer = supervisor.client.call("oidc", "authenticate", &args).await;
    let said: Value =
        serde_json::from_str(&answer.structured_content).unwrap_or_else(|_| panic!("{answer:?}"));
    assert_eq!(
        (&said["outcome"], &said["subject"]),
        (&json!("accepted"), &json!("248289761001")),
        "{answer:?}"
    );
    let answer = supervisor.client.call("elsewhere", "authenticate", &args).await;
    assert!(answer.error.contains("cannot be fetched") && !answer.error.contains(&token), "{answer:?}");
    supervisor.stop().await;
}
