//! `walk`: one unit for each regular file below a folder.
//!
//! Files come in the order of their names, folder by folder, so two walks over the same tree give the same units in the
//! same order. The kernel reports the type of an entry together with its name. The size of a file is determined only if
//! the flow reads the file. The size is requested relative to the file's open folder, so the length of the path does
//! not matter. Symbolic links are followed only on request, and a folder is entered through at most one link
//! ([`linked`](super::linked)). Sockets, pipes and devices are not units.
//!
//! A walk that leaves out ignored files uses the `ignore` crate, which applies the rules of `.gitignore` and similar
//! files. Per file, such a walk takes about twice as long as a walk without these rules.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;

use super::except::Except;
use super::left_out::LeftOut;
use super::linked::{Identity, Linked};
use crate::ops::most_growth;
use crate::record::Record;

/// The maximum number of open folders. Files in deeper folders are accessed by their whole path.
const MAX_OPEN: usize = 64;

/// The size of the buffer into which a system call writes names.
const NAMES: usize = 32 << 10;

/// The options of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Whether entries whose names start with a dot are visited.
    pub(super) hidden: bool,
    /// Whether files that `.gitignore` or a similar file excludes are visited.
    pub(super) ignored: bool,
    /// Whether symbolic links are followed.
    pub(super) follow: bool,
    /// Whether the sizes of files are determined. If so, each unit declares the size of its file as part of its weight.
    pub(super) sizes: bool,
    /// Whether units also declare room for payloads that grow when they are compressed.
    pub(super) compresses: bool,
    /// The maximum size of a payload in memory. A larger payload is streamed, and declares only this size.
    pub(super) most_in_memory: u64,
}

/// Checks that a walk from this root can start.
///
/// # Errors
/// The root does not exist or cannot be read, or is neither a folder nor a regular file.
pub(super) fn check(root: &Path) -> io::Result<()> {
    let found = root.metadata()?;
    if found.is_file() {
        // The stage that reads the file finds out whether it can be read.
        return Ok(());
    }
    if !found.is_dir() {
        return Err(io::Error::other("it is neither a folder nor a regular file"));
    }
    rustix::fs::access(root, Access::READ_OK | Access::EXEC_OK)?;
    Ok(())
}

/// Starts a walk. If the root has become unreadable since [`check`], the walk is one record with a fault.
pub(super) fn open(
    root: &Path,
    options: Options,
    except: Except,
    left_out: &Arc<LeftOut>,
) -> Box<dyn Iterator<Item = Record> + Send> {
    try_open(root, options, except, left_out).unwrap_or_else(|error| {
        let record = Record::file(root.as_os_str().as_bytes().to_vec(), 0);
        Box::new(std::iter::once(record.with_fault(format!("cannot walk: {error}"))))
    })
}

fn try_open(
    root: &Path,
    options: Options,
    except: Except,
    left_out: &Arc<LeftOut>,
) -> io::Result<Box<dyn Iterator<Item = Record> + Send>> {
    let found = root.metadata()?;
    if found.is_file() {
        let taken = except.takes_name(root.as_os_str().as_bytes());
        return Ok(Box::new(taken.then(|| single(root, found.len(), options)).into_iter()));
    }
    if options.ignored {
        Ok(Box::new(Walk::open(root, options, except, left_out)?))
    } else {
        let open = if options.follow { None } else { Some(Arc::new(open_root(root)?)) };
        Ok(Box::new(selective(root, open, options, except, left_out)))
    }
}

/// The unit of a walk whose root is a file.
fn single(path: &Path, size: u64, options: Options) -> Record {
    let bytes = path.as_os_str().as_bytes().to_vec();
    let rel_at = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    with_size(Record::file(bytes, rel_at), size, options)
}

/// Files that an earlier walk has found. They are opened relative to the folder in which that walk began.
pub(super) struct Again {
    options: Options,
    /// The roots of the walks. A root that is a file may be a symbolic link.
    named: Vec<PathBuf>,
    /// The folder in which the walk of the last file began, and the folder's path. The next file is usually from the
    /// same walk.
    root: Option<(Vec<u8>, Arc<OwnedFd>)>,
}

