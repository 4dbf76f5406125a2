//! What servers work on: notes, a repository, a directory to write in.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use talon_harness::Scratch;

const GIT: &str = "/usr/bin/git";

/// A directory that everybody may read, and write in `work`: plugins have uids of their own.
///
/// # Errors
/// When git is missing.
///
/// # Panics
/// When the scratch directory takes no files.
pub fn make(scratch: &Scratch) -> Result<std::path::PathBuf> {
    let world = scratch.path().canonicalize()?.join("world");
    scratch.write("world/notes/today.md", "# Today\n\nWater the plants.\n");
    scratch.write("world/page.html", "<html><body><h1>Plants</h1><p>Water them.</p></body></html>\n");
    scratch.write("world/project/main.py", "def water(plant):\n    return plant\n");
    scratch.write("world/project/main.js", "var unused = 1;\n");
    scratch
        .write("world/project/eslint.config.js", "export default [{ rules: { \"no-var\": \"error\" } }];\n");
    scratch.write("world/project/package.json", "{ \"type\": \"module\" }\n");
    let work = world.join("work");
    std::fs::create_dir(&work)?;
    std::fs::set_permissions(&work, std::fs::Permissions::from_mode(0o777))?;
    repository(scratch, &world.join("repository"))?;
    Ok(world)
}

/// A repository with one commit. Nothing of the machine's or the user's settings for git counts.
fn repository(scratch: &Scratch, directory: &Path) -> Result<()> {
    scratch.write("world/repository/README", "A repository.\n");
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "README"],
        &["commit", "--quiet", "--message", "Begin with a page"],
    ] {
        let mut command = Command::new(GIT);
        command.env_clear().env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1");
        for (name, value) in [("NAME", "Ada"), ("EMAIL", "ada@example.org")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        let output = command.current_dir(directory).args(arguments).output()?;
        if !output.status.success() {
            bail!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    Ok(())
}
