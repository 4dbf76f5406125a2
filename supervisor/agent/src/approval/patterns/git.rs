//! History and changes that git cannot bring back.

use super::built_in_pattern::BuiltInPattern;

pub(super) const PATTERNS: &[BuiltInPattern] = &[
    BuiltInPattern::new(
        "git push --force",
        concat!(
            command!("git"),
            words!(),
            "push",
            words!(),
            r"(?:-[A-Za-z]*[fd][A-Za-z]*|--for\S*|--mir\S*|--del\S*|--pru\S*|\+\S+|:\S+)",
            end!()
        ),
        &[
            "git push --force",
            "git push -f origin main",
            "git push origin main -uf",
            "git -C repo push origin +main",
            "git push --force-with-lease=main origin",
            "sudo -u git env GIT_TRACE=1 git push origin :main",
            "GIT_TRACE=1 'git' \"push\" \\\n --force",
            "/usr/bin/GIT push --mirror x",
            r#"["git","push","--delete","origin","main"]"#,
            "git add .\ngit push -f",
        ],
        &[
            "git push",
            "git push origin main",
            "git push --follow-tags -u origin HEAD:main",
            "legit push -f",
            "git push; rm -i +x",
        ],
    ),
    BuiltInPattern::new(
        "git reset --hard",
        concat!(command!("git"), words!(), "reset", words!(), r"--ha[a-z]*", end!()),
        &["git reset --hard", "git -C x reset HEAD~1 --hard", "sudo \"git\" reset \\\n '--hard'"],
        &["git reset --soft HEAD~1", "git reset HEAD x"],
    ),
    BuiltInPattern::new(
        "git clean -f",
        concat!(command!("git"), words!(), "clean", words!(), r"(?:-[A-Za-z]*f[A-Za-z]*|--fo[a-z]*)", end!()),
        &["git clean -xdf", "git clean -d --force"],
        &["git clean -n"],
    ),
    BuiltInPattern::new(
        "git branch -D",
        concat!(command!("git"), words!(), "branch", words!(), r"-[A-Za-z]*D[A-Za-z]*", end!()),
        &["git branch -D topic"],
        &["git branch -d topic", "git branch -a"],
    ),
    BuiltInPattern::new(
        "git stash drop",
        concat!(command!("git"), words!(), "stash", words!(), r"(?:drop|clear)", end!()),
        &["git stash clear", "git stash drop stash@{1}"],
        &["git stash push -m x", "git stash list"],
    ),
];
