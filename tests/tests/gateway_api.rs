//! The gateway's API over a real agent.
#[test]
fn placeholder() {}
