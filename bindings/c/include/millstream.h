/*
 * Millstream for C.
 *
 * millstream_csm_...: decide with evidence. Confidence sequences, exact tests and stopping rules whose errors are on the
 * safe side. All numbers are the same as in the Rust and Python libraries and on the command line, to the last bit.
 *
 * millstream_slab_...: objects of one size in shared memory, for many processes. A kill of any of them at any instruction
 * loses nothing that was published; a double free is an error, and so is a handle to what was freed.
 *
 * Conventions
 *   - A function that can fail returns a status: MILLSTREAM_OK, or another MILLSTREAM_... code. It writes through its
 *     `out` pointers only when the status is MILLSTREAM_OK. millstream_error_message() says what went wrong, what was
 *     expected and what was found.
 *   - Whatever a ..._new function made is given back to the ..._free function of the same name, and a slab that was created
 *     or opened to millstream_slab_free. Freeing NULL is allowed.
 *   - Functions may be called from any thread. A millstream_slab may be used by all threads at once; nothing else may be
 *     used by two threads at once.
 *
 * Compile with  cc program.c $(pkg-config --cflags --libs millstream)
 */

#ifndef MILLSTREAM_H
#define MILLSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * It is not certain which is smaller.
 */
#define MILLSTREAM_CSM_NEITHER 0

/**
 * The first is smaller.
 */
#define MILLSTREAM_CSM_FIRST 1

/**
 * The second is smaller.
 */
#define MILLSTREAM_CSM_SECOND 2

/**
 * As extreme is a statistic whose absolute value is at least as large: the default of the other languages.
 */
#define MILLSTREAM_CSM_BOTH 0

/**
 * As extreme is a statistic that is at least as large: the first sample has the larger values, as in scipy.
 */
#define MILLSTREAM_CSM_GREATER 1

/**
 * As extreme is a statistic that is at most as large.
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
 * The rate of success lies between `low` and `high`.
 */
#define MILLSTREAM_CSM_WITHIN 2

/**
 * Two thresholds: above `low` it may be said to hold, below `high` it may be said to fail, in between either is right.
 * This always comes to a decision.
 */
#define MILLSTREAM_CSM_BETWEEN 3

/**
 * Not enough data yet.
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
 * Undecided at the limit.
 */
#define MILLSTREAM_CSM_AT_LIMIT 3

/**
 * Right at all times at once; the one to show while data come in.
 */
#define MILLSTREAM_CSM_WATCHED 0

/**
 * Right only if the number of trials was fixed before the first (Clopper and Pearson).
 */
#define MILLSTREAM_CSM_FIXED 1

/**
 * Where the rate lies with this probability if every rate was equally likely beforehand (Bayes).
 */
#define MILLSTREAM_CSM_CREDIBLE 2

/**
 * The bound lies below the quantile.
 */
#define MILLSTREAM_CSM_LOW 0

/**
 * The bound lies above the quantile.
 */
#define MILLSTREAM_CSM_HIGH 1

/**
 * The object is everybody's.
 */
#define MILLSTREAM_SLAB_PUBLISHED 0

/**
 * The object was held by a process that died: to be claimed, changed or freed by anybody.
 */
#define MILLSTREAM_SLAB_ORPHAN 1

/**
 * Some process has the object to itself.
 */
#define MILLSTREAM_SLAB_PRIVATE 2

/**
 * It worked.
 */
#define MILLSTREAM_OK 0

/**
 * A number is not a number, or infinite where that means nothing.
 */
#define MILLSTREAM_NOT_FINITE 1

/**
 * A number is outside the range that the question makes sense for.
 */
#define MILLSTREAM_OUT_OF_RANGE 2

/**
 * There are more successes than trials, or the like.
 */
#define MILLSTREAM_MORE_THAN_ALL 3

/**
 * A count is beyond the range that is computed exactly.
 */
#define MILLSTREAM_TOO_MANY 4

/**
 * A pointer is NULL that must not be.
 */
#define MILLSTREAM_NULL 5

/**
 * A code or a name that does not exist.
 */
#define MILLSTREAM_UNKNOWN 6

/**
 * Any other reason why the question has no answer; see the message.
 */
#define MILLSTREAM_NO_ANSWER 7

/**
 * No object can be allocated.
 */
#define MILLSTREAM_SLAB_FULL 8

/**
 * The object was freed: a use after free, or a double free.
 */
