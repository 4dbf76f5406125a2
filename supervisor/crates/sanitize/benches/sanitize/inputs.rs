//! Texts to measure with: clean ones as tools print them, varied and the same on every run, and ones with
//! hits.

/// A small generator of numbers: the same ones every time.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const SUBJECTS: [&str; 12] = [
    "The maintainer",
    "A second reviewer",
    "Our scheduler",
    "The old parser",
    "Nobody on the team",
    "The city council",
    "An early draft",
    "The river",
    "Half of the sample",
    "The following release",
    "This paragraph",
    "His sister",
];
const VERBS: [&str; 10] = [
    "reported",
    "had quietly replaced",
    "is said to have measured",
    "does not explain",
    "kept",
    "would later describe",
    "seems to depend on",
    "returned",
    "compares",
    "underestimated",
];
const OBJECTS: [&str; 12] = [
    "a slow query in the \"orders\" table",
    "the results of 2023 (see page 14)",
    "three of the five proposals",
    "what it called 'a modest improvement'",
    "about 40% of the traffic",
    "the user's settings; nothing else changed",
    "the tool they had borrowed",
    "x < y for every pair",
    "R&D spending in the north",
    "its own tests",
    "an answer to the first question",
    "the function of the valve",
];
const ENDS: [&str; 6] = [". ", ", and went on. ", "; that was expected. ", " - or so it says. ", "? ", ".\n"];

/// Paragraphs of English.
pub(crate) fn prose(bytes: usize) -> String {
    let mut dice = Dice::new(11);
    fill(bytes, |out| {
        for word in [dice.pick(&SUBJECTS), " ", dice.pick(&VERBS), " ", dice.pick(&OBJECTS), dice.pick(&ENDS)]
        {
            out.push_str(word);
        }
        if dice.below(5) == 0 {
            out.push('\n');
        }
    })
}

const KEYS: [&str; 16] = [
    "id",
    "name",
    "title",
    "type",
    "tags",
    "total",
    "created_at",
    "updated_at",
    "description",
    "url",
    "from",
    "to",
    "count",
    "enabled",
    "full_name",
    "items",
];
const TYPES: [&str; 5] = ["product", "string", "object", "file", "text"];

