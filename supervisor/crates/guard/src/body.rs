//! One text of an answer: what the plugin wrote, and our own notices where a size limit left something out.

use talon_sanitize::{Raw, Sanitized, Sanitizer};

/// A piece of a text that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// The plugin's words.
    Text(Sanitized),
    /// Ours. On one line, and no control syntax.
    Notice(String),
}

/// A text that is fit to be shown, and that still knows which words in it are not the plugin's: an envelope that quotes
/// leaves those outside of the quoting, where nothing of a plugin can stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Body {
    whole: Sanitized,
    /// Empty for a text that was not cut, which is the rule: then all of it is the plugin's.
    parts: Vec<Part>,
}

impl Body {
    /// A text that is the plugin's throughout.
    pub(crate) fn uncut(whole: Sanitized) -> Self {
        Self { whole, parts: Vec::new() }
    }

    /// A text that is ours throughout: what stands in the place of one that was left out.
    pub(crate) fn ours(notice: Sanitized) -> Self {
        Self { parts: vec![Part::Notice(notice.as_str().to_owned())], whole: notice }
    }

    /// A text of several parts, each on lines of its own.
    pub(crate) fn cut(parts: Vec<Part>) -> Self {
        let texts: Vec<&str> = parts.iter().map(Part::as_str).collect();
        // Without an operator's patterns: the plugin's parts have been through them, and ours are not meant. That the
        // parts are inert together too is the sanitizer's promise; that it looks once more costs little, and only an
        // answer that was cut.
        let whole = Sanitizer::default().sanitize(Raw::from(texts.join("\n")), &mut Default::default());
        Self { whole, parts }
    }

    /// All of it, notices included, for programs.
    pub(crate) fn whole(&self) -> &Sanitized {
        &self.whole
    }

    pub(crate) fn into_whole(self) -> Sanitized {
        self.whole
    }

    /// Whether a notice is part of it.
    pub(crate) fn is_cut(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Its parts; of a text that was not cut there is one.
    pub(crate) fn parts(&self) -> impl Iterator<Item = PartRef<'_>> {
        let uncut = self.parts.is_empty().then_some(PartRef::Text(self.whole.as_str()));
        uncut.into_iter().chain(self.parts.iter().map(|part| match part {
            Part::Text(text) => PartRef::Text(text.as_str()),
            Part::Notice(notice) => PartRef::Notice(notice),
        }))
    }

    /// Bytes of it that the plugin wrote.
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

/// A part to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartRef<'a> {
    /// The plugin's words.
    Text(&'a str),
    /// Ours.
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
        let body = Body::uncut(sanitized("one\ntwo"));
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
        let body = Body::cut(parts);
        assert_eq!(body.whole(), "head\n[truncated: 9 bytes]\ntail");
        assert_eq!((body.plugin_bytes(), body.is_cut()), (8, true));
    }

    #[test]
    fn parts_make_up_no_token_together() {
        let parts = vec![Part::Text(sanitized("x")), Part::Notice("[plugin_output]".to_owned())];
        assert!(!Body::cut(parts).whole().contains("[plugin_output]"));
    }
}
