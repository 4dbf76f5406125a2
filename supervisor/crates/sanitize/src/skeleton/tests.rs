use super::*;

fn folded(text: &str) -> String {
    let mut scratch = Vec::new();
    let mut window = Window::new(text, 0, &mut scratch);
    let mut out = String::new();
    for index in 0.. {
        match window.get(index) {
            END | FAR => return out,
            OTHER => out.push('?'),
            byte => out.push(char::from(byte)),
        }
    }
    out
}

#[test]
fn every_spelling_of_a_bracket_folds_to_it() {
    for spelling in [
        "<a",
        "＜a",
        "‹a",
        "&lt;a",
        "&LT;a",
        "&#60;a",
        "&#060;a",
        "&#x3C;a",
        "&amp;lt;a",
        "&amp;amp;#60;a",
        "&#38;lt;a",
        "%3ca",
        "%253Ca",
        "%26lt%3Ba",
        "\\u003ca",
        "\\\\u003Ca",
        "\\x3ca",
        "\\u{3c}a",
        "\\uff1ca",
        "\\<a",
        "&lt;Ａ",
        "&ltа",
        "&#60а",
        "\\u0026lt;a",
        "&lt%3Ba",
        "&&#108;t;a",
    ] {
        let out = folded(spelling);
        assert_eq!(out, "<a", "{spelling}");
    }
}

#[test]
fn offsets_point_into_the_original() {
    let mut scratch = Vec::new();
    let mut window = Window::new("&amp;lt;ｔool", 0, &mut scratch);
    assert_eq!(window.get(0), b'<');
    assert_eq!(window.end_of(0), 8);
    assert_eq!(window.get(1), b't');
    assert_eq!((window.start_of(1), window.end_of(1)), (8, 11));
}

#[test]
fn what_spells_nothing_stays_itself() {
    assert_eq!(folded("100% &c; a&b \\d"), "100% &c; a&b \\d");
    assert_eq!(folded("a\u{200b}b\u{1b}[0m"), "a?b?[0m");
    assert_eq!(folded("a\\nb\r\nc\rd"), "a\nb \nc?d");
}
