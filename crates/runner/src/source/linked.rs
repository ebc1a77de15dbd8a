//! The folders that a walk has entered through symbolic links.
//!
//! If links are followed, a tree of a few folders can have too many paths to walk: a chain of twenty folders, each with
//! two links to the next folder, has a million paths. So a folder is entered through at most one link, in addition to
//! its own name. Every further link to the folder is a fault, which names the link through which the folder was
//! entered. So there are at most as many faults as links. Every path to a folder, except one path through a link, is a
//! path to its parent followed by its own name. So the number of paths to a folder is at most one more than its depth
//! below the root.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A folder's device and inode number.
pub(super) type Identity = (u64, u64);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Linked {
    /// The path through which each folder was entered.
    entered: HashMap<Identity, Vec<u8>>,
}

impl Linked {
    /// Notes that a folder is about to be entered through the link at `path`.
    ///
    /// # Errors
    /// The folder was entered through another link before. The error names that link.
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
