/* Calls every function except those of slabs, with an input that has an answer and with one that has none. */
#include "expect.h"

#include <math.h>
#include <string.h>

static int near(double found, double expected) {
    return fabs(found - expected) <= 1e-9 * fabs(expected);
}

static void numbers(void) {
    millstream_csm_bounds bounds;
    EXPECT(millstream_error_message()[0] == '\0');
    EXPECT(millstream_csm_log_choose(10, 5, &bounds) == MILLSTREAM_OK);
    EXPECT(bounds.lower <= log(252.0) * (1 + 1e-15) && bounds.upper >= log(252.0) * (1 - 1e-15));
    EXPECT(near(bounds.lower, log(252.0)) && near(bounds.upper, log(252.0)));
    EXPECT(millstream_csm_log_choose(5, 10, &bounds) == MILLSTREAM_MORE_THAN_ALL);
    EXPECT(strstr(millstream_error_message(), "10") != NULL);
    EXPECT(millstream_csm_log_choose(10, 5, NULL) == MILLSTREAM_NULL);

    millstream_csm_stop_result stop = {.struct_bytes = sizeof stop};
    EXPECT(millstream_csm_stop(100, 100, 0.98, log(0.001), "robbins", &stop) == MILLSTREAM_OK);
    EXPECT(!stop.stop && stop.direction == 0 && near(stop.level, 2.594849785089312));
    EXPECT(millstream_csm_stop(4000, 3972, 0.98, log(0.001), NULL, &stop) == MILLSTREAM_OK);
    EXPECT(stop.stop && stop.direction == 1);
    EXPECT(millstream_csm_stop(4000, 3700, 0.98, log(0.001), "balanced", &stop) == MILLSTREAM_OK);
    EXPECT(stop.stop && stop.direction == -1);
    EXPECT(millstream_csm_stop(100, 100, NAN, -1, NULL, &stop) == MILLSTREAM_NOT_FINITE);
    EXPECT(millstream_csm_stop(100, 100, 0.5, -1, "guess", &stop) == MILLSTREAM_UNKNOWN);
    EXPECT(millstream_csm_stop(100, 100, 0.5, -1, "\xff", &stop) == MILLSTREAM_UNKNOWN);

    millstream_csm_beta_result beta;
    EXPECT(millstream_csm_beta_bound(1, 1, 0.25, MILLSTREAM_CSM_LOW, &beta) == MILLSTREAM_OK);
    EXPECT(beta.bound <= 0.25 && near(beta.bound, 0.25) && near(beta.complement, 0.75));
    EXPECT(millstream_csm_beta_bound(1, 1, 0.25, MILLSTREAM_CSM_HIGH, &beta) == MILLSTREAM_OK);
    EXPECT(beta.bound >= 0.75 && near(beta.bound, 0.75));
    EXPECT(millstream_csm_beta_bound(1, 1, 0.25, 2, &beta) == MILLSTREAM_UNKNOWN);
    EXPECT(millstream_csm_beta_bound(-1, 1, 0.25, MILLSTREAM_CSM_LOW, &beta) == MILLSTREAM_OUT_OF_RANGE);
}

static void intervals(void) {
    millstream_csm_interval_result watched, fixed, credible;
    EXPECT(millstream_csm_interval(1000, 900, 0.05, MILLSTREAM_CSM_WATCHED, &watched) == MILLSTREAM_OK);
    EXPECT(millstream_csm_interval(1000, 900, 0.05, MILLSTREAM_CSM_FIXED, &fixed) == MILLSTREAM_OK);
    EXPECT(millstream_csm_interval(1000, 900, 0.05, MILLSTREAM_CSM_CREDIBLE, &credible) == MILLSTREAM_OK);
    EXPECT(watched.low < fixed.low && fixed.low < credible.low && credible.low < 0.9);
    EXPECT(watched.high > fixed.high && fixed.high > 0.9 && credible.high > 0.9);
    EXPECT(millstream_csm_interval(1000, 900, 0.05, 3, &fixed) == MILLSTREAM_UNKNOWN);
    EXPECT(millstream_csm_interval(10, 11, 0.05, MILLSTREAM_CSM_FIXED, &fixed) == MILLSTREAM_MORE_THAN_ALL);

    millstream_csm_ranks ranks;
    EXPECT(millstream_csm_quantile_ranks(1000, 0.5, 0.05, &ranks) == MILLSTREAM_OK);
    EXPECT(400 < ranks.low && ranks.low < 500 && 500 < ranks.high && ranks.high < 600);
    EXPECT(millstream_csm_quantile_ranks(1000, 2, 0.05, &ranks) == MILLSTREAM_OUT_OF_RANGE);
}

