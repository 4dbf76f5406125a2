//! A plugin's environment: variables on an allow-list, the operator's additions, and the handshake's
//! variables, which cannot be overridden.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use talon_plugin_config::bridge::{Bridge, URL_VARIABLE};
use talon_plugin_config::environment::{
    CA_VARIABLES, LISTEN_VARIABLE, MODEL_SOCKET_VARIABLE, PROXY_SOCKET_VARIABLE, STATE_SOCKET_VARIABLE,
    is_reserved,
};
use talon_plugin_config::spec::{Cookie, PluginSpec};

use crate::rundir::PrivateDir;

/// The `PATH` of plugins if the supervisor itself has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The TCP port range offered to go-plugin programs, as its own host offers it.
const TCP_PORT_RANGE: (&str, &str) = ("10000", "25000");

/// The log filter of Talon's own programs: `info`, `talon_state=debug`.
const LOG_VARIABLE: &str = "TALON_LOG";

/// The supervisor's sockets and files that one process gets.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchVariables {
    /// A listening socket, as its standard input.
    pub(super) listens: bool,
    /// The socket of the egress proxy.
    pub(super) proxied: bool,
    /// The socket of its key-value store.
    pub(super) state: bool,
    /// The socket for completions of language models.
    pub(super) model: bool,
    /// A file of certificates.
    pub(super) certificates: bool,
}

/// The complete environment of one process. A map, because with duplicates the later one would win.
pub(super) fn build(
    spec: &PluginSpec,
    allow_list: &[String],
    dir: &PrivateDir,
    instance: u32,
    given: LaunchVariables,
    client_cert: Option<&str>,
) -> Vec<(OsString, OsString)> {
    let mut env = inherited(allow_list);
    env.insert("HOME".into(), dir.home_dir().into());
    if given.certificates {
        let path = dir.certificates_path();
        env.extend(CA_VARIABLES.map(|name| (name.into(), path.clone().into())));
    }
    env.extend(spec.env.iter().map(|(name, value)| (name.into(), value.into())));
    let offered: &[u32] = if spec.foreign_service.is_some() { &[1] } else { &spec.app_versions };
    let versions = offered.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    // Whatever its source: where another host starts Talon as a plugin, the supervisor's own environment
    // holds these names. PLUGIN_MULTIPLEX_GRPC is never set, to any value: programs that find it speak yamux.
    env.retain(|name, _| !name.to_str().is_some_and(|name| is_reserved(name, &spec.cookie.key)));
    if let Some(certificate) = client_cert {
        env.insert("PLUGIN_CLIENT_CERT".into(), certificate.into());
    }
    if let Some(url) = &spec.url {
        env.insert(URL_VARIABLE.into(), url.into());
    }
    if given.listens {
        env.insert(LISTEN_VARIABLE.into(), "0".into());
    }
    if given.proxied {
        env.insert(PROXY_SOCKET_VARIABLE.into(), dir.proxy_path().into());
    }
    if given.state {
        env.insert(STATE_SOCKET_VARIABLE.into(), dir.state_path().into());
    }
    if given.model {
        env.insert(MODEL_SOCKET_VARIABLE.into(), dir.model_path().into());
    }
    // A bridge is built with the Talon SDK and expects its cookie, whatever the program behind it expects.
    let cookie = if Bridge::for_plugin(spec).is_some() { Cookie::default() } else { spec.cookie.clone() };
    let ours: [(&str, OsString); 9] = [
        (&cookie.key, (&cookie.value).into()),
        ("PLUGIN_PROTOCOL_VERSIONS", versions.into()),
        ("PLUGIN_UNIX_SOCKET_DIR", dir.socket_dir().into()),
        ("PLUGIN_MIN_PORT", TCP_PORT_RANGE.0.into()),
        ("PLUGIN_MAX_PORT", TCP_PORT_RANGE.1.into()),
        // Programs too old for the socket directory, and OpenTalon's, create their socket here.
        ("TMPDIR", dir.tmp_dir().into()),
        ("TALON_PLUGIN_NAME", spec.name.as_str().into()),
        ("TALON_PLUGIN_INSTANCE", instance.to_string().into()),
        ("OPENTALON_GRPC_MAX_MSG_BYTES", spec.max_message_bytes.to_string().into()),
    ];
    env.extend(ours.map(|(name, value)| (name.into(), value)));
    env.into_iter().collect()
}

/// Removes what is added if the egress proxy listens inside: a proxy of the supervisor's own environment cannot be
/// reached from there.
pub(super) fn remove_added(env: &mut Vec<(OsString, OsString)>, added: &[(OsString, OsString)]) {
    env.retain(|(name, _)| !added.iter().any(|(other, _)| name == other));
}

