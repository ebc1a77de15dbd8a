/*
 * Millstream for C.
 *
 * millstream_csm_...: decide with evidence. Confidence sequences, exact tests and stopping rules whose errors are on the
 * safe side. All numbers equal those of the Rust and Python libraries and of the command line, to the last bit.
 *
 * millstream_slab_...: objects of one size in shared memory, for many processes. A kill of any process at any instruction
 * loses no published object; a double free is an error, and so is the use of a freed object's handle.
 *
 * millstream_ring_...: events of one size from one process to another, in order, through memory that both share. Either
 * may be killed at any instruction and restarted; a consumer sees every published event that no consumer has consumed.
 *
 * Conventions
 *   - A function that can fail returns a status: MILLSTREAM_OK, or another MILLSTREAM_... code. It writes through its
 *     `out` pointers only when the status is MILLSTREAM_OK. millstream_error_message() says what went wrong, what was
 *     expected and what was found.
 *   - Pass the result of a ..._new function to the ..._free function of the same name, and a slab that was created or
 *     opened to millstream_slab_free. Freeing NULL is allowed.
 *   - Set the first member struct_bytes, where a struct has one, to the struct's size before each call that reads or
 *     writes the struct: millstream_csm_status status = {.struct_bytes = sizeof status};
 *     Later versions append members to such a struct and change none, so that programs continue to run with a library
 *     that is newer or older than their header. All other structs stay as they are.
 *   - Functions may be called from any thread. All threads may use a millstream_slab concurrently; two threads must not use
 *     any other object concurrently. The ends of a ring, whose functions wait, refuse a second thread: MILLSTREAM_IN_USE.
 *
 * The header needs C99 or C++11. Compile with
 *   cc program.c $(pkg-config --cflags --libs millstream) -Wl,-rpath,$(pkg-config --variable=libdir millstream)
 * or with  cc -static program.c $(pkg-config --static --cflags --libs millstream), or in CMake with
 * find_package(millstream) and the target millstream::millstream or millstream::static.
 */

#ifndef MILLSTREAM_H
#define MILLSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * It is not certain which one is smaller.
 */
#define MILLSTREAM_CSM_NEITHER 0

/**
 * The first is certainly smaller.
 */
#define MILLSTREAM_CSM_FIRST 1

/**
 * The second is certainly smaller.
 */
#define MILLSTREAM_CSM_SECOND 2

/**
 * A statistic is extreme if its absolute value is at least as large as the observed one. This is the default in the
 * other languages.
 */
#define MILLSTREAM_CSM_BOTH 0

/**
 * A statistic is extreme if it is at least as large as the observed one: the first sample has the larger values, as in
 * scipy.
 */
#define MILLSTREAM_CSM_GREATER 1

/**
 * A statistic is extreme if it is at most as large as the observed one.
 */
#define MILLSTREAM_CSM_LESS 2

/**
 * The rate of success is more than `low`.
 */
#define MILLSTREAM_CSM_AT_LEAST 0

/**
 * The rate of success is less than `high`.
 */
#define MILLSTREAM_CSM_AT_MOST 1

/**
 * The rate of success is between `low` and `high`.
 */
#define MILLSTREAM_CSM_WITHIN 2

/**
 * Two thresholds: "holds" is right if the rate is above `low`, and "fails" is right if it is below `high`. In between,
 * both are right, so this claim is always decided.
 */
#define MILLSTREAM_CSM_BETWEEN 3

/**
 * The data do not decide the claim yet.
 */
#define MILLSTREAM_CSM_RUNNING 0

/**
 * The claim holds.
 */
#define MILLSTREAM_CSM_HOLDS 1

/**
 * The claim fails.
 */
#define MILLSTREAM_CSM_FAILS 2

/**
 * The limit was reached without a decision.
 */
#define MILLSTREAM_CSM_AT_LIMIT 3

/**
 * The interval is valid simultaneously at all times, so it may be shown while data come in.
 */
#define MILLSTREAM_CSM_WATCHED 0

/**
 * The interval is valid only if the number of trials was fixed before the first trial (Clopper and Pearson).
 */
#define MILLSTREAM_CSM_FIXED 1

/**
 * The interval contains the rate with probability 1 - `error`, if every rate was equally likely beforehand (Bayes).
 */
#define MILLSTREAM_CSM_CREDIBLE 2

/**
 * The bound is below the quantile.
 */
#define MILLSTREAM_CSM_LOW 0

/**
 * The bound is above the quantile.
 */
#define MILLSTREAM_CSM_HIGH 1

/**
 * The object is shared by all processes.
 */
#define MILLSTREAM_SLAB_PUBLISHED 0

/**
 * The process that had the object died. Any process may claim, change or free the object.
 */
#define MILLSTREAM_SLAB_ORPHAN 1

/**
 * A process has the object exclusively.
 */
#define MILLSTREAM_SLAB_PRIVATE 2

/**
 * The call succeeded.
 */
#define MILLSTREAM_OK 0

/**
 * A number is NaN, or is infinite where infinity has no meaning.
 */
#define MILLSTREAM_NOT_FINITE 1

/**
 * A number is outside the range in which the question makes sense.
 */
#define MILLSTREAM_OUT_OF_RANGE 2

/**
 * A part is larger than its whole, such as more successes than trials.
 */
#define MILLSTREAM_MORE_THAN_ALL 3

/**
 * A count is beyond the range of exact computation.
 */
#define MILLSTREAM_TOO_MANY 4

/**
 * A required pointer is NULL.
 */
#define MILLSTREAM_NULL 5

/**
 * A code or a name is unknown.
 */
#define MILLSTREAM_UNKNOWN 6

/**
 * The question has no answer for another reason; see the message.
 */
#define MILLSTREAM_NO_ANSWER 7

/**
 * The slab has no free object.
 */
#define MILLSTREAM_SLAB_FULL 8

/**
 * The object was freed: a use after free, or a double free.
 */
#define MILLSTREAM_SLAB_STALE 9

/**
 * The handle belongs to another slab, or to none.
 */
#define MILLSTREAM_SLAB_FOREIGN 10

/**
 * Another cache holds the object exclusively at the moment.
 */
#define MILLSTREAM_SLAB_HELD 11

/**
 * The slab is unusable for another reason, such as users in another PID namespace; see the message.
 */
#define MILLSTREAM_SLAB_UNUSABLE 12

/**
 * No further object exists.
 */
#define MILLSTREAM_SLAB_END 13

/**
 * A file already exists at the path of a new slab: open it, or remove it.
 */
#define MILLSTREAM_SLAB_EXISTS 14

/**
 * Another process has kept this process waiting for too long. The message names that process and says whether it is
 * stopped. Try again.
 */
#define MILLSTREAM_SLAB_BUSY 15

/**
 * Living processes use all caches of the slab: try again after a cache was freed, or create the slab with more caches.
 */
