use super::*;

#[test]
fn windows_and_ourselves_are_recognised() {
    let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let (command, args) = without_cmd("cmd".to_owned(), texts(&["/c", "npx", "-y", "a"]));
    assert_eq!((command.as_str(), args), ("npx", texts(&["-y", "a"])));
    assert!(is_ourselves("/opt/talon/bin/talon", &texts(&["mcp", "--own"])));
    assert!(!is_ourselves("talon", &texts(&["status"])));
}
