//! Which gateways are refused when the configuration is read.

use super::load;
use super::tests::Scene;

/// What is said against a configuration; nothing if it is taken.
fn problems(yaml: &str) -> String {
    load(&Scene::file(yaml).options).err().map(|errors| errors.to_string()).unwrap_or_default()
}

fn gateway(keys: &str) -> String {
    problems(&format!("gateway: {{ enabled: true, {keys} }}\n"))
}

// Promises: GW-7
#[test]
fn another_address_than_loopback_needs_tls_or_a_proxy_and_a_credential() {
    assert_eq!(gateway(""), "");
    assert_eq!(gateway("tokens: false"), "", "on loopback a link opens a session");
    let clear = gateway("address: '192.0.2.1:19789'");
    assert!(clear.contains("in the clear"), "{clear}");
    let tls = "tls: { certificate: /c, key: /k }";
    assert_eq!(gateway(&format!("address: '192.0.2.1:19789', {tls}")), "");
    let nobody = gateway(&format!("address: '192.0.2.1:19789', tokens: false, {tls}"));
    assert!(nobody.contains("gateway.tokens"), "{nobody}");
    let proxied = "behind_proxy: { addresses: [10.0.0.0/8] }";
    assert_eq!(gateway(&format!("address: '10.0.0.1:80', hosts: [a.example], {proxied}")), "");
    let nameless = gateway(&format!("address: '10.0.0.1:80', {proxied}"));
    assert!(nameless.contains("gateway.hosts"), "{nameless}");
}

#[test]
fn what_is_no_name_network_or_limit_is_refused() {
    for (keys, said) in [
        ("hosts: ['a b']", "no name of a host"),
        ("origins: ['desk.example']", "no origin"),
        ("origins: ['https://desk.example/x']", "no origin"),
        ("hosts: [a], behind_proxy: { addresses: ['10.0.0.0'] }", "no network"),
        ("hosts: [a], behind_proxy: { addresses: [] }", "names no proxy"),
        ("limits: { connections: 0 }", "refuses everybody"),
        ("limits: { body: 1B }", "holds no message"),
        ("address: 'localhost:1'", "gateway.address"),
    ] {
        let found = gateway(keys);
        assert!(found.contains(said), "{keys}: {found}");
    }
    let off = problems("gateway: { enabled: true }\nstate: { engine: off }\n");
    assert!(off.contains("nowhere to keep tokens"), "{off}");
}