#define MILLSTREAM_SLAB_NO_CACHE 16

/**
 * The file is not a slab.
 */
#define MILLSTREAM_SLAB_NOT_A_SLAB 17

/**
 * A newer library than this one wrote the slab.
 */
#define MILLSTREAM_SLAB_VERSION 18

/**
 * The slab is truncated, or has contents that this library never writes.
 */
#define MILLSTREAM_SLAB_DAMAGED 19

/**
 * The operating system reported an error: see millstream_error_number().
 */
#define MILLSTREAM_SLAB_SYSTEM 20

/**
 * The file belongs to another user, or other users may write to it. To trust them, open the file and call
 * millstream_slab_open_fd.
 */
#define MILLSTREAM_SLAB_UNTRUSTED 21

/**
 * Another process, or another object of this process, has this role at the ring.
 */
#define MILLSTREAM_RING_TAKEN 22

/**
 * The ring has events of another size or alignment, or another number of slots.
 */
#define MILLSTREAM_RING_MISMATCH 23

/**
 * The file contains something other than a ring.
 */
#define MILLSTREAM_RING_NOT_A_RING 24

/**
 * The operating system reported an error: see millstream_error_number().
 */
#define MILLSTREAM_RING_SYSTEM 25

/**
 * Another thread is using the object, which only one thread at a time may use.
 */
#define MILLSTREAM_IN_USE 26

/**
 * The maximum size of a message in bytes, including the NUL at its end. Longer messages are cut and end with "...".
 */
#define MILLSTREAM_MESSAGE_BYTES 8192

/**
 * The first number of the header's version.
 */
#define MILLSTREAM_VERSION_MAJOR 0

/**
 * The second number of the header's version.
 */
#define MILLSTREAM_VERSION_MINOR 1

/**
 * The third number of the header's version.
 */
#define MILLSTREAM_VERSION_PATCH 0

/**
 * The header's version as a single number, for comparisons: 1.2.3 is 1002003.
 */
#define MILLSTREAM_VERSION 1000

/**
 * Watches successes and failures and reports when they decide a claim.
 */
typedef struct millstream_csm_driver millstream_csm_driver;

/**
 * Watches bounded numbers and reports when they decide a claim about their mean.
 */
typedef struct millstream_csm_mean_driver millstream_csm_mean_driver;

/**
 * The receiving end of a ring. A ring has one consumer at a time. One thread at a time may use it; a second thread
 * gets MILLSTREAM_IN_USE.
 */
typedef struct millstream_ring_consumer millstream_ring_consumer;

/**
 * The sending end of a ring. A ring has one producer at a time. One thread at a time may use it; a second thread gets
 * MILLSTREAM_IN_USE.
 */
typedef struct millstream_ring_producer millstream_ring_producer;

/**
 * A slab: objects of one size in a file, shared by threads and processes. All threads may use it concurrently.
 */
typedef struct millstream_slab millstream_slab;

/**
 * A thread's access to a slab. Each thread needs its own cache. After a fork, the child must not use it.
 */
typedef struct millstream_slab_cache millstream_slab_cache;

/**
 * Private objects that move to another thread of this process, which frees them or takes them out, with its own cache.
 * If one thread allocates objects and another frees them, a parcel is the cheapest method, in particular if the parcel
 * goes back and forth: one thread fills it and the other clears it. One thread at a time may use a parcel; pass it on
 * through a queue or a join, which order the memory accesses. To send objects to other processes, publish them.
 *
 * As long as a parcel exists, it occupies one of the slab's caches. If its process dies, its objects become orphans.
 * In the child of a fork, its functions return MILLSTREAM_SLAB_UNUSABLE.
 */
typedef struct millstream_slab_parcel millstream_slab_parcel;

/**
 * An interval from `low` to `high`, both included.
 */
typedef struct millstream_csm_interval_result {
    /**
     * The lower end.
     */
    double low;
    /**
     * The upper end.
     */
    double high;
} millstream_csm_interval_result;

/**
 * The result of a comparison.
 */
typedef struct millstream_csm_comparison {
    /**
     * sizeof(millstream_csm_comparison), set by the caller.
     */
    uint64_t struct_bytes;
    /**
     * Number of pairs; for unpaired samples, the size of the smaller one.
     */
    uint64_t pairs;
    /**
     * MILLSTREAM_CSM_FIRST, MILLSTREAM_CSM_SECOND, or MILLSTREAM_CSM_NEITHER if it is not certain which one is
     * smaller.
     */
    int32_t smaller;
    /**
     * Always 0.
     */
    uint32_t reserved;
    /**
     * The estimated ratio, second over first; NaN without data.
     */
    double ratio;
    /**
     * An interval for the true ratio, valid simultaneously at all times.
     */
    struct millstream_csm_interval_result interval;
} millstream_csm_comparison;

/**
 * A claim, and the required certainty of its verdict: `millstream_csm_setup setup = {.struct_bytes = sizeof setup,
 * .claim = MILLSTREAM_CSM_AT_LEAST, .low = 0.9, .error = 1e-6};`
 */
typedef struct millstream_csm_setup {
    /**
     * sizeof(millstream_csm_setup): it shows the library with which members the program was compiled.
     */
    uint64_t struct_bytes;
    /**
     * MILLSTREAM_CSM_AT_LEAST, MILLSTREAM_CSM_AT_MOST, MILLSTREAM_CSM_WITHIN or MILLSTREAM_CSM_BETWEEN.
     */
    int32_t claim;
    /**
     * Must be 0.
     */
    uint32_t reserved;
    /**
     * The lower threshold, if the claim has one.
     */
    double low;
    /**
     * The upper threshold, if the claim has one.
     */
    double high;
    /**
     * The largest acceptable probability that the verdict or the interval is wrong.
     */
    double error;
    /**
     * The method: "mixture", "balanced", "robbins", "centred" or "one-sided"; with two thresholds, also "blend" or
     * "sprt". NULL selects the best method.
     */
    const char *method;
    /**
     * The largest number of trials; 0 means no limit.
     */
    uint64_t limit;
} millstream_csm_setup;

/**
 * The progress of a driver.
 */
typedef struct millstream_csm_status {
    /**
     * sizeof(millstream_csm_status), set by the caller.
     */
    uint64_t struct_bytes;
    /**
     * Number of trials observed.
     */
    uint64_t trials;
    /**
     * Number of successes among them.
     */
    uint64_t successes;
    /**
     * An interval for the rate of success, valid simultaneously at all times.
     */
    struct millstream_csm_interval_result interval;
    /**
     * The level of the test that is closest to a decision.
     */
    double level;
    /**
     * The claim is decided when the level is below this bound.
     */
    double log_eps;
    /**
     * MILLSTREAM_CSM_RUNNING, MILLSTREAM_CSM_HOLDS, MILLSTREAM_CSM_FAILS or MILLSTREAM_CSM_AT_LIMIT.
     */
    int32_t progress;
    /**
     * Always 0.
     */
    uint32_t reserved;
} millstream_csm_status;

