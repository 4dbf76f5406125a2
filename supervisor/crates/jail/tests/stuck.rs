//! A stage that hangs: its own file, as it looks at all children of the process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::time::Duration;

use common::*;
use talon_jail::{SpawnError, Stage, spawn};

// Promises: LAUNCH-24
#[test]
fn a_stage_that_hangs_is_ended_after_the_timeout() {
    // Neither answers. `yes` does not even listen; `cat` takes what it is asked and loses what came along,
    // which is the end of the program's control socket.
    for (program, hangs) in [("/usr/bin/yes", true), ("/bin/cat", false)] {
        let stage = Stage::from_image(File::open(program).unwrap()).unwrap();
        let timeout = Duration::from_millis(200);
        let refused =
            spawn(&stage, &sh("exit 0"), &talon_jail::InheritedFds::default(), timeout).unwrap_err();
        match &refused {
            SpawnError::TimedOut { step, after } if hangs => {
                assert_eq!((step.as_str(), *after), ("start", timeout));
                assert!(refused.to_string().contains("200 ms"), "{refused}");
            }
            SpawnError::StageLost { step } if !hangs => assert_eq!(step, "start"),
            other => panic!("{program}: {other}"),
        }
        let children = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let children: String =
            children.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap()).collect();
        assert_eq!(children, "", "{program} is still there");
    }
}
