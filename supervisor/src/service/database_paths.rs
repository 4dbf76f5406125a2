//! The paths of a database server that a service's jail must show.

use std::path::{Path, PathBuf};

/// Where local servers have their sockets.
const SERVER_SOCKETS: [&str; 2] = ["/run/postgresql", "/var/run/postgresql"];

/// The socket directories of a local server, and the certificate files that the URL names.
pub(crate) fn database_paths(url: &str) -> Vec<PathBuf> {
    let sockets = SERVER_SOCKETS.iter().map(PathBuf::from).filter(|path| path.is_dir());
    // The service parses the URL; here only the file that it names matters.
    let named = url.split(['?', '&', ' ']).find_map(|part| part.strip_prefix("sslrootcert="));
    let certificates = named.map(Path::new).filter(|path| path.is_absolute());
    sockets.chain(certificates.map(Path::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificates_that_an_address_names_are_shown() {
        let file = PathBuf::from("/etc/talon/ca.pem");
        let url = "postgresql://talon@db/talon?sslmode=verify-full&sslrootcert=/etc/talon/ca.pem";
        assert!(database_paths(url).contains(&file));
        assert!(
            !database_paths("postgresql://db/talon?sslrootcert=system").contains(&PathBuf::from("system"))
        );
    }
}
