//! Checks of `gateway`: what must not be reachable from elsewhere without a credential and in the clear.

use talon_plugin_config::document::origin::KeyPath;

use super::Check;
use crate::config::overlay::is_ever_allowed;
use crate::config::types::{Config, Engine, Gateway};

/// The least that the largest body may be: smaller ones would not even hold a message.
const MIN_BODY_BYTES: u64 = 4 << 10;

impl Check<'_> {
    pub(super) fn gateway(&mut self, config: &Config, path: &KeyPath) {
        let gateway = &config.gateway;
        if gateway.enabled {
            self.reachable(config, gateway, path);
            if config.state.engine == Engine::Off && config.state.plugins.is_none() {
                let message = "with state.engine: off there is nowhere to keep tokens and sessions";
                self.problem(
                    &path.key("enabled"),
                    message,
                    "set state.engine: sqlite, or gateway.enabled: false",
                );
            } else if !config.runs_agent() {
                let message = "there is no agent behind it: sessions and messages answer 503";
                self.found.warning(&path.key("enabled"), message, "set agent.enabled: auto");
            }
        }
        for (index, host) in gateway.hosts.iter().enumerate().filter(|(_, host)| !is_host(host)) {
            let key = path.key("hosts").index(index);
            self.problem(
                &key,
                format!("{host:?} is no name of a host"),
                "write it as talon.example.org, with :PORT if it has one",
            );
        }
        for (index, origin) in gateway.origins.iter().enumerate().filter(|(_, origin)| !is_origin(origin)) {
            let key = path.key("origins").index(index);
            self.problem(
                &key,
                format!("{origin:?} is no origin"),
                "write https://desk.example.org, without a path",
            );
        }
        for (index, key) in gateway.config_keys.iter().enumerate() {
            if let Err(why) = is_ever_allowed(key) {
                let help = "take it out; docs/configuration.md has the keys";
                self.problem(&path.key("config_keys").index(index), format!("{key:?} {why}"), help);
            }
        }
        let proxies = gateway.behind_proxy.as_ref();
        for (index, network) in proxies.iter().flat_map(|proxy| proxy.addresses.iter().enumerate()) {
            if !is_network(network) {
                let key = path.key("behind_proxy").key("addresses").index(index);
                self.problem(
                    &key,
                    format!("{network:?} is no network"),
                    "write an address and a length: 10.0.0.0/8",
                );
            }
        }
        if proxies.is_some_and(|proxy| proxy.addresses.is_empty()) {
            self.problem(&path.key("behind_proxy").key("addresses"), "names no proxy", "list their networks");
        }
        self.gateway_limits(gateway, &path.key("limits"));
        if let Some(program) = gateway.program.as_ref().filter(|program| !program.is_file()) {
            let message = format!("{} is no file", program.display());
            self.problem(&path.key("program"), message, "correct the path, or remove it");
        }
    }

    fn reachable(&mut self, config: &Config, gateway: &Gateway, path: &KeyPath) {
        if gateway.address.ip().is_loopback() && gateway.behind_proxy.is_none() {
            return;
        }
        let address = path.key("address");
        if gateway.tls.is_none() && gateway.behind_proxy.is_none() {
            let message =
                format!("{} can be reached from elsewhere, and would be in the clear", gateway.address);
            self.problem(&address, message, "set gateway.tls, or gateway.behind_proxy if a proxy ends TLS");
        }
        if !gateway.tokens && config.extensions.auth.is_empty() {
            let message = format!(
                "{} can be reached from elsewhere, and nobody could show who they are",
                gateway.address
            );
            self.problem(
                &address,
                message,
                "set gateway.tokens: true, or add an auth provider to extensions",
            );
        }
        if gateway.hosts.is_empty()
            && (gateway.behind_proxy.is_some() || gateway.address.ip().is_unspecified())
        {
            let message = "clients call it by a name that it does not know, and are refused";
            self.problem(&path.key("hosts"), message, "list the names in their addresses: talon.example.org");
        }
    }

    fn gateway_limits(&mut self, gateway: &Gateway, path: &KeyPath) {
        let limits = &gateway.limits;
        self.found.check_nonzero_duration(limits.header_timeout, &path.key("header_timeout"));
        self.found.check_nonzero_duration(limits.body_timeout, &path.key("body_timeout"));
        self.found.check_nonzero_duration(limits.unread_timeout, &path.key("unread_timeout"));
        let counts = [
            ("connections", limits.connections),
            ("connections_per_address", limits.connections_per_address),
            ("requests_per_minute", limits.requests_per_minute),
            ("requests_per_minute_per_address", limits.requests_per_minute_per_address),
            ("websockets", limits.websockets),
            ("websockets_per_caller", limits.websockets_per_caller),
            ("messages_per_websocket", limits.messages_per_websocket),
            ("credentials", limits.credentials),
            ("background_turns", limits.background_turns),
        ];
        for (name, _) in counts.into_iter().filter(|(_, count)| *count == 0) {
            self.problem(&path.key(name), "is 0, which refuses everybody", "write at least 1");
        }
        if (limits.body.as_usize() as u64) < MIN_BODY_BYTES {
            let message = format!("{} holds no message", limits.body);
            self.problem(&path.key("body"), message, "write at least 4KiB");
        }
    }
}

/// `name`, `name:port`, an IPv4 address, or an IPv6 address in brackets.
fn is_host(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    !text.is_empty() && text.len() <= 255 && text.bytes().all(fits) && !text.starts_with(':')
}

fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(is_host)
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let Ok(address) = address.parse::<std::net::IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    length.parse::<u8>().is_ok_and(|length| length <= most)
}
