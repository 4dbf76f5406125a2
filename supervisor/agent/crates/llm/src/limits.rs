//! Size limits of answers. Providers are on the internet, so none of them may decide how much memory is used.

/// The bytes of one whole answer on the wire. 32 MiB: a streamed token costs about 300 bytes, so this is
/// 100,000 tokens, more than models answer at once. Beyond it the answer is refused and the connection
/// closed.
pub const MAX_ANSWER_BYTES: usize = 32 << 20;

/// The text of an answer, and separately its thinking. 4 MiB is a million tokens.
pub const MAX_TEXT_BYTES: usize = 4 << 20;

/// One event or line of a stream. 1 MiB: Ollama sends a whole call in one line, so it has to be more than
/// [`MAX_ARGUMENTS_BYTES`].
pub const MAX_EVENT_BYTES: usize = 1 << 20;

/// The name and arguments of one call. 512 KiB holds a file that a model writes; the host takes messages of 4
/// MiB.
pub const MAX_ARGUMENTS_BYTES: usize = 512 << 10;

/// Calls in one answer. 128 is what OpenAI allows in tools; the loop runs far fewer at once.
pub const MAX_CALLS: usize = 128;

/// How much of an error response is read. 64 KiB; the rest is left unread.
pub const MAX_ERROR_BYTES: usize = 64 << 10;

/// How much of a provider's text an error quotes. 300 bytes is two lines of a terminal.
pub const MAX_QUOTED_BYTES: usize = 300;

/// The longest error message. 1 KiB, so that a chain of attempts is still readable.
pub const MAX_MESSAGE_BYTES: usize = 1024;

/// Texts in one request for vectors. OpenAI takes 2,048 of 8,192 tokens each and 300,000 tokens together
/// (<https://developers.openai.com/api/reference/resources/embeddings>). 100 of [`MAX_EMBEDDED_CHARS`] stay
/// below that in any script, and are soon answered by a model on this machine, too.
pub const MAX_EMBEDDED_TEXTS: usize = 100;

/// The characters of a text of which a vector is wanted; what is longer is cut there. 512 is a name and a
/// sentence or two; small models read no more than 512 tokens.
pub const MAX_EMBEDDED_CHARS: usize = 512;

/// Numbers in a vector. OpenAI's longest have 3,072; 8,192 leaves room for larger models. What is longer is
/// refused.
pub const MAX_DIMENSIONS: usize = 8192;