#define MILLSTREAM_SLAB_STALE 9

/**
 * The handle belongs to another slab, or is none.
 */
#define MILLSTREAM_SLAB_FOREIGN 10

/**
 * Somebody has the object to himself at the moment.
 */
#define MILLSTREAM_SLAB_HELD 11

/**
 * The slab can't be used for any other reason, such as users in another PID namespace; see the message.
 */
#define MILLSTREAM_SLAB_UNUSABLE 12

/**
 * There is no further object.
 */
#define MILLSTREAM_SLAB_END 13

/**
 * There is a file already where a slab was to be made: open it, or remove it.
 */
#define MILLSTREAM_SLAB_EXISTS 14

/**
 * Another process keeps this one waiting for too long; the message names it, and says whether it is stopped: try again.
 */
#define MILLSTREAM_SLAB_BUSY 15

/**
 * All caches of the slab are in use by living processes: try again when one was given back, or make it with more.
 */
#define MILLSTREAM_SLAB_NO_CACHE 16

/**
 * The file is something else than a slab.
 */
#define MILLSTREAM_SLAB_NOT_A_SLAB 17

/**
 * The slab was written by a program that knows more than this library.
 */
#define MILLSTREAM_SLAB_VERSION 18

/**
 * The slab is cut off, or something is in it that this library never leaves there.
 */
#define MILLSTREAM_SLAB_DAMAGED 19

/**
 * The operating system refused; millstream_error_number() says why.
 */
#define MILLSTREAM_SLAB_SYSTEM 20

/**
 * The file belongs to another user, or others may write to it: to trust them, open it and use millstream_slab_open_fd.
 */
#define MILLSTREAM_SLAB_UNTRUSTED 21

/**
 * Draws how full all bins are when the first one is full.
 */
typedef struct millstream_csm_bins millstream_csm_bins;

/**
 * Watches successes and failures and says when they decide a claim.
 */
typedef struct millstream_csm_driver millstream_csm_driver;

/**
 * Watches bounded numbers and says when they decide a claim about their mean.
 */
typedef struct millstream_csm_mean_driver millstream_csm_mean_driver;

/**
 * A slab: objects of one size in a file, shared by threads and processes. May be used by all threads at once.
 */
typedef struct millstream_slab millstream_slab;

/**
 * A thread's access to a slab. One for each thread; not to be used in the child after a fork.
 */
typedef struct millstream_slab_cache millstream_slab_cache;

/**
 * From `low` to `high`, both included.
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
 * What a comparison knows.
 */
typedef struct millstream_csm_comparison {
    /**
     * How many pairs there are; of unpaired samples, the size of the smaller one.
     */
    uint64_t pairs;
    /**
     * MILLSTREAM_CSM_FIRST or MILLSTREAM_CSM_SECOND if that is certain, and MILLSTREAM_CSM_NEITHER otherwise.
     */
    int32_t smaller;
    /**
     * The second's size over the first's, as estimated; not a number without data.
     */
    double ratio;
    /**
     * Where that ratio lies; right at all times at once.
     */
    struct millstream_csm_interval_result interval;
} millstream_csm_comparison;

/**
 * What is claimed, and how sure the answer has to be.
 */
typedef struct millstream_csm_setup {
    /**
     * MILLSTREAM_CSM_AT_LEAST, MILLSTREAM_CSM_AT_MOST, MILLSTREAM_CSM_WITHIN or MILLSTREAM_CSM_BETWEEN.
     */
    int32_t claim;
    /**
     * The lower threshold, if the claim has one.
     */
    double low;
    /**
     * The upper threshold, if the claim has one.
     */
    double high;
    /**
     * The most that the probability of a wrong answer, verdict or interval, may be.
     */
    double error;
    /**
     * How evidence is weighed: "mixture", "balanced", "robbins", "centred", "one-sided"; with two thresholds "blend" or "sprt". NULL
     * for the best.
     */
    const char *method;
    /**
     * The most trials; 0 for no limit.
     */
    uint64_t limit;
} millstream_csm_setup;

/**
 * How far a driver has come.
 */
