//! The program that runs on a processor at each event there.

use std::mem::offset_of;
use std::os::fd::RawFd;

use millstream_fence::barrierd::layout::{ADVANCE_NS, TimesCpu, TimesHead};

use super::assembler::Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use super::assembler::{Assembler, Helper, Instruction, Is, Label};
use super::control::{Bell, ENTRY_WORDS};

/// The kind of an event: what is known about its processor when it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The processor runs code of the kernel, so it is not idle.
    Passes,
    /// The processor goes idle or leaves idleness; the first argument of the tracepoint `cpu_idle` says which.
    Idles,
}

/// The state that `cpu_idle` reports when a processor leaves idleness: all ones, in 32 bits.
const LEAVES: i32 = -1;
const WAKE_NOW: i32 = 2;
/// The binary logarithm of an entry's size.
const ENTRY_BITS: u32 = size_of::<TimesCpu>().trailing_zeros();
/// The offset in the control map at which the entries of the processors begin.
const CONTROL_HEAD: usize = ENTRY_WORDS * size_of::<u64>();
const _: () = assert!(size_of::<TimesCpu>() == CONTROL_HEAD && CONTROL_HEAD == 1 << ENTRY_BITS);
/// The position of the state that `cpu_idle` has reported, in bytes below the frame pointer.
const STATE: i16 = 16;

/// The maps that the program uses.
#[derive(Debug)]
pub(super) struct Maps {
    pub(super) times: RawFd,
    pub(super) control: RawFd,
    pub(super) ring: RawFd,
}

/// Returns the program for events of this kind, for `cpus` processors.
///
/// In short, the program does the following on the processor of the event:
///
/// ```text
/// idle = 0
/// now = clock
/// if now - advanced_at > ADVANCE_NS, or virtual_now <= wanted:
///     advanced_at = now;  v = ++virtual_now
/// else  v = virtual_now
/// exchange(time, now);  exchange(virtual_time, v)          each a full barrier
/// if it goes idle:  idle = 1
/// if 0 < wanted < v, and no other processor that is not idle is wanted:  wake the daemon
/// ```
///
/// *Why this order.* All earlier code on this processor comes before the exchanges, so its accesses are visible to a client that
/// sees the new times. All later code on this processor comes after the exchanges. The exchanges come after the loads of
/// `virtual_now` and of the clock, because they write the loaded values. `idle` is cleared before the barriers: if the daemon
/// still sees it set, all later code of this processor comes after the daemon's fence. `idle` is set after the barriers: if the
/// daemon sees it set, all earlier accesses are visible to the daemon.
///
/// *Why no client stays asleep.* The daemon writes `wanted` and the bell, passes a full barrier, and reads the virtual times.
/// This program writes the virtual time, passes a full barrier (the exchange itself), and reads `wanted` and the bell. At least
/// one of the two sees the other's write. For the same reason, if two processors are the last to pass, at least one of them sees
/// the other's virtual time.
pub(super) fn program(kind: Kind, cpus: usize, maps: &Maps) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let out = a.label();
    if kind == Kind::Idles {
        // The tracepoint's arguments are 64 bits each; R1 points to them.
        a.load(R2, R1, 0);
        a.store_in_frame(STATE, R2);
    }
    // R6 will be the time, R7 the processor's entry in the times, R8 the head of the times, and R9 the offset of the entry after
    // the head.
    a.call(Helper::GetSmpProcessorId);
    a.jump_if_value(R0, Is::AtLeast, cpus as i32, out);
    a.copy(R9, R0);
    a.shift_left(R9, ENTRY_BITS);
    a.map_value(R8, maps.times, 0);
    a.copy(R7, R8);
    a.add_register(R7, R9);
    a.add(R7, size_of::<TimesHead>() as i32);
    a.store_value(R7, offset_of!(TimesCpu, idle), 0);
    a.call(Helper::KtimeGetNs);
    a.copy(R6, R0);
    // From here on R9 is the processor's entry of the control map.
    a.map_value(R1, maps.control, CONTROL_HEAD);
    a.add_register(R9, R1);
    virtual_time(&mut a);
    a.copy(R2, R6);
    a.exchange(R7, offset_of!(TimesCpu, time), R2);
    a.copy(R2, R1);
    a.exchange(R7, offset_of!(TimesCpu, virtual_time), R2);
    // From here on R6 is the virtual time.
    a.copy(R6, R1);
    if kind == Kind::Idles {
        let busy = a.label();
        a.load_from_frame(R2, STATE);
        a.shift_left(R2, 32);
        a.set(R1, LEAVES);
        a.shift_left(R1, 32);
        a.jump_if(R2, Is::Equal, R1, busy);
        a.store_value(R7, offset_of!(TimesCpu, idle), 1);
        a.place(busy);
    }
    wake(&mut a, cpus, maps, out);
    a.place(out);
    a.set(R0, 0);
    a.exit();
    a.finish()
}