/**
 * Ranks in sorted data, counted from 1.
 */
typedef struct millstream_csm_ranks {
    /**
     * The quantile is at least the value of this rank; 0 if there is no bound.
     */
    uint64_t low;
    /**
     * The quantile is at most the value of this rank; one more than the number of values if there is no bound.
     */
    uint64_t high;
} millstream_csm_ranks;

/**
 * A claim about a mean, and the required certainty of its verdict.
 */
typedef struct millstream_csm_mean_setup {
    /**
     * sizeof(millstream_csm_mean_setup): it shows the library with which members the program was compiled.
     */
    uint64_t struct_bytes;
    /**
     * MILLSTREAM_CSM_AT_LEAST, MILLSTREAM_CSM_AT_MOST, MILLSTREAM_CSM_WITHIN or MILLSTREAM_CSM_BETWEEN.
     */
    int32_t claim;
    /**
     * Must be 0.
     */
    uint32_t reserved;
    /**
     * The lower threshold, if the claim has one.
     */
    double low;
    /**
     * The upper threshold, if the claim has one.
     */
    double high;
    /**
     * The smallest possible value.
     */
    double least;
    /**
     * The largest possible value.
     */
    double most;
    /**
     * The largest acceptable probability that the verdict or the interval is wrong.
     */
    double error;
    /**
     * The largest number of values; 0 means no limit.
     */
    uint64_t limit;
} millstream_csm_mean_setup;

/**
 * The progress of a mean driver.
 */
typedef struct millstream_csm_mean_status {
    /**
     * sizeof(millstream_csm_mean_status), set by the caller.
     */
    uint64_t struct_bytes;
    /**
     * Number of values observed.
     */
    uint64_t trials;
    /**
     * Mean of the values; NaN without values.
     */
    double mean;
    /**
     * An interval for the true mean, valid simultaneously at all times.
     */
    struct millstream_csm_interval_result interval;
    /**
     * MILLSTREAM_CSM_RUNNING, MILLSTREAM_CSM_HOLDS, MILLSTREAM_CSM_FAILS or MILLSTREAM_CSM_AT_LIMIT.
     */
    int32_t progress;
    /**
     * Always 0.
     */
    uint32_t reserved;
} millstream_csm_mean_status;

/**
 * Two bounds around an exact value.
 */
typedef struct millstream_csm_bounds {
    /**
     * A number no larger than the exact value.
     */
    double lower;
    /**
     * A number no smaller than the exact value.
     */
    double upper;
} millstream_csm_bounds;

/**
 * The result of millstream_csm_stop.
 */
typedef struct millstream_csm_stop_result {
    /**
     * sizeof(millstream_csm_stop_result), set by the caller.
     */
    uint64_t struct_bytes;
    /**
     * 1 if the true rate differs from the threshold, 0 if that is undecided.
     */
    int32_t stop;
    /**
     * 1 if the rate is above the threshold, -1 if below, 0 if undecided.
     */
    int32_t direction;
    /**
     * Minus the logarithm of the evidence, rounded up. The test stops when it is less than `log_eps`.
     */
    double level;
} millstream_csm_stop_result;

/**
 * A bound on a quantile of a Beta distribution.
 */
typedef struct millstream_csm_beta_result {
    /**
     * The bound.
     */
    double bound;
    /**
     * One minus the bound, to full precision.
     */
    double complement;
} millstream_csm_beta_result;

/**
 * The expected behaviour of a setup at a known rate of success.
 */
typedef struct millstream_csm_power_result {
    /**
     * sizeof(millstream_csm_power_result), set by the caller.
     */
    uint64_t struct_bytes;
    /**
     * The probability of the verdict "holds" within the limit.
     */
    double holds;
    /**
     * The probability of the verdict "fails" within the limit.
     */
    double fails;
    /**
     * The probability that the claim is undecided at the limit.
     */
    double undecided;
    /**
     * The mean number of trials. Undecided runs count with the limit.
     */
    double mean_trials;
} millstream_csm_power_result;

/**
 * The shape of a ring, on which both processes must agree:
 * `millstream_ring_setup setup = {.struct_bytes = sizeof setup, .slots = 1024, .event_bytes = sizeof(struct event)};`
 */
typedef struct millstream_ring_setup {
    /**
     * sizeof(millstream_ring_setup): it shows the library with which members the program was compiled.
     */
    uint64_t struct_bytes;
    /**
     * The maximum number of events in the ring, a power of two.
     */
    uint64_t slots;
    /**
     * The size of an event in bytes, at most 4294967295. Events contain no pointers, so that they mean the same in
     * both processes.
     */
    uint64_t event_bytes;
    /**
     * The alignment of an event (C11's _Alignof): a power of two of at most 128 that divides the size. 0 means the
     * largest of 1, 2, 4 and 8 that divides the size.
     */
    uint64_t event_align;
} millstream_ring_setup;

/**
 * The properties of a new slab: `millstream_slab_options options = {.struct_bytes = sizeof options, .object_bytes =
 * 64, .max_objects = 1000};` These three members are required. Every other member may be 0: the library then chooses a
 * value.
 */
typedef struct millstream_slab_options {
    /**
     * sizeof(millstream_slab_options): it shows the library with which options the program was compiled.
     */
    uint64_t struct_bytes;
    /**
     * The size of an object in bytes, a multiple of 8.
     */
    uint64_t object_bytes;
    /**
     * The largest number of objects.
     */
    uint64_t max_objects;
    /**
     * How many objects are usable at first. The number doubles on demand. 0 means all objects.
     */
    uint64_t capacity;
    /**
     * The largest number of simultaneous caches of all processes, at most 16384. 0 means 64.
     */
    uint64_t caches;
    /**
     * How many objects move together between a cache and the other caches, at most 64. A cache retains up to twice
     * this number. 0 means 64, or less for a small slab.
     */
    uint64_t chain;
    /**
     * A number that distinguishes this program's slabs from those of other programs; see millstream_slab_tag.
     */
    uint64_t tag;
    /**
     * Not 0: requests huge pages from the kernel, which affects only the speed.
     */
    uint32_t huge_pages;
    /**
     * Not 0: reserves space in the file system for every object before it is allocated, so that a full device causes
     * an error and not a SIGBUS. The reservation covers the objects that are usable at first, and those by which the
     * slab grows later.
     */
    uint32_t reserve;
    /**
     * Not 0: records the last owner of each object; see millstream_slab_set_owner. This takes 8 bytes per object.
     */
    uint32_t owners;
    /**
     * The permissions of the file, at most 0777, further limited by the umask. 0: 0600.
     */
    uint32_t mode;
} millstream_slab_options;

