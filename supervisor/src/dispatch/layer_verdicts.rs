//! What each layer of the guard did to a call, as far as it follows from how the call ended.

use talon_guard::{LayerKind, LayerTimings, reason};
use talon_proto::host::GuardLayer;

use super::call_log::{CallEnd, LoggedCall};

/// The layers of a call of the log, from the outermost to the plugin; none while it runs.
pub(crate) fn layers(call: &LoggedCall) -> Vec<GuardLayer> {
    call.end().map(|end| layers_of(end, call.timings.as_deref())).unwrap_or_default()
}

/// The same by how a call ended, with the times that were measured.
pub(super) fn layers_of(end: &CallEnd, timings: Option<&LayerTimings>) -> Vec<GuardLayer> {
    let times: Vec<_> = timings.iter().flat_map(|timings| timings.self_times()).collect();
    let place = place(end.reason);
    let is_skipped = |layer: LayerKind| {
        place.is_some_and(|(at, before_plugin)| before_plugin && layer as usize > at as usize)
    };
    let layer = |layer: LayerKind| {
        let (verdict, reason) = match place {
            Some((at, _)) if at == layer => {
                (if end.outcome == "host_fault" { "fault" } else { "deny" }, end.reason)
            }
            _ if is_skipped(layer) => ("skipped", ""),
            _ => (if has_changed(layer, end) { "changed" } else { "pass" }, ""),
        };
        let time = times.iter().find(|(timed, _)| *timed == layer).map(|(_, time)| *time);
        GuardLayer {
            layer: layer.as_str().to_owned(),
            verdict: verdict.to_owned(),
            duration_ns: time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            reason: reason.to_owned(),
        }
    };
    LayerKind::ALL.map(layer).into()
}

/// The layer that a reason comes from, and whether the plugin was not asked then.
fn place(reason: &str) -> Option<(LayerKind, bool)> {
    Some(match reason {
        reason::UNKNOWN_PLUGIN
        | reason::UNKNOWN_ACTION
        | reason::BAD_ARGUMENTS
        | reason::USER_ONLY
        | reason::ROLE_ONLY
        | reason::NOT_GRANTED
        | reason::CHANGED
        | reason::ARGUMENTS_TOO_LARGE => (LayerKind::Resolve, true),
        reason::QUARANTINED => (LayerKind::Quarantine, true),
        reason::TIMED_OUT => (LayerKind::Deadline, false),
        reason::BREAKER_OPEN => (LayerKind::Breaker, true),
        reason::OVERLOADED => (LayerKind::Admission, true),
        reason::BAD_RESULT => (LayerKind::Validate, false),
        reason::TOO_LARGE => (LayerKind::Truncate, false),
        reason::INTERNAL => (LayerKind::Rescue, false),
        reason::DIED | reason::UNAVAILABLE | reason::PLUGIN_ERROR | reason::TOOL_ERROR => {
            (LayerKind::Instance, false)
        }
        _ => return None,
    })
}

fn has_changed(layer: LayerKind, end: &CallEnd) -> bool {
    match layer {
        LayerKind::Sanitize => end.neutralised > 0,
        LayerKind::Truncate => end.truncated,
        LayerKind::Taint => end.tainted,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-131
    #[test]
    fn a_reason_names_the_layer_that_refused() {
        for reason in reason::ALL {
            let (layer, before_plugin) = place(reason).unwrap_or_else(|| panic!("{reason} has no layer"));
            assert_eq!(before_plugin, reason::BEFORE_PLUGIN.contains(&reason), "{reason}");
            assert!(LayerKind::ALL.contains(&layer));
        }
        assert_eq!(place(""), None);
    }

    // Promises: GW-152
    #[test]
    fn a_refused_call_passed_the_layers_outside_and_skipped_those_inside() {
        let end = CallEnd { outcome: "refused", reason: reason::QUARANTINED, ..CallEnd::default() };
        let verdicts: Vec<String> =
            layers_of(&end, None).into_iter().map(|one| format!("{}:{}", one.layer, one.verdict)).collect();
        let of = |layer: LayerKind| verdicts[layer as usize].as_str();
        assert_eq!(of(LayerKind::Resolve), "resolve:pass");
        assert_eq!(of(LayerKind::Quarantine), "quarantine:deny");
        assert_eq!(of(LayerKind::Instance), "instance:skipped");
        let end = CallEnd { outcome: "ok", neutralised: 2, ..CallEnd::default() };
        assert_eq!(layers_of(&end, None)[LayerKind::Sanitize as usize].verdict, "changed");
    }
}
