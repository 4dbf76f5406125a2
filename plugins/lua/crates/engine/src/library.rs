//! What of the language a script sees: a list of what is allowed, never of what is not.

use std::sync::OnceLock;

use mlua::{Lua, LuaOptions, StdLib, Value};
use serde::{Deserialize, Serialize};

/// The global functions, as founding scripts use them.
const FUNCTIONS: [&str; 11] = [
    "assert", "error", "ipairs", "next", "pairs", "pcall", "select", "tonumber", "tostring", "type", "unpack",
];
/// The libraries of every script.
const LIBRARIES: [&str; 4] = ["math", "os", "string", "table"];

/// A library that scripts have only where the operator names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Library {
    /// `utf8`
    Utf8,
    /// `buffer`
    Buffer,
    /// `bit32`
    Bit32,
    /// `coroutine`
    Coroutine,
}

impl Library {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Utf8, Self::Buffer, Self::Bit32, Self::Coroutine];

    /// The name of its table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Buffer => "buffer",
            Self::Bit32 => "bit32",
            Self::Coroutine => "coroutine",
        }
    }

    const fn library(self) -> StdLib {
        match self {
            Self::Utf8 => StdLib::UTF8,
            Self::Buffer => StdLib::BUFFER,
            Self::Bit32 => StdLib::BIT,
            Self::Coroutine => StdLib::COROUTINE,
        }
    }
}

/// Whether a script sees this global.
fn is_allowed(name: &str, further: &[Library]) -> bool {
    FUNCTIONS.contains(&name)
        || LIBRARIES.contains(&name)
        || further.iter().any(|library| library.as_str() == name)
}

/// What the compiler may not call directly. It knows many functions of the language by their names, and its code reaches them
/// although the global is gone.
pub(crate) fn forbidden_builtins(further: &[Library]) -> mlua::Result<Vec<String>> {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    let all = match ALL.get() {
        Some(all) => all,
        None => {
            let named = every_function()?;
            ALL.get_or_init(|| named)
        }
    };
    let forbidden = |name: &&String| {
        let of = name.split_once('.').map_or(name.as_str(), |(library, _)| library);
        !is_allowed(of, further)
    };
    Ok(all.iter().filter(forbidden).cloned().collect())
}

/// The names of all functions that the language has, as `name` or `library.name`.
fn every_function() -> mlua::Result<Vec<String>> {
    let lua = Lua::new_with(StdLib::ALL_SAFE, LuaOptions::new())?;
    let mut names = Vec::new();
    for pair in lua.globals().pairs::<String, Value>() {
        match pair? {
            (name, Value::Function(_)) => names.push(name),
            (library, Value::Table(functions)) if library != "_G" => {
                for pair in functions.pairs::<String, Value>() {
                    names.push(format!("{library}.{}", pair?.0));
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

/// The libraries to open.
pub(crate) fn opened(further: &[Library]) -> StdLib {
    let always = StdLib::MATH | StdLib::OS | StdLib::STRING | StdLib::TABLE;
    further.iter().fold(always, |all, library| all | library.library())
}

/// Takes away every global that is not allowed. Before the sandbox closes the globals.
pub(crate) fn keep_allowed(lua: &Lua, further: &[Library]) -> mlua::Result<()> {
    let globals = lua.globals();
    let mut unknown = Vec::new();
    for pair in globals.pairs::<Value, Value>() {
        let (name, _) = pair?;
        let text = name.as_string().and_then(|text| text.to_str().ok());
        let allowed = text.is_some_and(|text| is_allowed(&text, further));
        if !allowed {
            unknown.push(name);
        }
    }
    for name in unknown {
        globals.raw_set(name, Value::Nil)?;
    }
    let time: Value = globals.get::<mlua::Table>("os")?.raw_get("time")?;
    let os = lua.create_table()?;
    os.raw_set("time", time)?;
    globals.raw_set("os", os)
}