impl Again {
    pub(super) fn new(options: Options, named: Vec<PathBuf>) -> Self {
        Self { options, named, root: None }
    }

    /// The unit for the file at `path`, with the file's present size. The part of the path relative to the walk's
    /// folder starts at `rel_at`. A problem with the file is reported later, by the stage that reads it.
    pub(super) fn file(&mut self, path: Vec<u8>, rel_at: usize) -> Record {
        let is_named = || self.named.iter().any(|named| named.as_os_str().as_bytes() == path);
        let follows = self.options.follow || is_named();
        let root = if follows { None } else { self.root(&path[..rel_at]) };
        let mut record = Record::file(path, rel_at);
        if let Some(root) = root {
            record = record.below(&root);
        }
        let found = if follows { record.path().metadata() } else { record.path().symlink_metadata() };
        match found {
            Ok(found) => with_size(record, found.len(), self.options),
            Err(_) => record,
        }
    }

    /// The open folder at `path`, if it can be opened.
    fn root(&mut self, path: &[u8]) -> Option<Arc<OwnedFd>> {
        if self.root.as_ref().is_none_or(|(known, _)| known != path) {
            let opened = open_root(Path::new(OsStr::from_bytes(path))).ok()?;
            self.root = Some((path.to_owned(), Arc::new(opened)));
        }
        self.root.as_ref().map(|(_, root)| Arc::clone(root))
    }
}

fn with_size(mut record: Record, size: u64, options: Options) -> Record {
    if options.sizes {
        record.size = Some(size);
        record.declared = size.min(options.most_in_memory);
        let grows = options.compresses && size <= options.most_in_memory;
        record.headroom = if grows { most_growth(size) } else { 0 };
    }
    record
}