static void driver(void) {
    millstream_csm_setup setup = {.struct_bytes = sizeof setup,
                                  .claim = MILLSTREAM_CSM_BETWEEN,
                                  .low = 0.4,
                                  .high = 0.6,
                                  .error = 1e-3,
                                  .limit = 1000};
    millstream_csm_driver *driver = NULL;
    int32_t progress = -1;
    EXPECT(millstream_csm_driver_new(&setup, 0, 0, &driver) == MILLSTREAM_OK);
    EXPECT(millstream_csm_driver_observe(driver, true, NULL) == MILLSTREAM_OK);
    EXPECT(millstream_csm_driver_observe(driver, true, &progress) == MILLSTREAM_OK);
    EXPECT(progress == MILLSTREAM_CSM_RUNNING);
    EXPECT(millstream_csm_driver_observe_set(driver, 10, 11, &progress) == MILLSTREAM_MORE_THAN_ALL);
    EXPECT(millstream_csm_driver_observe_set(driver, 200, 190, &progress) == MILLSTREAM_OK);
    EXPECT(progress == MILLSTREAM_CSM_HOLDS);
    millstream_csm_status status = {.struct_bytes = sizeof status};
    EXPECT(millstream_csm_driver_status(driver, &status) == MILLSTREAM_OK);
    EXPECT(status.trials == 202 && status.successes == 192 && status.progress == MILLSTREAM_CSM_HOLDS);
    EXPECT(status.interval.low > 0.6 && status.interval.high < 1 && status.level < status.log_eps);
    millstream_csm_driver_free(driver);

    setup.limit = 3;
    EXPECT(millstream_csm_driver_new(&setup, 2, 1, &driver) == MILLSTREAM_OK);
    EXPECT(millstream_csm_driver_observe(driver, false, &progress) == MILLSTREAM_OK);
    EXPECT(progress == MILLSTREAM_CSM_AT_LIMIT);
    millstream_csm_driver_free(driver);

    setup.claim = 9;
    EXPECT(millstream_csm_driver_new(&setup, 0, 0, &driver) == MILLSTREAM_UNKNOWN);
    setup.claim = MILLSTREAM_CSM_AT_LEAST;
    setup.method = "sprt";
    EXPECT(millstream_csm_driver_new(&setup, 0, 0, &driver) != MILLSTREAM_OK);
    EXPECT(millstream_csm_driver_new(NULL, 0, 0, &driver) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_driver_observe(NULL, true, &progress) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_driver_status(NULL, &status) == MILLSTREAM_NULL);
    millstream_csm_driver_free(NULL);

    millstream_csm_power_result power = {.struct_bytes = sizeof power};
    setup = (millstream_csm_setup){
        .struct_bytes = sizeof setup, .claim = MILLSTREAM_CSM_AT_MOST, .high = 0.5, .error = 0.01, .method = "robbins"};
    EXPECT(millstream_csm_power(&setup, 0.3, 1000, &power) == MILLSTREAM_OK);
    EXPECT(power.holds > 0.9 && power.fails < 0.01 && near(power.holds + power.fails + power.undecided, 1));
    EXPECT(power.mean_trials > 10 && power.mean_trials < 1000);
    EXPECT(millstream_csm_power(&setup, 2, 1000, &power) == MILLSTREAM_OUT_OF_RANGE);
}

