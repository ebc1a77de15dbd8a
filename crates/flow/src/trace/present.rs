//! The model of a flow with its current settings.

use std::sync::Arc;

use super::model::{Model, ModelResource};
use crate::engine::settings::Workers;
use crate::engine::threads::shared::Shared;

/// A flow as it was built.
pub(crate) struct Built {
    pub(crate) model: Model,
    /// The floor and ceiling of each stage. If the program did not set them, the engine has chosen them.
    pub(crate) workers: Box<[Workers]>,
}

impl Built {
    /// The flow's model with its current settings.
    pub(super) fn present(&self, shared: &Arc<Shared>) -> Model {
        let mut model = self.model.clone();
        let settings = shared.settings();
        (model.inflight, model.workers) = (settings.inflight, settings.shared_workers);
        model.memory = (settings.memory != u64::MAX).then_some(settings.memory);
        for (stage, (was, is)) in model.stages.iter_mut().zip(self.workers.iter().zip(&settings.workers)) {
            // A range that the engine has chosen is not stored, so that the replay chooses it again for its own settings.
            if !is.follows_shared && (was.follows_shared || (was.floor, was.ceiling) != (is.floor, is.ceiling)) {
                stage.workers = Some((is.floor, is.ceiling));
            }
        }
        for (resource, spec) in model.resources.iter_mut().zip(shared.lock().resources()) {
            *resource = ModelResource::of(spec);
        }
        model
    }
}