/// Opens the folder in which a walk begins. If it is a link, the link is followed, because the user named it.
fn open_root(root: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// A walk that does not apply ignore files.
struct Walk {
    options: Options,
    except: Except,
    /// The path of the folder on top of the stack, with a slash at its end.
    path: Vec<u8>,
    /// The offset in `path` of the part relative to the root.
    rel_at: usize,
    /// The folder relative to which records open their files; `None` if links are followed.
    root: Option<Arc<OwnedFd>>,
    folders: Vec<Folder>,
    linked: Linked,
    names: Vec<u8>,
    left_out: Arc<LeftOut>,
}

/// A folder whose names are being visited.
struct Folder {
    /// The open folder; `None` if the maximum number of folders is open.
    fd: Option<OwnedFd>,
    /// The device and inode number, by which a link back to this folder is detected; `None` if links are not followed.
    identity: Option<Identity>,
    /// The entries that were not visited yet. The last entry is visited next.
    entries: Vec<Entry>,
    /// The length of `Walk::path` for this folder.
    path_len: usize,
}

struct Entry {
    name: CString,
    kind: FileType,
}

impl Walk {
    fn open(root: &Path, options: Options, except: Except, left_out: &Arc<LeftOut>) -> io::Result<Self> {
        let mut path = root.as_os_str().as_bytes().to_vec();
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        let fd = open_root(root)?;
        let root = if options.follow { None } else { Some(Arc::new(fd.try_clone()?)) };
        let (rel_at, names) = (path.len(), Vec::with_capacity(NAMES));
        let (linked, left_out) = (Linked::default(), Arc::clone(left_out));
        let mut walk = Self { options, except, rel_at, path, root, folders: Vec::new(), linked, names, left_out };
        walk.enter(fd, false)?;
        Ok(walk)
    }

    /// Reads the names in the open folder at `self.path`, and puts the folder on the stack.
    fn enter(&mut self, fd: OwnedFd, is_link: bool) -> io::Result<()> {
        let identity = if self.options.follow {
            let stat = rustix::fs::fstat(&fd)?;
            Some((stat.st_dev, stat.st_ino))
        } else {
            None
        };
        if identity.is_some() && self.folders.iter().any(|folder| folder.identity == identity) {
            return Err(io::Error::other("a symbolic link leads back to a folder that contains it"));
        }
        if let Some(identity) = identity.filter(|_| is_link) {
            let path = self.path.strip_suffix(b"/").unwrap_or(&self.path);
            self.linked.enter(identity, path).map_err(io::Error::other)?;
        }
        let mut entries = Vec::new();
        let mut names = RawDir::new(fd.as_fd(), self.names.spare_capacity_mut());
        while let Some(entry) = names.next() {
            let entry = entry?;
            let name = entry.file_name();
            let first = name.to_bytes().first();
            let is_self_or_parent = matches!(name.to_bytes(), b"." | b"..");
            if is_self_or_parent || (first == Some(&b'.') && !self.options.hidden) {
                continue;
            }
            entries.push(Entry { name: name.to_owned(), kind: entry.file_type() });
        }
        if entries.is_empty() && !self.folders.is_empty() && self.except.takes_all_names() {
            self.left_out.empty_folder();
        }
        entries.sort_unstable_by(|one, other| other.name.cmp(&one.name));
        let fd = (self.folders.len() < MAX_OPEN).then_some(fd);
        self.folders.push(Folder { fd, identity, entries, path_len: self.path.len() });
        Ok(())
    }

    /// Visits the entry that `self.path` ends with. Returns a record if it is a unit.
    fn visit(&mut self, entry: &Entry) -> Result<Option<Record>, String> {
        let mut kind = entry.kind;
        let mut size = None;
        // The type is requested separately if the file system did not report it with the name, or if a link is to be
        // followed.
        if kind == FileType::Unknown || (kind == FileType::Symlink && self.options.follow) {
            let stat = self.stat(entry).map_err(|errno| format!("cannot find out what this is: {errno}"))?;
            kind = FileType::from_raw_mode(stat.st_mode);
            size = Some(stat.st_size);
        }
        if kind != FileType::Directory && !self.except.takes_name(entry.name.to_bytes()) {
            return Ok(None);
        }
        match kind {
            FileType::RegularFile => {
                let mut record = Record::file(self.path.clone(), self.rel_at);
                if let Some(root) = &self.root {
                    record = record.below(root);
                }
                if !self.options.sizes {
                    return Ok(Some(record));
                }
                let size = match size {
                    Some(size) => size,
                    None => self.stat(entry).map_err(|errno| format!("cannot ask for its size: {errno}"))?.st_size,
                };
                Ok(Some(with_size(record, u64::try_from(size).unwrap_or(0), self.options)))
            }
            FileType::Directory => {
                let fd = self.open_folder(entry).map_err(|errno| format!("cannot read the folder: {errno}"))?;
                self.path.push(b'/');
                let is_link = entry.kind == FileType::Symlink;
                self.enter(fd, is_link).map_err(|error| format!("cannot read the folder: {error}"))?;
                Ok(None)
            }
            other => {
                self.left_out.entry(other);
                Ok(None)
            }
        }
    }

    fn stat(&self, entry: &Entry) -> Result<Stat, Errno> {
        let flags = if self.options.follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        match self.folders.last().and_then(|folder| folder.fd.as_ref()) {
            Some(fd) => rustix::fs::statat(fd, &entry.name, flags),
            None => rustix::fs::statat(CWD, self.path.as_slice(), flags),
        }
    }

    fn open_folder(&self, entry: &Entry) -> Result<OwnedFd, Errno> {
        let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        flags.set(OFlags::NOFOLLOW, !self.options.follow);
        match self.folders.last().and_then(|folder| folder.fd.as_ref()) {
            Some(fd) => rustix::fs::openat(fd, &entry.name, flags, Mode::empty()),
            None => rustix::fs::openat(CWD, self.path.as_slice(), flags, Mode::empty()),
        }
    }
}

impl Iterator for Walk {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            let folder = self.folders.last_mut()?;
            let Some(entry) = folder.entries.pop() else {
                self.folders.pop();
                continue;
            };
            self.path.truncate(folder.path_len);
            self.path.extend_from_slice(entry.name.to_bytes());
            if self.except.covers(&self.path[self.rel_at..]) {
                continue;
            }
            match self.visit(&entry) {
                Ok(None) => {}
                Ok(Some(record)) => return Some(record),
                Err(fault) => return Some(Record::file(self.path.clone(), self.rel_at).with_fault(fault)),
            }
        }
    }
}

