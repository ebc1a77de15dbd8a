//! The model of a flow with the settings that it has at present.

use std::sync::Arc;

use super::model::{Model, ModelResource};
use crate::engine::settings::Workers;
use crate::engine::threads::shared::Shared;

/// A flow as it was built.
pub(crate) struct Built {
    pub(crate) model: Model,
    /// The bounds of each stage; some of them the engine has chosen by itself.
    pub(crate) workers: Box<[Workers]>,
}

impl Built {
    /// The flow's model with the settings of now.
    pub(super) fn present(&self, shared: &Arc<Shared>) -> Model {
        let mut model = self.model.clone();
        let settings = shared.settings();
        (model.inflight, model.workers) = (settings.inflight, settings.shared_workers);
        model.memory = (settings.memory != u64::MAX).then_some(settings.memory);
        for (stage, (was, is)) in model.stages.iter_mut().zip(self.workers.iter().zip(&settings.workers)) {
            // A ceiling that the engine has chosen is for the replay to choose again.
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
