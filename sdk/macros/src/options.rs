//! The options in `#[tool(…)]`.

use std::fmt;

use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Token};

/// The longest action name. A host offers a model `plugin__action`, and model APIs cap tool names at 64.
const MAX_NAME_LEN: usize = 64;

const KNOWN: &str =
    "read_only, user_only, always_include, name = \"…\", description = \"…\", role(name, …), inject(name, …)";

/// The options in the parentheses of `#[tool(…)]`.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) read_only: bool,
    pub(crate) user_only: bool,
    pub(crate) always_include: bool,
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) inject: Vec<String>,
    pub(crate) roles: Vec<String>,
}

impl Options {
    pub(crate) fn parse(tokens: proc_macro2::TokenStream) -> Result<Self, Error> {
        let mut options = Self::default();
        let mut seen: Vec<String> = Vec::new();
        let parser = syn::meta::parser(|meta| {
            let word = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
            if seen.contains(&word) {
                return Err(meta.error(format!("`{word}` stands here twice")));
            }
            options.take(&word, &meta)?;
            seen.push(word);
            Ok(())
        });
        parser.parse2(tokens)?;
        Ok(options)
    }

    fn take(&mut self, word: &str, meta: &ParseNestedMeta<'_>) -> Result<(), Error> {
        match word {
            "read_only" => self.read_only = true,
            "user_only" => self.user_only = true,
            "always_include" => self.always_include = true,
            "name" => {
                let name: LitStr = meta.value()?.parse()?;
                check_name(&name.value()).map_err(|why| Error::new(name.span(), why))?;
                self.name = Some(name);
            }
            "description" => self.description = Some(meta.value()?.parse()?),
            "inject" => {
                let content;
                syn::parenthesized!(content in meta.input);
                let names = Punctuated::<Injected, Token![,]>::parse_terminated(&content)?;
                if names.is_empty() {
                    return Err(meta.error("name what to inject: inject(session_id)"));
                }
                self.inject = names.into_iter().map(|name| name.0).collect();
            }
            "role" => {
                let content;
                syn::parenthesized!(content in meta.input);
                let names = Punctuated::<Ident, Token![,]>::parse_terminated(&content)?;
                if names.is_empty() {
                    return Err(meta.error("name a role: role(request_hook)"));
                }
                self.roles = names.into_iter().map(|name| name.to_string()).collect();
            }
            _ => return Err(meta.error(format!("no such option; #[tool] knows {KNOWN}"))),
        }
        Ok(())
    }
}

/// The text is not a valid action name.
#[derive(Debug)]
pub(crate) struct NotANameError(String);

impl fmt::Display for NotANameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.0;
        write!(
            f,
            "{name:?} is not an action name: use 1 to {MAX_NAME_LEN} characters of a-z, A-Z, 0-9, '_' and '-'"
        )
    }
}

/// Checks an action's name.
pub(crate) fn check_name(name: &str) -> Result<(), NotANameError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > MAX_NAME_LEN || !name.bytes().all(plain) {
        return Err(NotANameError(name.to_owned()));
    }
    Ok(())
}

/// One name in `inject(…)`: an identifier, or a string if the name is not an identifier.
struct Injected(String);

impl syn::parse::Parse for Injected {
    fn parse(input: syn::parse::ParseStream<'_>) -> Result<Self, Error> {
        if input.peek(LitStr) {
            return Ok(Self(input.parse::<LitStr>()?.value()));
        }
        Ok(Self(input.parse::<Ident>()?.to_string()))
    }
}
