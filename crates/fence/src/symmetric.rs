//! The back-end that works everywhere: a full fence on both sides.

use std::sync::atomic::{Ordering, fence};

use crate::backend::Backend;

pub(crate) const BACKEND: Backend = Backend {
    name: "symmetric",
    about: "a full fence on both sides",
    asymmetric: false,
    prompt: true,
    prepare: || Ok(()),
    heavy: || fence(Ordering::SeqCst),
};
