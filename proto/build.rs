//! Compiles the `.proto` files with a compiler written in Rust, so that no machine needs `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "opentalon/plugin/v1/plugin.proto",
        "talon/host/v1/host.proto",
        "talon/state/v1/state.proto",
        "talon/state/v1/operator.proto",
        "talon/state/v1/control.proto",
        "talon/agent/v1/agent.proto",
        "talon/agent/v1/control.proto",
    ];
    // Streams that are open for a plugin's whole life, and say a word now and then.
    let lasting = ["plugin/goplugin.proto", "talon/plugin/v1/notices.proto"];
    for file in files.iter().chain(&lasting) {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["."])?;
    // Maps come in one order: what is said twice is said in the same bytes, and everybody who takes arguments keeps them so.
    tonic_prost_build::configure().btree_map(".").compile_fds(descriptors)?;
    let descriptors = protox::compile(lasting, ["."])?;
    tonic_prost_build::configure()
        .btree_map(".")
        .codec_path("crate::lasting::LastingCodec")
        .compile_fds(descriptors)?;
    Ok(())
}
