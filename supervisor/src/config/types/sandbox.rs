//! `sandbox`: the jail around every plugin.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin_config::entry::{PluginSandbox, SandboxLimits, SandboxMode};
use talon_plugin_config::spec::{NetworkAccess, SandboxFs, SandboxPorts, SandboxSettings};
use talon_plugin_config::units::{ByteSize, UidRange};

/// The jail around every plugin: the defaults, and the most that a `plugin.yaml` may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sandbox {
    /// What happens when a protection cannot be given on this machine.
    pub mode: SandboxMode,
    /// The uids that plugins get, one each, when the supervisor is root. Otherwise they keep its own.
    ///
    /// 70000-79999 lies in the part that systemd's list of uids leaves free (65536 to 99999), below the
    /// ranges that container tools assign from 100000 on. It must not contain accounts or groups of this
    /// machine, nor ranges in `/etc/subuid` and `/etc/subgid`, nor those that systemd assigns itself (61184
    /// to 65535, and from 524288 on).
    pub uid_range: UidRange,
    /// Which system calls plugins may make, and which Landlock the kernel must have: one of the built-in
    /// profiles `strict`, `ports` and `wide`, the name of a file in `profile_dir` without its `.toml`, or a
    /// file's absolute path.
    ///
    /// `strict` lets every common runtime work and nothing reach into the kernel's corners. A profile that
    /// cannot be read or understood refuses the plugins that name it; the others run on.
    pub profile: String,
    /// Where profiles are looked for, besides the built-in ones. Only root and the supervisor's user may have
    /// write access there.
    #[schemars(extend("format" = "path"), example = &"/etc/talon/profiles")]
    pub profile_dir: Option<PathBuf>,
    /// Where plugins may connect to.
    ///
    /// `none`, because most tools work on what they are given, and a plugin that cannot call out cannot carry
    /// anything out.
    pub network: NetworkAccess,
    /// The TCP ports of plugins with `network: full`. Needs Landlock ABI 4 (Linux 6.7), which is then asked
    /// for whatever the profile says. There is no UDP then: names are resolved over TCP, for which 53 has to
    /// be in `connect`.
    pub ports: SandboxPorts,
    /// What plugins with `network: proxy` may connect to: `HOST:PORT`, where `*.` at the front stands for
    /// everything below a domain.
    #[schemars(example = &["api.example.org:443", "*.example.org:443"])]
    pub allow: Vec<String>,
    /// A file of certificates in PEM form, which plugins trust in addition to those of the system: for a private
    /// authority, or a proxy that opens TLS.
    ///
    /// Each plugin gets a copy of both in one file, which `SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`,
    /// `CURL_CA_BUNDLE`, `NODE_EXTRA_CA_CERTS`, `GIT_SSL_CAINFO`, `AWS_CA_BUNDLE`, `DENO_CERT`, `PIP_CERT` and
    /// `GRPC_DEFAULT_SSL_ROOTS_FILE_PATH` name, unless its `env` sets them; what connects to a plugin's `url` trusts
    /// it, too. It is read at each start of a plugin. At most 1 MiB, and no private key.
    #[schemars(extend("format" = "path"), example = &"/etc/talon/company-ca.pem")]
    pub ca_file: Option<PathBuf>,
    /// Files and directories of the host's that plugins see besides the system's own (`/usr`, and of `/etc`
    /// what programs need), at the paths that they have on the host. Their own permissions still count.
    pub fs: SandboxFs,
    /// The most that one process and its children may write into their private directory; their `/tmp` and
    /// `/dev/shm` lie there, too.
    ///
    /// 64 MiB: what a tool unpacks on the way to an answer, and little enough that many plugins that fill
    /// theirs do not fill the machine's memory, where it lies. A write beyond it fails with "no space left on
    /// device".
    pub tmp_bytes: ByteSize,
    /// Whether plugins may execute what they write there. Off, so that what was checked is all that runs.
    ///
    /// Programs that unpack themselves before they start, such as PyInstaller's, need it.
    pub tmp_exec: bool,
    /// Resource limits of every plugin's processes. One that lies above what the supervisor itself may have
    /// is lowered to that.
    pub limits: SandboxLimits,
}

impl Default for Sandbox {
    fn default() -> Self {
        let SandboxSettings {
            mode,
            limits: _,
            profile,
            profile_dir,
            network,
            ports,
            allow,
            ca_file,
            fs,
            tmp_bytes,
            tmp_exec,
        } = SandboxSettings::default();
        Self {
            mode: mode.into(),
            uid_range: UidRange::default(),
            profile,
            profile_dir,
            network,
            ports,
            allow,
            ca_file,
            fs,
            tmp_bytes: ByteSize::bytes(tmp_bytes),
            tmp_exec,
            limits: SandboxLimits::default(),
        }
    }
}

impl Sandbox {
    /// These settings as those of a single plugin.
    pub(crate) fn as_plugin_sandbox(&self) -> PluginSandbox {
        PluginSandbox {
            mode: Some(self.mode),
            profile: Some(self.profile.clone()),
            network: Some(self.network),
            ports: self.ports.clone(),
            allow: Some(self.allow.clone()),
            ca_file: self.ca_file.clone(),
            fs: self.fs.clone(),
            tmp_bytes: Some(self.tmp_bytes),
            tmp_exec: Some(self.tmp_exec),
        }
    }

    /// The defaults for plugins without settings.
    pub(crate) fn settings(&self) -> SandboxSettings {
        let mut settings = SandboxSettings {
            profile_dir: self.profile_dir.clone(),
            limits: self.limits.with_defaults(talon_jail::Limits::default()),
            ..SandboxSettings::default()
        };
        self.as_plugin_sandbox().apply(&mut settings);
        settings
    }
}