typedef struct millstream_csm_status {
    /**
     * Trials observed.
     */
    uint64_t trials;
    /**
     * Successes among them.
     */
    uint64_t successes;
    /**
     * Where the rate of success lies; right at all times at once.
     */
    struct millstream_csm_interval_result interval;
    /**
     * The level of the test that is nearest to a decision.
     */
    double level;
    /**
     * What the level must be less than.
     */
    double log_eps;
    /**
     * MILLSTREAM_CSM_RUNNING, MILLSTREAM_CSM_HOLDS, MILLSTREAM_CSM_FAILS or MILLSTREAM_CSM_AT_LIMIT.
     */
    int32_t progress;
} millstream_csm_status;

/**
 * Places in sorted data, counted from 1.
 */
typedef struct millstream_csm_ranks {
    /**
     * The quantile is at least the value of this rank; 0 if nothing is known.
     */
    uint64_t low;
    /**
     * The quantile is at most the value of this rank; one more than there are values if nothing is known.
     */
    uint64_t high;
} millstream_csm_ranks;

/**
 * What is claimed about a mean, and how sure the answer has to be.
 */
typedef struct millstream_csm_mean_setup {
    /**
     * MILLSTREAM_CSM_AT_LEAST, MILLSTREAM_CSM_AT_MOST, MILLSTREAM_CSM_WITHIN or MILLSTREAM_CSM_BETWEEN.
     */
    int32_t claim;
    /**
     * The lower threshold, if the claim has one.
     */
    double low;
    /**
     * The upper threshold, if the claim has one.
     */
    double high;
    /**
     * The least that a single value can be.
     */
    double least;
    /**
     * The most that a single value can be.
     */
    double most;
    /**
     * The most that the probability of a wrong answer, verdict or interval, may be.
     */
    double error;
    /**
     * The most values; 0 for no limit.
     */
    uint64_t limit;
} millstream_csm_mean_setup;

/**
 * How far a driver of means has come.
 */
typedef struct millstream_csm_mean_status {
    /**
     * Values observed.
     */
    uint64_t trials;
    /**
     * Their mean; not a number without values.
     */
    double mean;
    /**
     * Where the mean lies; right at all times at once.
     */
    struct millstream_csm_interval_result interval;
    /**
     * MILLSTREAM_CSM_RUNNING, MILLSTREAM_CSM_HOLDS, MILLSTREAM_CSM_FAILS or MILLSTREAM_CSM_AT_LIMIT.
     */
    int32_t progress;
} millstream_csm_mean_status;

/**
 * A number between two others.
 */
typedef struct millstream_csm_bounds {
    /**
     * No more than the exact value.
     */
    double lower;
    /**
     * No less than the exact value.
     */
    double upper;
} millstream_csm_bounds;

/**
 * Whether to stop observing.
 */
typedef struct millstream_csm_stop_result {
    /**
     * The true rate differs from the threshold.
     */
    bool stop;
    /**
     * 1: it is above; -1: it is below; 0: undecided.
     */
    int32_t direction;
    /**
     * The logarithm of the evidence's weight, at least the exact one; stops when less than `log_eps`.
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
     * One minus the bound, with all its digits.
     */
    double complement;
} millstream_csm_beta_result;

/**
 * How a setup ends when the rate of success is known.
 */
typedef struct millstream_csm_power_result {
    /**
     * The probability that the claim is said to hold within the limit.
     */
    double holds;
    /**
     * The probability that it is said to fail.
     */
    double fails;
    /**
     * The probability that it is undecided at the limit.
     */
    double undecided;
    /**
     * Trials on average, those that end undecided counted as the limit.
     */
    double mean_trials;
} millstream_csm_power_result;

/**
 * What a new slab is like:
 * `millstream_slab_options options = {.struct_bytes = sizeof options, .object_bytes = 64, .max_objects = 1000};`
 * These three have to be set. All others may be 0, which leaves them to the library.
 */
typedef struct millstream_slab_options {
    /**
     * sizeof(millstream_slab_options), by which the library knows of which options the program knows.
     */
    uint64_t struct_bytes;
    /**
     * The bytes of an object, a multiple of 8.
     */
    uint64_t object_bytes;
    /**
     * The most objects there can be.
     */
    uint64_t max_objects;
    /**
     * How many objects may be used at first; the number doubles when it is needed. 0: all of them.
     */
    uint64_t capacity;
    /**
     * How many caches there can be at once, in all processes, at most 16384. 0: 64.
     */
    uint64_t caches;
    /**
     * How many objects move between a cache and the others at once, at most 64. A cache keeps up to twice as many to
     * itself. 0: 64, or less for a small slab.
     */
    uint64_t chain;
    /**
     * A number that tells this program's objects from those of others; see millstream_slab_tag.
     */
    uint64_t tag;
    /**
     * Not 0: asks the kernel for huge pages. A matter of speed only.
     */
    uint32_t huge_pages;
    /**
     * Not 0: has every object backed by the file system before it can be handed out, so that a full device is an error and
     * not a SIGBUS. Only for those that may be used at first, and for what this slab is made to grow by.
     */
    uint32_t reserve;
    /**
     * Not 0: keeps for each object who had it last; see millstream_slab_set_owner. 8 bytes an object.
     */
    uint32_t owners;
    /**
     * The file's permissions, at most 0777, of which the umask is taken away. 0: 0600.
     */
    uint32_t mode;
} millstream_slab_options;