/// Sets R1 to the virtual time. First advances virtual time if its interval is over at time R6, or if a request waits for an
/// advance.
fn virtual_time(a: &mut Assembler) {
    let (advance, have) = (a.label(), a.label());
    a.load(R1, R8, offset_of!(TimesHead, advanced_at));
    a.copy(R2, R6);
    a.subtract(R2, R1);
    // The comparison is unsigned. If another processor's clock is ahead, the difference wraps to a large number, and virtual time
    // advances as well.
    a.jump_if_value(R2, Is::Above, ADVANCE_NS as i32, advance);
    a.load(R1, R8, offset_of!(TimesHead, virtual_now));
    a.load(R2, R9, 0);
    a.jump_if(R1, Is::Above, R2, have);
    a.place(advance);
    a.store(R8, offset_of!(TimesHead, advanced_at), R6);
    a.set(R1, 1);
    a.fetch_add(R8, offset_of!(TimesHead, virtual_now), R1);
    a.add(R1, 1);
    a.place(have);
}

/// Wakes the daemon if this processor is wanted, and either the bell is `ForEach` or no other processor must still pass.
fn wake(a: &mut Assembler, cpus: usize, maps: &Maps, out: Label) {
    let (each, ring) = (a.label(), a.label());
    a.load(R1, R9, 0);
    a.jump_if_value(R1, Is::Equal, 0, out);
    a.jump_if(R1, Is::AtLeast, R6, out);
    a.map_value(R4, maps.control, 0);
    a.load(R1, R4, 0);
    a.jump_if_value(R1, Is::Equal, Bell::Off as i32, out);
    a.jump_if_value(R1, Is::Equal, Bell::ForEach as i32, each);

    // A loop over all processors. It jumps to `out` at the first processor that has not passed yet although it is wanted, and is
    // not idle. In each iteration, R1 points to the processor's times, R2 points to its control entry, and R3 is its number.
    let (next, passed, last) = (a.label(), a.label(), a.label());
    a.copy(R1, R8);
    a.add(R1, size_of::<TimesHead>() as i32);
    a.copy(R2, R4);
    a.add(R2, CONTROL_HEAD as i32);
    a.set(R3, 0);
    a.place(next);
    a.load(R0, R2, 0);
    a.jump_if_value(R0, Is::Equal, 0, passed);
    a.load(R5, R1, offset_of!(TimesCpu, virtual_time));
    a.jump_if(R5, Is::Above, R0, passed);
    // Idle processors do not count, because the daemon itself checks them.
    a.load(R5, R1, offset_of!(TimesCpu, idle));
    a.jump_if_value(R5, Is::Equal, 0, out);
    a.place(passed);
    a.add(R1, size_of::<TimesCpu>() as i32);
    a.add(R2, size_of::<TimesCpu>() as i32);
    a.add(R3, 1);
    a.jump_if_value(R3, Is::AtLeast, cpus as i32, last);
    a.jump(next);
    a.place(last);
    // If several processors arrive here, only the first to exchange the bell wakes the daemon.
    a.set(R5, Bell::Off as i32);
    a.exchange(R4, 0, R5);
    a.jump_if_value(R5, Is::Above, Bell::Off as i32, ring);
    a.jump(out);

    a.place(each);
    a.set(R5, 0);
    a.exchange(R9, 0, R5);
    a.jump_if_value(R5, Is::Equal, 0, out);

    a.place(ring);
    a.store_in_frame(8, R6);
    a.map(R1, maps.ring);
    a.copy(R2, R10);
    a.add(R2, -8);
    a.set(R3, 8);
    a.set(R4, WAKE_NOW);
    a.call(Helper::RingbufOutput);
}

/// Returns a program that counts the events on each processor. It adds 1 to the word of the processor on which it runs; the words
/// begin at index `first` of an array.
pub(super) fn counter(cpus: usize, words: RawFd, first: usize) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let out = a.label();
    a.call(Helper::GetSmpProcessorId);
    a.jump_if_value(R0, Is::AtLeast, cpus as i32, out);
    a.shift_left(R0, size_of::<u64>().trailing_zeros());
    a.map_value(R1, words, first * size_of::<u64>());
    a.add_register(R1, R0);
    a.set(R2, 1);
    a.fetch_add(R1, 0, R2);
    a.place(out);
    a.set(R0, 0);
    a.exit();
    a.finish()
}
