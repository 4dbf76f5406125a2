//! Checks of the machine: its kernel and its clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talon_proto::host::GetStatusResponse;

use super::check::{Check, CheckBuilder, Section};
use crate::show;

/// The oldest kernel on which plugins can start: it needs close_range, and pidfds that can be waited for.
const OLDEST_KERNEL: (u32, u32) = (5, 9);
/// From this kernel on the jail also confines signals and abstract sockets.
const GOOD_KERNEL: (u32, u32) = (6, 12);
/// No machine that runs this version has a clock before 2026.
const EARLIEST_UNIX_SECONDS: u64 = 1_767_225_600;
/// How far in the future a past time may seem to be: clocks are often adjusted by some seconds.
const CLOCK_SLACK: Duration = Duration::from_secs(120);

const fn check_named(what: &'static str) -> CheckBuilder {
    CheckBuilder(Section::Machine, what)
}

pub(super) fn checks(status: Option<&GetStatusResponse>) -> Vec<Check> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    vec![kernel(&release), clock(SystemTime::now(), status.map(|status| status.started_unix_ms))]
}

fn kernel(release: &str) -> Check {
    let of = check_named("kernel");
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let Some(version) = numbers.next().zip(numbers.next()) else {
        return of.warn(format!("{release}: not a version that can be read"));
    };
    if version < OLDEST_KERNEL {
        return of
            .fail(format!("Linux {release}"))
            .with_reason("plugins cannot be started safely on it")
            .with_fix(format!("Linux {}.{} or newer", OLDEST_KERNEL.0, OLDEST_KERNEL.1));
    }
    if version < GOOD_KERNEL {
        return of
            .warn(format!("Linux {release}"))
            .with_reason(
                "its Landlock does not yet confine signals and abstract sockets; other means stand in",
            )
            .with_fix(format!("Linux {}.{} or newer", GOOD_KERNEL.0, GOOD_KERNEL.1));
    }
    of.ok(format!("Linux {release}"))
}

fn clock(now: SystemTime, supervisor_started_unix_ms: Option<u64>) -> Check {
    let of = check_named("clock");
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let shown = show::timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    let why = "times in logs and the audit log are wrong, and certificates seem not to hold yet";
    let fix = "set it: `timedatectl set-ntp true`, or as this machine does it";
    if since.as_secs() < EARLIEST_UNIX_SECONDS {
        return of.fail(format!("{shown} lies before this program was made")).with_reason(why).with_fix(fix);
    }
    let started = supervisor_started_unix_ms.map(show::system_time);
    if started.is_some_and(|started| started > now + CLOCK_SLACK) {
        return of
            .warn(format!("{shown}, and the supervisor was started later than that: it was set back"))
            .with_reason(why)
            .with_fix(fix);
    }
    of.ok(shown.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn kernels_are_told_apart() {
        for (release, verdict) in [
            ("5.4.0-150-generic", Verdict::Fail),
            ("5.9.0", Verdict::Warn),
            ("6.1.0-31-amd64", Verdict::Warn),
            ("6.12.9-1-default", Verdict::Ok),
            ("7.0.0", Verdict::Ok),
            ("custom", Verdict::Warn),
        ] {
            assert_eq!(kernel(release).verdict, verdict, "{release}");
        }
    }

    #[test]
    fn a_clock_of_the_past_and_one_that_was_set_back_are_told() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(clock(at(0), None).verdict, Verdict::Fail);
        let now = EARLIEST_UNIX_SECONDS + 86_400;
        assert_eq!(clock(at(now), None).verdict, Verdict::Ok);
        assert_eq!(clock(at(now), Some(now * 1000)).verdict, Verdict::Ok);
        assert_eq!(clock(at(now), Some((now + 7200) * 1000)).verdict, Verdict::Warn);
    }
}
