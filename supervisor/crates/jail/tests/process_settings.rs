//! What a supervisor does to itself binds itself alone.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use talon_jail::ExitStatus;

/// Maps memory that is writable and executable, as what compiles while it runs does.
const MAKES_CODE: &str =
    "import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)";

// Promises: UNIT-11
#[test]
fn who_makes_no_new_code_still_starts_programs_that_do() {
    // The whole test process is bound by it from here on.
    if let Err(error) = talon_jail::forbid_new_code() {
        eprintln!("skipped who_makes_no_new_code_still_starts_programs_that_do: {error} (Linux 6.6)");
        return;
    }
    let outcome = run(&spec(&["/usr/bin/python3", "-c", MAKES_CODE]));
    assert_eq!((outcome.stderr.as_str(), outcome.status), ("", ExitStatus::Code(0)));
}

#[test]
fn who_forgoes_huge_pages_still_starts_programs_that_have_them() {
    talon_jail::forgo_huge_pages().unwrap();
    let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    if !own.contains("THP_enabled:") {
        eprintln!(
            "skipped who_forgoes_huge_pages_still_starts_programs_that_have_them: the kernel does not tell"
        );
        return;
    }
    assert!(own.contains("\nTHP_enabled:\t0\n"), "{own}");
    let outcome = run(&spec(&["/bin/grep", "THP_enabled", "/proc/self/status"]));
    assert_eq!(outcome.stdout, "THP_enabled:\t1\n");
}
