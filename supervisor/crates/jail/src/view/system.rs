//! The system's files that every program sees: libraries, certificates, names.
//!
//! They are found on this host, since distributions differ. None of them is secret and all are optional: what
//! the host does not have is not there inside either.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::find::normalize;
use super::{Access, BindMount, GeneratedFile, Symlink, View};
use crate::network::Network;

/// Where programs and libraries are. The others are links into it on most hosts.
const USR: &str = "/usr";

/// Directories of programs and libraries beside [`USR`], as on the host.
const USR_SIBLINGS: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Configuration that libraries read in every program. Everything else in `/etc` is invisible: passwords,
/// keys of the host's services, and the files of other programs.
const ETC: &[&str] = &[
    // Where the dynamic linker finds libraries: without the cache it looks in two directories only. What the
    // cache is made from (ld.so.conf) is read by who makes it, and a mount each is saved here and below.
    "/etc/ld.so.cache",
    // The same of musl's.
    "/etc/ld-musl-x86_64.path",
    "/etc/ld-musl-aarch64.path",
    // What /usr/bin/java and its like lead to on Debian.
    "/etc/alternatives",
    // Certificates of authorities, and OpenSSL's own settings. Not /etc/ssl/private, which has keys.
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    // Where certificates are on Arch; elsewhere the directory has only what their installer needs.
    "/etc/ca-certificates/extracted",
    // The same on Fedora and its kin, whose OpenSSL settings include those of the crypto policy.
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust",
    "/etc/pki/java",
    "/etc/crypto-policies",
    // The time zone.
    "/etc/localtime",
    "/etc/timezone",
    // Which distribution this is: runtimes pick libraries by it.
    "/etc/os-release",
    // Which type a file's ending means.
    "/etc/mime.types",
    // Which of several addresses to prefer; names of ports and protocols.
    "/etc/gai.conf",
    "/etc/protocols",
    "/etc/services",
    // What draws text looks here for fonts, and fails without.
    "/etc/fonts",
];

/// Configuration with a version in its name: Debian's Java runtimes and Pythons link theirs to it.
const ETC_PREFIXES: &[&str] = &["java-", "python3"];

/// Names and addresses. The host's passwd, group and nsswitch.conf describe its users and services, which do
/// not concern a program.
const NSSWITCH: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n\
                        protocols: files\nservices: files\nethers: files\nrpc: files\n";

/// The host name is the one that the namespaces step sets.
const HOSTS: &str =
    "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 plugin\n::1 plugin\n";

/// The largest `/etc/resolv.conf` that is changed for a program. glibc reads three servers and six domains of
/// it, which are some hundred bytes; a larger one is shown as it is.
const RESOLVER_MAX_BYTES: u64 = 16 << 10;

/// The uid and gid that the kernel shows for unmapped ones.
const OVERFLOW_UID: u32 = 65_534;

impl View {
    /// The system's files of this host for every program: programs and libraries, certificates and the time
    /// zone, and a passwd in which it is the user `plugin` with this home directory. With [`Network::Host`]
    /// also the host's name resolution settings.
    ///
    /// A home directory that cannot be in a passwd line (with `:`, a control character, or bytes that are not
    /// UTF-8) is `/` there.
    pub fn system((uid, gid): (u32, u32), home: &Path, network: &Network) -> Self {
        let mut view = Self::default();
        view.add_host_path(Path::new(USR), Access::Execute);
        for directory in USR_SIBLINGS {
            view.add_host_path(Path::new(directory), Access::Execute);
        }
        for path in ETC.iter().map(PathBuf::from).chain(versioned_paths()) {
            view.add_host_path(&path, Access::Read);
        }
        view.add_file("/etc/passwd", passwd(uid, gid, home));
        view.add_file("/etc/group", group(gid));
        view.add_file("/etc/nsswitch.conf", NSSWITCH.into());
        view.add_file("/etc/host.conf", "multi on\n".into());
        if matches!(network, Network::Host { .. }) {
            // Often a link into /run, which is followed. What a host writes there later by renaming a new
            // file over it is seen at the next start.
            let resolver = Path::new("/etc/resolv.conf");
            match network.lists_ports().then(|| resolver_over_tcp(resolver)).flatten() {
                Some(text) => view.add_file("/etc/resolv.conf", text),
                None => view.add_host_path(resolver, Access::Read),
            }
            view.add_host_path(Path::new("/etc/hosts"), Access::Read);
        } else {
            view.add_file("/etc/hosts", HOSTS.into());
        }
        view
    }

    /// Adds a host path, if it exists. A link into a directory that is shown already is added as a link with
    /// the same target, which needs no mount.
    fn add_host_path(&mut self, path: &Path, access: Access) {
        if fs::metadata(path).is_err() {
            return;
        }
        let link = fs::read_link(path).ok().filter(|to| leads_into_usr(path, to));
        match link {
            Some(to) => self.links.push(Symlink { at: path.into(), to }),
            None => self.shown.push(BindMount { at: path.into(), from: path.into(), access, needed: false }),
        }
    }

    fn add_file(&mut self, at: &str, text: String) {
        self.files.push(GeneratedFile { at: at.into(), text });
    }
}

/// The host's settings of name resolution with TCP instead of UDP, which a program with a list of ports has
/// not. It still needs port 53 in its list.
fn resolver_over_tcp(file: &Path) -> Option<String> {
    let size = fs::metadata(file).ok()?.len();
    let text = (size <= RESOLVER_MAX_BYTES).then(|| fs::read_to_string(file).ok()).flatten()?;
    Some(format!("{}\noptions use-vc\n", text.trim_end()))
}

/// Whether a link at this path leads to a path below [`USR`], judged by its text only: `usr/bin`,
/// `../usr/lib/os-release`, `/usr/share/zoneinfo/UTC`.
fn leads_into_usr(at: &Path, to: &Path) -> bool {
    normalize(&at.parent().unwrap_or(at).join(to)).starts_with(USR)
}

/// The paths in `/etc` with the prefixes [`ETC_PREFIXES`].
fn versioned_paths() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/etc") else { return Vec::new() };
    let mut paths: Vec<_> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            ETC_PREFIXES.iter().any(|beginning| name.as_bytes().starts_with(beginning.as_bytes()))
        })
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

fn passwd(uid: u32, gid: u32, home: &Path) -> String {
    let fits = |home: &&str| !home.contains(|letter: char| letter == ':' || letter.is_control());
    let home = home.to_str().filter(fits).unwrap_or("/");
    let mut text = format!("plugin:x:{uid}:{gid}:plugin:{home}:/bin/sh\n");
    if uid != OVERFLOW_UID {
        text.push_str(&format!(
            "nobody:x:{OVERFLOW_UID}:{OVERFLOW_UID}:nobody:/nonexistent:/usr/sbin/nologin\n"
        ));
    }
    text
}

fn group(gid: u32) -> String {
    let mut text = format!("plugin:x:{gid}:\n");
    if gid != OVERFLOW_UID {
        text.push_str(&format!("nogroup:x:{OVERFLOW_UID}:\n"));
    }
    text
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
