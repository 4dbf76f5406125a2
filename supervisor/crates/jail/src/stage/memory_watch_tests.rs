use std::fs::{self, File};
use std::path::Path;

use proptest::prelude::*;

use super::*;

const STATUS: &str = "Name:\tRssAnon:\\n RssAnon: 9 kB\nUmask:\t0022\nVmPeak:\t 2000 kB\nVmRSS:\t  1800 kB\n\
                      RssAnon:\t    1000 kB\nRssFile:\t     500 kB\nRssShmem:\t     300 kB\nVmSwap:\t      24 kB\n";

#[test]
fn what_is_not_a_file_on_disk_counts() {
    assert_eq!(own_bytes(STATUS.as_bytes()), Some((1000 + 300 + 24) * 1024));
    assert_eq!(own_bytes(b"VmPTE:\t      12 kB\nVmSwap:\t 0 kB\n"), Some(12 * 1024));
    assert_eq!(own_bytes(b"Name:\tzombie\nState:\tZ (zombie)\n"), None);
    assert_eq!(own_bytes(b"RssAnon:\t18446744073709551615 kB\nVmSwap:\t1 kB\n"), Some(1024));
    assert_eq!(own_bytes(b"RssAnon:\t12\nRssShmem: x kB\nVmSwap:\t-1 kB\nRssAnon:"), Some(0));
}

proptest! {
    #[test]
    fn no_account_breaks_it(status in prop::collection::vec(any::<u8>(), 0..2048)) {
        own_bytes(&status);
    }

    #[test]
    fn each_number_is_read(anon in 0..1_u64 << 40, shmem in 0..1_u64 << 40, swap in 0..1_u64 << 40) {
        let status = format!("RssAnon:\t{anon:8} kB\nRssFile:\t7 kB\nRssShmem:\t{shmem:8} kB\nVmSwap:\t{swap} kB\n");
        prop_assert_eq!(own_bytes(status.as_bytes()), Some((anon + shmem + swap) * 1024));
    }

    #[test]
    fn the_pause_is_bounded_and_shrinks_as_the_tree_grows(
        limit in any::<u64>(), used in any::<u64>(), more in any::<u64>(), took in 0..10_000_u64,
    ) {
        let took = Duration::from_millis(took);
        let now = pause(used, limit, took);
        prop_assert!((INTERVAL_MIN..=INTERVAL_MAX).contains(&now));
        prop_assert!(pause(used.saturating_add(more), limit, took) <= now);
        // A tree that grows as fast as can be has not passed its limit by then, unless it was close to it.
        let grown = (now.as_secs_f64() * GROWTH_BYTES_PER_SECOND as f64) as u64;
        if took.is_zero() && now > INTERVAL_MIN {
            prop_assert!(used.saturating_add(grown) <= limit.saturating_add(1 << 20));
        }
    }
}

#[test]
fn a_look_may_cost_a_twentieth_of_the_time() {
    let far = 1 << 40;
    assert_eq!(pause(0, far, Duration::ZERO), INTERVAL_MAX);
    assert_eq!(pause(far, far, Duration::ZERO), INTERVAL_MIN);
    assert_eq!(pause(far, far, Duration::from_millis(20)), Duration::from_millis(400));
    assert_eq!(pause(0, 1 << 30, Duration::ZERO), Duration::from_millis(250));
}

/// A `/proc` of three processes, one of them the monitor, and of other things.
fn some_proc(root: &Path) -> OwnedFd {
    for (pid, anon) in [("1", 4000), ("7", 100), ("23", 200)] {
        fs::create_dir(root.join(pid)).unwrap();
        fs::write(root.join(pid).join("status"), format!("Name:\tx\nRssAnon:\t{anon} kB\n")).unwrap();
    }
    // One that ended meanwhile, and what is no process.
    for other in ["24", "sys", "7x"] {
        fs::create_dir(root.join(other)).unwrap();
    }
    fs::write(root.join("7x/status"), "RssAnon:\t5000 kB\n").unwrap();
    File::open(root).unwrap().into()
}

#[test]
fn all_but_the_monitor_are_summed() {
    let root = tempfile::tempdir().unwrap();
    let mut roomy = MemoryWatch::new(300 << 10, some_proc(root.path()), None, None);
    assert_eq!(roomy.check(), None);
    assert_eq!(roomy.used, 300 << 10);
    let limit = (300 << 10) - 1;
    let mut tight = MemoryWatch::new(limit, File::open(root.path()).unwrap().into(), None, None);
    let over = Some(ExitStatus::OutOfMemory { bytes: 300 << 10, limit });
    assert_eq!(tight.check(), over);
    assert_eq!(tight.check(), None, "it is not time yet");
    tight.next = Instant::now();
    assert_eq!(tight.check(), over, "a second look counts anew");
}