/// The complete environment of a service: what plugins inherit, the log filter, and its writable directories.
pub(super) fn for_service(allow_list: &[String], dir: &PrivateDir) -> Vec<(OsString, OsString)> {
    let mut env = inherited(allow_list);
    if let Some(filter) = std::env::var_os(LOG_VARIABLE) {
        env.insert(LOG_VARIABLE.into(), filter);
    }
    env.insert("HOME".into(), dir.home_dir().into());
    env.insert("TMPDIR".into(), dir.tmp_dir().into());
    env.into_iter().collect()
}

/// The variables of the supervisor's environment that the allow-list lets through, and always a `PATH`.
fn inherited(allow_list: &[String]) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<_, _> =
        std::env::vars_os().filter(|(name, _)| is_allowed(name, allow_list)).collect();
    env.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    env
}

fn is_allowed(name: &OsStr, allow_list: &[String]) -> bool {
    let name = name.as_bytes();
    allow_list.iter().any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => name == allowed.as_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use talon_plugin_config::discover::SpecDefaults;
    use talon_plugin_config::environment::check;
    use talon_plugin_config::name::PluginName;
    use talon_plugin_config::spec::{Dialect, NetworkAccess};

    use super::*;
    use crate::rundir::RuntimeDir;

    fn spec() -> PluginSpec {
        SpecDefaults::default().spec(PluginName::new("p").unwrap(), "test", "/bin/true")
    }

    fn built(spec: &PluginSpec, allow_list: &[&str]) -> std::collections::BTreeMap<String, String> {
        let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
        let runtime = Arc::new(RuntimeDir::prepare(&dir.path().join("r"), false).unwrap());
        let private = runtime.allocate(None).unwrap();
        let allow_list: Vec<_> = allow_list.iter().map(|s| (*s).to_owned()).collect();
        let given = LaunchVariables {
            listens: spec.dialect == Dialect::GoPlugin,
            proxied: spec.sandbox.network == NetworkAccess::Proxy,
            state: spec.dialect == Dialect::OpenTalon,
            model: spec.models,
            certificates: spec.sandbox.ca_file.is_some(),
        };
        let env = build(spec, &allow_list, &private, 2, given, None);
        env.into_iter().map(|(k, v)| (k.into_string().unwrap(), v.into_string().unwrap())).collect()
    }

    // Promises: LAUNCH-3
    #[test]
    fn nothing_is_inherited_but_the_allow_list() {
        let env = built(&spec(), &["PATH"]);
        let names: Vec<_> = env.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "HOME",
                "OPENTALON_GRPC_MAX_MSG_BYTES",
                "PATH",
                "PLUGIN_MAX_PORT",
                "PLUGIN_MIN_PORT",
                "PLUGIN_PROTOCOL_VERSIONS",
                "PLUGIN_UNIX_SOCKET_DIR",
                "TALON_PLUGIN_INSTANCE",
                "TALON_PLUGIN_MAGIC_COOKIE",
                "TALON_PLUGIN_NAME",
                "TMPDIR",
            ]
        );
        assert_eq!(env["TALON_PLUGIN_INSTANCE"], "2");
        assert_eq!(env["PATH"], std::env::var("PATH").unwrap());
    }

    #[test]
    fn only_who_is_handed_a_socket_is_told_of_one() {
        let mut spec = spec();
        assert!(!built(&spec, &["*"]).contains_key(LISTEN_VARIABLE));
        spec.dialect = Dialect::GoPlugin;
        assert_eq!(built(&spec, &["PATH"])[LISTEN_VARIABLE], "0");
        spec.env.insert(LISTEN_VARIABLE.to_owned(), "3".to_owned());
        assert_eq!(built(&spec, &["PATH"])[LISTEN_VARIABLE], "0");
        assert!(check(&spec).unwrap_err().to_string().contains("belongs to the handshake"));
    }

    #[test]
    fn a_bridge_finds_the_address_of_its_server_here_and_not_on_its_command_line() {
        let mut spec = spec();
        assert!(!built(&spec, &["*"]).contains_key(URL_VARIABLE));
        let url = "https://mcp.example.org/?key=s3cret";
        (spec.dialect, spec.url) = (Dialect::Mcp, Some(url.to_owned()));
        assert_eq!(built(&spec, &["PATH"])[URL_VARIABLE], url);
        let args = Bridge::Mcp.args(&spec, OsString::new(), None);
        assert!(args.iter().all(|arg| !arg.to_string_lossy().contains("s3cret")), "{args:?}");
    }

    #[test]
    fn only_whose_key_values_are_served_is_told_where() {
        let mut spec = spec();
        let variable = STATE_SOCKET_VARIABLE;
        assert!(!built(&spec, &["*"]).contains_key(variable));
        spec.dialect = Dialect::OpenTalon;
        assert!(built(&spec, &["PATH"])[variable].ends_with("/k"));
        spec.env.insert(variable.to_owned(), "/elsewhere".to_owned());
        assert!(built(&spec, &["PATH"])[variable].ends_with("/k"));
        assert!(check(&spec).unwrap_err().to_string().contains("belongs to the handshake"));
    }

    #[test]
    fn only_who_is_granted_models_is_told_where() {
        let mut spec = spec();
        let variable = MODEL_SOCKET_VARIABLE;
        assert!(!built(&spec, &["*"]).contains_key(variable));
        spec.models = true;
        assert!(built(&spec, &["PATH"])[variable].ends_with("/q"));
        spec.env.insert(variable.to_owned(), "/elsewhere".to_owned());
        assert!(check(&spec).unwrap_err().to_string().contains("belongs to the handshake"));
    }

    #[test]
    fn a_service_is_told_where_it_may_write_and_nothing_of_plugins() {
        let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
        let runtime = Arc::new(RuntimeDir::prepare(&dir.path().join("r"), false).unwrap());
        let private = runtime.allocate(None).unwrap();
        let env = for_service(&["PATH".to_owned()], &private);
        let names: Vec<_> = env.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        let named: Vec<_> = names.into_iter().filter(|name| *name != LOG_VARIABLE).collect();
        assert_eq!(named, ["HOME", "PATH", "TMPDIR"]);
    }

    #[test]
    fn a_bridge_gets_the_cookie_that_it_knows() {
        let mut spec = spec();
        spec.cookie = Cookie { key: "THEIRS".to_owned(), value: "x".to_owned() };
        assert_eq!(built(&spec, &[])["THEIRS"], "x");
        spec.dialect = Dialect::Mcp;
        let env = built(&spec, &[]);
        assert_eq!(env[&Cookie::default().key], Cookie::default().value);
        assert!(!env.contains_key("THEIRS"));
    }

    // Promises: JAIL-48
    #[test]
    fn the_file_of_certificates_is_named_unless_the_operator_names_another() {
        let mut spec = spec();
        assert!(!built(&spec, &["PATH"]).contains_key("SSL_CERT_FILE"));
        spec.sandbox.ca_file = Some("/etc/company.pem".into());
        spec.env.insert("REQUESTS_CA_BUNDLE".to_owned(), "/usr/share/own.pem".to_owned());
        let env = built(&spec, &["PATH"]);
        assert_eq!(env["REQUESTS_CA_BUNDLE"], "/usr/share/own.pem");
        for name in CA_VARIABLES.iter().filter(|name| **name != "REQUESTS_CA_BUNDLE") {
            assert!(env[*name].ends_with("/c"), "{name} is {}", env[*name]);
        }
    }

    #[test]
    fn a_star_stands_for_any_ending() {
        let list = ["LC_*".to_owned(), "TZ".to_owned()];
        for (name, allowed) in
            [("LC_ALL", true), ("LC_", true), ("TZ", true), ("TZX", false), ("XLC_A", false)]
        {
            assert_eq!(is_allowed(OsStr::new(name), &list), allowed, "{name}");
        }
    }

    // Promises: HAND-4
    #[test]
    fn the_operator_adds_and_does_not_override_the_handshake() {
        let mut spec = spec();
        spec.app_versions = vec![1, 3];
        for (name, value) in [("PATH", "/x"), ("HOME", "/y"), ("LOG", "debug"), ("TMPDIR", "/z")] {
            spec.env.insert(name.to_owned(), value.to_owned());
        }
        for name in ["PLUGIN_MULTIPLEX_GRPC", "PLUGIN_CLIENT_CERT"] {
            spec.env.insert(name.to_owned(), "true".to_owned());
        }
        let env = built(&spec, &["PLUGIN_*"]);
        assert_eq!((env["PATH"].as_str(), env["HOME"].as_str(), env["LOG"].as_str()), ("/x", "/y", "debug"));
        assert_ne!(env["TMPDIR"], "/z");
        assert_eq!(env["PLUGIN_PROTOCOL_VERSIONS"], "1,3");
        assert!(!env.contains_key("PLUGIN_MULTIPLEX_GRPC"));
        assert!(!env.contains_key("PLUGIN_CLIENT_CERT"));
        assert!(check(&spec).is_err());
    }
}
