//! Compiles the `.proto` files with a compiler written in Rust, so that no machine needs `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "opentalon/plugin/v1/plugin.proto",
        "plugin/goplugin.proto",
        "talon/plugin/v1/notices.proto",
        "talon/host/v1/host.proto",
        "talon/state/v1/state.proto",
        "talon/state/v1/operator.proto",
        "talon/state/v1/control.proto",
    ];
    for file in files {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["."])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