#[test]
fn a_process_whose_first_thread_has_ended_counts_by_another() {
    let root = tempfile::tempdir().unwrap();
    let proc = some_proc(root.path());
    fs::write(root.path().join("7/status"), "State:\tZ (zombie)\n").unwrap();
    for (thread, status) in [("7", "State:\tZ (zombie)\n"), ("8", "RssAnon:\t 900 kB\n")] {
        fs::create_dir_all(root.path().join("7/task").join(thread)).unwrap();
        fs::write(root.path().join("7/task").join(thread).join("status"), status).unwrap();
    }
    let mut watch = MemoryWatch::new(u64::MAX, proc, None, None);
    assert_eq!(watch.check(), None);
    assert_eq!(watch.used, (900 + 200) << 10);
}

// Promises: JAIL-37
#[test]
fn a_watch_that_cannot_see_ends_what_it_watches() {
    let root = tempfile::tempdir().unwrap();
    let proc = some_proc(root.path());
    fs::remove_file(root.path().join("7/status")).unwrap();
    std::os::unix::fs::symlink("status", root.path().join("7/status")).unwrap();
    let mut watch = MemoryWatch::new(u64::MAX, proc, None, None);
    assert_eq!(watch.check(), Some(ExitStatus::Unwatched { errno: libc::ELOOP }));
}

#[test]
fn the_private_directory_counts() {
    let root = tempfile::tempdir().unwrap();
    let private = File::open(root.path()).unwrap();
    let fs = fstatfs(&private).unwrap();
    let expected = (fs.f_blocks - fs.f_bfree) * fs.f_bsize as u64;
    let mut watch = MemoryWatch::new(u64::MAX, some_proc(root.path()), Some(private.into()), None);
    assert_eq!(watch.check(), None);
    // Whatever else happens on that file system meanwhile.
    assert!(watch.used.abs_diff(expected) < 1 << 30, "{} {expected}", watch.used);
}

#[test]
fn the_machines_own_processes_are_read() {
    let mut watch = MemoryWatch::new(0, File::open("/proc").unwrap().into(), None, None);
    assert!(watch.check().is_some(), "we use memory ourselves");
    assert!(watch.used > 1 << 20, "{}", watch.used);
    assert!(watch.until_next_check().tv_sec <= 1);
}

#[test]
fn the_report_says_what_is_limited_instead() {
    let limits = Limits { data_bytes: Some(4 << 30), memory_bytes: 1 << 30, ..Limits::default() };
    let text = describe(&limits, None);
    assert_eq!(
        text,
        "no cgroup: each process is limited to 4 GiB, and the tree is watched and killed above 1 GiB; files in memory are refused"
    );
    let open = describe(&Limits { data_bytes: None, ..limits }, None);
    assert_eq!(open, "no cgroup: the tree is watched and killed above 1 GiB; files in memory are refused");
    let host = describe(&limits, Some("sockets, in the host's network,"));
    assert!(
        host.ends_with("are refused; what waits in sockets, in the host's network, is not counted"),
        "{host}"
    );
}

// Promises: JAIL-42
#[test]
fn locks_are_counted_once_the_tree_has_used_time_and_not_more_often() {
    let root = tempfile::tempdir().unwrap();
    let mut watch = MemoryWatch::new(u64::MAX, some_proc(root.path()), None, None);
    let lock = "1: POSIX  ADVISORY  WRITE 7 00:2a:17 0 0\n";
    fs::write(root.path().join("locks"), lock.repeat(LOCKS_MAX as usize)).unwrap();
    assert_eq!(watch.check(), None);
    fs::write(root.path().join("locks"), lock.repeat(LOCKS_MAX as usize + 1)).unwrap();
    watch.next = Instant::now();
    assert_eq!(watch.check(), None, "it is not time yet");
    watch.next = Instant::now();
    watch.next_locks = watch.next;
    assert_eq!(watch.check(), Some(ExitStatus::TooManyLocks { limit: LOCKS_MAX }));
    watch.may_have_locked = false;
    assert_eq!(
        watch.check_locks(Instant::now() + LOCKS_INTERVAL),
        None,
        "without CPU time there are no more"
    );
}

// Promises: JAIL-37
#[test]
fn sockets_and_the_private_directory_are_read_again_once_the_tree_has_run() {
    let root = tempfile::tempdir().unwrap();
    let private = File::open(root.path()).unwrap();
    let mut watch = MemoryWatch::new(u64::MAX, some_proc(root.path()), Some(private.into()), None);
    let held = watch.shared_bytes(Some(7)).unwrap();
    // As if more were held meanwhile.
    watch.shared = watch.shared.map(|(growth, bytes)| (growth, bytes + 1));
    assert_eq!(watch.shared_bytes(Some(7)).unwrap(), held + 1, "a tree that sleeps holds what it held");
    watch.shared_bytes(Some(8)).unwrap();
    assert_eq!(watch.shared.map(|(growth, _)| growth), Some(8));
    watch.shared_bytes(None).unwrap();
    assert_eq!(watch.shared, None, "nothing is known of a tree with new processes");
}