/**
 * The name of an object, the same in every process; may be stored in objects and sent to other processes.
 */
typedef struct millstream_slab_handle {
    /**
     * Lower half.
     */
    uint64_t low;
    /**
     * Upper half.
     */
    uint64_t high;
} millstream_slab_handle;

/**
 * An object that is private to one cache, and used by that cache's thread alone. It has to be published or freed before
 * the cache is given back. It may be moved, but of several copies only one may be used.
 *
 * If the process dies, it becomes an orphan with whatever bytes it has.
 */
typedef struct millstream_slab_private {
    /**
     * Its bytes, as many as the slab's objects have, aligned to 8; NULL once it was published or freed.
     */
    void *bytes;
    /**
     * The library's own.
     */
    uint64_t own[2];
} millstream_slab_private;

/**
 * An allocated object, as millstream_slab_next finds it.
 */
typedef struct millstream_slab_object {
    /**
     * Its name. Of a private object, the one that it will have.
     */
    struct millstream_slab_handle handle;
    /**
     * MILLSTREAM_SLAB_PUBLISHED, MILLSTREAM_SLAB_ORPHAN or MILLSTREAM_SLAB_PRIVATE.
     */
    int32_t state;
    /**
     * The process that has a private object to itself, 0 if it can't be named because its cache was given back. Of all
     * others, 0.
     */
    uint32_t pid;
    /**
     * Who has it, or had it last, as given to millstream_slab_set_owner; 0 where nobody said so or the slab keeps no owners.
     */
    uint64_t owner;
} millstream_slab_object;

/**
 * How the objects of a slab are used.
 */
typedef struct millstream_slab_usage_result {
    /**
     * The most there can be.
     */
    uint64_t max_objects;
    /**
     * Those that may be used before the slab grows.
     */
    uint64_t capacity;
    /**
     * Never used.
     */
    uint64_t virgin;
    /**
     * Free, for every cache to take.
     */
    uint64_t free;
    /**
     * Free, in the caches.
     */
    uint64_t cached;
    /**
     * Allocated and private.
     */
    uint64_t held;
    /**
     * Allocated and published.
     */
    uint64_t published;
    /**
     * Allocated, and their process is dead.
     */
    uint64_t orphans;
    /**
     * Used so often that they are never used again.
     */
    uint64_t retired;
    /**
     * In a state that this library never leaves them in.
     */
    uint64_t damaged;
    /**
     * Caches in use.
     */
    uint64_t caches;
} millstream_slab_usage_result;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A sampler for `bins` bins that hold `capacity` balls each; the same `seed` gives the same numbers everywhere.
 *
 * # Safety
 * `out` points to a pointer.
 */
int32_t millstream_csm_bins_new(uint32_t bins,
                                uint32_t capacity,
                                uint64_t seed,
                                struct millstream_csm_bins **out);

/**
 * Gives a sampler back.
 *
 * # Safety
 * `sampler` is NULL or was made by millstream_csm_bins_new, and is not used any more.
 */
void millstream_csm_bins_free(struct millstream_csm_bins *sampler);

/**
 * One trial: the share of all places in use when the first bin is full.
 *
 * # Safety
 * `sampler` was made by millstream_csm_bins_new; `fill` points to a double.
 */
int32_t millstream_csm_bins_fill(struct millstream_csm_bins *sampler, double *fill);

/**
 * Compares the medians of two samples of numbers above zero by their ratio, second over first.
 *
 * # Safety
 * `first` points to `first_size` numbers and `second` to `second_size`; `out` points to a `millstream_csm_comparison`.
 */
