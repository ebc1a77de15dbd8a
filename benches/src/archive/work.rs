//! The work itself: the functions that every competitor calls, in an order of its choice.
//!
//! For each file: read it, hash it with BLAKE3, compress it at zstd level 3, store the result in a content-addressed
//! store under the hash, and add a line to the manifest. An object is written under a temporary name and then renamed;
//! an existing object is not written again.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use blake3::Hash;
use zstd::bulk::Compressor;

const ZSTD_LEVEL: i32 = 3;

/// A file that the walk has found.
#[derive(Debug)]
pub struct Entry {
    /// Path of the file.
    pub path: PathBuf,
    /// Size of the file when the walk saw it.
    pub bytes: u64,
}

/// A file that has been read.
#[derive(Debug)]
pub struct Loaded {
    /// Path of the file.
    pub path: PathBuf,
    /// All its bytes.
    pub data: Vec<u8>,
}

/// A file that has been read and hashed.
#[derive(Debug)]
pub struct Hashed {
    /// The file and its bytes.
    pub file: Loaded,
    /// BLAKE3 of the bytes.
    pub hash: Hash,
}

/// A file ready to be stored.
#[derive(Debug)]
pub struct Packed {
    /// Path of the file.
    pub path: PathBuf,
    /// Size before compression.
    pub bytes: u64,
    /// BLAKE3 of the bytes before compression.
    pub hash: Hash,
    /// The compressed bytes.
    pub data: Vec<u8>,
}

/// Walks `root` on the calling thread and yields every regular file, hidden and ignored ones included.
pub fn walk(root: &Path) -> impl Iterator<Item = io::Result<Entry>> + Send {
    let walk = ignore::WalkBuilder::new(root).standard_filters(false).build();
    walk.filter_map(|found| entry(found).map_err(io::Error::other).transpose())
}

fn entry(found: Result<ignore::DirEntry, ignore::Error>) -> Result<Option<Entry>, ignore::Error> {
    let found = found?;
    if !found.file_type().is_some_and(|kind| kind.is_file()) {
        return Ok(None);
    }
    let bytes = found.metadata()?.len();
    Ok(Some(Entry { path: found.into_path(), bytes }))
}

/// Reads the whole file.
///
/// # Errors
/// Fails as [`fs::read`] does.
pub fn read(entry: Entry) -> io::Result<Loaded> {
    let data = fs::read(&entry.path)?;
    Ok(Loaded { path: entry.path, data })
}

/// Hashes the file's bytes.
#[must_use]
pub fn hash(file: Loaded) -> Hashed {
    let hash = blake3::hash(&file.data);
    Hashed { file, hash }
}

/// Compresses the file's bytes with a compressor that the calling thread reuses.
///
/// # Errors
/// Returns the error that the zstd library reports.
pub fn compress(file: Hashed) -> io::Result<Packed> {
    thread_local! {
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    }
    let Hashed { file: Loaded { path, data }, hash } = file;
    let mut packed = COMPRESSOR.with_borrow_mut(|slot| {
        let compressor = match slot {
            Some(compressor) => compressor,
            None => slot.insert(Compressor::new(ZSTD_LEVEL)?),
        };
        compressor.compress(&data)
    })?;
    // The compressor allocates for the worst case, but a queued unit should occupy only the bytes that it needs.
    packed.shrink_to_fit();
    Ok(Packed { path, bytes: data.len() as u64, hash, data: packed })
}

/// Does all of the work for one file.
///
/// # Errors
/// Returns the first failure of a step.
pub fn archive_one(entry: Entry, store: &Store) -> io::Result<()> {
    store.keep(&compress(hash(read(entry)?))?)
}

/// A content-addressed store: `objects/ab/<hex>.zst` and `manifest.jsonl`.
#[derive(Debug)]
pub struct Store {
    objects: PathBuf,
    /// One cell per folder below `objects`, set once the folder exists.
    folders: [OnceLock<()>; 256],
    temporary: AtomicU64,
    manifest: Mutex<BufWriter<File>>,
}

impl Store {
    /// Makes an empty store in the new folder `root`.
    ///
    /// # Errors
    /// Fails when the folder exists or cannot be made.
    pub fn create(root: &Path) -> io::Result<Self> {
        fs::create_dir(root)?;
        let objects = root.join("objects");
        fs::create_dir(&objects)?;
        let manifest = File::create_new(root.join("manifest.jsonl"))?;
        Ok(Self {
            objects,
            folders: [const { OnceLock::new() }; 256],
            temporary: AtomicU64::new(0),
            manifest: Mutex::new(BufWriter::new(manifest)),
        })
    }

    /// Stores the object unless the store already has it, and adds the file to the manifest.
    ///
    /// # Errors
    /// Returns the first I/O error.
    pub fn keep(&self, file: &Packed) -> io::Result<()> {
        self.put(file)?;
        let line = format!(
            "{{\"path\":{},\"size\":{},\"blake3\":\"{}\"}}\n",
            serde_json::Value::from(file.path.to_string_lossy()),
            file.bytes,
            file.hash.to_hex(),
        );
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }

    fn put(&self, file: &Packed) -> io::Result<()> {
        let hex = file.hash.to_hex();
        let folder = self.objects.join(&hex[..2]);
        let target = folder.join(format!("{hex}.zst"));
        if target.try_exists()? {
            return Ok(());
        }
        self.make_folder(file.hash.as_bytes()[0], &folder)?;
        // Relaxed: the number only needs to be unique.
        let serial = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!(".{serial}.tmp"));
        fs::write(&temporary, &file.data)?;
        fs::rename(&temporary, &target)
    }

    fn make_folder(&self, index: u8, folder: &Path) -> io::Result<()> {
        let made = &self.folders[usize::from(index)];
        if made.get().is_none() {
            match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => made.get_or_init(|| ()),
            };
        }
        Ok(())
    }

    /// Writes out the manifest's last lines.
    ///
    /// # Errors
    /// Fails when they cannot be written.
    pub fn finish(&self) -> io::Result<()> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// The contents of a finished store, which are equal for all competitors that did all of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// Lines of the manifest.
    pub files: u64,
    /// Number of objects.
    pub objects: u64,
    /// Sum of the objects' sizes.
    pub bytes: u64,
}

impl Contents {
    /// Counts the contents of the store at `root`.
    ///
    /// # Errors
    /// Returns the first I/O error, or an error that names a leftover temporary file.
    pub fn of(root: &Path) -> io::Result<Self> {
        let manifest = fs::read(root.join("manifest.jsonl"))?;
        let files = manifest.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let mut contents = Self { files, objects: 0, bytes: 0 };
        for object in walk(&root.join("objects")) {
            let object = object?;
            if object.path.extension().is_none_or(|extension| extension != "zst") {
                return Err(io::Error::other(format!("{} was left behind", object.path.display())));
            }
            contents.objects += 1;
            contents.bytes += object.bytes;
        }
        Ok(contents)
    }
}
