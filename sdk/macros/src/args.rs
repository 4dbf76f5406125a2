//! `#[args]`: two derives that use `talon-sdk`'s own copies of serde and schemars.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::{Attribute, Error, Fields, Item, ItemStruct, Meta};

/// Expands `#[args]` on a struct or an enum.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    if !options.is_empty() {
        return Err(Error::new_spanned(options, "#[args] takes no options; use #[serde(…)] beside it"));
    }
    let item: Item = syn::parse2(item)?;
    let strict = match &item {
        Item::Struct(item) => can_be_strict(item).then(|| quote!(#[serde(deny_unknown_fields)])),
        Item::Enum(_) => None,
        other => return Err(Error::new_spanned(other, "#[args] goes above a struct or an enum")),
    };
    Ok(quote! {
        #[derive(::talon_sdk::serde::Deserialize, ::talon_sdk::schemars::JsonSchema)]
        #[serde(crate = "::talon_sdk::serde")]
        #[schemars(crate = "::talon_sdk::schemars")]
        #strict
        #item
    })
}

/// Whether `deny_unknown_fields` fits the struct: its fields have names, and no serde attribute contradicts
/// it or changes how the struct is read. Otherwise a misspelt key of a nested argument would be ignored
/// silently.
fn can_be_strict(item: &ItemStruct) -> bool {
    const OTHERWISE: [&str; 5] = ["deny_unknown_fields", "transparent", "tag", "from", "try_from"];
    matches!(item.fields, Fields::Named(_))
        && !OTHERWISE.iter().any(|word| has_word(&item.attrs, word))
        && !item.fields.iter().any(|field| has_word(&field.attrs, "flatten"))
}

/// Whether a `#[serde(…)]` among the attributes contains this word.
fn has_word(attributes: &[Attribute], word: &str) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("serde")).any(|attribute| {
        matches!(&attribute.meta, Meta::List(list) if list.tokens.clone().into_iter().any(
            |token| matches!(token, TokenTree::Ident(ident) if ident == word)
        ))
    })
}