/**
 * The name of an object, which is the same in every process. Programs may store handles in objects and send them to
 * other processes.
 */
typedef struct millstream_slab_handle {
    /**
     * The lower half of the name.
     */
    uint64_t low;
    /**
     * The upper half of the name.
     */
    uint64_t high;
} millstream_slab_handle;

/**
 * An object that is private to one cache; only the cache's thread may use it. Publish or free it before you free the
 * cache. The struct may be moved. If it is copied, only one of the copies may be used.
 *
 * If the process dies, the object becomes an orphan with its current bytes.
 */
typedef struct millstream_slab_private {
    /**
     * The object's bytes, as many as every object of the slab has, aligned to 8; NULL after it was published or freed.
     */
    void *bytes;
    /**
     * Words reserved for the library.
     */
    uint64_t own[7];
} millstream_slab_private;

/**
 * An allocated object: the result of millstream_slab_next.
 */
typedef struct millstream_slab_object {
    /**
     * sizeof(millstream_slab_object), set by the caller.
     */
    uint64_t struct_bytes;
    /**
     * The object's handle; for a private object, the handle that it will have.
     */
    struct millstream_slab_handle handle;
    /**
     * MILLSTREAM_SLAB_PUBLISHED, MILLSTREAM_SLAB_ORPHAN or MILLSTREAM_SLAB_PRIVATE.
     */
    int32_t state;
    /**
     * The process that has a private object, or 0 if it is unknown because its cache was freed. 0 for other objects.
     */
    uint32_t pid;
    /**
     * The current or last owner, from millstream_slab_set_owner; 0 without an owner, or in a slab that does not record
     * owners.
     */
    uint64_t owner;
} millstream_slab_object;

/**
 * Counts of a slab's objects by state.
 */
typedef struct millstream_slab_usage_result {
    /**
     * sizeof(millstream_slab_usage_result), set by the caller.
     */
    uint64_t struct_bytes;
    /**
     * The largest number of objects.
     */
    uint64_t max_objects;
    /**
     * Objects that are usable until the slab grows.
     */
    uint64_t capacity;
    /**
     * Objects that were never used.
     */
    uint64_t virgin;
    /**
     * Free objects that any cache can take.
     */
    uint64_t free;
    /**
     * Free objects in the caches.
     */
    uint64_t cached;
    /**
     * Allocated private objects.
     */
    uint64_t held;
    /**
     * Allocated published objects.
     */
    uint64_t published;
    /**
     * Allocated objects whose process died.
     */
    uint64_t orphans;
    /**
     * Objects that have been used the maximum number of times, and are never used again.
     */
    uint64_t retired;
    /**
     * Objects in a state that this library never leaves behind.
     */
    uint64_t damaged;
    /**
     * Number of caches in use.
     */
    uint64_t caches;
} millstream_slab_usage_result;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Compares the medians of two samples of positive numbers by their ratio, second over first.
 *
 * # Safety
 * `first` points to `first_size` numbers and `second` to `second_size`; `out` points to a
 * `millstream_csm_comparison` whose `struct_bytes` is its size.
 */
int32_t millstream_csm_compare(const double *first,
                               uintptr_t first_size,
                               const double *second,
                               uintptr_t second_size,
                               double error,
                               struct millstream_csm_comparison *out);

/**
 * Compares pairs of positive numbers by the median of their ratios, second over first. Examines the pairs in the given
 * order, and stops as soon as it is certain which one is smaller.
 *
 * # Safety
 * `first` and `second` point to `pairs` numbers each; `out` points to a
 * `millstream_csm_comparison` whose `struct_bytes` is its size.
 */
int32_t millstream_csm_compare_pairs(const double *first,
                                     const double *second,
                                     uintptr_t pairs,
                                     double error,
                                     struct millstream_csm_comparison *out);

/**
 * Tests whether the difference between two samples is larger than chance explains.
 *
 * The function repeatedly divides the values of both samples at random into two new samples of the same sizes. It
 * decides the setup's claim about the p-value, which is the rate of divisions whose statistic is at least as extreme
 * as that of the given samples. `statistic` is "mean" or "median", of the first sample minus that of the second.
 * `tail` is MILLSTREAM_CSM_BOTH, MILLSTREAM_CSM_GREATER or MILLSTREAM_CSM_LESS. The null hypothesis is that the second
 * sample is distributed like `shift + scale * first`; with 0 and 1, it is that both have the same distribution. The
 * same seed leads to the same answer. Set a limit in the setup, because a p-value at the threshold may never be
 * decided.
 *
 * # Safety
 * `first` points to `first_size` numbers and `second` to `second_size`; `statistic` is a C string; `setup` points to a
 * setup whose `struct_bytes` is its size and whose `method` is NULL or a C string; `out` points to a
 * `millstream_csm_status` whose `struct_bytes` is its size.
 */
int32_t millstream_csm_permutation(const double *first,
                                   uintptr_t first_size,
                                   const double *second,
                                   uintptr_t second_size,
                                   const char *statistic,
                                   int32_t tail,
                                   double shift,
                                   double scale,
                                   const struct millstream_csm_setup *setup,
                                   uint64_t seed,
                                   struct millstream_csm_status *out);

/**
 * Makes a driver that starts after `trials` trials with `successes` successes; pass 0 and 0 for a new driver. To
 * resume later, save the setup and the two counts: they are the driver's whole state.
 *
 * # Safety
 * `setup` points to a setup whose `struct_bytes` is its size and whose `method` is NULL or a C string; `out` points to
 * a pointer.
 */
int32_t millstream_csm_driver_new(const struct millstream_csm_setup *setup,
                                  uint64_t trials,
                                  uint64_t successes,
                                  struct millstream_csm_driver **out);

/**
 * Frees a driver.
 *
 * # Safety
 * `driver` is NULL or was made by millstream_csm_driver_new, and is not used afterwards.
 */
void millstream_csm_driver_free(struct millstream_csm_driver *driver);

/**
 * Records one trial and stores the state of the decision in `*progress`, unless `progress` is NULL. Trials after a
 * decision, or beyond the limit, are not counted.
 *
 * # Safety
 * `driver` was made by millstream_csm_driver_new; `progress` is NULL or points to an int32_t.
 */
int32_t millstream_csm_driver_observe(struct millstream_csm_driver *driver,
                                      bool success,
                                      int32_t *progress);

/**
 * Records trials in order until the claim is decided. Stores the number of recorded trials in `*used`, and the state
 * of the decision in `*progress`, unless `progress` is NULL. The decision comes after the same trial as with
 * millstream_csm_driver_observe. `*used` is less than `count` only after a decision or at the limit.
 *
 * # Safety
 * `driver` was made by millstream_csm_driver_new; `successes` points to `count` outcomes, and may be NULL if `count` is
 * 0; `used` points to a size_t; `progress` is NULL or points to an int32_t.
 */
