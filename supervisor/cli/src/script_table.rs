//! The table of scripts, for `status` and `plugin show`.

use talon_proto::host::{Plugin, Script};

use crate::show;
use crate::table::{Column, Table};

/// How much of a digest is shown, in characters: enough to see that it is another one. `--output json` has the whole.
const SHOWN_DIGEST: usize = 12;

/// In order of appearance; on narrow pages the columns with the largest rank are omitted first.
const COLUMNS: [Column; 7] = [
    Column::text("SCRIPT", 0),
    Column::text("STATE", 0),
    Column::text("FUNCTIONS", 2),
    Column::number("LOADED", 3),
    Column::number("INTERRUPTED", 1),
    Column::number("KILLED", 1),
    Column::text("SHA-256", 4),
];

/// One row for each script. `INTERRUPTED` and `KILLED` are calls that passed their time limit: ended by an interrupt, and with the
/// process that ran them. `None` if there is no script.
pub(crate) fn table<'p>(plugins: impl IntoIterator<Item = &'p Plugin>) -> Option<Table> {
    let mut table = Table::of(&COLUMNS);
    let mut any = false;
    for (plugin, script) in scripts(plugins) {
        any = true;
        table.row(vec![
            format!("{}/{}", plugin.name, script.name).into(),
            show::state(&script.state, ""),
            script.functions.join(", ").into(),
            script.loads.into(),
            script.ended_by_interrupt.into(),
            script.ended_with_process.into(),
            script.sha256.chars().take(SHOWN_DIGEST).collect::<String>().into(),
        ]);
    }
    any.then_some(table)
}

/// Why scripts do not run as their files are: the script's name, and the reason with what to do.
pub(crate) fn problems(plugin: &Plugin) -> Vec<(String, String)> {
    let failing = scripts([plugin]).filter(|(_, script)| !script.problem.is_empty());
    failing
        .map(|(plugin, script)| {
            let runs = match script.state.as_str() {
                "outdated" => "its newest version was refused, and the one before runs on",
                _ => "it does not run, so its hooks fail",
            };
            let says =
                format!("{runs}: {}\nmend the file, and try it with `talon lua check`", script.problem);
            (format!("{}/{}", plugin.name, script.name), says)
        })
        .collect()
}

fn scripts<'p>(
    plugins: impl IntoIterator<Item = &'p Plugin>,
) -> impl Iterator<Item = (&'p Plugin, &'p Script)> {
    plugins.into_iter().flat_map(|plugin| plugin.scripts.iter().map(move |script| (plugin, script)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: LUA-71
    #[test]
    fn a_script_that_was_refused_is_said_with_its_reason() {
        let script = |name: &str, state: &str, problem: &str| Script {
            name: name.to_owned(),
            state: state.to_owned(),
            problem: problem.to_owned(),
            ..Script::default()
        };
        let scripts = vec![
            script("a", "loaded", ""),
            script("b", "outdated", "b.lua:2: no\n  b.lua:7"),
            script("c", "failed", "no text"),
        ];
        let plugin = Plugin { name: "lua".to_owned(), scripts, ..Plugin::default() };
        assert!(table([&plugin]).is_some() && table([&Plugin::default()]).is_none());
        let problems = problems(&plugin);
        assert_eq!(problems.len(), 2);
        assert_eq!(problems[0].0, "lua/b");
        assert!(problems[0].1.contains("runs on: b.lua:2: no\n  b.lua:7\n"), "{problems:?}");
        assert!(problems[1].1.contains("its hooks fail: no text"), "{problems:?}");
    }
}
