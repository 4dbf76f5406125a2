//! Compresses the files of the pages, so that the gateway serves them as they are, and gives them a common path with a digest of their
//! contents. Whoever builds needs nothing but cargo.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// What stands in the pages for the common path.
const PLACEHOLDER: &str = "{{assets}}";

fn main() {
    println!("cargo::rerun-if-changed=assets");
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("assets");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    collect(&root, &root, &mut files);
    files.sort();
    let prefix = format!("/assets/{}", digest_of_all(&files));
    let mut table =
        format!("pub(super) const PREFIX: &str = \"{prefix}/\";\npub(super) static ASSETS: &[Asset] = &[\n");
    for (place, (name, content)) in files.into_iter().enumerate() {
        let content = if name.ends_with(".html") { fill(&content, &prefix) } else { content };
        write(&out.join(format!("{place}")), &content);
        write(&out.join(format!("{place}.gz")), &gzip(&content));
        write(&out.join(format!("{place}.br")), &brotli(&content));
        let include =
            |suffix: &str| format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{place}{suffix}\"))");
        writeln!(
            table,
            "Asset {{ name: {name:?}, media_type: {:?}, digest: {:?}, plain: {}, gzip: {}, brotli: {} }},",
            media_type(&name),
            digest([content.as_slice()]),
            include(""),
            include(".gz"),
            include(".br"),
        )
        .expect("a text takes everything");
    }
    table.push_str("];\n");
    write(&out.join("assets.rs"), table.as_bytes());
}

/// All files below a directory, with their paths from `root`.
fn collect(root: &Path, directory: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(directory).expect("the directory of the pages is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name =
                path.strip_prefix(root).expect("it is below").to_str().expect("names are ASCII").to_owned();
            files.push((name, fs::read(&path).expect("it can be read")));
        }
    }
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => panic!("{name}: add the media type of such files here"),
    }
}

fn fill(page: &[u8], prefix: &str) -> Vec<u8> {
    String::from_utf8(page.to_vec()).expect("a page is UTF-8").replace(PLACEHOLDER, prefix).into_bytes()
}

fn digest_of_all(files: &[(String, Vec<u8>)]) -> String {
    digest(files.iter().flat_map(|(name, content)| [name.as_bytes(), content.as_slice()]))
}

/// The first 16 hexadecimal digits: they tell versions apart, and keep nobody out.
fn digest<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn brotli(content: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let parameters = brotli::enc::BrotliEncoderParams { quality: 11, ..Default::default() };
    brotli::BrotliCompress(&mut &content[..], &mut compressed, &parameters).expect("memory takes everything");
    compressed
}

fn write(path: &Path, content: &[u8]) {
    fs::write(path, content).expect("cargo's directory can be written");
}
