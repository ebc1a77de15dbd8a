//! The version of the header, and the version of the library with which a program runs.

/// The first number of the header's version.
pub const MILLSTREAM_VERSION_MAJOR: u32 = 0;
/// The second number of the header's version.
pub const MILLSTREAM_VERSION_MINOR: u32 = 1;
/// The third number of the header's version.
pub const MILLSTREAM_VERSION_PATCH: u32 = 0;
/// The header's version as a single number, for comparisons: 1.2.3 is 1002003.
pub const MILLSTREAM_VERSION: u32 = 1000;

const _: () = assert!(
    MILLSTREAM_VERSION
        == 1_000_000 * MILLSTREAM_VERSION_MAJOR + 1000 * MILLSTREAM_VERSION_MINOR + MILLSTREAM_VERSION_PATCH
);

/// Returns the version of the library in the form of MILLSTREAM_VERSION, which is the version of the header with which
/// the program was compiled. Before 1.0, the second numbers of both versions must be equal; from 1.0 on, the first
/// numbers.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_version() -> u32 {
    MILLSTREAM_VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_package() {
        let package = concat!(
            env!("CARGO_PKG_VERSION_MAJOR"),
            ".",
            env!("CARGO_PKG_VERSION_MINOR"),
            ".",
            env!("CARGO_PKG_VERSION_PATCH")
        );
        let header = [MILLSTREAM_VERSION_MAJOR, MILLSTREAM_VERSION_MINOR, MILLSTREAM_VERSION_PATCH];
        assert_eq!(header.map(|number| number.to_string()).join("."), package);
    }
}
