//! Checks of the shadow loop, as the agent reports it.

use talon_proto::host::{GetStatusResponse, ShadowStatus};

use super::check::{Check, CheckBuilder, Section};
use crate::show::timestamp;

const fn check_named(what: &'static str) -> CheckBuilder {
    CheckBuilder(Section::Supervisor, what)
}

/// Whether ghosts can come of what people do; none while the loop is off.
pub(super) fn checks(status: &GetStatusResponse) -> Vec<Check> {
    let Some(told) = status.agent.as_ref().and_then(|agent| agent.shadow.as_ref()) else { return Vec::new() };
    let mut checks = vec![watchers(told)];
    if !told.problem.is_empty() {
        checks.push(
            check_named("shadow loop: model")
                .fail(told.problem.clone())
                .with_reason("observations are taken, and no ghost can come of them"),
        );
    }
    for limit in &told.limits {
        checks.push(
            check_named("shadow loop: limit")
                .warn(format!("a watcher says: {limit}"))
                .with_reason("what is not watched leads to nothing"),
        );
    }
    if told.budget_spent > 0 {
        checks.push(
            check_named("shadow loop: budget")
                .warn(format!("of {} what may be spent today (UTC) is spent", people(told.budget_spent)))
                .with_reason("nothing more is asked for them until midnight UTC")
                .with_fix("`talon shadow stats` shows both; raise shadow.budget if that is too early"),
        );
    }
    if told.paused > 0 {
        checks.push(
            check_named("shadow loop: pause")
                .ok(format!("the loop of {} rests", people(told.paused)))
                .with_fix("each of them may let it go on: `talon shadow resume`"),
        );
    }
    if !told.quiet_hours.is_empty() {
        let now = if told.quiet { "which is now" } else { "which is not now" };
        checks.push(
            check_named("shadow loop: quiet hours")
                .ok(format!("{}, {now}: the agent's clock says {}", told.quiet_hours, told.local_time))
                .with_fix("if that is another time zone than yours, set TZ for the supervisor's unit, and restart it"),
        );
    }
    checks
}

fn watchers(told: &ShadowStatus) -> Check {
    let of = check_named("shadow loop");
    let ShadowStatus { watchers, watchers_connected: connected, watcher_seen_unix_ms: seen, waiting, .. } =
        told;
    let start = "each person starts their own: `systemctl --user enable --now talon-watch`, with a ~/.config/talon/watch.yaml";
    match (connected, seen) {
        (0, None) => of
            .warn("it is on, and no watcher was heard since the agent started")
            .with_reason("nothing is observed, so that no ghost comes")
            .with_fix(start),
        (0, Some(seen)) => of
            .warn(format!(
                "it is on, and no watcher is connected; the last one was heard at {}",
                timestamp(*seen)
            ))
            .with_reason("nothing is observed, so that no ghost comes")
            .with_fix(start),
        (connected, _) => {
            of.ok(format!("{connected} of {watchers} watchers are connected; {waiting} ghosts wait"))
        }
    }
}

fn people(count: u32) -> String {
    if count == 1 { "1 person".to_owned() } else { format!("{count} people") }
}

#[cfg(test)]
mod tests {
    use talon_proto::host::AgentStatus;

    use super::super::check::Verdict;
    use super::*;

    fn with(shadow: ShadowStatus) -> Vec<Check> {
        let agent = AgentStatus { shadow: Some(shadow), ..AgentStatus::default() };
        checks(&GetStatusResponse { agent: Some(agent), ..GetStatusResponse::default() })
    }

    fn watched() -> ShadowStatus {
        ShadowStatus {
            watchers: 2,
            watchers_connected: 1,
            watcher_seen_unix_ms: Some(1),
            ..ShadowStatus::default()
        }
    }

    // Promises: SHADOW-37
    #[test]
    fn what_keeps_ghosts_from_coming_is_told_with_what_to_do() {
        assert!(checks(&GetStatusResponse::default()).is_empty(), "it is off");
        let [fine] = &with(watched())[..] else { panic!("one line") };
        assert_eq!((fine.verdict, fine.fix.as_str()), (Verdict::Ok, ""));
        for seen in [None, Some(1_000)] {
            let told = ShadowStatus { watchers_connected: 0, watcher_seen_unix_ms: seen, ..watched() };
            let [none] = &with(told)[..] else { panic!("one line") };
            assert!(none.verdict == Verdict::Warn && none.fix.contains("talon-watch"), "{none:?}");
        }
        let wrong = [
            (ShadowStatus { problem: "no model".to_owned(), ..watched() }, Verdict::Fail, "no model"),
            (
                ShadowStatus { limits: vec!["sysctl fs.inotify.max_user_watches".to_owned()], ..watched() },
                Verdict::Warn,
                "fs.inotify.max_user_watches",
            ),
            (ShadowStatus { budget_spent: 1, ..watched() }, Verdict::Warn, "1 person"),
            (ShadowStatus { paused: 3, ..watched() }, Verdict::Ok, "3 people"),
        ];
        for (told, verdict, part) in wrong {
            let [_, found] = &with(told)[..] else { panic!("two lines") };
            assert!(found.verdict == verdict && found.message.contains(part), "{found:?}");
        }
    }

    // Promises: SHADOW-37
    #[test]
    fn quiet_hours_are_told_with_the_clock_that_they_are_read_by() {
        for (quiet, part) in [(true, "which is now"), (false, "which is not now")] {
            let told = ShadowStatus {
                quiet_hours: "22:00-07:00".to_owned(),
                local_time: "23:05 +00:00".to_owned(),
                quiet,
                ..watched()
            };
            let [_, found] = &with(told)[..] else { panic!("two lines") };
            assert!(found.message.contains(part) && found.message.contains("23:05 +00:00"), "{found:?}");
            assert!(found.fix.contains("TZ"), "{found:?}");
        }
    }
}
