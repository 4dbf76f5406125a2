use std::collections::BTreeSet;

use http::header::ACCEPT_ENCODING;

use super::*;

/// All files of both pages together, compressed.
const BUDGET: usize = 150 * 1000;

fn asset(name: &str) -> &'static Asset {
    ASSETS.iter().find(|asset| asset.name == name).unwrap_or_else(|| panic!("{name}"))
}

fn text(asset: &Asset) -> &'static str {
    std::str::from_utf8(asset.plain).unwrap()
}

fn scripts() -> impl Iterator<Item = (&'static str, &'static str)> {
    ASSETS.iter().filter(|asset| asset.name.ends_with(".js")).map(|asset| (asset.name, text(asset)))
}

fn headers(pairs: &[(http::HeaderName, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
}

// Promises: UI-1
#[test]
fn all_files_of_both_pages_fit_the_budget() {
    let compressed: usize = ASSETS.iter().map(|asset| asset.brotli.len()).sum();
    assert!(compressed <= BUDGET, "{compressed} bytes of brotli, and {BUDGET} are the budget");
    assert!(compressed > 10_000, "something was compressed");
    eprintln!("{compressed} bytes of brotli in {} files", ASSETS.len());
}

// Promises: UI-2
#[test]
fn a_page_is_asked_for_each_time_and_its_files_never_again() {
    for page in ["/", "/chat"] {
        let (page, kept) = find(page).unwrap();
        assert_eq!(kept, ASK_EACH_TIME);
        let answer = serve(page, kept, &headers(&[(ACCEPT_ENCODING, "gzip, br")]));
        assert_eq!(
            (answer.status(), &answer.headers()[CONTENT_ENCODING]),
            (StatusCode::OK, &HeaderValue::from_static("br"))
        );
        let etag = answer.headers()[ETAG].to_str().unwrap();
        let known = headers(&[(ACCEPT_ENCODING, "gzip, br"), (IF_NONE_MATCH, &format!("\"x\", W/{etag}"))]);
        let again = serve(page, ASK_EACH_TIME, &known);
        assert_eq!((again.status(), again.headers().get(CONTENT_ENCODING)), (StatusCode::NOT_MODIFIED, None));
        // Every file that it names is there, under a path that has the digest of all.
        for path in text(page).split('"').filter(|part| part.starts_with("/assets/")) {
            let (_, kept) = find(path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(kept, FOREVER);
        }
    }
    for nothing in [
        "/assets/",
        "/assets/0000000000000000/control/main.js",
        "/control.html",
        "/chat/",
        "/assets/../etc/passwd",
    ] {
        assert!(find(nothing).is_none(), "{nothing}");
    }
}

#[test]
fn what_is_sent_is_the_file() {
    use std::io::Read as _;
    for asset in ASSETS {
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(asset.gzip).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, asset.plain, "{}", asset.name);
        let mut unpacked = Vec::new();
        brotli::BrotliDecompress(&mut &asset.brotli[..], &mut unpacked).unwrap();
        assert_eq!(unpacked, asset.plain, "{}", asset.name);
    }
}

// Promises: UI-3
#[test]
fn no_script_makes_markup_of_text_and_none_stands_in_a_page() {
    for (name, script) in scripts() {
        for never in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "createContextualFragment",
            "eval(",
            "new Function",
            "setHTMLUnsafe",
            "importScripts",
            "javascript:",
            ".srcdoc",
        ] {
            assert!(!script.contains(never), "{name}: {never}");
        }
        // Elements are made in one place.
        assert!(name == "lib/dom.js" || !script.contains("createElement"), "{name} makes elements by itself");
    }
    for page in ["control.html", "chat.html"] {
        let page = text(asset(page));
        let runs = |after: &str| {
            after.trim_start_matches(|letter: char| letter.is_ascii_lowercase()).starts_with('=')
        };
        assert!(!page.contains("style=") && !page.contains("http"), "{page}");
        assert!(!page.split(" on").skip(1).any(runs), "{page}");
        assert_eq!(
            page.matches("<script").count(),
            page.matches("<script type=\"module\" src=\"/assets/").count()
        );
    }
    let answer = serve(asset("chat.html"), ASK_EACH_TIME, &HeaderMap::new());
    let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(rule), "{rule}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
}

/// The scripts that a script imports.
fn imports(name: &str, script: &'static str) -> Vec<String> {
    let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
    let statements = script.lines().filter(|line| line.starts_with("import ") || line.starts_with("} from "));
    let targets = statements.map(|line| line.split('"').nth(1).unwrap_or_else(|| panic!("{name}: {line}")));
    let resolve = |target: &str| {
        let mut path: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
        for part in target.split('/') {
            match part {
                "." => {}
                ".." => drop(path.pop()),
                part => path.push(part),
            }
        }
        path.join("/")
    };
    targets.map(resolve).collect()
}

#[test]
fn every_import_is_there_and_none_goes_round_in_a_circle() {
    let mut left: Vec<(&str, Vec<String>)> =
        scripts().map(|(name, script)| (name, imports(name, script))).collect();
    for (name, imported) in &left {
        for target in imported {
            let is_base =
                name.starts_with("lib/") && !target.starts_with("lib/") && !target.starts_with("i18n/");
            assert!(!is_base, "{name} is below {target}");
            asset(target);
        }
    }
    // Takes away what imports nothing that is left, until nothing is left.
    while !left.is_empty() {
        let names: BTreeSet<&str> = left.iter().map(|(name, _)| *name).collect();
        let before = left.len();
        left.retain(|(_, imported)| imported.iter().any(|target| names.contains(target.as_str())));
        assert!(left.len() < before, "these import from each other: {names:?}");
    }
}

/// The keys of a file of strings.
fn keys(language: &str) -> BTreeSet<&'static str> {
    let lines = text(asset(&format!("i18n/{language}.js"))).lines();
    lines.filter_map(|line| line.strip_prefix("  \"")?.split_once("\":").map(|(key, _)| key)).collect()
}

// Promises: UI-4
#[test]
fn every_text_of_the_pages_is_there_in_each_language() {
    let (english, german) = (keys("en"), keys("de"));
    let missing: Vec<_> = english.difference(&german).collect();
    assert!(missing.is_empty(), "not in German: {missing:?}");
    // German has words of the API besides, which are English words already.
    let more: Vec<_> = german.difference(&english).filter(|key| !key.starts_with("state.")).collect();
    assert!(more.is_empty(), "in German alone: {more:?}");
    for (name, script) in scripts().filter(|(name, _)| !name.starts_with("i18n/")) {
        for after in script.split("t(\"").skip(1) {
            let key = after.split('"').next().unwrap();
            let is_key = key
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.' | b'0'..=b'9'));
            let follows = after[key.len()..].starts_with("\")") || after[key.len()..].starts_with("\",");
            assert!(
                !is_key || !follows || english.contains(key) || is_other_call(script, key),
                "{name}: {key}"
            );
        }
    }
}

/// `t(` is also how other names end: `announcement("polite")`.
fn is_other_call(script: &str, key: &str) -> bool {
    let call = format!("t(\"{key}\"");
    script
        .match_indices(&call)
        .all(|(place, _)| script[..place].ends_with(|letter: char| letter.is_alphanumeric()))
}
