//! Images and other files that go with a question.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use imagesize::ImageType;
use talon_proto::agent::Media;

use crate::failure::Failure;
use crate::input::{InputError, InputSource};

/// The largest file that is sent: what the agent takes at most (`agent.media.image_bytes`, `file_bytes`), whatever
/// this one's configuration says.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// How many of a file's first bytes tell whether it is an image.
const HEAD_BYTES: u64 = 64;

/// What is in a file.
#[derive(Debug, PartialEq)]
pub(super) enum FileContent {
    /// UTF-8 without zero bytes.
    Text(String),
    /// An image, or anything else.
    Other(Media),
}

/// Reads a regular file; `None` for any other, such as a pipe, which is read as text.
pub(super) fn read_regular(path: &Path) -> Result<Option<FileContent>, Failure> {
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return Ok(None);
    }
    let mut head = Vec::new();
    let opened = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    if let Err(error) = opened {
        return Err(Failure::usage(format!(
            "cannot read {}: {error}; nothing was asked: name a file that you can read",
            path.display()
        )));
    }
    let data = InputSource::File(path).read(MAX_FILE_BYTES).map_err(|error| match error {
        InputError::TooLarge { name } if is_image(&head) => Failure::usage(format!(
            "the image {name} holds more than {MAX_FILE_BYTES} bytes; nothing was asked: scale it down, or save it as JPEG"
        )),
        InputError::TooLarge { name } => Failure::usage(format!(
            "{name} holds more than {MAX_FILE_BYTES} bytes; nothing was asked: send a part of it, or name it for a tool that \
             reads it"
        )),
        error => Failure::usage(format!("{error}; nothing was asked: name a file that you can read")),
    })?;
    if is_image(&data) || data.contains(&0) {
        return Ok(Some(FileContent::Other(media(path, data))));
    }
    Ok(Some(match String::from_utf8(data) {
        Ok(text) => FileContent::Text(text),
        Err(error) => FileContent::Other(media(path, error.into_bytes())),
    }))
}

/// A file as it is sent.
pub(super) fn media(path: &Path, data: Vec<u8>) -> Media {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Media { data, name }
}

/// Whether the first bytes are those of an image that models can be shown.
fn is_image(head: &[u8]) -> bool {
    matches!(
        imagesize::image_type(head),
        Ok(ImageType::Png | ImageType::Jpeg | ImageType::Webp | ImageType::Gif)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        // Opening it would wait for a writer.
        assert_eq!(read_regular(&pipe).unwrap(), None);
    }

    // Promises: CLI-80
    #[test]
    fn a_file_is_told_by_its_bytes_and_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        let other =
            |data: &[u8]| Some(FileContent::Other(Media { data: data.to_vec(), name: "a.txt".to_owned() }));
        for data in [b"\x89PNG\r\n\x1a\n and more".as_slice(), b"\x7fELF\0", b"caf\xe9"] {
            std::fs::write(&path, data).unwrap();
            assert_eq!(read_regular(&path).unwrap(), other(data));
        }
        std::fs::write(&path, "# notes.png ä").unwrap();
        assert_eq!(read_regular(&path).unwrap(), Some(FileContent::Text("# notes.png ä".to_owned())));
        let large = File::create(&path).unwrap();
        large.set_len(100 << 20).unwrap();
        assert!(read_regular(&path).unwrap_err().to_string().contains("send a part of it"));
        std::os::unix::fs::FileExt::write_all_at(&large, b"GIF89a", 0).unwrap();
        assert!(read_regular(&path).unwrap_err().to_string().contains("scale it down"));
        assert!(read_regular(&directory.path().join("none.png")).is_err());
    }
}
