use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use super::*;

const RANGE: RangeInclusive<u32> = 74_900..=74_909;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn scratch() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn prepared(data: &Path) -> Result<Home, SetupError> {
    Home::prepare(data, &PluginName::reserved("talon-state"), "state", is_root().then_some(RANGE))
}

fn refusal(data: &Path) -> String {
    prepared(data).unwrap_err().to_string()
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

// Promises: STATE-16
#[test]
fn it_is_made_for_its_owner_alone_and_found_again() {
    let dir = scratch();
    // Neither it nor what is above it is there.
    let data = dir.path().join("var/data");
    let home = prepared(&data).unwrap();
    assert_eq!(home.dir, data.join("state"));
    let stat = home.dir.metadata().unwrap();
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let owner = if may_change_uid() && is_root() { (74_900, 74_900) } else { own };
    assert_eq!(((stat.uid(), stat.gid()), stat.mode() & 0o7777), (owner, 0o700));
    assert_eq!(home.identity.map(|identity| identity.uid), (owner != own).then_some(74_900));
    std::fs::write(home.dir.join("state.db"), "x").unwrap();
    assert_eq!(prepared(&data).unwrap(), home);
    let other =
        Home::prepare(&data, &PluginName::reserved("talon-agent"), "agent", is_root().then_some(RANGE));
    assert_ne!(other.unwrap().dir, home.dir);
}

// Promises: STATE-16
#[test]
fn one_that_others_may_look_into_is_refused_with_what_to_run() {
    let dir = scratch();
    let data = dir.path().join("data");
    let home = prepared(&data).unwrap().dir;
    for open in [0o750, 0o701, 0o704, 0o720, 0o755, 0o777] {
        mode(&home, open);
        let text = refusal(&data);
        assert!(text.contains(&format!("run `chmod 700 {}`", home.display())), "{text}");
        assert!(text.contains(&format!("{open:04o}")), "{text}");
    }
    mode(&home, 0o700);
    prepared(&data).unwrap();
}

#[test]
fn anothers_is_refused_with_what_to_run() {
    if !is_root() {
        println!("SKIPPED anothers_is_refused_with_what_to_run: only root can give a directory away");
        return;
    }
    let dir = scratch();
    let data = dir.path().join("data");
    let home = prepared(&data).unwrap().dir;
    chown(&home, Some(4242), Some(4242)).unwrap();
    let text = refusal(&data);
    assert!(text.contains("belongs to uid 4242, and uid 74900 is to use it"), "{text}");
    assert!(text.contains(&format!("run `chown -R 74900:74900 {}`", home.display())), "{text}");
    // A directory of ours is accepted while it is empty: an earlier start was interrupted before the chown.
    chown(&home, Some(0), Some(0)).unwrap();
    prepared(&data).unwrap();
    assert_eq!(home.metadata().unwrap().uid(), 74_900);
    chown(&home, Some(0), Some(0)).unwrap();
    std::fs::write(home.join("state.db"), "x").unwrap();
    assert!(refusal(&data).contains("belongs to uid 0"));
}

#[test]
fn what_is_no_directory_is_refused() {
    let dir = scratch();
    let data = dir.path().join("data");
    let home = prepared(&data).unwrap().dir;
    std::fs::rename(&home, data.join("elsewhere")).unwrap();
    symlink(data.join("elsewhere"), &home).unwrap();
    assert!(refusal(&data).contains("a symbolic link to one will not do"));
    std::fs::remove_file(&home).unwrap();
    std::fs::write(&home, "").unwrap();
    assert!(refusal(&data).contains("it is no directory"));
}

#[test]
fn an_open_data_directory_is_refused_before_anything_is_made_in_it() {
    let dir = scratch();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    mode(&data, 0o755);
    assert!(refusal(&data).contains("StateDirectoryMode"));
    assert!(!data.join("state").exists());
}

#[test]
fn a_range_that_is_full_says_so() {
    if !is_root() {
        println!("SKIPPED a_range_that_is_full_says_so: only root gives uids away");
        return;
    }
    let dir = scratch();
    let data = dir.path().join("data");
    let one = |name, below| Home::prepare(&data, &PluginName::reserved(name), below, Some(74_900..=74_900));
    one("talon-state", "state").unwrap();
    let text = one("talon-agent", "agent").unwrap_err().to_string();
    assert!(text.starts_with("sandbox.uid_range: ") && text.contains("74900-74900"), "{text}");
}
