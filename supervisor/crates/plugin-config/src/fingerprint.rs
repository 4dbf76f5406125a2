//! Decides whether a running process matches a spec.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};
use talon_jail::{Limits, Mode};

use crate::profile;
use crate::spec::{Cookie, Dialect, ForeignService, PluginSpec, Tls};
use crate::spec::{NetworkAccess, SandboxFs, SandboxPorts};

/// Everything in a spec that determines the process. What only the supervisor uses (timeouts, limits on
/// messages, restart rules, the number of instances) is left out: it applies from the next call on, also to a
/// process that was taken over.
///
/// The digest of the program is compared separately, as it is on the disk by then, and so is the uid. The
/// values of inherited environment variables are left out: starting a supervisor from another shell should
/// not restart all plugins.
///
/// A field that is added later must be omitted from the text when it has its default. Otherwise every process
/// starts fresh with the upgrade that adds it.
#[derive(Serialize)]
struct FingerprintInput<'s> {
    program: &'s Path,
    directory: Option<&'s Path>,
    args: &'s [String],
    env: &'s BTreeMap<String, String>,
    dialect: Dialect,
    config: &'s serde_json::Map<String, serde_json::Value>,
    cookie: &'s Cookie,
    app_versions: &'s [u32],
    service: &'s str,
    tls: Tls,
    url: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    foreign_service: Option<&'s ForeignService>,
    allow_tcp: bool,
    #[serde(skip_serializing_if = "is_false")]
    models: bool,
    sandbox: SandboxInput<'s>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The part of a spec's sandbox that determines the process.
#[derive(Serialize)]
struct SandboxInput<'s> {
    mode: Mode,
    limits: &'s Limits,
    profile: &'s str,
    /// The text of an operator's profile.
    profile_text: Option<String>,
    network: NetworkAccess,
    ports: &'s SandboxPorts,
    allow: &'s [String],
    /// Left out where there is none, as earlier versions did not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_file: Option<&'s Path>,
    fs: &'s SandboxFs,
    tmp_bytes: u64,
    tmp_exec: bool,
}

/// A SHA-256 in hexadecimal digits; `None` if a path is not UTF-8, so that it matches no other. Blocking: it
/// may read a profile.
pub fn fingerprint(spec: &PluginSpec) -> Option<String> {
    let sandbox = &spec.sandbox;
    let fingerprinted = FingerprintInput {
        program: &spec.program,
        directory: spec.directory.as_deref(),
        args: &spec.args,
        env: &spec.env,
        dialect: spec.dialect,
        config: &spec.config,
        cookie: &spec.cookie,
        app_versions: &spec.app_versions,
        service: &spec.service,
        tls: spec.tls,
        url: spec.url.as_deref(),
        foreign_service: spec.foreign_service.as_ref(),
        allow_tcp: spec.allow_tcp,
        models: spec.models,
        sandbox: SandboxInput {
            mode: sandbox.mode,
            limits: &sandbox.limits,
            profile: &sandbox.profile,
            profile_text: profile::custom_text(sandbox),
            network: sandbox.network,
            ports: &sandbox.ports,
            allow: &sandbox.allow,
            ca_file: sandbox.ca_file.as_deref(),
            fs: &sandbox.fs,
            tmp_bytes: sandbox.tmp_bytes,
            tmp_exec: sandbox.tmp_exec,
        },
    };
    let text = serde_json::to_vec(&fingerprinted).ok()?;
    Some(hex::encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::SpecDefaults;
    use crate::name::PluginName;
    use crate::spec::ChangedTools;

    fn spec() -> PluginSpec {
        SpecDefaults::default().spec(PluginName::new("x").unwrap(), "test", "/bin/x")
    }

    // Promises: HANDOVER-5
    #[test]
    fn what_the_process_is_made_of_counts() {
        let changes: [fn(&mut PluginSpec); 9] = [
            |spec| spec.program = "/bin/y".into(),
            |spec| spec.args.push("-v".to_owned()),
            |spec| drop(spec.env.insert("A".to_owned(), "b".to_owned())),
            |spec| drop(spec.config.insert("a".to_owned(), 1.into())),
            |spec| spec.sandbox.limits.nproc += 1,
            |spec| spec.sandbox.allow.push("example.org:443".to_owned()),
            |spec| spec.dialect = Dialect::Mcp,
            |spec| spec.tls = Tls::AutoMtls,
            |spec| spec.models = true,
        ];
        let mut seen = vec![fingerprint(&spec()).unwrap()];
        for change in changes {
            let mut spec = spec();
            change(&mut spec);
            let changed = fingerprint(&spec).unwrap();
            assert!(!seen.contains(&changed));
            seen.push(changed);
        }
    }

    // Promises: HANDOVER-5
    #[test]
    fn what_only_the_supervisor_minds_does_not() {
        let changes: [fn(&mut PluginSpec); 7] = [
            |spec| spec.instances = 3,
            |spec| spec.calls.queue = Some(1),
            |spec| spec.lifecycle.max_restarts = 9,
            |spec| spec.max_message_bytes *= 2,
            |spec| spec.watch = true,
            |spec| spec.source = "elsewhere".to_owned(),
            |spec| spec.changed_tools = ChangedTools::Block,
        ];
        for change in changes {
            let mut spec = spec();
            change(&mut spec);
            assert_eq!(fingerprint(&spec), fingerprint(&super::tests::spec()));
        }
    }

    #[test]
    fn the_text_of_an_own_profile_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut spec = spec();
        spec.sandbox.profile = dir.path().join("own.toml").display().to_string();
        let of = |text: &str| {
            std::fs::write(dir.path().join("own.toml"), text).unwrap();
            fingerprint(&spec)
        };
        assert_ne!(of("extends = \"strict\"\n"), of("extends = \"baseline\"\n"));
    }

    /// If this fails, an upgrade to this version starts every plugin cold: that is to be meant.
    #[test]
    fn an_upgrade_does_not_change_it() {
        assert_eq!(
            fingerprint(&spec()).unwrap(),
            "7ce2d1bbf490f7288626375422a6d9519617a516ddc0bfbe82a12b7ea6dcb824"
        );
    }
}