int32_t millstream_csm_compare(const double *first,
                               uintptr_t first_size,
                               const double *second,
                               uintptr_t second_size,
                               double error,
                               struct millstream_csm_comparison *out);

/**
 * Compares pairs of numbers above zero by the median of their ratios, second over first, in the order given; it stops at
 * the first pair at which it is certain which is smaller.
 *
 * # Safety
 * `first` and `second` point to `pairs` numbers each; `out` points to a `millstream_csm_comparison`.
 */
int32_t millstream_csm_compare_pairs(const double *first,
                                     const double *second,
                                     uintptr_t pairs,
                                     double error,
                                     struct millstream_csm_comparison *out);

/**
 * Is a difference between two samples larger than chance makes it?
 *
 * Divides the values of both at random, again and again, and decides the setup's claim about the p-value, which is the
 * rate of divisions whose statistic is as extreme as that of the samples. `statistic` is "mean" or "median": the
 * first's less the second's. `tail` is MILLSTREAM_CSM_BOTH, MILLSTREAM_CSM_GREATER or MILLSTREAM_CSM_LESS. The null
 * hypothesis is that the second sample is distributed like `shift + scale * first`; 0 and 1 if both are alike. The same
 * seed gives the same answer. Give the setup a limit: a p-value at the threshold takes for ever.
 *
 * # Safety
 * `first` points to `first_size` numbers and `second` to `second_size`; `statistic` is a C string; `setup` points to a
 * setup whose `method` is NULL or a C string; `out` points to a `millstream_csm_status`.
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
 * A driver that has seen `trials` trials with `successes` successes already, 0 and 0 for a fresh one. The setup and these
 * two numbers are all there is to save to go on later.
 *
 * # Safety
 * `setup` points to a setup whose `method` is NULL or a C string; `out` points to a pointer.
 */
int32_t millstream_csm_driver_new(const struct millstream_csm_setup *setup,
                                  uint64_t trials,
                                  uint64_t successes,
                                  struct millstream_csm_driver **out);

/**
 * Gives a driver back.
 *
 * # Safety
 * `driver` is NULL or was made by millstream_csm_driver_new, and is not used any more.
 */
void millstream_csm_driver_free(struct millstream_csm_driver *driver);

/**
 * Notes one trial and says through `progress` (NULL: does not say) what is known now. Trials after a decision, or beyond
 * the limit, are not counted.
 *
 * # Safety
 * `driver` was made by millstream_csm_driver_new; `progress` is NULL or points to an int32_t.
 */
int32_t millstream_csm_driver_observe(struct millstream_csm_driver *driver,
                                      bool success,
                                      int32_t *progress);

/**
 * Notes a set of trials that belong together, such as a batch that ran in parallel or a resampled set, and looks once, at
 * its end.
 *
 * # Safety
 * `driver` was made by millstream_csm_driver_new; `progress` is NULL or points to an int32_t.
 */
int32_t millstream_csm_driver_observe_set(struct millstream_csm_driver *driver,
                                          uint64_t trials,
                                          uint64_t successes,
                                          int32_t *progress);

/**
 * How far the driver has come.
 *
 * # Safety
 * `driver` was made by millstream_csm_driver_new; `out` points to a `millstream_csm_status`.
 */
int32_t millstream_csm_driver_status(const struct millstream_csm_driver *driver,
                                     struct millstream_csm_status *out);

/**
 * Where the rate of success lies, after `successes` in `trials`, but for a probability of `error`. `kind` is
 * MILLSTREAM_CSM_WATCHED, MILLSTREAM_CSM_FIXED or MILLSTREAM_CSM_CREDIBLE.
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
 * The ranks among `n` sorted values that the quantile `q` (0.5: the median) lies between, at all `n` at once but for a
 * probability of `error`.
 *
 * # Safety
 * `out` points to a `millstream_csm_ranks`.
 */
int32_t millstream_csm_quantile_ranks(uint64_t n,
                                      double q,
                                      double error,
                                      struct millstream_csm_ranks *out);

/**
 * A driver that has seen nothing.
 *
 * # Safety
 * `setup` points to a setup; `out` points to a pointer.
 */
int32_t millstream_csm_mean_driver_new(const struct millstream_csm_mean_setup *setup,
                                       struct millstream_csm_mean_driver **out);

/**
 * Gives a driver back.
 *
 * # Safety
 * `driver` is NULL or was made by millstream_csm_mean_driver_new, and is not used any more.
 */
