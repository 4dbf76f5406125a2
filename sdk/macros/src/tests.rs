use quote::quote;

use crate::{args, tool};

fn expanded(options: proc_macro2::TokenStream, item: proc_macro2::TokenStream) -> String {
    tool::expand(options, item).expect("expands").to_string()
}

fn refused(options: proc_macro2::TokenStream, item: proc_macro2::TokenStream) -> String {
    tool::expand(options, item).expect_err("must be refused").to_string()
}

fn good() -> proc_macro2::TokenStream {
    quote! {
        /// Greets somebody.
        ///
        /// In two paragraphs.
        async fn greet(args: Greet) -> Result<String, ToolError> { Ok(String::new()) }
    }
}

// Promises: SDK-2
#[test]
fn a_function_becomes_a_constructor() {
    let code = expanded(quote!(), good());
    assert!(code.contains("fn greet () -> :: talon_sdk :: Tool"), "{code}");
    assert!(code.contains(r#""Greets somebody.\n\nIn two paragraphs.""#), "{code}");
    assert!(code.contains("new :: < Greet , _ , _ >"), "{code}");
}

#[test]
fn options_become_builder_calls() {
    let code = expanded(
        quote!(read_only, user_only, always_include, name = "say-hi", inject(session_id, "x-id")),
        good(),
    );
    for part in [
        ". read_only ()",
        ". user_only ()",
        ". always_include ()",
        "\"say-hi\"",
        ". inject ([\"session_id\" , \"x-id\"])",
    ] {
        assert!(code.contains(part), "{part} is not in {code}");
    }
}

#[test]
fn an_attribute_of_a_role_makes_a_tool_with_that_role() {
    let item = quote! {
        /// Looks.
        async fn look(asked: HookRequest) -> Result<Verdict, ToolError> { todo() }
    };
    let code = crate::role::expanded("request_hook", quote!(name = "look-at", role(tool)), item.clone());
    let code = code.expect("expands").to_string();
    assert!(code.contains(". role (\"request_hook\") . role (\"tool\")"), "{code}");
    assert!(code.contains("\"look-at\""), "{code}");
    assert!(expanded(quote!(role(filter)), item).contains(". role (\"filter\")"));
}

#[test]
fn each_parameter_is_optional() {
    for (item, call) in [
        (
            quote!(
                async fn f() -> Result<String, ToolError> {}
            ),
            "f ()",
        ),
        (
            quote!(
                async fn f(cx: talon_sdk::Context) -> Result<String, ToolError> {}
            ),
            "f (cx)",
        ),
        (
            quote!(
                async fn f(args: A) -> Result<String, ToolError> {}
            ),
            "f (args)",
        ),
        (
            quote!(
                async fn f(args: A, cx: Context) -> Result<String, ToolError> {}
            ),
            "f (args , cx)",
        ),
    ] {
        let code = expanded(quote!(description = "Does it."), item);
        assert!(code.contains(call), "{call} is not in {code}");
    }
}

// Promises: SDK-4
#[test]
fn what_is_wrong_is_said_in_words() {
    for (options, item, says) in [
        (
            quote!(),
            quote!(
                fn f() -> Result<(), E> {}
            ),
            "write `async fn`",
        ),
        (
            quote!(),
            quote!(
                async fn f() -> Result<(), E> {}
            ),
            "needs a doc comment",
        ),
        (
            quote!(description = "d"),
            quote!(
                async fn f() {}
            ),
            "returns a Result",
        ),
        (
            quote!(description = "d"),
            quote!(
                async fn f(&self) -> R {}
            ),
            "no `self`",
        ),
        (
            quote!(description = "d"),
            quote!(
                async fn f<T>(a: T) -> R {}
            ),
            "cannot be generic",
        ),
        (
            quote!(description = "d"),
            quote!(
                async fn f(a: A, b: B, c: C) -> R {}
            ),
            "at most its arguments",
        ),
        (
            quote!(description = "d"),
            quote!(
                async fn f(cx: Context, a: A) -> R {}
            ),
            "comes last",
        ),
        (
            quote!(description = "d"),
            quote!(
                async fn f(text: String, top: u8) -> R {}
            ),
            "fields of one struct with #[talon_sdk::args]",
        ),
        (quote!(readonly), good(), "no such option; #[tool] knows read_only"),
        (quote!(read_only, read_only), good(), "twice"),
        (quote!(name = "no spaces"), good(), "is not an action name"),
        (quote!(name = ""), good(), "is not an action name"),
        (quote!(inject()), good(), "name what to inject"),
        (quote!(role()), good(), "name a role"),
        (
            quote!(),
            quote!(
                struct S;
            ),
            "goes above an async function",
        ),
    ] {
        let said = refused(options, item);
        assert!(said.contains(says), "expected {says:?} in {said:?}");
    }
}

#[test]
fn a_struct_that_allows_it_is_strict() {
    for (item, strict) in [
        (
            quote!(
                struct A {
                    #[serde(default)]
                    a: u8,
                }
            ),
            true,
        ),
        (
            quote!(
                #[serde(rename_all = "kebab-case")]
                struct A {
                    a: u8,
                }
            ),
            true,
        ),
        (
            quote!(
                struct A {
                    #[serde(flatten)]
                    a: B,
                }
            ),
            false,
        ),
        (
            quote!(
                #[serde(tag = "kind")]
                struct A {
                    a: u8,
                }
            ),
            false,
        ),
        (
            quote!(
                #[serde(rename_all = "lowercase", transparent)]
                struct A {
                    a: u8,
                }
            ),
            false,
        ),
        (
            quote!(
                struct A(u8);
            ),
            false,
        ),
        (
            quote!(
                enum A {
                    B,
                }
            ),
            false,
        ),
    ] {
        let code = args::expand(quote!(), item).expect("expands").to_string();
        assert_eq!(code.contains("deny_unknown_fields"), strict, "{code}");
    }
    let own = quote!(
        #[serde(deny_unknown_fields)]
        struct A {
            a: u8,
        }
    );
    let code = args::expand(quote!(), own).expect("expands").to_string();
    assert_eq!(code.matches("deny_unknown_fields").count(), 1, "serde refuses the word twice: {code}");
}

#[test]
fn args_goes_above_structs_and_enums_only() {
    assert!(
        args::expand(
            quote!(),
            quote!(
                struct A {
                    a: u8,
                }
            )
        )
        .is_ok()
    );
    assert!(
        args::expand(
            quote!(),
            quote!(
                enum A {
                    B,
                }
            )
        )
        .is_ok()
    );
    let said = args::expand(
        quote!(),
        quote!(
            fn a() {}
        ),
    )
    .expect_err("refused")
    .to_string();
    assert!(said.contains("above a struct or an enum"), "{said}");
    let said = args::expand(
        quote!(x),
        quote!(
            struct A;
        ),
    )
    .expect_err("refused")
    .to_string();
    assert!(said.contains("takes no options"), "{said}");
}
