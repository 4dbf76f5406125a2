//! `talon jail profiles`.

use clap::Args;
use serde_json::json;
use talon_jail::Profile;

use super::options::ProfileParser;
use crate::exit;
use crate::failure::Failure;
use crate::generated::GeneratedText;
use crate::output::Output;
use crate::table::Table;

/// List the built-in profiles, or print the file of one.
///
/// A profile lists the system calls that a program may make, each with a reason. A custom profile is a file
/// that extends one of these; test it with `talon jail run --profile FILE`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon jail profiles
  talon jail profiles strict")]
pub(crate) struct ProfilesArgs {
    /// The profile to print.
    #[arg(value_name = "NAME", value_parser = ProfileParser, hide_possible_values = true)]
    name: Option<String>,
}

impl ProfilesArgs {
    pub(super) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        match self.name {
            None => list(out),
            Some(name) => print(&name, out)?,
        }
        Ok(exit::OK)
    }
}

fn list(out: &mut Output) {
    let profiles: Vec<Profile> = Profile::names().filter_map(Profile::builtin).collect();
    if out.is_json() {
        let one = |profile: &Profile| json!({ "name": profile.name(), "description": profile.description() });
        out.json(&json!({ "profiles": profiles.iter().map(one).collect::<serde_json::Value>() }));
        return;
    }
    let mut table = Table::new(&["PROFILE", "FOR"]);
    for profile in &profiles {
        table.row(vec![profile.name().into(), profile.description().into()]);
    }
    out.table(&table);
}

fn print(name: &str, out: &mut Output) -> Result<(), Failure> {
    let Some(text) = Profile::builtin_text(name) else {
        let names: Vec<_> = Profile::names().collect();
        return Err(Failure::usage(format!("there is no profile {name:?}: there are {}", names.join(", "))));
    };
    if out.is_json() {
        out.json(&json!({ "name": name, "text": text }));
    } else {
        out.generated(&GeneratedText::Profile(text))?;
    }
    Ok(())
}
