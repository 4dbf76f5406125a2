//! The error that a tool returns when it cannot do what was requested.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use talon_error_chain::error_chain;

/// What the caller reads when a tool failed for an internal reason.
const INTERNAL_FAILURE_MESSAGE: &str = "the tool failed; the plugin's log says why";
/// What the caller reads when a tool gave no reason. An empty text would count as success on the wire.
const EMPTY_MESSAGE: &str = "the tool refused without giving a reason";

/// An error answer of a tool. It is data for the caller, not a failure of the plugin.
///
/// It holds two texts. The *message* goes to the caller, which is often a model: say what was wrong with the
/// request and what would work. The *cause* goes to the plugin's log and nowhere else, so that paths,
/// addresses and credentials inside errors do not reach the caller.
///
/// - [`ToolError::new`] makes an error with your message.
/// - `?` on any [`std::error::Error`] keeps it as the cause and gives the caller a generic message.
/// - [`OrToolError::or_tool_error`] does both: your message for the caller, the error for the log.
///
/// ```
/// use talon_sdk::{OrToolError, ToolError};
///
/// fn page(number: u32, path: &str) -> Result<String, ToolError> {
///     if number == 0 {
///         return Err(ToolError::new("pages count from 1"));
///     }
///     let text = std::fs::read_to_string(path).or_tool_error("the book is not available now")?;
///     Ok(text)
/// }
///
/// assert_eq!(page(0, "/nowhere").unwrap_err().message(), "pages count from 1");
/// let error = page(1, "/nowhere").unwrap_err();
/// assert_eq!(error.message(), "the book is not available now");
/// assert!(error.cause().is_some());
/// ```
pub struct ToolError {
    message: Cow<'static, str>,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl ToolError {
    /// An error with this message for the caller.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        let message = if message.trim().is_empty() { Cow::Borrowed(EMPTY_MESSAGE) } else { message };
        Self { message, cause: None }
    }

    /// Adds a cause, which goes to the plugin's log.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The text for the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The cause that goes to the plugin's log.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }

    /// The causes as one line for the log, outermost first; `None` when there is none.
    pub(crate) fn chain(&self) -> Option<String> {
        let first: &(dyn Error + 'static) = self.cause.as_deref()?;
        Some(error_chain(first))
    }
}

/// The message for the caller.
impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The message and, for tests and logs, the causes.
impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.message)?;
        match self.chain() {
            Some(chain) => write!(f, " (cause: {chain})"),
            None => Ok(()),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(cause: E) -> Self {
        Self { message: Cow::Borrowed(INTERNAL_FAILURE_MESSAGE), cause: Some(Box::new(cause)) }
    }
}

/// Turns an error or a missing value into a [`ToolError`] with a message for the caller.
pub trait OrToolError<T> {
    /// Turns a failure into a [`ToolError`] with this message; the error itself becomes the cause.
    ///
    /// # Errors
    /// The failure, if there is one.
    fn or_tool_error(self, message: impl Into<Cow<'static, str>>) -> Result<T, ToolError>;

    /// Like [`or_tool_error`](OrToolError::or_tool_error), for a message that is expensive to build.
    ///
    /// # Errors
    /// The failure, if there is one.
    fn or_tool_error_with<M: Into<Cow<'static, str>>>(
        self,
        message: impl FnOnce() -> M,
    ) -> Result<T, ToolError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> OrToolError<T> for Result<T, E> {
    fn or_tool_error(self, message: impl Into<Cow<'static, str>>) -> Result<T, ToolError> {
        self.map_err(|cause| ToolError::new(message).because(cause))
    }

    fn or_tool_error_with<M: Into<Cow<'static, str>>>(
        self,
        message: impl FnOnce() -> M,
    ) -> Result<T, ToolError> {
        self.map_err(|cause| ToolError::new(message()).because(cause))
    }
}

impl<T> OrToolError<T> for Option<T> {
    fn or_tool_error(self, message: impl Into<Cow<'static, str>>) -> Result<T, ToolError> {
        self.ok_or_else(|| ToolError::new(message))
    }

    fn or_tool_error_with<M: Into<Cow<'static, str>>>(
        self,
        message: impl FnOnce() -> M,
    ) -> Result<T, ToolError> {
        self.ok_or_else(|| ToolError::new(message()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_foreign_error_is_logged_and_not_told() {
        let error = ToolError::from(Outer(std::io::Error::other("/secret/path")));
        assert_eq!(error.message(), INTERNAL_FAILURE_MESSAGE);
        assert_eq!(error.chain().expect("has a cause"), "outer: /secret/path");
        assert!(format!("{error:?}").contains("/secret/path"));
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn an_empty_message_never_looks_like_success() {
        assert_eq!(ToolError::new("  ").message(), EMPTY_MESSAGE);
    }

    #[test]
    fn nothing_can_be_told_about_too() {
        let error = None::<u8>.or_tool_error("there is none").expect_err("none");
        assert_eq!(error.message(), "there is none");
        assert!(error.cause().is_none());
        assert!(Some(1).or_tool_error_with(|| "unused").is_ok());
    }
}