void millstream_csm_mean_driver_free(struct millstream_csm_mean_driver *driver);

/**
 * Notes one value and says what is known now. A value that is not between the bounds is refused and left out; values
 * after a decision, or beyond the limit, are not counted.
 *
 * # Safety
 * `driver` was made by millstream_csm_mean_driver_new; `progress` points to an int32_t.
 */
int32_t millstream_csm_mean_driver_observe(struct millstream_csm_mean_driver *driver,
                                           double value,
                                           int32_t *progress);

/**
 * How far the driver has come.
 *
 * # Safety
 * `driver` was made by millstream_csm_mean_driver_new; `out` points to a `millstream_csm_mean_status`.
 */
int32_t millstream_csm_mean_driver_status(const struct millstream_csm_mean_driver *driver,
                                          struct millstream_csm_mean_status *out);

/**
 * The natural logarithm of the number of ways to choose `k` of `n`.
 *
 * # Safety
 * `out` points to a `millstream_csm_bounds`.
 */
int32_t millstream_csm_log_choose(uint64_t n, uint64_t k, struct millstream_csm_bounds *out);

/**
 * Does the rate of success differ from `threshold`, after `successes` in `trials`? May be asked after every trial: the
 * probability that it is ever answered wrongly is at most exp(log_eps).
 *
 * `method` is "mixture", "balanced", "robbins", "centred" or "one-sided"; NULL is "robbins". With "one-sided" each direction
 * has an error of exp(log_eps): a rate on either side of the threshold is placed on the other one with that probability at
 * most, but at the threshold itself, where both directions are wrong, the two add up to as much as 2 exp(log_eps).
 *
 * # Safety
 * `method` is NULL or a C string; `out` points to a `millstream_csm_stop_result`.
 */
int32_t millstream_csm_stop(uint64_t trials,
                            uint64_t successes,
                            double threshold,
                            double log_eps,
                            const char *method,
                            struct millstream_csm_stop_result *out);

/**
 * A bound on a quantile of Beta(a, b), on the safe side: with MILLSTREAM_CSM_LOW at most `eps` of the probability lies
 * below the bound, with MILLSTREAM_CSM_HIGH at most `eps` lies above it.
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
 * How likely a setup decides within `limit` trials when the rate of success is `rate`, by exact dynamic programming.
 *
 * # Safety
 * `setup` points to a setup whose `method` is NULL or a C string; `out` points to a `millstream_csm_power_result`.
 */
int32_t millstream_csm_power(const struct millstream_csm_setup *setup,
                             double rate,
                             uint64_t limit,
                             struct millstream_csm_power_result *out);

/**
 * Makes a slab of at most `max_objects` objects of `object_bytes` bytes, a multiple of 8, in a new file.
 * MILLSTREAM_SLAB_EXISTS if there is a file already: open that.
 *
 * The file appears whole or not at all. In /dev/shm it outlives its processes but not a reboot.
 *
 * # Safety
 * `path` is a C string; `out` points to a pointer.
 */
int32_t millstream_slab_create(const char *path,
                               uint64_t object_bytes,
                               uint64_t max_objects,
                               struct millstream_slab **out);

/**
 * millstream_slab_create with all that can be said of a slab.
 *
 * # Safety
 * `path` is a C string; `options` points to options whose `struct_bytes` is their size; `out` points to a pointer.
 */
int32_t millstream_slab_create_with(const char *path,
                                    const struct millstream_slab_options *options,
                                    struct millstream_slab **out);

/**
 * Makes a slab in memory that has a descriptor, millstream_slab_fd, but no name: for children of a fork, and for processes
 * that are handed the descriptor. It is gone with the last of them.
 *
 * # Safety
 * `options` points to options whose `struct_bytes` is their size; `out` points to a pointer.
 */
int32_t millstream_slab_create_memfd(const struct millstream_slab_options *options,
                                     struct millstream_slab **out);

/**
 * Opens the slab in a file, whatever state its last users left it in.
 *
 * Waits while another process rebuilds the free list, for ten seconds at most, or 0.1 s while that process is stopped: MILLSTREAM_SLAB_BUSY says to try
 * again. MILLSTREAM_SLAB_UNTRUSTED says that the file belongs to another user, or that others may write to it, and so cut it off.
 * MILLSTREAM_SLAB_SYSTEM and an error number of ENOENT say that there is no file. MILLSTREAM_SLAB_NOT_A_SLAB,
 * MILLSTREAM_SLAB_VERSION and MILLSTREAM_SLAB_DAMAGED say that trying again will not help.
 *
 * # Safety
 * `path` is a C string; `out` points to a pointer.
 */
