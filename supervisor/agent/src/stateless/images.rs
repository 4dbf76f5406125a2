//! The bytes of images of a turn that nothing is stored of: in memory, and gone with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use talon_agent_settings::MediaKeys;
use talon_llm::model::{Image, ShownImages};

use crate::driver::{ImageSource, ImageStoreError};
use crate::media::ImageWithBytes;

/// The images of one turn: those of its client, and those that tools returned.
#[derive(Debug)]
pub(crate) struct PassingImages {
    limits: MediaKeys,
    bytes: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

impl PassingImages {
    pub(crate) fn new(limits: MediaKeys, images: Vec<ImageWithBytes>) -> Arc<Self> {
        let bytes = images.into_iter().map(|(image, bytes)| (image.digest, bytes)).collect();
        Arc::new(Self { limits, bytes: Mutex::new(bytes) })
    }

    /// The bytes of these images, as far as they are there.
    pub(crate) fn bytes_of<'i>(&self, images: impl Iterator<Item = &'i Image>) -> Vec<ImageWithBytes> {
        let all = self.bytes.lock();
        images.filter_map(|image| Some((image.clone(), Arc::clone(all.get(&image.digest)?)))).collect()
    }
}

#[async_trait]
impl ImageSource for PassingImages {
    fn limits(&self) -> MediaKeys {
        self.limits
    }

    async fn load(&self, _: &str, images: &[&Image]) -> ShownImages {
        let mut shown = ShownImages::default();
        for (image, bytes) in self.bytes_of(images.iter().copied()) {
            shown.add(image.digest, bytes);
        }
        shown
    }

    async fn add(&self, _: &str, images: &[ImageWithBytes]) -> Result<(), ImageStoreError> {
        let mut all = self.bytes.lock();
        let held: usize = all.values().map(|bytes| bytes.len()).sum();
        let more: usize = images.iter().map(|(_, bytes)| bytes.len()).sum();
        let most = u64::from(self.limits.request_bytes).saturating_mul(2);
        if u64::try_from(held.saturating_add(more)).unwrap_or(u64::MAX) > most {
            let why =
                format!("the turn has as many images as twice agent.media.request_bytes ({most} bytes)");
            return Err(ImageStoreError(why));
        }
        all.extend(images.iter().map(|(image, bytes)| (image.digest.clone(), Arc::clone(bytes))));
        Ok(())
    }
}
