//! Files of other users, truncated files, and paths that are not regular files.
#![cfg(not(loom))]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use millstream_slab::{Error, Inspection, RawSlab, Slab};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn open_trusting(path: &Path) -> Result<RawSlab, Error> {
    RawSlab::open_file(fs::File::options().read(true).write(true).open(path).unwrap())
}

#[test]
fn a_file_that_others_may_write_to_is_opened_only_with_explicit_trust() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let options = Slab::<u64>::options(50);
    drop(options.create(&path).unwrap());
    for mode in [0o620, 0o602, 0o666] {
        set_mode(&path, mode);
        let refused = [RawSlab::open(&path).map(drop), options.open_or_create(&path).map(drop)];
        for error in refused.map(Result::unwrap_err) {
            assert!(matches!(error, Error::Untrusted { mode: found, .. } if found == mode), "{error}");
        }
        // SAFETY: no other process uses the slab.
        assert!(matches!(unsafe { RawSlab::open_alone(&path) }, Err(Error::Untrusted { .. })));
        open_trusting(&path).unwrap();
        options.clone().mode(mode).open_or_create(&path).unwrap();
        options.clone().trust_others().open_or_create(&path).unwrap();
    }
    // Permission to read is harmless.
    set_mode(&path, 0o644);
    RawSlab::open(&path).unwrap();
}

#[test]
fn a_file_of_another_user_is_opened_only_with_explicit_trust() {
    // SAFETY: the call has no arguments and always succeeds.
    if unsafe { libc::geteuid() } != 0 {
        return eprintln!("skipped: only root can give files away");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let options = Slab::<u64>::options(50).mode(0o660);
    drop(options.create(&path).unwrap());
    std::os::unix::fs::chown(&path, Some(4711), None).unwrap();
    for error in [RawSlab::open(&path).map(drop), options.open_or_create(&path).map(drop)].map(Result::unwrap_err) {
        assert!(matches!(error, Error::Untrusted { owner: 4711, user: 0, .. }), "{error}");
        assert!(error.to_string().contains("belongs to user 4711 and has mode 6"), "{error}");
    }
    open_trusting(&path).unwrap();
    options.clone().trust_others().open_or_create(&path).unwrap();
    assert!(Inspection::of(&path).unwrap().report().is_sound());
}

#[test]
fn a_memfd_keeps_its_length() {
    let slab = Slab::<u64>::options(50).memfd().unwrap();
    let file = fs::File::from(slab.raw().file().unwrap().try_clone_to_owned().unwrap());
    let bytes = file.metadata().unwrap().len();
    for other in [0, bytes - 1, bytes + 1] {
        assert_eq!(file.set_len(other).unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    }
    // The file can be mapped and used as before.
    Slab::<u64>::open_file(file).unwrap().cache().unwrap().alloc(1).unwrap().publish();
}

#[test]
fn anything_but_a_regular_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: the path is a C string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    for (path, expected) in [(fifo.as_path(), "a FIFO"), (Path::new("/dev/null"), "a device")] {
        let opened = [RawSlab::open(path).map(drop), Inspection::of(path).map(drop)];
        for error in opened.map(Result::unwrap_err) {
            assert!(matches!(error, Error::NotAFile { found } if found == expected), "{error}");
        }
    }
    assert!(matches!(Inspection::of(folder.path()), Err(Error::NotAFile { found: "a folder" })));
}

#[test]
fn an_inspection_survives_the_truncation_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let slab = Slab::<[u64; 512]>::options(50).create(&path).unwrap();
    let handle = slab.cache().unwrap().alloc([7; 512]).unwrap().publish();
    drop(slab);
    let file = fs::File::options().write(true).open(&path).unwrap();
    for length in [20_000, 5000, 100, 0] {
        let whole = fs::read(&path).unwrap();
        let inspection = Inspection::of(&path).unwrap();
        let mut bytes = [0; 4096];
        inspection.read(handle, &mut bytes).unwrap();
        assert_eq!(bytes[..8], 7_u64.to_le_bytes());
        file.set_len(length).unwrap();
        assert!(matches!(inspection.read(handle, &mut bytes), Err(Error::Truncated { found, .. }) if found == length));
        assert!(inspection.report().is_sound());
        assert_eq!(inspection.live().count(), 1);
        assert!(Inspection::of(&path).is_err());
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_mode_with_bits_beyond_permissions_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    for mode in [0o1000, 0o4755, u32::MAX] {
        let error = Slab::<u64>::options(50).mode(mode).create(&path).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { found, most: 0o777, .. } if found == u64::from(mode)), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