static void means(void) {
    millstream_csm_mean_setup setup = {.struct_bytes = sizeof setup,
                                       .claim = MILLSTREAM_CSM_AT_MOST,
                                       .high = 0.3,
                                       .least = 0,
                                       .most = 1,
                                       .error = 0.001,
                                       .limit = 5000};
    millstream_csm_mean_driver *driver = NULL;
    EXPECT(millstream_csm_mean_driver_new(&setup, &driver) == MILLSTREAM_OK);
    int32_t progress = -1;
    millstream_csm_mean_status status = {.struct_bytes = sizeof status};
    EXPECT(millstream_csm_mean_driver_status(driver, &status) == MILLSTREAM_OK);
    EXPECT(status.trials == 0 && status.mean != status.mean && status.progress == MILLSTREAM_CSM_RUNNING);
    EXPECT(millstream_csm_mean_driver_observe(driver, 1.5, &progress) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_mean_driver_observe(driver, 0.0 / 0.0, &progress) != MILLSTREAM_OK);
    for (int i = 0; progress != MILLSTREAM_CSM_HOLDS && i < 5000; i++) {
        EXPECT(millstream_csm_mean_driver_observe(driver, i % 2 ? 0.1 : 0.2, &progress) == MILLSTREAM_OK);
    }
    EXPECT(millstream_csm_mean_driver_status(driver, &status) == MILLSTREAM_OK);
    EXPECT(status.progress == MILLSTREAM_CSM_HOLDS && 10 < status.trials && status.trials < 1000);
    EXPECT(fabs(status.mean - 0.15) < 0.01 && status.interval.low < 0.15 && 0.15 < status.interval.high);
    millstream_csm_mean_driver_free(driver);

    setup.high = 2;
    EXPECT(millstream_csm_mean_driver_new(&setup, &driver) == MILLSTREAM_NO_ANSWER);
    setup.claim = 9;
    EXPECT(millstream_csm_mean_driver_new(&setup, &driver) == MILLSTREAM_UNKNOWN);
    EXPECT(millstream_csm_mean_driver_new(NULL, &driver) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_mean_driver_observe(NULL, 0.5, &progress) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_mean_driver_status(NULL, &status) == MILLSTREAM_NULL);
    millstream_csm_mean_driver_free(NULL);
}