int32_t millstream_csm_driver_observe_many(struct millstream_csm_driver *driver,
                                           const bool *successes,
                                           uintptr_t count,
                                           uintptr_t *used,
                                           int32_t *progress);

/**
 * Records a set of trials that belong together, such as a batch that ran in parallel or a resampled set. Evaluates the
 * evidence only once, at the end of the set.
 *
 * # Safety
 * `driver` was made by millstream_csm_driver_new; `progress` is NULL or points to an int32_t.
 */
int32_t millstream_csm_driver_observe_set(struct millstream_csm_driver *driver,
                                          uint64_t trials,
                                          uint64_t successes,
                                          int32_t *progress);

/**
 * Reports the progress of a driver.
 *
 * # Safety
 * `driver` was made by millstream_csm_driver_new; `out` points to a `millstream_csm_status` whose `struct_bytes` is its
 * size.
 */
int32_t millstream_csm_driver_status(const struct millstream_csm_driver *driver,
                                     struct millstream_csm_status *out);

/**
 * Computes an interval for the rate of success, after `successes` in `trials`, that is wrong with a probability of at
 * most `error`. `kind` is MILLSTREAM_CSM_WATCHED, MILLSTREAM_CSM_FIXED or MILLSTREAM_CSM_CREDIBLE.
 *
 * # Safety
 * `out` points to a `millstream_csm_interval_result`.
 */
int32_t millstream_csm_interval(uint64_t trials,
                                uint64_t successes,
                                double error,
                                int32_t kind,
                                struct millstream_csm_interval_result *out);

/**
 * Computes the ranks among `n` sorted values that enclose the quantile `q` (0.5 is the median). They are right
 * simultaneously for all `n`, except with a probability of at most `error`.
 *
 * # Safety
 * `out` points to a `millstream_csm_ranks`.
 */
int32_t millstream_csm_quantile_ranks(uint64_t n,
                                      double q,
                                      double error,
                                      struct millstream_csm_ranks *out);

/**
 * Computes an interval for the quantile `q` (0.5 is the median) of the values' distribution. It is right
 * simultaneously for all numbers of values, except with a probability of at most `error`. An end without a bound is
 * infinite. The values need not be sorted: the function sorts a copy of them.
 *
 * # Safety
 * `values` points to `count` numbers, and may be NULL if `count` is 0; `out` points to a
 * `millstream_csm_interval_result`.
 */
int32_t millstream_csm_quantile_interval(const double *values,
                                         uintptr_t count,
                                         double q,
                                         double error,
                                         struct millstream_csm_interval_result *out);

/**
 * Makes a driver without observations.
 *
 * # Safety
 * `setup` points to a setup whose `struct_bytes` is its size; `out` points to a pointer.
 */
int32_t millstream_csm_mean_driver_new(const struct millstream_csm_mean_setup *setup,
                                       struct millstream_csm_mean_driver **out);

/**
 * Frees a driver.
 *
 * # Safety
 * `driver` is NULL or was made by millstream_csm_mean_driver_new, and is not used afterwards.
 */
void millstream_csm_mean_driver_free(struct millstream_csm_mean_driver *driver);

/**
 * Records one value and stores the state of the decision in `*progress`. A value outside the bounds is an error, and
 * is left out. Values after a decision, or beyond the limit, are not counted.
 *
 * # Safety
 * `driver` was made by millstream_csm_mean_driver_new; `progress` points to an int32_t.
 */
int32_t millstream_csm_mean_driver_observe(struct millstream_csm_mean_driver *driver,
                                           double value,
                                           int32_t *progress);

/**
 * Records values in order until the claim is decided. Stores the number of recorded values in `*used`, and the state
 * of the decision in `*progress`, unless `progress` is NULL. The decision comes after the same value as with
 * millstream_csm_mean_driver_observe. If a value before the decision is outside the bounds, the call fails, and none
 * of the values is recorded.
 *
 * # Safety
 * `driver` was made by millstream_csm_mean_driver_new; `values` points to `count` numbers, and may be NULL if `count` is
 * 0; `used` points to a size_t; `progress` is NULL or points to an int32_t.
 */
int32_t millstream_csm_mean_driver_observe_many(struct millstream_csm_mean_driver *driver,
                                                const double *values,
                                                uintptr_t count,
                                                uintptr_t *used,
                                                int32_t *progress);

/**
 * Reports the progress of a driver.
 *
 * # Safety
 * `driver` was made by millstream_csm_mean_driver_new; `out` points to a `millstream_csm_mean_status` whose
 * `struct_bytes` is its size.
 */
int32_t millstream_csm_mean_driver_status(const struct millstream_csm_mean_driver *driver,
                                          struct millstream_csm_mean_status *out);

/**
 * Bounds the natural logarithm of the number of ways to choose `k` of `n`.
 *
 * # Safety
 * `out` points to a `millstream_csm_bounds`.
 */
int32_t millstream_csm_log_choose(uint64_t n, uint64_t k, struct millstream_csm_bounds *out);

/**
 * Decides whether the rate of success differs from `threshold`, after `successes` in `trials`. Programs may call this
 * function after every trial: the probability that any of the answers is wrong is at most exp(log_eps).
 *
 * `method` is "mixture", "balanced", "robbins", "centred" or "one-sided"; NULL is "robbins". With "one-sided", each
 * direction has an error of exp(log_eps): for a rate above or below the threshold, the probability of the wrong
 * direction is at most exp(log_eps). At the threshold itself both directions are wrong, and the two errors add up to
 * at most 2 exp(log_eps).
 *
 * # Safety
 * `method` is NULL or a C string; `out` points to a `millstream_csm_stop_result` whose `struct_bytes` is its
 * size.
 */
int32_t millstream_csm_stop(uint64_t trials,
                            uint64_t successes,
                            double threshold,
                            double log_eps,
                            const char *method,
                            struct millstream_csm_stop_result *out);

/**
 * Computes a bound on a quantile of Beta(a, b), on the safe side: with MILLSTREAM_CSM_LOW at most `eps` of the
 * probability is below the bound; with MILLSTREAM_CSM_HIGH at most `eps` is above it.
 *
 * # Safety
 * `out` points to a `millstream_csm_beta_result`.
 */
int32_t millstream_csm_beta_bound(double a,
                                  double b,
                                  double eps,
                                  int32_t side,
                                  struct millstream_csm_beta_result *out);

/**
 * Computes the probabilities of the verdicts within `limit` trials if the rate of success is `rate`, by exact dynamic
 * programming.
 *
 * # Safety
 * `setup` points to a setup whose `struct_bytes` is its size and whose `method` is NULL or a C string; `out` points to
 * a `millstream_csm_power_result` whose `struct_bytes` is its size.
 */
