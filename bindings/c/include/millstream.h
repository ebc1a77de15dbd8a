/*
 * Millstream for C.
 *
 * Decide with evidence: confidence sequences, exact tests and stopping rules whose errors are on the safe side. All
 * numbers are the same as in the Rust and Python libraries and on the command line, to the last bit.
 *
 * Conventions
 *   - A function that can fail returns a status: MILLSTREAM_OK, or another MILLSTREAM_... code. It writes through its
 *     `out` pointers only when the status is MILLSTREAM_OK. millstream_error_message() says what went wrong, what was
 *     expected and what was found.
 *   - Whatever a ..._new function made is given back to the ..._free function of the same name. Freeing NULL is allowed.
 *   - Functions may be called from any thread; one object must not be used by two threads at once.
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
 * As extreme is a statistic that is at least as large.
 */
#define MILLSTREAM_CSM_GREATER 0

/**
 * As extreme is a statistic that is at most as large.
 */
#define MILLSTREAM_CSM_LESS 1

/**
 * As extreme is a statistic whose absolute value is at least as large.
 */
#define MILLSTREAM_CSM_BOTH 2

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
 * The slab can't be made, opened or used; see the message.
 */
#define MILLSTREAM_SLAB_UNUSABLE 12

/**
 * There is no further object.
 */
#define MILLSTREAM_SLAB_END 13

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
     * How evidence is weighed: "balanced", "robbins", "centred", "one-sided"; with two thresholds "blend" or "sprt". NULL
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
 * An allocated object, as millstream_slab_next finds it.
 */
typedef struct millstream_slab_object {
    /**
     * Its name.
     */
    struct millstream_slab_handle handle;
    /**
     * 0: published; -1: its process died; otherwise the process that has it to itself.
     */
    int64_t holder;
} millstream_slab_object;

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
 * second's less the first's. `tail` is MILLSTREAM_CSM_GREATER, MILLSTREAM_CSM_LESS or MILLSTREAM_CSM_BOTH. The null
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
 * `method` is "balanced", "robbins", "centred" or "one-sided"; NULL is "robbins".
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
 *
 * # Safety
 * `path` is a C string; `out` points to a pointer.
 */
int32_t millstream_slab_create(const char *path,
                               uint64_t object_bytes,
                               uint64_t max_objects,
                               struct millstream_slab **out);

/**
 * Opens the slab in a file, whatever state its last users left it in.
 *
 * # Safety
 * `path` is a C string; `out` points to a pointer.
 */
int32_t millstream_slab_open(const char *path, struct millstream_slab **out);

/**
 * Gives a slab back. Its objects stay, and its caches go on.
 *
 * # Safety
 * `slab` is NULL or was made by millstream_slab_create or millstream_slab_open, and is not used any more.
 */
void millstream_slab_free(struct millstream_slab *slab);

/**
 * The bytes of an object.
 *
 * # Safety
 * `slab` was made by millstream_slab_create or millstream_slab_open; `out` points to a number.
 */
int32_t millstream_slab_object_bytes(const struct millstream_slab *slab, uint64_t *out);

/**
 * Makes a cache for the calling thread.
 *
 * # Safety
 * `slab` was made by millstream_slab_create or millstream_slab_open; `out` points to a pointer.
 */
int32_t millstream_slab_cache_new(const struct millstream_slab *slab, struct millstream_slab_cache **out);

/**
 * Gives a cache back, with the free objects in it.
 *
 * # Safety
 * `cache` is NULL or was made by millstream_slab_cache_new, and is not used any more.
 */
void millstream_slab_cache_free(struct millstream_slab_cache *cache);

/**
 * Allocates an object, copies its bytes from `bytes` and publishes it. A kill at any moment leaves it published with these
 * bytes, or free, or (between the two) for a survivor to find by millstream_slab_next.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new; `bytes` points to as many bytes as an object has; `out` points to a
 * handle.
 */
int32_t millstream_slab_put(const struct millstream_slab_cache *cache,
                            const uint8_t *bytes,
                            struct millstream_slab_handle *out);

/**
 * Copies an object to `bytes`. MILLSTREAM_SLAB_STALE if it was freed, even while it was copied; a mixture of both if
 * somebody changed it meanwhile.
 *
 * # Safety
 * `slab` was made by millstream_slab_create or millstream_slab_open; `bytes` points to as many bytes as an object has.
 */
int32_t millstream_slab_get(const struct millstream_slab *slab,
                            struct millstream_slab_handle handle,
                            uint8_t *bytes);

/**
 * Changes the bytes of an object, which is nobody else's meanwhile.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new; `bytes` points to as many bytes as an object has.
 */
int32_t millstream_slab_set(const struct millstream_slab_cache *cache,
                            struct millstream_slab_handle handle,
                            const uint8_t *bytes);

/**
 * Frees an object, whoever put it there. MILLSTREAM_SLAB_STALE if it was freed before.
 *
 * # Safety
 * `cache` was made by millstream_slab_cache_new.
 */
int32_t millstream_slab_delete(const struct millstream_slab_cache *cache,
                               struct millstream_slab_handle handle);

/**
 * The next allocated object whose number is `*from` or higher; raises `*from` beyond it. MILLSTREAM_SLAB_END if there is
 * none.
 *
 * # Safety
 * `slab` was made by millstream_slab_create or millstream_slab_open; `from` points to a number; `out` points to an
 * object.
 */
int32_t millstream_slab_next(const struct millstream_slab *slab,
                             uint64_t *from,
                             struct millstream_slab_object *out);

/**
 * Returns what dead processes had in their hands, while others go on; how many objects that were.
 *
 * # Safety
 * `slab` was made by millstream_slab_create or millstream_slab_open; `out` points to a number.
 */
int32_t millstream_slab_recover(const struct millstream_slab *slab, uint64_t *out);

/**
 * Why the last function that failed on this thread did so; empty if none has. The text is valid until the next failure
 * on the same thread and must not be freed.
 */
const char *millstream_error_message(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MILLSTREAM_H */
