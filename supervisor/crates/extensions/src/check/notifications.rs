//! Checks of notifications.

use talon_sanitize::nearest;
use talon_schedule::Zone;

use super::findings::{EntryFindings, Findings, shown};
use crate::limits::{MAX_CONDITIONS, MAX_FIELD_CHARS, MAX_GIVE_UP_AFTER, MAX_NOTIFICATIONS, MAX_RETRIES};
use crate::{EventKind, Extensions, NotificationEntry, Role, template};

pub(super) fn check(found: &mut Findings, extensions: &Extensions) {
    let entries = &extensions.notifications;
    found.check_count(
        Role::NotificationSink,
        entries.len(),
        MAX_NOTIFICATIONS,
        "remove some, or join their `on`",
    );
    for (index, entry) in entries.iter().enumerate() {
        let mut of = found.of(Role::NotificationSink, index);
        check_kinds(&mut of, "on", &entry.on);
        if entry.on.is_empty() {
            let is_named = |job: &talon_schedule::ScheduleEntry| job.deliver.as_deref() == Some(entry.name());
            if !extensions.schedule.iter().any(is_named) {
                let help = "list kinds of events, or name the entry with `deliver` of a job";
                of.warning("on", "the entry takes no events", help);
            }
        }
        check_conditions(&mut of, entry);
        check_quiet(&mut of, entry);
        check_source(&mut of, entry);
        of.check_deadline(entry.deadline);
        if entry.retries.is_some_and(|retries| retries > MAX_RETRIES) {
            let message = format!("is more than {MAX_RETRIES}");
            of.problem("retries", message, "leave it out: then `give_up_after` alone ends the attempts");
        }
        if entry.give_up_after.get() > MAX_GIVE_UP_AFTER {
            of.problem("give_up_after", format!("{} is more than 30d", entry.give_up_after), "shorten it");
        }
    }
}

fn check_kinds(of: &mut EntryFindings<'_>, key: &'static str, words: &[String]) {
    if words.len() > MAX_CONDITIONS {
        of.problem(
            key,
            format!("lists {} words, and {MAX_CONDITIONS} are the most", words.len()),
            "write FAMILY.*",
        );
    }
    for word in words {
        if let Err(error) = EventKind::selected(word) {
            let message = format!("there is no kind of event {:?}", error.word);
            of.problem(key, message, error.help);
        }
    }
}

fn check_conditions(of: &mut EntryFindings<'_>, entry: &NotificationEntry) {
    let conditions = &entry.conditions;
    let too_many =
        conditions.len() > MAX_CONDITIONS || conditions.values().any(|all| all.len() > MAX_CONDITIONS);
    if too_many {
        of.problem(
            "where",
            format!("has more than {MAX_CONDITIONS} fields, or values of one"),
            "remove some",
        );
    }
    if conditions.values().flatten().any(|value| value.chars().count() > MAX_FIELD_CHARS) {
        of.problem("where", format!("has a value of more than {MAX_FIELD_CHARS} characters"), "shorten it");
    }
    let taken = || {
        let kinds =
            EventKind::ALL.iter().filter(|kind| entry.on.iter().any(|word| kind.is_selected_by(word)));
        kinds.flat_map(|kind| kind.fields()).copied()
    };
    for (name, values) in conditions {
        if values.is_empty() {
            of.problem("where", format!("{} has no values, so nothing fits", shown(name)), "list some");
        }
        // The fields of plugins' events are theirs.
        let is_known = entry.takes_source_events() || taken().any(|field| field == name);
        if !entry.on.is_empty() && !is_known {
            let help = match nearest(name, taken()).first() {
                Some(near) => format!("did you mean {near}?"),
                None => "see the fields in docs/extensions/notification-sink.md".to_owned(),
            };
            of.problem("where", format!("no event of these kinds has a field {}", shown(name)), help);
        }
    }
}

/// Plugins share no bus of events: an event of a plugin goes to another plugin only by an entry that names the one, the other, and
/// each value that goes on.
fn check_source(of: &mut EntryFindings<'_>, entry: &NotificationEntry) {
    if !entry.takes_source_events() {
        return;
    }
    if entry.on.len() > 1 || entry.on.iter().any(|word| word != EventKind::SourceEvent.as_str()) {
        let message = "takes events of plugins by a pattern, or together with other kinds";
        of.problem("on", message, "write on: [source.event], and an entry of its own for other kinds");
    }
    let plugins = entry.conditions.get("plugin").map(Vec::as_slice).unwrap_or_default();
    if plugins.is_empty() || plugins.iter().any(|name| name.contains('*')) {
        let message = "does not name the plugins whose events it takes";
        of.problem("where", message, "write where: { plugin: [NAME] }");
    }
    let Some(args) = &entry.args else {
        let message = "does not say what of a plugin's event goes to another plugin";
        return of.problem("args", message, "write each value, as in text: \"{{ event.summary }}\"");
    };
    let whole = |name: &String| matches!(name.as_str(), "event" | "events" | "event.fields");
    if template::names(args).iter().any(whole) {
        let message = "passes a plugin's event on as a whole";
        of.problem("args", message, "write each value, as in {{ event.fields.NAME }}");
    }
}

fn check_quiet(of: &mut EntryFindings<'_>, entry: &NotificationEntry) {
    let Some(quiet) = &entry.quiet else { return };
    check_kinds(of, "quiet", &quiet.except);
    if quiet.from == quiet.to {
        of.problem("quiet", "ends when it begins", "write two times of day, or remove it");
    }
    if let Some(name) = &quiet.timezone
        && let Err(error) = name.parse::<Zone>()
    {
        let help = error.nearest.first().map_or_else(
            || "write a name of the IANA database, such as Europe/Berlin".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        of.problem("quiet", format!("there is no time zone {:?}", error.shown), help);
    }
}
