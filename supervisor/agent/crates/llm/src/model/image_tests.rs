use proptest::prelude::*;

use super::*;

/// The smallest head of a PNG of this size.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend([8, 2, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn the_type_and_the_size_come_from_the_first_bytes() {
    let gif = [b"GIF89a".as_slice(), &[16, 0, 8, 0, 0, 0, 0, 0, 0, 0]].concat();
    let webp = [b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".as_slice(), &[9, 0, 0, 4, 0, 0, 0, 0]].concat();
    let jpeg = [&[0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, 0, 32, 0, 64, 3][..], &[0; 16]].concat();
    for (bytes, kind, size) in [
        (png(640, 480), ImageKind::Png, (640, 480)),
        (gif, ImageKind::Gif, (16, 8)),
        (webp, ImageKind::Webp, (10, 5)),
        (jpeg, ImageKind::Jpeg, (64, 32)),
    ] {
        let image = Image::read(&bytes, "a.txt").expect("an image");
        assert_eq!((image.kind, (image.width, image.height), image.bytes), (kind, size, bytes.len()));
    }
}

#[test]
fn what_is_none_is_refused_with_the_reason() {
    let text = |bytes: &[u8]| Image::read(bytes, "x").expect_err("no image").to_string();
    for none in
        [b"".as_slice(), b"hello", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7", b"BM\0\0"]
    {
        assert!(text(none).contains("PNG, JPEG, WebP or GIF"), "{none:?}");
    }
    assert!(text(&png(640, 480)[..18]).contains("head is broken"));
    assert!(text(&png(0, 480)).contains("head is broken"));
    assert!(text(&png(8_001, 1)).contains("8001 × 1 pixels"));
}

#[test]
fn tokens_grow_with_the_pixels_within_bounds() {
    let tokens = |width, height| Image::read(&png(width, height), "").expect("an image").tokens();
    assert_eq!(tokens(1, 1), MIN_IMAGE_TOKENS);
    assert_eq!(tokens(1000, 1000), 36 * 36);
    assert_eq!(tokens(8000, 8000), MAX_IMAGE_TOKENS);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), head in 0..4_usize) {
        let heads: [&[u8]; 4] = [b"\x89PNG\r\n\x1a\n", &[0xff, 0xd8, 0xff], b"GIF89a", b"RIFF____WEBP"];
        let _read = Image::read(&[heads[head], &bytes].concat(), "");
    }
}
