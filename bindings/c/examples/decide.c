/* Decides, trial by trial, whether 100 bins fill to 85 % in more than 98 % of cases before one of them is full; it errs at
 * most once in a thousand runs.
 *
 *   cc decide.c $(pkg-config --static --cflags --libs millstream) -static -o decide && ./decide
 */
#include <millstream.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int32_t status) {
    if (status != MILLSTREAM_OK) {
        fprintf(stderr, "millstream: %s\n", millstream_error_message());
        exit(2);
    }
}

/* Throws balls into 100 bins of capacity 600, and returns how full all bins together are when the first bin is full. */
static double fill(void) {
    static uint64_t state = 1;
    int bins[100] = {0};
    for (int balls = 1;; balls++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if (++bins[(state >> 32) % 100] == 600) {
            return balls / 60000.0;
        }
    }
}

int main(void) {
    millstream_csm_setup setup = {.struct_bytes = sizeof setup, .claim = MILLSTREAM_CSM_AT_LEAST, .low = 0.98, .error = 1e-3};
    millstream_csm_power_result power = {.struct_bytes = sizeof power};
    check(millstream_csm_power(&setup, 0.993, 20000, &power));
    printf("if the rate is 0.993: decided with probability %.4f, after %.0f trials on average\n",
           power.holds, power.mean_trials);

    millstream_csm_driver *driver;
    check(millstream_csm_driver_new(&setup, 0, 0, &driver));
    int32_t progress = MILLSTREAM_CSM_RUNNING;
    while (progress == MILLSTREAM_CSM_RUNNING) {
        check(millstream_csm_driver_observe(driver, fill() >= 0.85, &progress));
    }

    millstream_csm_status status = {.struct_bytes = sizeof status};
    check(millstream_csm_driver_status(driver, &status));
    printf("%s after %llu trials, %llu successes; the rate lies in [%.6f, %.6f]\n",
           progress == MILLSTREAM_CSM_HOLDS ? "holds" : "fails", (unsigned long long)status.trials,
           (unsigned long long)status.successes, status.interval.low, status.interval.high);
    millstream_csm_driver_free(driver);

    /* The low-level functions, for the numbers of Paul Khuong's article: 3972 successes in 4000 trials. */
    millstream_csm_stop_result stop = {.struct_bytes = sizeof stop};
    check(millstream_csm_stop(4000, 3972, 0.98, log(0.001), NULL, &stop));
    printf("stop: %s, level %.10f\n", stop.stop ? "yes" : "no", stop.level);
    return progress == MILLSTREAM_CSM_HOLDS ? 0 : 1;
}