static void batches(void) {
    enum { TRIALS = 2000 };
    bool outcomes[TRIALS];
    double values[TRIALS];
    for (int i = 0; i < TRIALS; i++) {
        outcomes[i] = i % 20 != 0;
        values[i] = 0.1 + 0.01 * (i * 7 % 10);
    }
    millstream_csm_setup setup = {
        .struct_bytes = sizeof setup, .claim = MILLSTREAM_CSM_AT_LEAST, .low = 0.8, .error = 1e-3};
    millstream_csm_driver *one = NULL, *many = NULL;
    int32_t progress = MILLSTREAM_CSM_RUNNING;
    size_t used = 99, trials = 0;
    EXPECT(millstream_csm_driver_new(&setup, 0, 0, &one) == MILLSTREAM_OK);
    EXPECT(millstream_csm_driver_new(&setup, 0, 0, &many) == MILLSTREAM_OK);
    EXPECT(millstream_csm_driver_observe_many(many, NULL, 0, &used, NULL) == MILLSTREAM_OK && used == 0);
    while (progress == MILLSTREAM_CSM_RUNNING) {
        EXPECT(millstream_csm_driver_observe(one, outcomes[trials++], &progress) == MILLSTREAM_OK);
    }
    progress = -1;
    EXPECT(millstream_csm_driver_observe_many(many, outcomes, TRIALS, &used, &progress) == MILLSTREAM_OK);
    EXPECT(used == trials && progress == MILLSTREAM_CSM_HOLDS);
    EXPECT(millstream_csm_driver_observe_many(many, outcomes, TRIALS, &used, &progress) == MILLSTREAM_OK && used == 0);
    /* A byte that is not a bool is refused, and nothing is recorded. */
    unsigned char bytes[3] = {1, 2, 0};
    const void *no_bools = bytes;
    used = 99, progress = -1;
    EXPECT(millstream_csm_driver_observe_many(one, no_bools, 3, &used, &progress) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_driver_observe_many(NULL, outcomes, 1, &used, &progress) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_driver_observe_many(one, NULL, 1, &used, &progress) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_driver_observe_many(one, outcomes, SIZE_MAX, &used, &progress) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_driver_observe_many(one, outcomes, 1, NULL, &progress) == MILLSTREAM_NULL);
    EXPECT(used == 99 && progress == -1);
    millstream_csm_driver_free(one);
    millstream_csm_driver_free(many);

    millstream_csm_mean_setup mean = {.struct_bytes = sizeof mean,
                                      .claim = MILLSTREAM_CSM_AT_MOST,
                                      .high = 0.3,
                                      .most = 1,
                                      .error = 1e-3};
    millstream_csm_mean_driver *first = NULL, *all = NULL;
    EXPECT(millstream_csm_mean_driver_new(&mean, &first) == MILLSTREAM_OK);
    EXPECT(millstream_csm_mean_driver_new(&mean, &all) == MILLSTREAM_OK);
    for (trials = 0, progress = MILLSTREAM_CSM_RUNNING; progress == MILLSTREAM_CSM_RUNNING; trials++) {
        EXPECT(millstream_csm_mean_driver_observe(first, values[trials], &progress) == MILLSTREAM_OK);
    }
    /* A batch with a value outside the bounds is refused as a whole. */
    values[5] = 1.5;
    millstream_csm_mean_status status = {.struct_bytes = sizeof status};
    EXPECT(millstream_csm_mean_driver_observe_many(all, values, TRIALS, &used, NULL) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_mean_driver_status(all, &status) == MILLSTREAM_OK && status.trials == 0 && used == 99);
    values[5] = 0.1 + 0.01 * 5;
    EXPECT(millstream_csm_mean_driver_observe_many(all, values, TRIALS, &used, NULL) == MILLSTREAM_OK);
    EXPECT(used == trials);
    EXPECT(millstream_csm_mean_driver_observe_many(all, values, 1, &used, &progress) == MILLSTREAM_OK && used == 0);
    EXPECT(progress == MILLSTREAM_CSM_HOLDS);
    used = 99;
    EXPECT(millstream_csm_mean_driver_observe_many(NULL, values, 1, &used, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_mean_driver_observe_many(all, NULL, 1, &used, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_mean_driver_observe_many(all, values, SIZE_MAX / 4, &used, NULL) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_mean_driver_observe_many(all, values, 1, NULL, NULL) == MILLSTREAM_NULL && used == 99);
    millstream_csm_mean_driver_free(first);
    millstream_csm_mean_driver_free(all);

    millstream_csm_interval_result median, none;
    EXPECT(millstream_csm_quantile_interval(values, TRIALS, 0.5, 0.01, &median) == MILLSTREAM_OK);
    EXPECT(0.1 <= median.low && median.low <= 0.15 && 0.14 <= median.high && median.high <= 0.19);
    EXPECT(millstream_csm_quantile_interval(NULL, 0, 0.5, 0.01, &none) == MILLSTREAM_OK);
    EXPECT(none.low == -INFINITY && none.high == INFINITY);
    values[7] = NAN;
    EXPECT(millstream_csm_quantile_interval(values, TRIALS, 0.5, 0.01, &median) == MILLSTREAM_NOT_FINITE);
    EXPECT(millstream_csm_quantile_interval(values, 5, 2, 0.01, &median) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_quantile_interval(NULL, 5, 0.5, 0.01, &median) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_quantile_interval(values, SIZE_MAX, 0.5, 0.01, &median) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_quantile_interval(values, 5, 0.5, 0.01, NULL) == MILLSTREAM_NULL);
}

static void comparisons(void) {
    double slow[300], quick[300];
    for (int i = 0; i < 300; i++) {
        slow[i] = 20 + i * 7 % 10;
        quick[i] = 12 + i * 3 % 10;
    }
    millstream_csm_comparison found = {.struct_bytes = sizeof found};
    EXPECT(millstream_csm_compare(slow, 300, quick, 200, 0.001, &found) == MILLSTREAM_OK);
    EXPECT(found.smaller == MILLSTREAM_CSM_SECOND && found.pairs == 200);
    EXPECT(found.interval.low < found.ratio && found.ratio < found.interval.high && found.interval.high < 1);
    EXPECT(millstream_csm_compare(slow, 5, quick, 5, 0.001, &found) == MILLSTREAM_OK);
    EXPECT(found.smaller == MILLSTREAM_CSM_NEITHER);
    EXPECT(millstream_csm_compare(NULL, 0, quick, 5, 0.001, &found) == MILLSTREAM_NO_ANSWER);
    EXPECT(millstream_csm_compare(NULL, 5, quick, 5, 0.001, &found) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_compare_pairs(quick, slow, 300, 0.001, &found) == MILLSTREAM_OK);
    EXPECT(found.smaller == MILLSTREAM_CSM_FIRST && found.pairs < 100 && found.interval.low > 1);
    quick[0] = -1;
    EXPECT(millstream_csm_compare_pairs(quick, slow, 300, 0.001, &found) == MILLSTREAM_OUT_OF_RANGE);
    quick[0] = 12;

    millstream_csm_setup setup = {.struct_bytes = sizeof setup,
                                  .claim = MILLSTREAM_CSM_AT_MOST,
                                  .high = 0.01,
                                  .error = 1e-6,
                                  .limit = 100000};
    millstream_csm_status status = {.struct_bytes = sizeof status};
    int32_t tail = MILLSTREAM_CSM_GREATER;
    EXPECT(millstream_csm_permutation(slow, 300, quick, 300, "mean", tail, 0, 1, &setup, 7, &status) == MILLSTREAM_OK);
    EXPECT(status.progress == MILLSTREAM_CSM_HOLDS && status.successes == 0);
    tail = MILLSTREAM_CSM_LESS;
    EXPECT(millstream_csm_permutation(slow, 300, quick, 300, "median", tail, 0, 1, &setup, 7, &status) == MILLSTREAM_OK);
    EXPECT(status.progress == MILLSTREAM_CSM_FAILS);
    EXPECT(millstream_csm_permutation(slow, 3, quick, 3, "mode", 0, 0, 1, &setup, 7, &status) == MILLSTREAM_UNKNOWN);
    EXPECT(millstream_csm_permutation(slow, 3, quick, 3, "mean", 9, 0, 1, &setup, 7, &status) == MILLSTREAM_UNKNOWN);
    EXPECT(millstream_csm_permutation(slow, 3, quick, 3, "mean", 0, 0, 0, &setup, 7, &status) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_permutation(slow, 3, quick, 3, NULL, 0, 0, 1, &setup, 7, &status) == MILLSTREAM_NULL);
    EXPECT(millstream_csm_permutation(slow, 3, quick, 3, "mean", 0, 0, 1, NULL, 7, &status) == MILLSTREAM_NULL);
}

/* Arguments are evaluated in any order, so a message may be asked for before the call that fails. */
static void a_message_may_be_asked_for_before_the_failure(void) {
    millstream_csm_bounds bounds;
    const char *early = millstream_error_message();
    for (int i = 0; i < 1000; i++) {
        EXPECT(millstream_csm_log_choose(5, 10 + i, &bounds) == MILLSTREAM_MORE_THAN_ALL);
        EXPECT(early == millstream_error_message());
    }
    EXPECT(strstr(early, "1009") != NULL && strlen(early) < MILLSTREAM_MESSAGE_BYTES);
}

/* Every struct that starts with struct_bytes is refused, and left as it is, unless it tells its size. */
static void structs_tell_their_size(void) {
    double data[2] = {1, 2};
    millstream_csm_setup setup = {.struct_bytes = sizeof setup, .claim = MILLSTREAM_CSM_AT_MOST, .high = 0.5, .error = 0.1};
    millstream_csm_mean_setup mean_setup = {
        .struct_bytes = sizeof mean_setup, .claim = MILLSTREAM_CSM_AT_MOST, .high = 0.5, .most = 1, .error = 0.1};
    millstream_csm_driver *driver = NULL;
    millstream_csm_mean_driver *mean_driver = NULL;
    EXPECT(millstream_csm_driver_new(&setup, 0, 0, &driver) == MILLSTREAM_OK);
    EXPECT(millstream_csm_mean_driver_new(&mean_setup, &mean_driver) == MILLSTREAM_OK);

    millstream_csm_stop_result stop = {.level = 7};
    EXPECT(millstream_csm_stop(1, 1, 0.5, -1, NULL, &stop) == MILLSTREAM_OUT_OF_RANGE && stop.level == 7);
    EXPECT(strstr(millstream_error_message(), "sizeof(millstream_csm_stop_result)") != NULL);
    millstream_csm_status status = {.trials = 7};
    EXPECT(millstream_csm_driver_status(driver, &status) == MILLSTREAM_OUT_OF_RANGE && status.trials == 7);
    millstream_csm_mean_status mean_status = {.trials = 7};
    EXPECT(millstream_csm_mean_driver_status(mean_driver, &mean_status) == MILLSTREAM_OUT_OF_RANGE);
    millstream_csm_power_result power = {.holds = 7};
    EXPECT(millstream_csm_power(&setup, 0.5, 10, &power) == MILLSTREAM_OUT_OF_RANGE && power.holds == 7);
    millstream_csm_comparison found = {.ratio = 7};
    EXPECT(millstream_csm_compare(data, 2, data, 2, 0.1, &found) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_compare_pairs(data, data, 2, 0.1, &found) == MILLSTREAM_OUT_OF_RANGE && found.ratio == 7);
    EXPECT(millstream_csm_permutation(data, 2, data, 2, "mean", 0, 0, 1, &setup, 7, &status) == MILLSTREAM_OUT_OF_RANGE);

    setup.reserved = 1;
    EXPECT(millstream_csm_driver_new(&setup, 0, 0, &driver) == MILLSTREAM_UNKNOWN);
    mean_setup.reserved = 1;
    EXPECT(millstream_csm_mean_driver_new(&mean_setup, &mean_driver) == MILLSTREAM_UNKNOWN);
    setup.struct_bytes = mean_setup.struct_bytes = 1;
    EXPECT(millstream_csm_power(&setup, 0.5, 10, &power) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_driver_new(&setup, 0, 0, &driver) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_csm_mean_driver_new(&mean_setup, &mean_driver) == MILLSTREAM_OUT_OF_RANGE);
    millstream_csm_driver_free(driver);
    millstream_csm_mean_driver_free(mean_driver);
}

/* A program that was compiled with a later header gets 0 in the members that this library does not know. */
static void members_of_a_later_version_become_zero(void) {
    struct {
        millstream_csm_stop_result known;
        uint64_t unknown;
    } later = {.unknown = 7};
    later.known.struct_bytes = sizeof later;
    EXPECT(millstream_csm_stop(4000, 3972, 0.98, log(0.001), NULL, &later.known) == MILLSTREAM_OK);
    EXPECT(later.known.struct_bytes == sizeof later && later.known.direction == 1 && later.unknown == 0);
}

static void the_library_is_of_the_version_of_the_header(void) {
    EXPECT(millstream_version() == MILLSTREAM_VERSION);
}

int main(void) {
    numbers();
    structs_tell_their_size();
    members_of_a_later_version_become_zero();
    the_library_is_of_the_version_of_the_header();
    a_message_may_be_asked_for_before_the_failure();
    intervals();
    driver();
    means();
    batches();
    comparisons();
    return failures != 0;
}
