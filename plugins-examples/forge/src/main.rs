//! Analyzes the code of one directory, and stores proposals to change it: one half of "analyze the code, file
//! an issue, propose a change". The other half is `tracker`; the two do not know each other, only a caller of
//! both connects them.

mod analyze;
mod proposals;
mod root;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use talon_sdk::Plugin;

fn main() -> ExitCode {
    Plugin::new("forge")
        .description("Looks code over and keeps proposals to change it.")
        .tools([
            analyze::analyze_code(),
            proposals::create_pr().destructive(false),
            proposals::list_prs(),
            proposals::get_pr(),
        ])
        .init(root::open)
        .serve()
}
