use super::super::EXAMPLE;
use super::super::tests::Scene;
use super::*;

// Promises: CONF-12, CONF-13
#[test]
fn values_are_shown_with_their_origins_and_without_secrets() {
    let scene = Scene::file(
        r#"
runtime_dir: /run/t
plugins:
  tools:
    plugins:
      web:
        command: /bin/web
        args: [--verbose, "--token=${OUTSIDE}"]
        env: { TZ: UTC, API_TOKEN: abcdef, FROM_OUTSIDE: "${OUTSIDE}" }
        config: { root: /srv, nested: { password: hunter2, list: [1, "${OUTSIDE}"] } }
        credentials: { web: { header: X-Key, value: "${OUTSIDE}" } }
host:
  peers: [{ uid: 7, role: call }]
"#,
    )
    .var("OUTSIDE", "from-outside")
    .var("TALON_GUARD__TIMEOUT", "7s");
    let loaded = scene.load();
    let shown = loaded.show_yaml().replace(&scene.options.environment.cwd.display().to_string(), "DIR");
    for secret in ["from-outside", "hunter2", "abcdef"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
        assert!(!loaded.show_json().to_string().contains(secret), "{secret}");
    }
    insta::assert_snapshot!(shown);
    let json = loaded.show_json();
    assert_eq!(json["sources"]["guard.timeout"], "$TALON_GUARD__TIMEOUT");
    assert_eq!(json["sources"]["runtime_dir"], "talon.yaml:2:14");
    assert_eq!(json["values"]["guard"]["timeout"], "7s");
}

#[test]
fn what_is_shown_reads_back_as_the_same() {
    let odd = r#"
plugins: { tools: { overrides: { p: { config: {
  a: "$$$${X}", b: "null", c: "5", d: 5, e: "x: y # z", f: ["", "~", -1.5], g: { "k: k": "é\n\"" }, h: null } } } } }
"#;
    for text in [EXAMPLE, odd, ""] {
        let loaded = Scene::file(text).var("GITLAB_TOKEN", REDACTED).load();
        let again = Scene::file(loaded.show_yaml()).load();
        assert_eq!(again.config, loaded.config, "{}", loaded.show_yaml());
    }
}