int32_t millstream_slab_open(const char *path,
                             struct millstream_slab **out);

/**
 * Opens the slab in a file that is open for reading and writing, as a memfd that was handed over is. All who may write to the file are trusted. The
 * descriptor stays the caller's, to be closed at any time.
 *
 * # Safety
 * `out` points to a pointer.
 */
int32_t millstream_slab_open_fd(int32_t fd,
                                struct millstream_slab **out);

/**
 * Gives a slab back. Its objects stay, and its caches go on.
 *
 * # Safety
 * `slab` is NULL or came from a function that creates or opens one, and is not used any more.
 */
void millstream_slab_free(struct millstream_slab *slab);

/**
 * The bytes of an object. Whoever opens a slab compares them with the size of his own type: buffers have to be as long.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a number.
 */
int32_t millstream_slab_object_bytes(const struct millstream_slab *slab,
                                     uint64_t *out);

/**
 * The most objects there can be.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a number.
 */
int32_t millstream_slab_max_objects(const struct millstream_slab *slab, uint64_t *out);

/**
 * The tag that was given when the slab was made; 0 if none was.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a number.
 */
int32_t millstream_slab_tag(const struct millstream_slab *slab, uint64_t *out);

/**
 * The descriptor of the slab's file or memory, to be handed to other processes. It stays the slab's: do not close it.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to an int32_t.
 */
int32_t millstream_slab_fd(const struct millstream_slab *slab,
                           int32_t *out);

/**
 * Makes a cache for the calling thread. MILLSTREAM_SLAB_NO_CACHE if as many as the slab has room for are in use.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a pointer.
 */
int32_t millstream_slab_cache_new(const struct millstream_slab *slab,
                                  struct millstream_slab_cache **out);

/**
 * Gives a cache back, with the free objects in it.
 *
 * # Safety
 * `cache` is NULL or was made by millstream_slab_cache_new, and neither it nor a private object of it is used any more.
 */
void millstream_slab_cache_free(struct millstream_slab_cache *cache);

/**
 * Says who uses a cache: a worker, a job. Objects that it publishes from now on have this owner, and so have those that it
 * holds when its process dies: so what a dead worker left can be told from what others have, by millstream_slab_next. Without
 * effect where the slab was made without `owners`.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new.
 */
int32_t millstream_slab_set_owner(const struct millstream_slab_cache *cache,
                                  uint64_t owner);

/**
 * Allocates an object, copies its bytes from `bytes` and publishes it. A kill at any moment leaves it published with these
 * bytes, or free, or (between the two) an orphan whose bytes may be of any sort, for a survivor to find by
 * millstream_slab_next.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new; `bytes` points to as many bytes as an object has; `out` points to a
 * handle.
 */
int32_t millstream_slab_put(const struct millstream_slab_cache *cache,
                            const void *bytes,
                            struct millstream_slab_handle *out);

/**
 * Copies an object, published or orphan, to `bytes`. MILLSTREAM_SLAB_STALE if it was freed, even while it was copied; a
 * mixture of both if somebody changed it meanwhile.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `bytes` points to as many bytes as an object has.
 */
int32_t millstream_slab_get(const struct millstream_slab *slab,
                            struct millstream_slab_handle handle,
                            void *bytes);

/**
 * Changes the bytes of an object, published or orphan, which is nobody else's meanwhile and published afterwards.
 *
 * A kill in the middle leaves an orphan whose bytes may be half old, half new. millstream_slab_get copies it like any
 * other; millstream_slab_next tells that it is one. Where no half may ever be seen, put a new object and delete the old one.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new; `bytes` points to as many bytes as an object has.
 */
int32_t millstream_slab_set(const struct millstream_slab_cache *cache,
                            struct millstream_slab_handle handle,
                            const void *bytes);

/**
 * Frees an object, whoever put it there. MILLSTREAM_SLAB_STALE if it was freed before.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new.
 */
int32_t millstream_slab_delete(const struct millstream_slab_cache *cache,
                               struct millstream_slab_handle handle);

