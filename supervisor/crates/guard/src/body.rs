//! One text of an answer: what the plugin wrote, and the host's notices where a size limit left something
//! out.

use talon_sanitize::{Raw, Sanitized, Sanitizer};

/// A part of a text that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text of the plugin.
    Text(Sanitized),
    /// A notice of the host: one line, without control syntax.
    Notice(String),
}

/// A sanitized text that knows which parts of it are the host's notices: a quoting envelope leaves those
/// outside the quotation, where no text of a plugin can appear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Body {
    whole: Sanitized,
    /// Empty for a text that was not cut, which is the usual case: then all of it is the plugin's.
    parts: Vec<Part>,
}

impl Body {
    /// A text that the plugin wrote entirely.
    pub(crate) fn from_plugin(whole: Sanitized) -> Self {
        Self { whole, parts: Vec::new() }
    }

    /// A text that the host wrote entirely: the notice in place of a text that was left out.
    pub(crate) fn from_notice(notice: Sanitized) -> Self {
        Self { parts: vec![Part::Notice(notice.as_str().to_owned())], whole: notice }
    }

    /// A text of several parts, each on separate lines.
    pub(crate) fn from_parts(parts: Vec<Part>) -> Self {
        let texts: Vec<&str> = parts.iter().map(Part::as_str).collect();
        // Without an operator's patterns: the plugin's parts have been matched already, and the notices need
        // not be. The sanitizer guarantees that the joined parts are neutralized too. The second pass is
        // cheap and affects only answers that were cut.
        let whole = Sanitizer::default().sanitize(Raw::from(texts.join("\n")), &mut Default::default());
        Self { whole, parts }
    }

    /// The text with a notice behind it.
    pub(crate) fn with_notice(self, notice: String) -> Self {
        let mut parts = self.parts;
        if parts.is_empty() && !self.whole.is_empty() {
            parts.push(Part::Text(self.whole));
        }
        parts.push(Part::Notice(notice));
        Self::from_parts(parts)
    }

    /// The whole text, notices included, for programs.
    pub(crate) fn whole(&self) -> &Sanitized {
        &self.whole
    }

    pub(crate) fn into_whole(self) -> Sanitized {
        self.whole
    }

    /// Whether it contains a notice.
    pub(crate) fn is_cut(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Its parts; a text that was not cut has one.
    pub(crate) fn parts(&self) -> impl Iterator<Item = PartRef<'_>> {
        let uncut = self.parts.is_empty().then_some(PartRef::Text(self.whole.as_str()));
        uncut.into_iter().chain(self.parts.iter().map(|part| match part {
            Part::Text(text) => PartRef::Text(text.as_str()),
            Part::Notice(notice) => PartRef::Notice(notice),
        }))
    }

    /// The number of bytes that the plugin wrote.
    pub(crate) fn plugin_bytes(&self) -> usize {
        self.parts().map(|part| if let PartRef::Text(text) = part { text.len() } else { 0 }).sum()
    }
}

impl Part {
    fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text.as_str(),
            Self::Notice(notice) => notice,
        }
    }
}

/// A part, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartRef<'a> {
    /// Text of the plugin.
    Text(&'a str),
    /// A notice of the host.
    Notice(&'a str),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sanitized(text: &str) -> Sanitized {
        Sanitizer::default().sanitize(text, &mut Default::default())
    }

    #[test]
    fn what_was_not_cut_is_the_plugins_throughout() {
        let body = Body::from_plugin(sanitized("one\ntwo"));
        assert_eq!(body.parts().collect::<Vec<_>>(), [PartRef::Text("one\ntwo")]);
        assert_eq!((body.plugin_bytes(), body.is_cut()), (7, false));
    }

    #[test]
    fn a_cut_text_knows_which_words_are_ours() {
        let parts = vec![
            Part::Text(sanitized("head")),
            Part::Notice("[truncated: 9 bytes]".to_owned()),
            Part::Text(sanitized("tail")),
        ];
        let body = Body::from_parts(parts);
        assert_eq!(body.whole(), "head\n[truncated: 9 bytes]\ntail");
        assert_eq!((body.plugin_bytes(), body.is_cut()), (8, true));
    }

    #[test]
    fn parts_make_up_no_token_together() {
        let parts = vec![Part::Text(sanitized("x")), Part::Notice("[plugin_output]".to_owned())];
        assert!(!Body::from_parts(parts).whole().contains("[plugin_output]"));
    }
}
