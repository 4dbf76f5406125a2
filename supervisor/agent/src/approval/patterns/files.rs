//! Files and directories.

use super::built_in_pattern::BuiltInPattern;

pub(super) const PATTERNS: &[BuiltInPattern] = &[
    BuiltInPattern::new(
        "rm -rf",
        concat!(command!("rm"), words!(), r"-(?:[A-Za-z]*[rRfF][A-Za-z]*|-r[a-z-]*|-f[a-z-]*)", end!()),
        &["rm -rf /", "rm -r -f x", "sudo env A=b rm x --force", "RM -RF x", "'rm' -r\\f /", "rm \\\n -rf /"],
        &["rm x", "ls -rf", "alarm -rf", "rm x; ls -rf"],
    ),
    BuiltInPattern::new(
        "sudo rm",
        concat!(command!("sudo|doas"), r"\s(?:[^;&|\n]*[\s/])?(?:rm|shred|unlink)(?:\s|$)"),
        &["sudo -n rm x", "doas /usr/bin/rm x"],
        &["sudo ls rmdir"],
    ),
    BuiltInPattern::new(
        "find -delete",
        concat!(command!("find"), r"\s[^;&|\n]*\s-(?:delete|exec(?:dir)?\s+(?:\S*/)?rm)\b"),
        &["find . -name x -delete", "find . -exec /bin/rm {} +"],
        &["find . -name delete"],
    ),
    BuiltInPattern::new(
        "xargs rm",
        concat!(command!("xargs"), r"\s(?:[^;&|\n]*[\s/])?rm(?:\s|$)"),
        &["ls | xargs -0 rm"],
        &["ls | xargs echo"],
    ),
    BuiltInPattern::new("shred", concat!(command!("shred"), r"\s"), &["shred -u x"], &["shredder x"]),
    BuiltInPattern::new(
        "truncate -s",
        concat!(command!("truncate"), words!(), r"(?:-[A-Za-z]*s|--size)"),
        &["truncate -s 0 log", "sudo truncate --size=0 log"],
        &["truncate the text"],
    ),
    BuiltInPattern::new(
        "chmod -R 777",
        concat!(
            command!("chmod"),
            words!(),
            r"(?:(?:-[A-Za-z]*R[A-Za-z]*|--rec[a-z]*)\s(?:[^;&|\n]*\s)?(?:[0-7]?777|[ugoa]*\+rwx)|",
            r"(?:[0-7]?777|[ugoa]*\+rwx)\s(?:[^;&|\n]*\s)?(?:-[A-Za-z]*R[A-Za-z]*|--rec[a-z]*))",
            end!()
        ),
        &["chmod -R 777 /", "chmod 0777 -R /", "chmod --recursive a+rwx ."],
        &["chmod 777 x", "chmod -R 755 ."],
    ),
    BuiltInPattern::new(
        "chmod -R",
        concat!(command!("chmod|chown|chgrp"), words!(), r"(?:-[A-Za-z]*R[A-Za-z]*|--rec[a-z]*)", end!()),
        &["chmod -R 755 .", "sudo chown --recursive root: /", "CHMOD u+x -vR ."],
        &["chmod 644 x", "chmod -r x", "chown root x"],
    ),
];
