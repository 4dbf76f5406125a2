//! The sysctls by which distributions forbid user namespaces to ordinary users.

/// Each with the value that forbids them, and the command that allows them.
const SWITCHES: &[(&str, &str, &str)] = &[
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
];

/// The command for the first switch that forbids them. `read` returns the text of a file. To be asked only if
/// making a user namespace failed.
pub(crate) fn disabled_userns_switch(read: &dyn Fn(&str) -> Option<String>) -> Option<&'static str> {
    let is = |path: &str, value: &str| read(path).is_some_and(|text| text.trim() == value);
    SWITCHES.iter().find(|(path, value, _)| is(path, value)).map(|(_, _, command)| *command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_that_is_off_is_named() {
        let with = |set: &'static str, value: &'static str| {
            disabled_userns_switch(&move |path| path.ends_with(set).then(|| format!("{value}\n")))
        };
        assert!(with("max_user_namespaces", "0").is_some_and(|advice| advice.contains("=10000")));
        assert!(with("unprivileged_userns_clone", "0").is_some_and(|advice| advice.ends_with("clone=1")));
        assert!(with("apparmor_restrict_unprivileged_userns", "1").is_some_and(|s| s.ends_with("userns=0")));
        assert_eq!(with("max_user_namespaces", "96365"), None);
    }
}
