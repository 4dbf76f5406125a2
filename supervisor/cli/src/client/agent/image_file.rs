//! Images that go with a question.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use imagesize::ImageType;
use talon_proto::agent::Media;

use crate::failure::Failure;
use crate::input::{InputError, InputSource};

/// The largest image that is sent: what the agent takes at most (`agent.media.image_bytes`), whatever this one's
/// configuration says.
const MAX_IMAGE_BYTES: u64 = 8 << 20;
/// How many of a file's first bytes tell its type.
const HEAD_BYTES: u64 = 64;

/// The image in a file; `None` if by its first bytes it is none that a model can be shown (PNG, JPEG, WebP, GIF).
///
/// A pipe is none, since its first bytes could not be read again.
pub(super) fn read_image(path: &Path) -> Result<Option<Media>, Failure> {
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
    if !is_image(&head) {
        return Ok(None);
    }
    let data = InputSource::File(path).read(MAX_IMAGE_BYTES).map_err(|error| match error {
        InputError::TooLarge { name } => Failure::usage(format!(
            "the image {name} holds more than {MAX_IMAGE_BYTES} bytes; nothing was asked: scale it down, or save it as JPEG"
        )),
        error => Failure::usage(format!("{error}; nothing was asked: name a file that you can read")),
    })?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(Some(Media { data, name }))
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
        assert_eq!(read_image(&pipe).unwrap(), None);
    }

    // Promises: CLI-80
    #[test]
    fn an_image_is_told_by_its_first_bytes_and_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        std::fs::write(&path, b"\x89PNG\r\n\x1a\n and more").unwrap();
        let media = read_image(&path).unwrap().unwrap();
        assert_eq!((media.name.as_str(), media.data.len()), ("a.txt", 17));
        std::fs::write(&path, "# notes.png").unwrap();
        assert_eq!(read_image(&path).unwrap(), None);
        let large = File::create(&path).unwrap();
        large.set_len(100 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&large, b"GIF89a", 0).unwrap();
        assert!(read_image(&path).unwrap_err().to_string().contains("scale it down"));
        assert!(read_image(&directory.path().join("none.png")).is_err());
    }
}
