//! The content of a terminal as a picture: SVG, whose text can be selected and searched.

use std::fmt::Write as _;

use vt100::{Color, Screen};

/// The size of a cell in the picture's units: that of a character in common fonts. Words are stretched to
/// their cells if the viewer supports that, and begin at their first cell in any case.
const CELL: (f32, f32) = (8.43, 18.0);
/// The distance of the baseline from the lower end of a line.
const BASELINE: f32 = 5.0;
/// The margin around the screen.
const MARGIN: f32 = 12.0;
const FONTS: &str = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const PAPER: &str = "#16181d";
const INK: &str = "#d8dbe2";
/// The sixteen colours of a terminal.
const COLORS: [&str; 16] = [
    "#2b2e36", "#ef6f6c", "#7cc77e", "#e5c76b", "#6ea8fe", "#c792ea", "#5fc9d8", "#d8dbe2", "#7d8391",
    "#ff8c89", "#98e09a", "#ffe08a", "#90c0ff", "#ddb3ff", "#85e3f0", "#ffffff",
];

/// The style of adjacent cells.
#[derive(Clone, PartialEq)]
struct CellStyle {
    ink: String,
    paper: Option<String>,
    bold: bool,
}

/// The first rows of a screen, or all up to the last one that is not empty.
#[must_use]
pub fn svg(screen: &Screen, title: &str) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let used = (0..rows).rev().find(|row| (0..columns).any(|column| !is_blank(screen, *row, column)));
    let rows = used.map_or(1, |last| last + 1);
    let width = f32::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f32::from(rows) * CELL.1 + 2.0 * MARGIN;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" font-family=\"{FONTS}\" \
         font-size=\"14\" role=\"img\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{PAPER}\"/>",
        escaped(title)
    );
    for row in 0..rows {
        for (from, text, look) in runs(screen, row, columns) {
            run(&mut out, row, from, &text, &look);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn is_blank(screen: &Screen, row: u16, column: u16) -> bool {
    screen.cell(row, column).is_none_or(|cell| cell.contents().trim().is_empty() && !cell.inverse())
}

/// The cells of a row in runs of the same style: where each begins, and its text.
fn runs(screen: &Screen, row: u16, columns: u16) -> Vec<(u16, String, CellStyle)> {
    let mut runs: Vec<(u16, String, CellStyle)> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column) else { continue };
        if cell.is_wide_continuation() {
            continue;
        }
        let (mut ink, mut paper) = (color(cell.fgcolor(), INK), color(cell.bgcolor(), PAPER));
        if cell.inverse() {
            std::mem::swap(&mut ink, &mut paper);
        }
        let paper = (paper != PAPER).then_some(paper);
        let look = CellStyle { ink, paper, bold: cell.bold() };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        match runs.last_mut() {
            Some((_, run, last)) if *last == look => run.push_str(text),
            _ => runs.push((column, text.to_owned(), look)),
        }
    }
    runs
}

fn run(out: &mut String, row: u16, from: u16, text: &str, look: &CellStyle) {
    let cells = f32::from(u16::try_from(text.chars().count()).unwrap_or(u16::MAX));
    let (x, y) = (MARGIN + f32::from(from) * CELL.0, MARGIN + f32::from(row) * CELL.1);
    if let Some(paper) = &look.paper {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{paper}\"/>",
            cells * CELL.0,
            CELL.1
        );
    }
    let bold = if look.bold { " font-weight=\"bold\"" } else { "" };
    for (at, words) in pieces(text) {
        let cells = |count: usize| f32::from(u16::try_from(count).unwrap_or(u16::MAX)) * CELL.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{bold} \
             xml:space=\"preserve\">{}</text>",
            x + cells(at),
            y + CELL.1 - BASELINE,
            cells(words.chars().count()),
            look.ink,
            escaped(words)
        );
    }
}

/// Splits a text at columns, that is at two and more spaces: where each part begins, in cells.
fn pieces(text: &str) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for piece in text.split("  ") {
        let words = piece.trim();
        if !words.is_empty() {
            let lead = piece.chars().take_while(|c| *c == ' ').count();
            pieces.push((at + lead, words));
        }
        at += piece.chars().count() + 2;
    }
    pieces
}

fn color(color: Color, default: &str) -> String {
    match color {
        Color::Default => default.to_owned(),
        Color::Idx(index) => COLORS.get(usize::from(index)).copied().unwrap_or(default).to_owned(),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    #[test]
    fn columns_begin_at_their_cells() {
        assert_eq!(pieces(" a b   c  ─ "), [(1, "a b"), (7, "c"), (10, "─")]);
        assert_eq!(pieces("    "), []);
    }

    #[test]
    fn text_keeps_its_place_its_colour_and_its_characters() {
        let size = |size| NonZeroU16::new(size).expect("not zero");
        let mut parser = vt100::Parser::new(size(4), size(20), 0);
        parser.process(b"a <b> \x1b[31;1mred\x1b[0m\r\n\x1b[7m row \x1b[0m");
        let picture = svg(parser.screen(), "a & b");
        assert!(picture.contains("<title>a &amp; b</title>"), "{picture}");
        assert!(picture.contains(">a &lt;b&gt;</text>"), "{picture}");
        assert!(picture.contains(&format!("fill=\"{}\" font-weight=\"bold\"", COLORS[1])), "{picture}");
        assert!(
            picture.contains(&format!("height=\"18.0\" fill=\"{INK}\"")),
            "the row is turned round: {picture}"
        );
        assert_eq!(picture.matches("<text").count(), 3);
    }
}