/// A walk without the files that an ignore file excludes, and without `.git`, which no ignore file lists.
fn selective(
    root: &Path,
    open: Option<Arc<OwnedFd>>,
    options: Options,
    except: Except,
    left_out: &Arc<LeftOut>,
) -> impl Iterator<Item = Record> + Send + use<> {
    let rel_at = root.as_os_str().len() + usize::from(!root.as_os_str().as_bytes().ends_with(b"/"));
    let linked: Arc<Mutex<(Linked, Vec<Record>)>> = Arc::default();
    let entered = Arc::clone(&linked);
    let mut walk = ignore::WalkBuilder::new(root)
        .hidden(!options.hidden)
        .follow_links(options.follow)
        .require_git(false)
        .sort_by_file_name(OsStr::cmp)
        .filter_entry(move |entry| {
            let path = entry.path().as_os_str().as_bytes();
            if entry.file_name() == ".git" || except.covers(path.get(rel_at..).unwrap_or_default()) {
                return false;
            }
            if entry.file_type().is_some_and(|kind| !kind.is_dir()) && !except.takes_name(path) {
                return false;
            }
            let is_linked_folder =
                entry.depth() > 0 && entry.path_is_symlink() && entry.file_type().is_some_and(|kind| kind.is_dir());
            let Some(folder) = is_linked_folder.then(|| entry.path().metadata().ok()).flatten() else { return true };
            let (linked, faults) = &mut *entered.lock().unwrap_or_else(PoisonError::into_inner);
            let Err(fault) = linked.enter((folder.dev(), folder.ino()), path) else { return true };
            faults.push(Record::file(path.to_owned(), rel_at).with_fault(format!("cannot read the folder: {fault}")));
            false
        })
        .build();
    let fault = move || linked.lock().unwrap_or_else(PoisonError::into_inner).1.pop();
    let left_out = Arc::clone(left_out);
    let found = move |found: Result<ignore::DirEntry, ignore::Error>| match found {
        Ok(entry) if entry.file_type().is_some_and(|kind| !kind.is_file() && !kind.is_dir()) => {
            left_out.entry(entry.file_type().map_or(FileType::Unknown, kind_of));
            None
        }
        Ok(entry) => file_of(&entry, open.as_ref(), rel_at, options),
        Err(error) => {
            let path = path_of(&error).unwrap_or_default();
            Some(Record::file(path, 0).with_fault(format!("cannot visit: {error}")))
        }
    };
    // Any step of the walk can add a fault, even the last step, so faults are also checked after the end of the walk.
    std::iter::from_fn(move || fault().map(Some).or_else(|| walk.next().map(&found)).or_else(|| fault().map(Some)))
        .flatten()
}

fn kind_of(kind: std::fs::FileType) -> FileType {
    match kind {
        _ if kind.is_symlink() => FileType::Symlink,
        _ if kind.is_fifo() => FileType::Fifo,
        _ if kind.is_socket() => FileType::Socket,
        _ if kind.is_char_device() || kind.is_block_device() => FileType::CharacterDevice,
        _ => FileType::Unknown,
    }
}

/// The unit of an entry that is a file.
fn file_of(entry: &ignore::DirEntry, open: Option<&Arc<OwnedFd>>, rel_at: usize, options: Options) -> Option<Record> {
    if !entry.file_type().is_some_and(|kind| kind.is_file()) {
        return None;
    }
    let mut record = Record::file(entry.path().as_os_str().as_bytes().to_vec(), rel_at);
    if let Some(root) = open {
        record = record.below(root);
    }
    if !options.sizes {
        return Some(record);
    }
    Some(match entry.metadata() {
        Ok(found) => with_size(record, found.len(), options),
        Err(error) => record.with_fault(format!("cannot ask for its size: {error}")),
    })
}

