//! Long answers in pieces.

use std::fmt;

use crate::error::Error;
use crate::limits::{DEFAULT_PAGE_ITEMS, MAX_PAGE_BYTES, MAX_PAGE_ITEMS, MAX_SEARCH_DEPTH};

/// Which piece is wanted.
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

    /// The page that a token of an earlier one leads to.
    #[must_use]
    pub fn after(token: PageToken, size: u32) -> Self {
        Self { token: Some(token), size }
    }

    /// How many items, between 1 and the most there may be.
    pub(crate) fn size(&self) -> usize {
        let size = if self.size == 0 { DEFAULT_PAGE_ITEMS } else { self.size.min(MAX_PAGE_ITEMS) };
        size as usize
    }

    /// One more than fits: if it comes, there is a next page.
    pub(crate) fn probe(&self) -> i64 {
        i64::try_from(self.size() + 1).unwrap_or(i64::MAX)
    }

    /// The last item of the page before, as bytes.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.token.as_ref().map(|token| token.0.as_slice())
    }

    /// The same as a text.
    pub(crate) fn last_text(&self) -> Result<Option<&str>, Error> {
        let Some(last) = self.last() else { return Ok(None) };
        let text = std::str::from_utf8(last).ok().filter(|text| !text.chars().any(char::is_control));
        text.map(Some).ok_or_else(PageToken::foreign)
    }

    /// The same as numbers with commas between them.
    pub(crate) fn last_numbers<const N: usize>(&self) -> Result<Option<[i64; N]>, Error> {
        let Some(text) = self.last_text()? else { return Ok(None) };
        let numbers = text.split(',').map(str::parse).collect::<Result<Vec<i64>, _>>();
        let numbers = numbers.map_err(|_| PageToken::foreign())?;
        numbers.try_into().map(Some).map_err(|_| PageToken::foreign())
    }

    /// How many results of a ranked search come before this page.
    pub(crate) fn skipped(&self) -> Result<i64, Error> {
        let skipped = self.last_numbers::<1>()?.map_or(0, |[skipped]| skipped);
        if (0..=i64::from(MAX_SEARCH_DEPTH)).contains(&skipped) {
            Ok(skipped)
        } else {
            Err(PageToken::foreign())
        }
    }
}

/// Where the next page begins. To its holder it means nothing; as a text it may travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageToken(Vec<u8>);

impl PageToken {
    /// Reads the text of a token.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what was never one.
    pub fn parse(text: &str) -> Result<Self, Error> {
        hex::decode(text).map(Self).map_err(|_| Self::foreign())
    }

    fn foreign() -> Error {
        Error::invalid("a page token", "must be one that an earlier page of the same request returned")
    }
}

impl fmt::Display for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

/// One piece of a long answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What is in this piece.
    pub items: Vec<T>,
    /// Leads to the next piece; `None` after the last.
    pub next: Option<PageToken>,
}

/// A page that is being filled, until it is full by number or by weight.
#[derive(Debug)]
pub(crate) struct Filling<T> {
    items: Vec<T>,
    room: usize,
    weight: usize,
    more: bool,
}

impl<T> Filling<T> {
    pub(crate) fn of(request: &PageRequest) -> Self {
        Self { items: Vec::new(), room: request.size(), weight: 0, more: false }
    }

    /// Adds an item of so many bytes; says whether the page wants more. A page has one item at least, or nobody would
    /// get beyond it.
    pub(crate) fn push(&mut self, item: T, weight: usize) -> bool {
        self.weight += weight;
        self.more = self.items.len() >= self.room || (self.weight > MAX_PAGE_BYTES && !self.items.is_empty());
        if !self.more {
            self.items.push(item);
        }
        !self.more
    }

    /// The page, whose next one begins after its last item.
    pub(crate) fn after(self, token: impl FnOnce(&T) -> Vec<u8>) -> Page<T> {
        let next = self.items.last().filter(|_| self.more).map(token).map(PageToken);
        Page { items: self.items, next }
    }

    /// The page of a ranked search, whose pages go on by number.
    pub(crate) fn ranked(self, request: &PageRequest) -> Result<Page<T>, Error> {
        let reached = request.skipped()? + i64::try_from(self.items.len()).unwrap_or(i64::MAX);
        let next = self.more && reached < i64::from(MAX_SEARCH_DEPTH);
        Ok(Page { items: self.items, next: next.then(|| PageToken(reached.to_string().into_bytes())) })
    }
}
