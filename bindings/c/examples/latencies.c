/* Decides claims about latencies that were already measured, in an array. C99 and C++.
 *
 *   cc latencies.c $(pkg-config --static --cflags --libs millstream) -static -o latencies && ./latencies
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "millstream.h"

enum { LATENCIES = 2000 };

static void check(int32_t status) {
    if (status != MILLSTREAM_OK) {
        fprintf(stderr, "%s\n", millstream_error_message());
        exit(1);
    }
}

int main(void) {
    double seconds[LATENCIES];
    bool in_time[LATENCIES];
    for (int i = 0; i < LATENCIES; i++) {
        seconds[i] = 0.010 + 0.001 * (i * 7 % 20);
        in_time[i] = seconds[i] < 0.050;
    }
    size_t used;
    int32_t progress;

    /* Are more than 99 % in time? The error is one in a thousand. */
    millstream_csm_setup setup;
    memset(&setup, 0, sizeof setup);
    setup.struct_bytes = sizeof setup;
    setup.claim = MILLSTREAM_CSM_AT_LEAST;
    setup.low = 0.99;
    setup.error = 1e-3;
    millstream_csm_driver *driver;
    check(millstream_csm_driver_new(&setup, 0, 0, &driver));
    check(millstream_csm_driver_observe_many(driver, in_time, LATENCIES, &used, &progress));
    printf("in time: %s\n", progress == MILLSTREAM_CSM_HOLDS && used < LATENCIES ? "holds" : "not certain");
    millstream_csm_driver_free(driver);

    /* Is the mean below 40 ms, where a time-out bounds every latency by a second? */
    millstream_csm_mean_setup mean;
    memset(&mean, 0, sizeof mean);
    mean.struct_bytes = sizeof mean;
    mean.claim = MILLSTREAM_CSM_AT_MOST;
    mean.high = 0.040;
    mean.most = 1.0;
    mean.error = 1e-3;
    millstream_csm_mean_driver *mean_driver;
    check(millstream_csm_mean_driver_new(&mean, &mean_driver));
    check(millstream_csm_mean_driver_observe_many(mean_driver, seconds, LATENCIES, &used, &progress));
    printf("mean: %s\n", progress == MILLSTREAM_CSM_HOLDS && used < LATENCIES ? "holds" : "not certain");
    millstream_csm_mean_driver_free(mean_driver);

    millstream_csm_interval_result median;
    check(millstream_csm_quantile_interval(seconds, LATENCIES, 0.5, 1e-3, &median));
    printf("median: %.3f to %.3f s\n", median.low, median.high);
    return 0;
}
