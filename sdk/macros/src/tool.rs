//! `#[tool]`: checks the function and expands it to a constructor of a `Tool`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, FnArg, ItemFn, Lit, Meta, ReturnType, Type};

use crate::options::{Options, check_name};

/// Which of its two parameters a tool function takes.
struct Parameters {
    args: Option<Box<Type>>,
    context: bool,
}

/// Expands `#[tool]` on a function.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    expand_with(Options::parse(options)?, item)
}

/// The same with options that are read already.
pub(crate) fn expand_with(options: Options, item: TokenStream) -> Result<TokenStream, Error> {
    let function: ItemFn = syn::parse2(item)
        .map_err(|e| Error::new(e.span(), format!("#[tool] goes above an async function: {e}")))?;
    check_shape(&function)?;
    let parameters = parameters(&function)?;
    let description = description(&function, &options)?;

    let ident = &function.sig.ident;
    let name = match &options.name {
        Some(name) => name.value(),
        None => {
            let name = ident.to_string();
            let name = name.strip_prefix("r#").unwrap_or(&name).to_owned();
            check_name(&name).map_err(|why| Error::new(ident.span(), format!("{why}, or name = \"…\"")))?;
            name
        }
    };

    let call = match (&parameters.args, parameters.context) {
        (Some(_), true) => quote!(#ident(args, cx)),
        (Some(_), false) => quote!(#ident(args)),
        (None, true) => quote!(#ident(cx)),
        (None, false) => quote!(#ident()),
    };
    let args_type = parameters.args.as_deref();
    let args_span = args_type.map_or_else(|| ident.span(), Spanned::span);
    let args_type = args_type.map_or_else(|| quote!(()), |ty| quote!(#ty));
    // The span of the argument type makes the compiler point there when a derive is missing.
    let new = quote_spanned!(args_span=> ::talon_sdk::Tool::new::<#args_type, _, _>);
    let read_only = options.read_only.then(|| quote!(.read_only()));
    let user_only = options.user_only.then(|| quote!(.user_only()));
    let always_include = options.always_include.then(|| quote!(.always_include()));
    let inject = &options.inject;
    let inject = (!inject.is_empty()).then(|| quote!(.inject([#(#inject),*])));
    let roles = &options.roles;
    let roles = quote!(#(.role(#roles))*);

    let (outer, inner): (Vec<_>, Vec<_>) = function.attrs.iter().partition(|attribute| {
        ["doc", "cfg", "deprecated"].iter().any(|name| attribute.path().is_ident(name))
    });
    let visibility = &function.vis;
    let signature = &function.sig;
    let block = &function.block;
    Ok(quote! {
        #(#outer)*
        #visibility fn #ident() -> ::talon_sdk::Tool {
            #(#inner)*
            #signature #block

            #new(#name, #description, |args, cx| {
                let _ = (&args, &cx);
                #call
            })
            #read_only #user_only #always_include #inject #roles
        }
    })
}

fn check_shape(function: &ItemFn) -> Result<(), Error> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new(signature.fn_token.span(), "a tool is an async function: write `async fn`"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &signature.generics,
            "a tool cannot be generic: its arguments are one type",
        ));
    }
    if matches!(signature.output, ReturnType::Default) {
        return Err(Error::new_spanned(
            signature,
            "a tool returns a Result, for example `-> Result<String, talon_sdk::ToolError>`",
        ));
    }
    Ok(())
}

fn parameters(function: &ItemFn) -> Result<Parameters, Error> {
    let mut types = Vec::new();
    for input in &function.sig.inputs {
        match input {
            FnArg::Typed(typed) => types.push(&typed.ty),
            FnArg::Receiver(receiver) => {
                return Err(Error::new_spanned(receiver, "a tool is a free function: it has no `self`"));
            }
        }
    }
    if let [_, _, extra, ..] = types.as_slice() {
        return Err(Error::new_spanned(
            extra,
            "a tool takes at most its arguments and a Context: make the others fields of one arguments struct",
        ));
    }
    match types.as_slice() {
        [only] if is_context(only) => Ok(Parameters { args: None, context: true }),
        [only] => Ok(Parameters { args: Some((*only).clone()), context: false }),
        [first, _] if is_context(first) => {
            Err(Error::new_spanned(first, "the Context comes last: (args: …, cx: Context)"))
        }
        [_, second] if !is_context(second) => Err(Error::new_spanned(
            second,
            "the second parameter is a `Context`, by that name: make the arguments fields of one struct with #[talon_sdk::args]",
        )),
        [first, _] => Ok(Parameters { args: Some((*first).clone()), context: true }),
        _ => Ok(Parameters { args: None, context: false }),
    }
}

/// A macro sees names, not types, so only the last path segment is compared.
fn is_context(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Context"))
}

fn description(function: &ItemFn, options: &Options) -> Result<String, Error> {
    let text = match &options.description {
        Some(given) => given.value().trim().to_owned(),
        None => doc_text(&function.attrs),
    };
    if text.is_empty() {
        return Err(Error::new_spanned(
            &function.sig.ident,
            "a tool needs a doc comment: it is the description by which a model chooses it",
        ));
    }
    Ok(text)
}

fn doc_text(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let Meta::NameValue(pair) = &attribute.meta
            && let Expr::Lit(literal) = &pair.value
            && let Lit::Str(text) = &literal.lit
        {
            // Not `lines()`: an empty doc line separates two paragraphs.
            for line in text.value().split('\n') {
                lines.push(line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned());
            }
        }
    }
    lines.join("\n").trim().to_owned()
}
