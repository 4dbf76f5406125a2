//! Destructive commands that can be recognized by their text: `rm -rf` and the like.
//!
//! Each pattern is an expression of the `regex` crate, so matching is linear in the text. `[^;&|\n]*` stays
//! within one command. Flags may come in any order, combined or separate, before or after their operands.

use std::sync::LazyLock;

use regex::Regex;
use talon_agent_settings::confirm_pattern;

/// Where a command may start: `alarm -r` is no `rm`, but `/bin/rm` is one.
macro_rules! command {
    ($names:literal) => {
        concat!(r"(?:^|[^\w.-])(?:", $names, r")")
    };
}
/// The same for a name that is a common word: only at the start of a command, or after `sudo`.
macro_rules! bare_command {
    ($names:literal) => {
        concat!(r"(?m)(?:^|[;&|(`]|\bsudo\s(?:[^;&|\n]*\s)?)\s*(?:\S*/)?(?:", $names, r")(?:\s|;|&|$)")
    };
}

/// The name of each, which is shown to people, and its expression.
const BUILT_IN: [(&str, &str); 18] = [
    (
        "rm -rf",
        concat!(
            command!("rm"),
            r"\s(?:[^;&|\n]*\s)?-(?:[A-Za-z]*[rRf][A-Za-z]*|-r[a-z-]*|-f[a-z-]*)(?:\s|$|[;&|)])"
        ),
    ),
    ("sudo rm", concat!(command!("sudo|doas"), r"\s(?:[^;&|\n]*[\s/])?(?:rm|shred|unlink)(?:\s|$)")),
    ("find -delete", concat!(command!("find"), r"\s[^;&|\n]*\s-(?:delete|exec(?:dir)?\s+(?:\S*/)?rm)\b")),
    ("xargs rm", concat!(command!("xargs"), r"\s(?:[^;&|\n]*[\s/])?rm(?:\s|$)")),
    ("shred", concat!(command!("shred|wipefs"), r"\s")),
    ("mkfs", concat!(command!(r"mkfs(?:\.\w+)?|mke2fs|mkswap"), r"(?:\s|$)")),
    ("dd if=", concat!(command!("dd"), r"\s(?:[^;&|\n]*\s)?(?:if|of)=")),
    // Writes to harmless device files (`HARMLESS`) are removed from the text first.
    ("> /dev/", r">\|?\s*/dev/"),
    ("format", r"(?i)(?:^|[^\w.-])format(?:\.com|\.exe)?\s+(?:/\S+\s+)*[a-z]:"),
    ("fdisk", concat!(command!("[cs]?fdisk|sgdisk|parted"), r"(?:\s|$)")),
    ("shutdown", bare_command!("shutdown|reboot|poweroff|halt")),
    (
        "systemctl reboot",
        concat!(command!("systemctl"), r"\s(?:[^;&|\n]*\s)?(?:reboot|poweroff|halt|kexec)\b"),
    ),
    (
        "chmod -R 777",
        concat!(
            command!("chmod"),
            r"\s(?:[^;&|\n]*\s)?(?:(?:-[A-Za-z]*R[A-Za-z]*|--rec[a-z]*)\s(?:[^;&|\n]*\s)?(?:[0-7]?777|[ugoa]*\+rwx)|",
            r"(?:[0-7]?777|[ugoa]*\+rwx)\s(?:[^;&|\n]*\s)?(?:-[A-Za-z]*R[A-Za-z]*|--rec[a-z]*))(?:\s|$|[;&|)])"
        ),
    ),
    (
        "curl | sh",
        concat!(
            command!("curl"),
            r"\s[^;\n]*\|&?\s*(?:sudo\s+)?(?:env\s+)?(?:\S*/)?(?:(?:ba|da|z|k|a|fi)?sh|python3?|perl|ruby|node)(?:\s|$|[;&|)])"
        ),
    ),
    (
        "wget | sh",
        concat!(
            command!("wget"),
            r"\s[^;\n]*\|&?\s*(?:sudo\s+)?(?:env\s+)?(?:\S*/)?(?:(?:ba|da|z|k|a|fi)?sh|python3?|perl|ruby|node)(?:\s|$|[;&|)])"
        ),
    ),
    (
        "sh <(curl)",
        r"(?:^|[^\w.-])(?:(?:ba|da|z|k|a|fi)?sh|eval|source|\.)\s[^;&|\n]*(?:[<$]\(|`)\s*(?:curl|wget)\s",
    ),
    ("fork bomb", r"\(\s*\)\s*\{[^}\n]*\|[^}\n]*&\s*\}\s*;"),
    ("> a device", r"(?i)\b(?:tee|cp|mv|cat)\s[^;&|\n]*\s/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|mapper/)"),
];

/// Targets after `>` that destroy nothing.
const HARMLESS: &str = r">\|?\s*/dev/(?:null|stdout|stderr|tty|full|zero|fd/\d+)\b";

static COMPILED: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    let each = BUILT_IN.iter().map(|(name, expression)| {
        (*name, confirm_pattern(expression).expect("a test compiles each of the built-in expressions"))
    });
    each.collect()
});
static HARMLESS_COMPILED: LazyLock<Regex> =
    LazyLock::new(|| confirm_pattern(HARMLESS).expect("a test compiles it"));

/// Returns the name of the first built-in pattern that matches a text.
pub(super) fn match_built_in(text: &str) -> Option<&'static str> {
    let text = HARMLESS_COMPILED.replace_all(text, " ");
    COMPILED.iter().find(|(_, expression)| expression.is_match(&text)).map(|(name, _)| *name)
}
