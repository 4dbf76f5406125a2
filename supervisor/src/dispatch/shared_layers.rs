//! The layers and stores that all stacks of a dispatcher share.

use talon_guard::{Guard, GuardSettings, Oversize, Pages, RawStore, Stopwatch, Taint, TaintLayer};
use talon_sanitize::Sanitizer;

use super::executor::EXECUTOR;
use crate::config::{CallPolicy, GuardStores};

/// The layers and stores that all stacks of a dispatcher share.
pub(super) struct SharedLayers {
    pub(super) sanitizer: Sanitizer,
    /// `None` if texts over their limit are cut.
    pub(super) pages: Option<Pages>,
    pub(super) raw: RawStore,
    /// Measures the layers of all stacks.
    pub(super) watch: Stopwatch,
    taint: Option<Taint>,
}

impl SharedLayers {
    pub(super) fn new(stores: &GuardStores, sanitizer: Sanitizer) -> Self {
        Self {
            pages: stores.pages.map(|settings| Pages::new(settings, sanitizer.clone())),
            raw: RawStore::new(stores.raw_bytes),
            watch: Stopwatch::new(),
            taint: stores.taint.then(Taint::default),
            sanitizer,
        }
    }

    /// Takes over the stores of `before` whose limits did not change. Pages stay as the patterns of their
    /// time neutralized them.
    pub(super) fn reuse(&mut self, before: &Self, old: &GuardStores, new: &GuardStores, same_patterns: bool) {
        self.watch = before.watch.clone();
        if old.pages == new.pages && same_patterns {
            self.pages.clone_from(&before.pages);
        }
        if old.raw_bytes == new.raw_bytes {
            self.raw = before.raw.clone();
        }
        if old.taint == new.taint {
            self.taint.clone_from(&before.taint);
        }
    }

    /// The taint layer, unless it is off.
    pub(super) fn taint_layer(&self) -> Option<TaintLayer> {
        self.taint.clone().map(|taint| TaintLayer::new(taint).executor(EXECUTOR))
    }

    /// The guard's sanitize, truncate and wrap layers.
    pub(super) fn guard(&self, policy: &CallPolicy, oversize: Oversize) -> Guard {
        let settings = GuardSettings {
            envelope: policy.envelope,
            max_response_bytes: policy.max_response_bytes,
            max_structured_bytes: policy.max_structured_bytes,
            shortens_structured: true,
            media: policy.media.clone(),
            oversize,
            executor: EXECUTOR,
            ..GuardSettings::default()
        };
        Guard::with_sanitizer(self.sanitizer.clone(), settings)
    }
}
