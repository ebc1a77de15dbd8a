//! A trick that is older than membarrier(2): if a process removes an access right to a page, the kernel must inform every core.
//!
//! Each core that runs this process may have the page's access rights in its translation lookaside buffer (TLB). On most x86
//! processors, no instruction can flush the TLB of another core, so the kernel interrupts every core that runs the process (a
//! *shootdown*) before mprotect(2) returns. The interrupt is the barrier.
//!
//! This is not documented. It is how x86 kernels happen to work, and three cases are known in which there is no interrupt. Other
//! architectures, such as AArch64, broadcast the invalidation, so this back-end is for x86 only. Newer AMD processors can
//! broadcast it as well (`INVLPGB`, used by Linux since 6.15), and under Hyper-V the hypervisor flushes the TLBs. In these last
//! two cases, the back-end refuses to work. The back-end exists for kernels and sandboxes without membarrier(2).

use crate::backend::{Backend, Tickets};

pub(crate) const BACKEND: Backend = Backend {
    name: "mprotect",
    about: "mprotect of a page on the heavy side, which makes the kernel interrupt other cores; nothing on the light side",
    asymmetric: true,
    tickets: Tickets::AtOnce,
    prepare,
    heavy,
};

#[cfg(not(target_arch = "x86_64"))]
fn prepare() -> Result<(), String> {
    Err("works on x86 only".to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn heavy() -> Result<(), String> {
    prepare()
}

#[cfg(target_arch = "x86_64")]
use on_x86::{heavy, prepare};

#[cfg(target_arch = "x86_64")]
mod on_x86 {
    use std::arch::x86_64::CpuidResult;
    use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering, fence};
    use std::{io, ptr};

    use crate::cpuid::cpuid;

    /// The page; null until `prepare` has made it.
    static PAGE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
    /// A lock on the page: the id of the process that is using the page, or 0. A child of fork may inherit a lock that its
    /// parent held, but not the thread that would unlock it. So a caller takes over a lock that has the id of another process.
    static OWNER: AtomicI32 = AtomicI32::new(0);
    const PAGE_BYTES: usize = 4096;

    pub(super) fn prepare() -> Result<(), String> {
        if !PAGE.load(Ordering::Relaxed).is_null() {
            return Ok(());
        }
        if invalidates_by_broadcast() {
            return Err("this processor invalidates other cores' TLBs without an interrupt (INVLPGB)".to_owned());
        }
        if is_hyper_v() {
            return Err("the hypervisor invalidates TLBs without an interrupt (Hyper-V)".to_owned());
        }
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the mapping is new and replaces no other.
        let page = unsafe { libc::mmap(ptr::null_mut(), PAGE_BYTES, rights, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(format!("no page: {}", io::Error::last_os_error()));
        }
        let works = shoot_down(page.cast()).map_err(|error| format!("mprotect: {error}"));
        let published = works.is_ok()
            && PAGE.compare_exchange(ptr::null_mut(), page.cast(), Ordering::Release, Ordering::Relaxed).is_ok();
        if !published {
            // SAFETY: this thread has made the page and has not published it.
            unsafe { libc::munmap(page, PAGE_BYTES) };
        }
        works
    }

    pub(super) fn heavy() -> Result<(), String> {
        // SAFETY: `getpid` has no preconditions.
        let process = unsafe { libc::getpid() };
        while let Err(owner) = OWNER.compare_exchange(0, process, Ordering::Acquire, Ordering::Relaxed) {
            if owner == process {
                std::thread::yield_now();
            } else if OWNER.compare_exchange(owner, process, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                break;
            }
        }
        let outcome = shoot_down(PAGE.load(Ordering::Acquire));
        OWNER.store(0, Ordering::Release);
        outcome.map_err(|error| format!("mprotect: {error}"))
    }

    /// Causes the shootdown. Only one caller at a time may do so: a second caller would find the access right removed already,
    /// and would interrupt no core.
    fn shoot_down(page: *mut u8) -> io::Result<()> {
        fence(Ordering::SeqCst);
        protect(page, libc::PROT_READ | libc::PROT_WRITE)?;
        // The page must be resident, because a page that is not in memory is in no TLB. SAFETY: the page is this crate's own,
        // stays mapped, and has just become writable.
        unsafe { page.write_volatile(1) };
        protect(page, libc::PROT_READ)?;
        fence(Ordering::SeqCst);
        Ok(())
    }

    fn protect(page: *mut u8, rights: libc::c_int) -> io::Result<()> {
        // SAFETY: the page is a mapping of this crate that holds no data.
        let outcome = unsafe { libc::mprotect(page.cast(), PAGE_BYTES, rights) };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns whether the processor has AMD's `INVLPGB`: bit 3 of EBX in leaf 0x8000_0008.
    fn invalidates_by_broadcast() -> bool {
        const LEAF: u32 = 0x8000_0008;
        let CpuidResult { eax: highest, .. } = cpuid(0x8000_0000);
        highest >= LEAF && cpuid(LEAF).ebx & (1 << 3) != 0
    }

    fn is_hyper_v() -> bool {
        let under_a_hypervisor = cpuid(1).ecx & (1 << 31) != 0;
        let CpuidResult { ebx, ecx, edx, .. } = cpuid(0x4000_0000);
        let signature: Vec<u8> = [ebx, ecx, edx].into_iter().flat_map(u32::to_le_bytes).collect();
        under_a_hypervisor && signature == b"Microsoft Hv"
    }
}
