//! Limits and defaults of a flow.

/// The default cap on units in flight.
pub const DEFAULT_INFLIGHT: u64 = 256;
/// The default bound on the number of keys of one keyed resource.
pub const DEFAULT_MAX_KEYS: usize = 65_536;
/// The maximum number of workers of a flow, or of one stage.
///
/// By default, a Linux process can have some 32,000 threads: each takes two mappings, its stack and the guard page, and
/// `vm.max_map_count` is 65,530. This limit leaves room for the other threads and mappings of the process.
pub const MAX_WORKERS: usize = 4096;
/// The maximum number of fibers of one stage.
pub const MAX_FIBERS: usize = 1 << 20;
/// The default size of a fiber's stack, in bytes of address space.
pub const DEFAULT_FIBER_STACK: usize = 64 << 10;
/// The sizes that a fiber's stack can have, in bytes.
pub(crate) const FIBER_STACKS: std::ops::RangeInclusive<usize> = 16 << 10..=1 << 30;
/// The default ceiling of workers of a blocking stage without a need that limits how many can run at once.
pub const DEFAULT_BLOCKING_WORKERS: usize = 64;
/// The default ceiling of workers of a blocking stage that needs tokens, objects or permits. Their number already
/// limits how many workers can run at once.
pub const MAX_WORKERS_BY_NEEDS: usize = 1024;
/// The default bound on the number of open groups of a stage that gathers its units.
pub const DEFAULT_MAX_GROUPS: u64 = 1 << 20;
