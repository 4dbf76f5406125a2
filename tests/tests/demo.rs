//! `make demo` shows what is true.

use talon_tests::program;

// Promises: AGENT-19, EX-7
#[tokio::test]
async fn the_demo_holds() {
    let output = tokio::process::Command::new(program("talon-demo"))
        .stdin(std::process::Stdio::null())
        .output()
        .await
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("checks hold"), "{text}");
}
