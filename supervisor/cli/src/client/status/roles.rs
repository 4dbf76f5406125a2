//! The table of roles that plugins declare, and of what is granted.

use talon_proto::host::PluginRole;

use crate::table::Table;

/// One row per plugin and role; `None` without any.
pub(super) fn table(roles: &[PluginRole]) -> Option<Table> {
    if roles.is_empty() {
        return None;
    }
    let mut table = Table::new(&["PLUGIN", "ROLE", "DECLARED", "GRANTED", "STATE"]);
    for role in roles {
        table.row(vec![
            role.plugin.as_str().into(),
            role.role.as_str().into(),
            declared(role).into(),
            role.granted.into(),
            state(role).into(),
        ]);
    }
    Some(table)
}

fn declared(role: &PluginRole) -> String {
    match role.declared {
        0 => "no".to_owned(),
        1 => "by 1 action".to_owned(),
        many => format!("by {many} actions"),
    }
}

fn state(role: &PluginRole) -> String {
    if role.granted == 0 {
        return "not granted: see docs/extensions".to_owned();
    }
    let counts = [(role.ready, "ready"), (role.waiting, "waiting"), (role.failing, "failing")];
    let shown = counts.into_iter().filter(|(count, _)| *count > 0);
    shown.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-168
    #[test]
    fn a_row_says_what_is_declared_granted_and_failing() {
        assert!(table(&[]).is_none());
        let role = |declared, [ready, waiting, failing]: [u32; 3]| PluginRole {
            declared,
            granted: ready + waiting + failing,
            ready,
            waiting,
            failing,
            ..PluginRole::default()
        };
        assert_eq!(state(&role(1, [0, 0, 0])), "not granted: see docs/extensions");
        assert_eq!(state(&role(0, [1, 0, 2])), "1 ready, 2 failing");
        let texts: Vec<String> = (0..3).map(|count| declared(&role(count, [0, 0, 0]))).collect();
        assert_eq!(texts, ["no", "by 1 action", "by 2 actions"]);
    }
}
