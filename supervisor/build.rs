//! Tells the binary which compiler built it, for its metrics.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=TALON_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output().ok();
    let text = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    // "rustc 1.95.0 (…)"
    let version = text.split_whitespace().nth(1).unwrap_or("unknown");
    println!("cargo:rustc-env=TALON_RUSTC={version}");
}
