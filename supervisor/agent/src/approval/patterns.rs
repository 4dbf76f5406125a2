//! What destroys, as far as it can be seen in a command: `rm -rf` and the like.
//!
//! Each is an expression of the `regex` crate, which takes time that is linear in the text whatever the text is. `[^;&|\n]*` keeps
//! within one command. Flags may stand in any order, together or apart, before or behind what they are about.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

/// Programs of an expression that are larger are refused; the built-in ones have a tenth of it. An operator's expression that is
/// larger is one with counted repetitions that multiply.
const MAX_PROGRAM_BYTES: usize = 1024 * 1024;

/// Where a command may begin: so that `alarm -r` is no `rm`, and `/bin/rm` is one.
macro_rules! command {
    ($names:literal) => {
        concat!(r"(?:^|[^\w.-])(?:", $names, r")")
    };
}
/// The same where the name is a common word: only at the beginning of a command, also of one behind `sudo`.
macro_rules! bare_command {
    ($names:literal) => {
        concat!(r"(?m)(?:^|[;&|(`]|\bsudo\s(?:[^;&|\n]*\s)?)\s*(?:\S*/)?(?:", $names, r")(?:\s|;|&|$)")
    };
}

/// The name of each, which is what a person is shown, and its expression.
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
    // Files of devices that swallow what is written to them are taken out before.
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

/// Behind `>`, these destroy nothing.
const HARMLESS: &str = r">\|?\s*/dev/(?:null|stdout|stderr|tty|full|zero|fd/\d+)\b";

static COMPILED: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    let each = BUILT_IN.iter().map(|(name, expression)| {
        (*name, compile(expression).expect("a test compiles each of the built-in expressions"))
    });
    each.collect()
});
static HARMLESS_COMPILED: LazyLock<Regex> = LazyLock::new(|| compile(HARMLESS).expect("a test compiles it"));

/// An operator's expression, compiled.
///
/// # Errors
/// A sentence.
pub(super) fn compile(expression: &str) -> Result<Regex, String> {
    RegexBuilder::new(expression)
        .size_limit(MAX_PROGRAM_BYTES)
        .dfa_size_limit(MAX_PROGRAM_BYTES)
        .build()
        .map_err(|error| error.to_string())
}

/// The name of the first that a text holds.
pub(super) fn built_in(text: &str) -> Option<&'static str> {
    let text = HARMLESS_COMPILED.replace_all(text, " ");
    COMPILED.iter().find(|(_, expression)| expression.is_match(&text)).map(|(name, _)| *name)
}
