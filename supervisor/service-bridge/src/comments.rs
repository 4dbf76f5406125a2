//! What authors wrote above methods and fields, if the descriptor has it (`protoc --include_source_info`).

use prost_types::FileDescriptorProto;
use talon_bridge::text::cut;

/// The longest comment that is passed on, in bytes: half of what the supervisor takes as a description.
const MAX_COMMENT_BYTES: usize = 8 << 10;

/// The comment above what has this path in the file; empty, if there is none.
pub(crate) fn of(file: &FileDescriptorProto, path: &[i32]) -> String {
    let all = file.source_code_info.iter().flat_map(|info| &info.location);
    let comment = all
        .filter(|location| location.path == path)
        .find_map(|location| location.leading_comments.as_deref().or(location.trailing_comments.as_deref()));
    let lines = comment.unwrap_or_default().lines().map(str::trim);
    cut(lines.collect::<Vec<_>>().join("\n").trim(), MAX_COMMENT_BYTES)
}