/// The path to which an error of the `ignore` crate refers.
fn path_of(error: &ignore::Error) -> Option<Vec<u8>> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path.as_os_str().as_bytes().to_vec()),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        ignore::Error::Loop { child, .. } => Some(child.as_os_str().as_bytes().to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::sync::Arc;

    use super::super::left_out::LeftOut;
    use super::{Again, Except, MAX_OPEN, Options, check, open};
    use crate::file::names::Names;
    use crate::file::template::{Field, Fields};
    use crate::record::Record;

    const ALL: Options = Options {
        hidden: true,
        ignored: true,
        follow: false,
        sizes: true,
        compresses: false,
        most_in_memory: u64::MAX,
    };

    fn records(root: &Path, options: Options) -> Vec<Record> {
        open(root, options, Except::default(), &Arc::default()).collect()
    }

    /// The relative paths of units; faults are marked.
    fn rels(root: &Path, options: Options) -> Vec<String> {
        let rel = |record: &Record| String::from_utf8_lossy(&record.field(&Field::Rel).unwrap()).into_owned();
        records(root, options)
            .iter()
            .map(|record| if record.rare.fault.is_some() { format!("!{}", rel(record)) } else { rel(record) })
            .collect()
    }

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in [
            ("b/x.txt", "12"),
            ("b/.hidden", "1"),
            ("a.txt", "123"),
            ("b/c/d", ""),
            (".dot/e", "1234"),
            ("target/f", "1"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    #[test]
    fn every_regular_file_is_a_unit_in_the_order_of_names() {
        let folder = tree();
        symlink("a.txt", folder.path().join("link")).unwrap();
        assert_eq!(rels(folder.path(), ALL), [".dot/e", "a.txt", "b/.hidden", "b/c/d", "b/x.txt", "target/f"]);
        assert_eq!(rels(folder.path(), Options { hidden: false, ..ALL }), ["a.txt", "b/c/d", "b/x.txt", "target/f"]);
    }

    #[test]
    fn only_files_with_a_name_that_matches_are_units_and_all_folders_are_entered() {
        let folder = tree();
        symlink("a.txt", folder.path().join("link.txt")).unwrap();
        symlink("a.txt", folder.path().join("link")).unwrap();
        fs::create_dir(folder.path().join("c.txt")).unwrap();
        for (ignored, follow) in [(true, false), (false, false), (true, true), (false, true)] {
            let left_out: Arc<LeftOut> = Arc::default();
            let named = |root: &Path| {
                let names = vec![Names::pattern("*.txt").unwrap(), Names::pattern("d").unwrap()].into();
                let except = Except::default().with_names(names);
                let walk = open(root, Options { ignored, follow, ..ALL }, except, &left_out);
                walk.map(|record| String::from_utf8(record.text().to_vec()).unwrap()).collect::<Vec<_>>()
            };
            let mut expected = vec!["a.txt", "b/c/d", "b/x.txt"];
            expected.extend(follow.then_some("link.txt"));
            let expected: Vec<String> =
                expected.iter().map(|rel| folder.path().join(rel).to_str().unwrap().to_owned()).collect();
            assert_eq!(named(folder.path()), expected, "ignored = {ignored}, follow = {follow}");
            let told = left_out.told();
            assert_eq!(told.as_deref(), (!follow).then_some("1 symbolic link"), "only `link.txt` has such a name");
            assert_eq!(named(&folder.path().join("b/x.txt")).len(), 1);
            assert_eq!(named(&folder.path().join("target/f")), [""; 0], "a root is a file like any other");
        }
    }

    #[test]
    fn paths_start_with_the_root_as_it_was_given() {
        let folder = tree();
        let with_slash = folder.path().join("");
        for root in [folder.path(), with_slash.as_path()] {
            for options in [ALL, Options { ignored: false, ..ALL }] {
                for record in records(root, options) {
                    assert!(record.path().starts_with(folder.path()));
                    assert!(record.path().is_file());
                    assert!(!String::from_utf8_lossy(record.text()).contains("//"));
                }
            }
        }
    }

    #[test]
    fn both_kinds_of_walk_see_the_same_tree() {
        let folder = tree();
        for hidden in [true, false] {
            let options = Options { hidden, ..ALL };
            assert_eq!(rels(folder.path(), options), rels(folder.path(), Options { ignored: false, ..options }));
        }
    }

    #[test]
    fn ignored_files_are_left_out_when_asked_for() {
        let folder = tree();
        fs::write(folder.path().join(".gitignore"), "target\n*.txt\n").unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        fs::write(folder.path().join(".git/config"), "").unwrap();
        let found = rels(folder.path(), Options { ignored: false, ..ALL });
        assert_eq!(found, [".dot/e", ".gitignore", "b/.hidden", "b/c/d"]);
        assert_eq!(rels(folder.path(), ALL).len(), 8);
    }

    #[test]
    fn sizes_are_declared_when_the_flow_reads() {
        let folder = tree();
        let bytes = |options| records(folder.path(), options).iter().map(Record::bytes).sum::<u64>();
        assert_eq!(bytes(ALL), 11);
        assert_eq!(bytes(Options { ignored: false, ..ALL }), 11);
        assert_eq!(bytes(Options { sizes: false, ..ALL }), 0);
        assert!(bytes(Options { compresses: true, ..ALL }) > 11);
    }

    #[test]
    fn a_root_that_is_a_file_is_one_unit() {
        let folder = tree();
        let found = records(&folder.path().join("b/x.txt"), ALL);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].field(&Field::Rel).unwrap(), &b"x.txt"[..]);
        assert_eq!(found[0].bytes(), 2);
        for root in [&folder.path().join("missing"), Path::new("/dev/null")] {
            assert!(check(root).is_err());
            assert!(records(root, ALL)[0].rare.fault.is_some());
        }
    }

    #[test]
    fn links_are_followed_when_asked_for_and_loops_end() {
        let folder = tree();
        symlink("../b", folder.path().join("b/c/up")).unwrap();
        symlink("..", folder.path().join("b/loop")).unwrap();
        symlink("a.txt", folder.path().join("link")).unwrap();
        symlink("/nowhere/at/all", folder.path().join("nowhere")).unwrap();
        let found = rels(folder.path(), Options { follow: true, ..ALL });
        assert!(found.contains(&"link".to_owned()) && found.contains(&"!nowhere".to_owned()), "{found:?}");
        assert!(found.iter().any(|rel| rel.starts_with("!b/loop")), "{found:?}");
        assert!(found.len() < 20, "{found:?}");
    }

    #[test]
    fn a_chain_of_doubled_links_has_a_fault_for_each_further_link() {
        const DEPTH: usize = 20;
        let folder = tempfile::tempdir().unwrap();
        for depth in 0..=DEPTH {
            let at = folder.path().join(format!("{depth:02}"));
            fs::create_dir(&at).unwrap();
            fs::write(at.join("file"), "").unwrap();
            if depth < DEPTH {
                for link in ["one", "two"] {
                    symlink(format!("../{:02}", depth + 1), at.join(link)).unwrap();
                }
            }
        }
        for ignored in [true, false] {
            let found = records(folder.path(), Options { follow: true, ignored, ..ALL });
            let faults: Vec<_> = found.iter().filter_map(|record| record.rare.fault.as_deref()).collect();
            // Every folder is entered through its own name and through the first link to it. Every other link to a
            // folder is a fault.
            assert_eq!(found.len() - faults.len(), 2 * DEPTH + 1, "ignored = {ignored}");
            assert_eq!(faults.len(), DEPTH + 2 * (DEPTH - 1), "{faults:#?}");
            let told = format!("entered through another one, {}/00/one;", folder.path().display());
            assert!(faults.iter().any(|fault| fault.contains(&told)), "{faults:#?}");
        }
    }

    #[test]
    fn a_folder_with_a_link_to_it_is_walked_by_both_paths() {
        let folder = tree();
        symlink("b", folder.path().join("0")).unwrap();
        for ignored in [true, false] {
            let found = rels(folder.path(), Options { follow: true, ignored, ..ALL });
            for rel in ["0/c/d", "0/x.txt", "b/c/d", "b/x.txt"] {
                assert!(found.contains(&rel.to_owned()), "{rel}: {found:?}");
            }
            assert!(found.iter().all(|rel| !rel.starts_with('!')), "{found:?}");
        }
    }

    #[test]
    fn a_folder_that_is_removed_during_the_walk_ends_its_part_of_the_walk() {
        let folder = tree();
        let mut walk = open(folder.path(), ALL, Except::default(), &Arc::default());
        assert_eq!(walk.next().unwrap().text(), folder.path().join(".dot/e").as_os_str().as_bytes());
        fs::remove_dir_all(folder.path().join("b")).unwrap();
        let left: Vec<Record> = walk.collect();
        let rels: Vec<_> = left.iter().map(|record| record.field(&Field::Rel).unwrap().into_owned()).collect();
        assert_eq!(rels, [&b"a.txt"[..], b"b", b"target/f"]);
        let fault = left[1].rare.fault.as_deref().unwrap();
        assert!(fault.contains("cannot read the folder: No such file"), "{fault}");
    }

    #[test]
    fn names_that_are_not_utf8_are_kept_as_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let name = std::ffi::OsStr::from_bytes(b"\xFF\xFE");
        fs::write(folder.path().join(name), "x").unwrap();
        let found = records(folder.path(), ALL);
        assert_eq!(found[0].field(&Field::Name).unwrap(), &b"\xFF\xFE"[..]);
    }

    #[test]
    fn folders_deeper_than_may_be_open_are_walked_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut deep = folder.path().to_owned();
        for depth in 0..MAX_OPEN * 2 {
            deep.push("d");
            fs::create_dir(&deep).unwrap();
            fs::write(deep.join("f"), vec![0; depth]).unwrap();
        }
        let found = records(folder.path(), ALL);
        assert_eq!(found.len(), MAX_OPEN * 2);
        assert!(found.iter().all(|record| record.rare.fault.is_none() && record.path().is_file()));
        assert_eq!(found.iter().map(Record::bytes).sum::<u64>(), (0..MAX_OPEN as u64 * 2).sum::<u64>());
    }

    #[test]
    fn a_file_that_is_taken_again_through_a_link_has_the_size_of_what_is_read() {
        let folder = tree();
        fs::write(folder.path().join("large"), vec![b'x'; 5000]).unwrap();
        let link = folder.path().join("link");
        symlink("large", &link).unwrap();
        let path = link.as_os_str().as_bytes().to_vec();
        let rel_at = path.len() - "link".len();
        let size = |options, named| Again::new(options, named).file(path.clone(), rel_at).size;
        assert_eq!(size(Options { follow: true, ..ALL }, Vec::new()), Some(5000));
        assert_eq!(size(ALL, vec![link.clone()]), Some(5000), "it was named");
        assert_eq!(size(ALL, Vec::new()), Some("large".len() as u64), "the link itself");
    }

    #[test]
    fn an_excepted_folder_is_never_entered() {
        let folder = tree();
        // A link to a folder that contains the link is a fault as soon as the walk follows it.
        fs::create_dir(folder.path().join("out")).unwrap();
        symlink("..", folder.path().join("out/loop")).unwrap();
        for options in [ALL, Options { ignored: false, ..ALL }] {
            let options = Options { follow: true, ..options };
            let left_out = ["out", "b/x.txt"].map(|rel| folder.path().join(rel));
            let except = Except::below(folder.path(), &left_out).unwrap();
            let found: Vec<Record> = open(folder.path(), options, except, &Arc::default()).collect();
            let rels: Vec<_> = found.iter().map(|record| record.field(&Field::Rel).unwrap().into_owned()).collect();
            let expected = [".dot/e", "a.txt", "b/.hidden", "b/c/d", "target/f"].map(|rel| rel.as_bytes().to_vec());
            assert_eq!(rels, expected);
            assert!(found.iter().all(|record| record.rare.fault.is_none()));
        }
    }

    #[test]
    fn an_unreadable_folder_is_a_fault_and_the_walk_goes_on() {
        let folder = tree();
        let closed = folder.path().join("b/c");
        fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).unwrap();
        // If the user may read every file, as root may, there is no fault.
        let may_read_all = fs::read_dir(&closed).is_ok();
        let found = rels(folder.path(), ALL);
        fs::set_permissions(&closed, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(found.contains(&"!b/c".to_owned()), !may_read_all, "{found:?}");
        assert!(found.contains(&"b/x.txt".to_owned()));
    }
}