/**
 * Where a published object or an orphan lies in this process, aligned to 8 bytes: for structures whose users have an
 * agreement of their own, such as atomics in the object. Not to be touched once somebody frees or claims the object, or
 * once the slab and all its caches were given back.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a pointer.
 */
int32_t millstream_slab_pointer(const struct millstream_slab *slab,
                                struct millstream_slab_handle handle,
                                void **out);

/**
 * millstream_slab_sync of one object: once it returns, the object is there after a power failure, with its bytes. Before,
 * it may be there with other bytes: tell others of its handle afterwards.
 *
 * # Safety
 * `slab` came from a function that creates or opens one.
 */
int32_t millstream_slab_sync_object(const struct millstream_slab *slab,
                                    struct millstream_slab_handle handle);

/**
 * Allocates an object, private to the cache until it is published. Its bytes are what their last holder left, or 0. If there
 * is none, `out->bytes` is NULL.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new, and is given back after the object; `out` points to a
 * `millstream_slab_private`.
 */
int32_t millstream_slab_private_new(const struct millstream_slab_cache *cache,
                                    struct millstream_slab_private *out);

/**
 * Makes an object, published or orphan, private to the cache: the way to change it in place. Its handle stays good, and is
 * answered with MILLSTREAM_SLAB_HELD until it is published again. If it can't be had, `out->bytes` is NULL.
 *
 * # Safety
 * As for millstream_slab_private_new.
 */
int32_t millstream_slab_private_claim(const struct millstream_slab_cache *cache,
                                      struct millstream_slab_handle handle,
                                      struct millstream_slab_private *out);

/**
 * Makes a private object everybody's: from now on any thread of any process can use it by its handle, and `bytes` is
 * NULL. A kill comes before it and leaves an orphan, or after it and leaves a published object.
 *
 * # Safety
 * `object` came from millstream_slab_private_new or millstream_slab_private_claim; `out` points to a handle.
 */
int32_t millstream_slab_private_publish(struct millstream_slab_private *object,
                                        struct millstream_slab_handle *out);

/**
 * Frees a private object. One without bytes is left alone.
 *
 * # Safety
 * `object` is NULL, or its `bytes` are, or it came from millstream_slab_private_new or millstream_slab_private_claim.
 */
void millstream_slab_private_free(struct millstream_slab_private *object);

/**
 * The next allocated object whose number is `*from` or higher; raises `*from` beyond it. MILLSTREAM_SLAB_END if there is
 * none.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `from` points to a number; `out` points to an object.
 */
int32_t millstream_slab_next(const struct millstream_slab *slab,
                             uint64_t *from,
                             struct millstream_slab_object *out);

/**
 * How the objects are used: a count over all of them, exact if nobody allocates or frees meanwhile.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a `millstream_slab_usage_result`.
 */
int32_t millstream_slab_usage(const struct millstream_slab *slab, struct millstream_slab_usage_result *out);

/**
 * Checks every invariant; how many problems there are, 0 for a sound slab. Of the first of them millstream_error_message()
 * has a line each, though the status is MILLSTREAM_OK.
 *
 * Exact if nobody allocates or frees meanwhile; otherwise what others do while it looks may show as a problem.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a number.
 */
int32_t millstream_slab_verify(const struct millstream_slab *slab,
                               uint64_t *out);

/**
 * Makes the kernel write everything to the device, and waits for it. Objects that were published before are there after a
 * power failure, with their contents; without it, only the death of processes is survived.
 *
 * # Safety
 * `slab` came from a function that creates or opens one.
 */
int32_t millstream_slab_sync(const struct millstream_slab *slab);

/**
 * Returns what dead processes had in their hands, while others go on; how many objects that were. MILLSTREAM_SLAB_BUSY if another process takes
 * too long to recover some of it.
 *
 * # Safety
 * `slab` came from a function that creates or opens one; `out` points to a number.
 */
int32_t millstream_slab_recover(const struct millstream_slab *slab,
                                uint64_t *out);

/**
 * Why the last function that failed on this thread did so, or what millstream_slab_verify found last; empty if there was
 * neither. The text is valid until the next failure on the same thread and must not be freed.
 */
const char *millstream_error_message(void);

/**
 * What errno was when the last function that failed on this thread did so with MILLSTREAM_SLAB_SYSTEM: ENOENT, EACCES,
 * ENOSPC, …; 0 if it failed for another reason.
 */
int32_t millstream_error_number(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MILLSTREAM_H */