/// Records of an API, every second one indented.
pub(crate) fn json(bytes: usize) -> String {
    let mut dice = Dice::new(12);
    let mut out = String::from("[\n");
    while out.len() < bytes {
        let (line, gap) = if dice.below(2) == 0 { ("\n    ", "\n  ") } else { ("", "") };
        out.push_str("  {");
        let first = dice.below(KEYS.len());
        for field in 0..3 + dice.below(8) {
            let key = KEYS[(first + field) % KEYS.len()];
            if field > 0 {
                out.push_str(", ");
            }
            out.push_str(line);
            out.push_str(&format!("\"{key}\": "));
            match key {
                "id" | "total" | "count" => out.push_str(&dice.below(1_000_000).to_string()),
                "enabled" => out.push_str(dice.pick(&["true", "false", "null"])),
                "type" => out.push_str(&format!("\"{}\"", dice.pick(&TYPES))),
                "tags" => out.push_str(r#"["red", "to do", "für alle"]"#),
                "items" => out.push_str(r#"[{"n": 1, "w": 0.25}, {"n": 2, "w": -1.5e3}]"#),
                "url" => out.push_str(&format!("\"https://example.com/a/{}?q=%20x\"", dice.below(9999))),
                "created_at" | "updated_at" => out.push_str("\"2024-05-17T08:13:09Z\""),
                _ => {
                    let text = dice.pick(&OBJECTS).replace('"', "\\\"");
                    out.push_str(&format!("\"{} {} {text}\"", dice.pick(&SUBJECTS), dice.pick(&VERBS)));
                }
            }
        }
        out.push_str(gap);
        out.push_str("},\n");
    }
    out.push_str("  null\n]\n");
    out
}

/// Pages with attributes, a script, a style sheet, comments and entities.
pub(crate) fn html(bytes: usize) -> String {
    let mut dice = Dice::new(13);
    let mut out = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>A page</title>\n\
        <link rel=\"stylesheet\" href=\"/s/main.css?v=3\"><style>body > p { margin: 0 auto } .a[hidden] { color: #fa0 }</style>\n\
        <script>if (a < b && c[0]) { f(\"x\", '</i>'); }</script></head>\n<body class=\"page\">\n",
    );
    while out.len() < bytes {
        let (subject, verb, object) = (dice.pick(&SUBJECTS), dice.pick(&VERBS), dice.pick(&OBJECTS));
        let object = object.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        let number = dice.below(9999);
        out.push_str(&match dice.below(9) {
            0 => format!("<div class=\"row row-{number}\" id=\"r{number}\" data-id=\"{number}\">\n  <p>{subject} {verb} <b>{object}</b>.</p>\n</div>\n"),
            1 => format!("<ul><li><a href=\"/item/{number}\" title=\"{subject}\">{verb}</a></li><li>{object}</li></ul>\n"),
            2 => format!("<table><thead><tr><th>Name</th><th>Total</th></tr></thead><tbody><tr><td>{subject}</td><td>{number}</td></tr></tbody></table>\n"),
            3 => format!("<section><header><h2>{subject} {verb}</h2></header><p>{object}&nbsp;&ndash; {number}</p></section>\n"),
            4 => format!("<img src=\"/i/{number}.png\" alt=\"{subject}\" width=\"20\"><br/><span class='x'>{object}</span>\n"),
            5 => format!("<!-- {subject} --><form action=\"/s\" method=\"post\"><input type=\"text\" name=\"q\" value=\"{number}\"><button type=\"submit\">Go</button></form>\n"),
            6 => format!("<p><em>{subject}</em> {verb} <code>{object}</code>, <strong>{number}</strong> times &mdash; &#8220;so&#8221;</p>\n"),
            7 => format!("<script type=\"text/javascript\">var a{number} = [1, 2, \"t\"]; for (let i = 0; i<a.length; i++) {{ s += a[i] }}</script>\n"),
            _ => format!("<svg viewBox=\"0 0 24 24\"><path d=\"M{number} 3l2 2z\"/></svg><article><h3>{verb}</h3>{subject} {verb} {object}.</article>\n"),
        });
    }
    out.push_str("</body>\n</html>\n");
    out
}

const CODE: [&str; 10] = [
    "/// Reads a frame.\npub(crate) fn read_frame<R: Read>(input: &mut R, limit: usize) -> Result<Option<Vec<u8>>, Error> {\n",
    "    let mut table = [0u8; 256];\n    for (index, slot) in table.iter_mut().enumerate() {\n        *slot = (index % 7) as u8;\n    }\n",
    "    if input.len() < 4 || flags & 0x80 != 0 {\n        return Err(Error::Short { wanted: 4, got: input.len() });\n    }\n",
    "    println!(\"{} of {}: {:?}\\n\", done, total, names[at]);\n",
    "#[derive(Debug, Clone)]\nstruct Entry<'a, T> {\n    key: &'a str,\n    value: Option<T>,\n}\n\n",
    "def total(self, items: list[int]) -> dict[str, int]:\n    \"\"\"Sums up.\"\"\"\n    return {k: v for k, v in items if v <= 3}\n\n",
    "  const found = await fetch(`/api/${id}`, { headers: { accept: 'text/html' } });\n",
    "\tif err := run(ctx, &args[0]); err != nil {\n\t\treturn fmt.Errorf(\"run %q: %w\", name, err)\n\t}\n",
    "static inline int max(int a, int b) { return a > b ? a : b; }\n#include <stdio.h>\n",
    "    let text = std::str::from_utf8(&bytes[start..end])?; // \"type\" is checked further down\n}\n\n",
];

/// Source files of several languages.
pub(crate) fn code(bytes: usize) -> String {
    let mut dice = Dice::new(14);
    fill(bytes, |out| out.push_str(dice.pick(&CODE)))
}

const CYRILLIC: [&str; 6] = [
    "Съешь ещё этих мягких французских булок, да выпей чаю. ",
    "Комиссия рассмотрела три предложения и отложила решение до весны.\n",
    "«Это не ошибка», — сказал он и закрыл окно. ",
    "В 2023 году расходы выросли на 12%, а доходы снизились. ",
    "Система работает без сбоев; пользователь ничего не заметил. ",
    "Река разлилась, и мост пришлось закрыть на две недели.\n\n",
];
const CHINESE: [&str; 6] = [
    "我们使用这个工具来处理文本，然后把结果返回给用户。",
    "委员会讨论了三项建议，并将决定推迟到春天。\n",
    "“这不是错误，”他说着关上了窗户。",
    "2023年支出增长了12%，而收入有所下降。",
    "系统运行正常；用户没有注意到任何变化。",
    "河水上涨，桥梁不得不关闭两周！\n\n",
];

/// Russian.
pub(crate) fn cyrillic(bytes: usize) -> String {
    let mut dice = Dice::new(15);
    fill(bytes, |out| out.push_str(dice.pick(&CYRILLIC)))
}

/// Chinese.
pub(crate) fn chinese(bytes: usize) -> String {
    let mut dice = Dice::new(16);
    fill(bytes, |out| out.push_str(dice.pick(&CHINESE)))
}

const TOKENS: [&str; 8] = [
    "<|im_start|>",
    "<tool_call>",
    "[TOOL_CALLS]",
    "</think>",
    "[/INST]",
    "<invoke name=\"x\">",
    "<start_of_turn>",
    "</s>",
];

/// Prose with a control token every so many bytes.
pub(crate) fn with_hits(bytes: usize, every: usize) -> String {
    let mut dice = Dice::new(17);
    let text = prose(bytes);
    let mut out = String::new();
    for piece in text.as_bytes().chunks(every) {
        let token = dice.pick(&TOKENS);
        out.push_str(&String::from_utf8_lossy(&piece[..piece.len().saturating_sub(token.len())]));
        out.push_str(token);
    }
    out
}

/// Whole pieces up to about so many bytes, ending like a text and not in the middle of a delimiter.
fn fill(bytes: usize, mut piece: impl FnMut(&mut String)) -> String {
    let mut out = String::with_capacity(bytes + 256);
    while out.len() < bytes {
        piece(&mut out);
    }
    out.push_str("\n.\n");
    out
}