int32_t millstream_csm_power(const struct millstream_csm_setup *setup,
                             double rate,
                             uint64_t limit,
                             struct millstream_csm_power_result *out);

/**
 * Acquires the consumer's role at the ring in the open file `fd`; see millstream_ring_producer_new. The consumer
 * starts with the first event that no earlier consumer has consumed.
 *
 * # Safety
 * `setup` points to a setup whose `struct_bytes` is its size; `out` points to a pointer.
 */
int32_t millstream_ring_consumer_new(int32_t fd,
                                     const struct millstream_ring_setup *setup,
                                     struct millstream_ring_consumer **out);

/**
 * Releases the consumer's role. Events that were not consumed remain in the ring.
 *
 * # Safety
 * `consumer` is NULL or was made by millstream_ring_consumer_new; neither it nor the events of millstream_ring_peek are
 * used afterwards.
 */
void millstream_ring_consumer_free(struct millstream_ring_consumer *consumer);

/**
 * Waits for events, and stores the address of the available events in `*events` and their number in `*count`. They are
 * contiguous, up to the ring's last slot. `*count` is 0 if no event arrived within `timeout_ns` nanoseconds. A
 * negative timeout waits without limit, and 0 never waits.
 *
 * The events may be read in place until millstream_ring_consume releases their slots. If the consumer crashes before
 * that, its successor sees the events again.
 *
 * # Safety
 * `consumer` was made by millstream_ring_consumer_new; `events` points to a pointer; `count` points to a size_t. The
 * events are neither written to, nor read after they were consumed or the consumer was freed.
 */
int32_t millstream_ring_peek(struct millstream_ring_consumer *consumer,
                             int64_t timeout_ns,
                             const void **events,
                             uintptr_t *count);

/**
 * Releases the slots of the next `count` events to the producer. Returns MILLSTREAM_OUT_OF_RANGE if fewer events are
 * available.
 *
 * # Safety
 * `consumer` was made by millstream_ring_consumer_new; the events are not read afterwards.
 */
int32_t millstream_ring_consume(struct millstream_ring_consumer *consumer,
                                uintptr_t count);

/**
 * Waits for at least one event, copies at most `most` of the available events to `events`, consumes them, and stores
 * their number in `*count`. The number is 0 if no event arrived within `timeout_ns` nanoseconds; see
 * millstream_ring_peek.
 *
 * If the consumer crashes after this call, the copied events are lost. If that matters, use millstream_ring_peek.
 *
 * # Safety
 * `consumer` was made by millstream_ring_consumer_new; `events` points to memory for `most` events; `count` points to a
 * size_t.
 */
int32_t millstream_ring_receive(struct millstream_ring_consumer *consumer,
                                void *events,
                                uintptr_t most,
                                int64_t timeout_ns,
                                uintptr_t *count);

/**
 * Returns the number of events that were consumed since the ring was made, by this consumer and all earlier ones.
 *
 * # Safety
 * `consumer` was made by millstream_ring_consumer_new; `out` points to a number.
 */
int32_t millstream_ring_consumer_position(const struct millstream_ring_consumer *consumer,
                                          uint64_t *out);

/**
 * Acquires the producer's role at the ring in the open file `fd`, which becomes a ring if it is empty. The function
 * does not close the descriptor; the caller may close it at any time. The file should be in memory: in /dev/shm, or a
 * memfd. It must be writable, and /proc must be mounted.
 *
 * The role ends with millstream_ring_producer_free, or when the process ends in any way. The next producer continues
 * where this one stopped. After a fork, the child must neither use nor free the producer. Waits while another process
 * attaches.
 *
 * # Safety
 * `setup` points to a setup whose `struct_bytes` is its size; `out` points to a pointer.
 */
int32_t millstream_ring_producer_new(int32_t fd,
                                     const struct millstream_ring_setup *setup,
                                     struct millstream_ring_producer **out);

/**
 * Releases the producer's role. The events that were sent remain in the ring.
 *
 * # Safety
 * `producer` is NULL or was made by millstream_ring_producer_new, and is not used afterwards.
 */
void millstream_ring_producer_free(struct millstream_ring_producer *producer);

/**
 * Sends `count` contiguous events, and stores in `*sent` how many were sent: fewer than `count` only if there was no
 * room within `timeout_ns` nanoseconds. A negative timeout waits without limit, and 0 never waits. A batch costs only
 * one wake-up.
 *
 * # Safety
 * `producer` was made by millstream_ring_producer_new; `events` points to `count` events, and may be NULL if `count` is
 * 0; `sent` points to a size_t.
 */
int32_t millstream_ring_send(struct millstream_ring_producer *producer,
                             const void *events,
                             uintptr_t count,
                             int64_t timeout_ns,
                             uintptr_t *sent);

/**
 * Returns the number of events that were sent since the ring was made, by this producer and all earlier ones.
 *
 * # Safety
 * `producer` was made by millstream_ring_producer_new; `out` points to a number.
 */
int32_t millstream_ring_producer_position(const struct millstream_ring_producer *producer, uint64_t *out);

/**
 * Creates a slab in a new file: at most `max_objects` objects of `object_bytes` bytes, which must be a multiple of 8.
 * Returns MILLSTREAM_SLAB_EXISTS if the file already exists: open that file.
 *
 * The file appears atomically, with a complete slab. In /dev/shm it outlives its processes, but not a reboot.
 *
 * # Safety
 * `path` is a C string; `out` points to a pointer.
 */
int32_t millstream_slab_create(const char *path,
                               uint64_t object_bytes,
                               uint64_t max_objects,
                               struct millstream_slab **out);

/**
 * Creates a slab like millstream_slab_create, with all options.
 *
 * # Safety
 * `path` is a C string; `options` points to options whose `struct_bytes` is their size; `out` points to a pointer.
 */
int32_t millstream_slab_create_with(const char *path,
                                    const struct millstream_slab_options *options,
                                    struct millstream_slab **out);

/**
 * Creates a slab in memory without a name, for the children of a fork and for processes that receive the descriptor;
 * see millstream_slab_fd. The slab is gone when the last of these processes ends.
 *
 * # Safety
 * `options` points to options whose `struct_bytes` is their size; `out` points to a pointer.
 */
int32_t millstream_slab_create_memfd(const struct millstream_slab_options *options,
                                     struct millstream_slab **out);

/**
 * Opens the slab in a file, and recovers it if its last users died.
 *
 * If another process is rebuilding the free list, the function waits for at most ten seconds, or 0.1 s while that
 * process is stopped. Then it returns MILLSTREAM_SLAB_BUSY: try again. MILLSTREAM_SLAB_UNTRUSTED means that the file
 * belongs to another user, or that other users may write to it and so truncate it. MILLSTREAM_SLAB_SYSTEM with the
 * error number ENOENT means that there is no file. After MILLSTREAM_SLAB_NOT_A_SLAB, MILLSTREAM_SLAB_VERSION or
 * MILLSTREAM_SLAB_DAMAGED, trying again does not help.
 *
 * # Safety
 * `path` is a C string; `out` points to a pointer.
 */
