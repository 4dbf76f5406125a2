//! Pages of long results.

use std::fmt;

use crate::error::Error;
use crate::limits::{DEFAULT_PAGE_ITEMS, MAX_PAGE_BYTES, MAX_PAGE_ITEMS, MAX_SEARCH_DEPTH};

/// A request for one page.
#[derive(Debug, Clone, Default)]
pub struct PageRequest {
    token: Option<PageToken>,
    size: u32,
}

impl PageRequest {
    /// The first page, of `size` items; 0 takes the default.
    #[must_use]
    pub fn first(size: u32) -> Self {
        Self { token: None, size }
    }

    /// The page after the one with this token.
    #[must_use]
    pub fn after(token: PageToken, size: u32) -> Self {
        Self { token: Some(token), size }
    }

    /// A page of a session's messages in the order of writing ([`View::All`](crate::View::All)), after the one
    /// with this sequence number.
    #[must_use]
    pub fn after_message(sequence: u64, size: u32) -> Self {
        // As `message_token` has it; the position does not matter in that order.
        Self::after(PageToken(format!("{sequence},{sequence}").into_bytes()), size)
    }

    /// The number of items, between 1 and the maximum.
    #[must_use]
    pub fn size(&self) -> usize {
        let size = if self.size == 0 { DEFAULT_PAGE_ITEMS } else { self.size.min(MAX_PAGE_ITEMS) };
        size as usize
    }

    /// One more than the page size: if that many rows come, there is a next page.
    pub(crate) fn fetch_limit(&self) -> i64 {
        i64::try_from(self.size() + 1).unwrap_or(i64::MAX)
    }

    /// The last item of the previous page, as bytes.
    #[must_use]
    pub fn last(&self) -> Option<&[u8]> {
        self.token.as_ref().map(|token| token.0.as_slice())
    }

    /// The same as a text.
    pub(crate) fn last_text(&self) -> Result<Option<&str>, Error> {
        let Some(last) = self.last() else { return Ok(None) };
        let text = std::str::from_utf8(last).ok().filter(|text| !text.chars().any(char::is_control));
        text.map(Some).ok_or_else(PageToken::invalid)
    }

    /// The same as comma-separated numbers.
    pub(crate) fn last_numbers<const N: usize>(&self) -> Result<Option<[i64; N]>, Error> {
        let Some(text) = self.last_text()? else { return Ok(None) };
        let numbers = text.split(',').map(str::parse).collect::<Result<Vec<i64>, _>>();
        let numbers = numbers.map_err(|_| PageToken::invalid())?;
        numbers.try_into().map(Some).map_err(|_| PageToken::invalid())
    }

    /// How many results of a ranked search come before this page.
    pub(crate) fn offset(&self) -> Result<i64, Error> {
        let skipped = self.last_numbers::<1>()?.map_or(0, |[skipped]| skipped);
        if (0..=i64::from(MAX_SEARCH_DEPTH)).contains(&skipped) {
            Ok(skipped)
        } else {
            Err(PageToken::invalid())
        }
    }
}

/// Where the next page begins. Opaque to its holder; its text form may be stored and sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageToken(Vec<u8>);

impl PageToken {
    /// Parses the text of a token.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a text that was never a token.
    pub fn parse(text: &str) -> Result<Self, Error> {
        hex::decode(text).map(Self).map_err(|_| Self::invalid())
    }

    pub(crate) fn invalid() -> Error {
        Error::invalid("a page token", "must be one that an earlier page of the same request returned")
    }
}

impl fmt::Display for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

/// One page of a long result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// The token of the next page; `None` after the last.
    pub next: Option<PageToken>,
}

/// Builds a page until the number of items or their total size is reached.
#[derive(Debug)]
pub(crate) struct PageBuilder<T> {
    items: Vec<T>,
    capacity: usize,
    weight: usize,
    more: bool,
}

impl<T> PageBuilder<T> {
    pub(crate) fn new(request: &PageRequest) -> Self {
        Self { items: Vec::new(), capacity: request.size(), weight: 0, more: false }
    }

    /// Adds an item of so many bytes; returns whether the page wants more. A page has at least one item, so
    /// that paging always advances.
    pub(crate) fn push(&mut self, item: T, weight: usize) -> bool {
        self.weight += weight;
        self.more =
            self.items.len() >= self.capacity || (self.weight > MAX_PAGE_BYTES && !self.items.is_empty());
        if !self.more {
            self.items.push(item);
        }
        !self.more
    }

    /// The page, with a token that continues after its last item.
    pub(crate) fn finish(self, token: impl FnOnce(&T) -> Vec<u8>) -> Page<T> {
        let next = self.items.last().filter(|_| self.more).map(token).map(PageToken);
        Page { items: self.items, next }
    }

    /// The page of a ranked search, whose next page begins by its number.
    pub(crate) fn finish_ranked(self, request: &PageRequest) -> Result<Page<T>, Error> {
        let reached = request.offset()? + i64::try_from(self.items.len()).unwrap_or(i64::MAX);
        let next = self.more && reached < i64::from(MAX_SEARCH_DEPTH);
        Ok(Page { items: self.items, next: next.then(|| PageToken(reached.to_string().into_bytes())) })
    }
}
