//! How much later than planned an occurrence begins.

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::job_id::JobId;

/// The delay of an occurrence, less than `within`, in whole milliseconds.
///
/// It follows from the job's id and the planned time alone, so that it is the same after a restart and for
/// another supervisor, and so that jobs planned for the same time spread.
#[must_use]
pub fn jitter(job: &JobId, planned: Timestamp, within: Duration) -> Duration {
    let Ok(millis @ 1..) = u64::try_from(within.as_millis()) else { return Duration::ZERO };
    let mut hash = Sha256::new();
    hash.update(job.as_str().as_bytes());
    hash.update([0]);
    hash.update(planned.as_millisecond().to_be_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    // The remainder's bias is below a millionth for the longest jitter.
    Duration::from_millis(u64::from_be_bytes([a, b, c, d, e, f, g, h]) % millis)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_bounded_and_the_same_each_time(millis in 0_u64..100_000_000, planned in 0_i64..4_000_000_000) {
            let job: JobId = "digest".parse().expect("an id");
            let planned = Timestamp::from_second(planned).expect("a time");
            let within = Duration::from_millis(millis);
            let delay = jitter(&job, planned, within);
            prop_assert!(delay < within || millis == 0 && delay.is_zero());
            prop_assert_eq!(delay, jitter(&job, planned, within));
        }
    }

    #[test]
    fn jobs_and_times_spread() {
        let planned = Timestamp::from_second(1_800_000_000).expect("a time");
        let minute = Duration::from_secs(60);
        let delays: Vec<Duration> =
            (0..600).map(|n| jitter(&format!("job-{n}").parse().expect("an id"), planned, minute)).collect();
        // Of 600, each tenth of the minute has 60 on average; fewer than 25 would be five deviations off.
        for tenth in 0..10 {
            let range = minute * tenth / 10..minute * (tenth + 1) / 10;
            assert!(delays.iter().filter(|delay| range.contains(delay)).count() > 25, "{tenth}");
        }
    }
}
