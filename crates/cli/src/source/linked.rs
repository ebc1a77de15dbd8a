//! The folders that a walk has entered through symbolic links.
//!
//! Where links are followed, a tree of a few folders can have more paths than anything could walk: a chain of twenty folders, each
//! with two links to the next, has a million. So a folder is entered through one link and no more. Every further link to it
//! is a fault, which says where its files are found; there are at most as many faults as links, and as many ways to a folder
//! as it lies deep. Through its own name a folder is always entered.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A folder's device and number.
pub(super) type Identity = (u64, u64);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Linked {
    /// The path through which each was entered.
    entered: HashMap<Identity, Vec<u8>>,
}

impl Linked {
    /// Notes that the link at `path` leads to a folder which is about to be entered.
    ///
    /// # Errors
    /// It has been entered through another link: what is wrong, in words.
    pub(super) fn enter(&mut self, folder: Identity, path: &[u8]) -> Result<(), String> {
        match self.entered.entry(folder) {
            Entry::Vacant(vacant) => {
                vacant.insert(path.to_owned());
                Ok(())
            }
            Entry::Occupied(before) => Err(format!(
                "this symbolic link leads to a folder that the walk has entered through another one, {}; its files are taken \
                 from there",
                String::from_utf8_lossy(before.get())
            )),
        }
    }
}
