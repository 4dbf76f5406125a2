use super::*;

struct Scratch {
    dir: tempfile::TempDir,
    views: Views,
}

fn scratch() -> Scratch {
    let dir = tempfile::tempdir().unwrap();
    let views = Views::prepare(&dir.path().join("data"), Path::new("/run/one")).unwrap();
    Scratch { dir, views }
}

fn plugin() -> PluginName {
    PluginName::new("p").unwrap()
}

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

impl Scratch {
    fn source(&self) -> PathBuf {
        let source = self.dir.path().join("source");
        std::fs::create_dir_all(source.join("lib")).unwrap();
        write(&source.join("run"), "#!/bin/sh\n", 0o755);
        write(&source.join("lib/data"), "data", 0o664 & !0o020);
        write(&source.join("plugin.yaml"), "command: run\n", 0o644);
        symlink("lib/data", source.join("link")).unwrap();
        symlink("/usr/bin/env", source.join("system")).unwrap();
        source
    }

    fn of(&self, source: &Path) -> Result<Arc<View>, ViewError> {
        self.views.get_or_build(&plugin(), ViewSource::Directory(source), None)
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

// Promises: DISC-11
#[test]
fn a_directory_is_copied_whole_read_only_and_without_its_manifest() {
    let s = scratch();
    let source = s.source();
    let view = s.of(&source).unwrap();
    let root = view.path();
    assert_eq!(std::fs::read_to_string(root.join("link")).unwrap(), "data");
    assert!(!root.join("plugin.yaml").exists());
    assert_eq!(mode(&root.join("run")), 0o555);
    assert_eq!(mode(&root.join("lib/data")), 0o444);
    assert_eq!(mode(&root.join("lib")), 0o555);
    assert_eq!(mode(root), 0o500);
    assert_eq!(view.digest(), digest::of_tree(&source, Some(OsStr::new("plugin.yaml"))).unwrap());
}

// Promises: DISC-12
#[test]
fn a_view_is_used_again_until_its_source_or_itself_changes() {
    let s = scratch();
    let source = s.source();
    let first = s.of(&source).unwrap();
    assert_eq!(s.of(&source).unwrap().path(), first.path());
    write(&source.join("run"), "#!/bin/sh\necho changed\n", 0o755);
    let second = s.of(&source).unwrap();
    assert_ne!(second.digest(), first.digest());
    // The process that still runs from the first keeps it.
    assert_eq!(std::fs::read_to_string(first.path().join("run")).unwrap(), "#!/bin/sh\n");
    let old = first.path().to_owned();
    drop(first);
    assert!(!old.exists());
    std::fs::set_permissions(second.path().join("run"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(second.path().join("run"), "#!/bin/sh\necho tampered\n").unwrap();
    let third = s.of(&source).unwrap();
    assert_ne!(third.path(), second.path());
    assert!(std::fs::read_to_string(third.path().join("run")).unwrap().contains("changed"));
}

// Promises: DISC-13
#[test]
fn the_digest_tells_content_names_links_and_execute_bits() {
    let s = scratch();
    let source = s.source();
    let digest = || digest::of_tree(&source, Some(OsStr::new("plugin.yaml"))).unwrap();
    let mut seen = vec![digest()];
    write(&source.join("plugin.yaml"), "command: other\n", 0o644);
    assert_eq!(digest(), seen[0]);
    write(&source.join("lib/data"), "date", 0o644);
    seen.push(digest());
    write(&source.join("lib/data"), "date", 0o755);
    seen.push(digest());
    std::fs::rename(source.join("lib/data"), source.join("lib/data2")).unwrap();
    seen.push(digest());
    std::fs::remove_file(source.join("link")).unwrap();
    symlink("lib/data2", source.join("link")).unwrap();
    seen.push(digest());
    std::fs::create_dir(source.join("empty")).unwrap();
    seen.push(digest());
    let different: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(different.len(), seen.len());
}

// Promises: DISC-14
#[test]
fn what_must_not_be_in_a_plugin_is_refused_by_path() {
    let s = scratch();
    let source = s.source();
    let refused = |problem: &str| {
        let text = s.of(&source).unwrap_err().to_string();
        assert!(text.contains(problem), "{text}");
        // Nothing is left of the attempt.
        let left = std::fs::read_dir(&s.views.path).unwrap().count();
        assert_eq!(left, 1, "only the lock");
    };
    symlink("/etc/passwd", source.join("out")).unwrap();
    refused("out is a symbolic link to /etc/passwd");
    std::fs::remove_file(source.join("out")).unwrap();
    write(&source.join("lib/loose"), "", 0o666);
    refused("lib/loose cannot be trusted: everybody");
    std::fs::remove_file(source.join("lib/loose")).unwrap();
    nix::unistd::mkfifo(&source.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    refused("pipe is neither a file");
    std::fs::remove_file(source.join("pipe")).unwrap();
    let mut deep = source.join("deep");
    for _ in 0..40 {
        std::fs::create_dir(&deep).unwrap();
        deep = deep.join("d");
    }
    refused("nests deeper");
}

// Promises: DISC-11
#[test]
fn a_script_has_a_view_with_one_file() {
    let s = scratch();
    let path = s.dir.path().join("tool.sh");
    write(&path, "#!/bin/sh\n", 0o755);
    let file = File::open(&path).unwrap();
    let view =
        s.views.get_or_build(&plugin(), ViewSource::Script(&file, OsStr::new("tool.sh")), None).unwrap();
    assert_eq!(std::fs::read_to_string(view.path().join("tool.sh")).unwrap(), "#!/bin/sh\n");
    assert_eq!(view.digest(), hex::encode(Sha256::digest("#!/bin/sh\n")));
    let again =
        s.views.get_or_build(&plugin(), ViewSource::Script(&file, OsStr::new("tool.sh")), None).unwrap();
    assert_eq!(again.path(), view.path());
}

#[test]
fn views_of_a_supervisor_that_is_gone_are_cleared_and_those_of_a_live_one_are_not() {
    let s = scratch();
    let source = s.source();
    let data = s.dir.path().join("data");
    let live = s.of(&source).unwrap();
    let dead = Views::prepare(&data, Path::new("/run/two")).unwrap();
    let abandoned = dead.get_or_build(&plugin(), ViewSource::Directory(&source), None).unwrap();
    let path = abandoned.path().to_owned();
    dead.latest.lock().clear();
    std::mem::forget(abandoned);
    drop(dead);
    assert!(path.exists());
    let _third = Views::prepare(&data, Path::new("/run/three")).unwrap();
    assert!(!path.exists());
    assert!(live.path().exists());
}
