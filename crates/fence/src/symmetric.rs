//! The back-end that works everywhere: a full fence on both sides.

use std::sync::atomic::{Ordering, fence};

use crate::backend::{Backend, Tickets};

pub(crate) const BACKEND: Backend = Backend {
    name: "symmetric",
    about: "a full fence on both sides",
    asymmetric: false,
    tickets: Tickets::AtOnce,
    prepare: || Ok(()),
    heavy: || {
        fence(Ordering::SeqCst);
        Ok(())
    },
};
