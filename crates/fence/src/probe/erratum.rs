//! AMD's erratum 147: early Opterons may let a load that follows a locked instruction read a stale value.

/// Returns whether the processor has the erratum. If so, a lock needs a load fence after the locked instruction that acquires it.
///
/// Executes `cpuid`, which takes a hundred cycles or more, and thousands in a virtual machine. Callers should cache the result.
///
/// ```
/// if millstream_fence::probe::has_erratum_147() {
///     println!("locks take a load fence here");
/// }
/// ```
#[must_use]
pub fn has_erratum_147() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::cpuid::cpuid;
        let vendor = cpuid(0);
        is_affected([vendor.ebx, vendor.edx, vendor.ecx], cpuid(1).eax)
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Returns whether this is an AMD processor of family 15 (0Fh), models 32 to 63.
#[cfg(any(target_arch = "x86_64", test))]
fn is_affected(vendor: [u32; 3], version: u32) -> bool {
    const AMD: [u32; 3] = [u32::from_le_bytes(*b"Auth"), u32::from_le_bytes(*b"enti"), u32::from_le_bytes(*b"cAMD")];
    let family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
    let model = (version >> 4 & 0xf) | (version >> 12 & 0xf0);
    vendor == AMD && family == 15 && (32..64).contains(&model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opterons_of_revision_e_have_it_and_others_do_not() {
        let name =
            |text: &[u8; 12]| std::array::from_fn(|i| u32::from_le_bytes(text[4 * i..4 * i + 4].try_into().unwrap()));
        let amd = name(b"AuthenticAMD");
        assert!(is_affected(amd, 0x0002_0f10), "Opteron 265, model 33");
        assert!(
            !is_affected(amd, 0x0001_0f5a) && !is_affected(amd, 0x0004_0f12),
            "neither an earlier nor a later model has it"
        );
        assert!(!is_affected(amd, 0x00a2_0f10), "Zen 3");
        assert!(!is_affected(name(b"GenuineIntel"), 0x0002_0f10));
    }
}
