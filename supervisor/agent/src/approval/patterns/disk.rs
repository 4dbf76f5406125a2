//! Disks, devices, and the machine itself.

use super::built_in_pattern::BuiltInPattern;

/// A name that is a common word: only at the start of a command, or after `sudo`.
macro_rules! bare_command {
    ($names:literal) => {
        concat!(r"(?im)(?:^|[;&|(`]|\bsudo\s(?:[^;&|\n]*\s)?)\s*(?:\S*/)?(?:", $names, r")(?:\s|;|&|$)")
    };
}

pub(super) const PATTERNS: &[BuiltInPattern] = &[
    BuiltInPattern::new(
        "mkfs",
        concat!(command!(r"mkfs(?:\.\w+)?|mke2fs|mkswap"), r"(?:\s|$)"),
        &["mkfs.ext4 /dev/sda1", "sudo -n MKFS /dev/sda", "env A=b mkswap /dev/sdb"],
        &["mkfsx", "man-mkfs x"],
    ),
    BuiltInPattern::new(
        "dd if=",
        concat!(command!("dd"), words!(), r"(?i:if|of)="),
        &["dd bs=1M if=/dev/zero of=/dev/sda", "sudo dd \\\n of=x", "'dd' 'if=x'"],
        &["add if=1", "dd --version"],
    ),
    BuiltInPattern::new(
        "wipefs",
        concat!(command!("wipefs|blkdiscard"), r"\s"),
        &["wipefs -a /dev/sda", "blkdiscard /dev/sda"],
        &["wipefs.md"],
    ),
    // Writes to harmless device files are removed from the text first.
    BuiltInPattern::new("> /dev/", r">\|?\s*/dev/", &["cat x >/dev/sda"], &["cat x > dev/sda"]),
    BuiltInPattern::new(
        "> a device",
        r"(?i)\b(?:tee|cp|mv|cat)\s[^;&|\n]*\s/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|mapper/)",
        &["tee x /dev/sda"],
        &["tee x /dev/null"],
    ),
    BuiltInPattern::new(
        "format",
        r"(?i)(?:^|[^\w.-])format(?:\.com|\.exe)?\s+(?:/\S+\s+)*[a-z]:",
        &["format c:", "FORMAT.COM /q D:"],
        &["--format json", "format: yes"],
    ),
    BuiltInPattern::new(
        "fdisk",
        concat!(command!("[cs]?fdisk|sgdisk|parted"), r"(?:\s|$)"),
        &["fdisk /dev/sda", "sgdisk -Z /dev/sda"],
        &["departed x"],
    ),
    BuiltInPattern::new(
        "shutdown",
        bare_command!("shutdown|reboot|poweroff|halt"),
        &["shutdown -h now", "make; sudo reboot"],
        &["please explain how a shutdown works"],
    ),
    BuiltInPattern::new(
        "systemctl reboot",
        concat!(command!("systemctl"), words!(), r"(?:reboot|poweroff|halt|kexec)\b"),
        &["systemctl --force reboot"],
        &["systemctl status sshd"],
    ),
];