int32_t millstream_slab_open(const char *path,
                             struct millstream_slab **out);

/**
 * Opens the slab in a file that is open for reading and writing, such as a memfd received from another process. The
 * call trusts every user that may write to the file. The function does not close the descriptor; the caller may close
 * it at any time.
 *
 * # Safety
 * `out` points to a pointer.
 */
int32_t millstream_slab_open_fd(int32_t fd,
                                struct millstream_slab **out);

/**
 * Closes a slab. The slab's objects remain, and its caches still work.
 *
 * # Safety
 * `slab` is NULL or came from a function that creates or opens one, and is not used afterwards.
 */
void millstream_slab_free(struct millstream_slab *slab);

/**
 * Returns the size of an object in bytes. After opening a slab, compare it with the size of your own type: buffers
 * must have this size.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a number.
 */
int32_t millstream_slab_object_bytes(const struct millstream_slab *slab,
                                     uint64_t *out);

/**
 * Returns the largest number of objects.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a number.
 */
int32_t millstream_slab_max_objects(const struct millstream_slab *slab, uint64_t *out);

/**
 * Returns the tag that the slab was created with, 0 by default.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a number.
 */
int32_t millstream_slab_tag(const struct millstream_slab *slab, uint64_t *out);

/**
 * Returns the descriptor of the slab's file or memory, to pass to other processes. The slab owns it: do not close it.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to an int32_t.
 */
int32_t millstream_slab_fd(const struct millstream_slab *slab,
                           int32_t *out);

/**
 * Makes a cache for the calling thread. Returns MILLSTREAM_SLAB_NO_CACHE if all caches of the slab are in use.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a pointer.
 */
int32_t millstream_slab_cache_new(const struct millstream_slab *slab,
                                  struct millstream_slab_cache **out);

/**
 * Frees a cache and returns its free objects to the slab.
 *
 * # Safety
 * `cache` is NULL or was made by millstream_slab_cache_new, and neither it nor any private object of it is used
 * afterwards.
 */
void millstream_slab_cache_free(struct millstream_slab_cache *cache);

/**
 * Sets the owner of a cache: a number for a worker or a job. It becomes the owner of all objects that the cache
 * publishes from now on, and of those that are private to the cache when its process dies. millstream_slab_next
 * reports it, so that the objects of a dead worker can be found. The call has no effect on a slab that was created
 * without `owners`.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new.
 */
int32_t millstream_slab_set_owner(const struct millstream_slab_cache *cache,
                                  uint64_t owner);

/**
 * Allocates an object, copies its bytes from `bytes` and publishes it. If the process is killed before the call is
 * complete, the object is still free, or already published with these bytes, or an orphan with arbitrary bytes, which
 * survivors find with millstream_slab_next.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new; `bytes` points to as many bytes as an object has; `out` points to a
 * handle.
 */
int32_t millstream_slab_put(const struct millstream_slab_cache *cache,
                            const void *bytes,
                            struct millstream_slab_handle *out);

/**
 * Copies an object, published or orphan, to `bytes`. Returns MILLSTREAM_SLAB_STALE if the object was freed, even
 * during the copy; a concurrent change leaves a mixture of old and new bytes.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `bytes` points to as many bytes as an object has.
 */
int32_t millstream_slab_get(const struct millstream_slab *slab,
                            struct millstream_slab_handle handle,
                            void *bytes);

/**
 * Changes the bytes of an object, published or orphan. During the call, the object is private to the cache; afterwards
 * it is published.
 *
 * If the process is killed during the call, the object becomes an orphan, whose bytes may be partly old and partly
 * new. millstream_slab_get copies it like any other object; millstream_slab_next reports it as an orphan. If readers
 * must never see a partial change, put a new object and delete the old one.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new; `bytes` points to as many bytes as an object has.
 */
int32_t millstream_slab_set(const struct millstream_slab_cache *cache,
                            struct millstream_slab_handle handle,
                            const void *bytes);

/**
 * Frees an object, whichever process put it there. Returns MILLSTREAM_SLAB_STALE if it was freed before.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new.
 */
int32_t millstream_slab_delete(const struct millstream_slab_cache *cache,
                               struct millstream_slab_handle handle);

/**
 * Returns the address of a published object or an orphan in this process, aligned to 8 bytes. It is for structures
 * with their own synchronisation, such as atomics in the object. Do not access the address after any process has freed
 * or claimed the object, or after the slab and all its caches were freed.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a pointer.
 */
int32_t millstream_slab_pointer(const struct millstream_slab *slab,
                                struct millstream_slab_handle handle,
                                void **out);

/**
 * Writes a single object to the device; see millstream_slab_sync. When the call has returned, the object survives a
 * power failure with its bytes. Before that it may survive with other bytes, so pass its handle to others only
 * afterwards.
 *
 * # Safety
 * `slab` came from a function that creates or opens one.
 */
int32_t millstream_slab_sync_object(const struct millstream_slab *slab,
                                    struct millstream_slab_handle handle);

/**
 * Makes an empty parcel. Returns MILLSTREAM_SLAB_NO_CACHE if all caches of the slab are in use.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a pointer.
 */
int32_t millstream_slab_parcel_new(const struct millstream_slab *slab, struct millstream_slab_parcel **out);

/**
 * Frees a parcel and the objects in it.
 *
 * # Safety
 * `parcel` is NULL or was made by millstream_slab_parcel_new, and neither it nor any of its objects is used afterwards.
 */
void millstream_slab_parcel_free(struct millstream_slab_parcel *parcel);

/**
 * Sets the owner of the objects in a parcel, in case the process dies; see millstream_slab_set_owner.
 *
 * # Safety
 * `parcel` was made by millstream_slab_parcel_new.
 */
int32_t millstream_slab_parcel_set_owner(const struct millstream_slab_parcel *parcel, uint64_t owner);

/**
 * Returns the number of objects in a parcel.
 *
 * # Safety
 * `parcel` was made by millstream_slab_parcel_new; `out` points to a number.
 */
int32_t millstream_slab_parcel_objects(const struct millstream_slab_parcel *parcel, uint64_t *out);

/**
 * Returns the number of free objects that a parcel has retained since it was cleared.
 *
 * # Safety
 * `parcel` was made by millstream_slab_parcel_new; `out` points to a number.
 */
int32_t millstream_slab_parcel_kept(const struct millstream_slab_parcel *parcel, uint64_t *out);

/**
 * Puts a private object into a parcel; afterwards `object->bytes` is NULL. An object of another slab is freed, and the
 * status is MILLSTREAM_SLAB_FOREIGN.
 *
 * # Safety
 * `parcel` was made by millstream_slab_parcel_new; `object` came from millstream_slab_private_new,
 * millstream_slab_private_claim or millstream_slab_parcel_pop, and the calling thread uses its cache.
 */
int32_t millstream_slab_parcel_push(struct millstream_slab_parcel *parcel,
                                    struct millstream_slab_private *object);

/**
 * Allocates an object directly in a parcel, and stores the address of its bytes in `*bytes`. Write to the bytes before
 * you pass the parcel on. The bytes are those of the object's previous use, or 0.
 *
 * # Safety
 * `parcel` was made by millstream_slab_parcel_new, and `cache`, which the calling thread uses, by
 * millstream_slab_cache_new; `bytes` points to a pointer.
 */
int32_t millstream_slab_parcel_alloc(struct millstream_slab_parcel *parcel,
                                     const struct millstream_slab_cache *cache,
                                     void **bytes);

/**
 * Takes out the object that was put in last, which is then private to `cache`. Returns MILLSTREAM_SLAB_END for an empty
 * parcel. On failure `out->bytes` is NULL.
 *
 * # Safety
 * `parcel` was made by millstream_slab_parcel_new, and `cache`, which the calling thread uses and frees after the object,
 * by millstream_slab_cache_new; `out` points to a `millstream_slab_private`.
 */
int32_t millstream_slab_parcel_pop(struct millstream_slab_parcel *parcel,
                                   const struct millstream_slab_cache *cache,
                                   struct millstream_slab_private *out);

/**
 * Frees all objects in a parcel, into `cache`.
 *
 * # Safety
 * `parcel` was made by millstream_slab_parcel_new, and `cache`, which the calling thread uses, by
 * millstream_slab_cache_new.
 */
int32_t millstream_slab_parcel_delete(struct millstream_slab_parcel *parcel,
                                      const struct millstream_slab_cache *cache);

/**
 * Frees all objects in a parcel, and retains the free objects for the next millstream_slab_parcel_alloc. So objects
 * that one thread allocates and another frees never leave the parcel.
 *
 * # Safety
 * The conditions are those of millstream_slab_parcel_delete.
 */
int32_t millstream_slab_parcel_clear(struct millstream_slab_parcel *parcel,
                                     const struct millstream_slab_cache *cache);

/**
 * Returns the free objects that a parcel has retained to the slab, for all caches.
 *
 * # Safety
 * The conditions are those of millstream_slab_parcel_delete.
 */
int32_t millstream_slab_parcel_flush(struct millstream_slab_parcel *parcel,
                                     const struct millstream_slab_cache *cache);

/**
 * Allocates an object, which is private to the cache until it is published. Its bytes are those of its previous use,
 * or 0. On failure `out->bytes` is NULL.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new, and is freed after the object; `out` points to a
 * `millstream_slab_private`.
 */
int32_t millstream_slab_private_new(const struct millstream_slab_cache *cache,
                                    struct millstream_slab_private *out);

/**
 * Makes an object, published or orphan, private to the cache, in order to change it in place. Its handle remains
 * valid, but other calls with the handle return MILLSTREAM_SLAB_HELD until the object is published again. On failure
 * `out->bytes` is NULL.
 *
 * # Safety
 * The conditions are those of millstream_slab_private_new.
 */
int32_t millstream_slab_private_claim(const struct millstream_slab_cache *cache,
                                      struct millstream_slab_handle handle,
                                      struct millstream_slab_private *out);

/**
 * Publishes a private object: from now on any thread of any process can use it by its handle, and `bytes` is NULL. If
 * the process is killed during the call, the object is an orphan or published.
 *
 * # Safety
 * `object` came from millstream_slab_private_new or millstream_slab_private_claim; `out` points to a handle.
 */
int32_t millstream_slab_private_publish(struct millstream_slab_private *object,
                                        struct millstream_slab_handle *out);

/**
 * Frees a private object. A struct without bytes is left unchanged.
 *
 * # Safety
 * `object` is NULL, or has no bytes, or came from millstream_slab_private_new or millstream_slab_private_claim.
 */
void millstream_slab_private_free(struct millstream_slab_private *object);

/**
 * Finds the first allocated object whose number is at least `*from`, and sets `*from` to the number after it. Returns
 * MILLSTREAM_SLAB_END if there is none.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `from` points to a number; `out` points to a
 * `millstream_slab_object` whose `struct_bytes` is its size.
 */
int32_t millstream_slab_next(const struct millstream_slab *slab,
                             uint64_t *from,
                             struct millstream_slab_object *out);

/**
 * Counts the objects by state. The counts are exact if no thread allocates or frees during the call.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a `millstream_slab_usage_result`
 * whose `struct_bytes` is its size.
 */
int32_t millstream_slab_usage(const struct millstream_slab *slab, struct millstream_slab_usage_result *out);

/**
 * Checks every invariant and returns the number of problems, 0 for a sound slab. millstream_error_message() then
 * lists the first of them, one per line, although the status is MILLSTREAM_OK.
 *
 * The result is exact if no thread allocates or frees during the call; otherwise concurrent changes may be reported as
 * problems.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a number.
 */
int32_t millstream_slab_verify(const struct millstream_slab *slab,
                               uint64_t *out);

/**
 * Makes the kernel write everything to the device, and waits until it is written. Objects published before the call
 * then survive a power failure, with their contents. Without this call, they survive only the death of processes.
 *
 * # Safety
 * `slab` came from a function that creates or opens one.
 */
int32_t millstream_slab_sync(const struct millstream_slab *slab);

/**
 * Recovers the objects of dead processes, while other processes continue, and returns the number of these objects.
 * Returns MILLSTREAM_SLAB_BUSY if another process takes too long to recover some of them.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a number.
 */
int32_t millstream_slab_recover(const struct millstream_slab *slab,
                                uint64_t *out);

/**
 * Returns the message of the last failure on this thread, or the findings of the last millstream_slab_verify; before
 * both, an empty text. The address is always the same on a thread, and is valid until the thread ends. The next
 * failure on the thread overwrites the text. The text must not be freed.
 */
const char *millstream_error_message(void);

/**
 * Returns the errno (ENOENT, EACCES, ENOSPC, …) of the last failure on this thread, if it was MILLSTREAM_SLAB_SYSTEM
 * or MILLSTREAM_RING_SYSTEM, otherwise 0.
 */
int32_t millstream_error_number(void);

/**
 * Returns the version of the library in the form of MILLSTREAM_VERSION, which is the version of the header with which
 * the program was compiled. Before 1.0, the second numbers of both versions must be equal; from 1.0 on, the first
 * numbers.
 */
uint32_t millstream_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MILLSTREAM_H */
