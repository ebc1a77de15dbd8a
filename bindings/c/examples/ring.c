/* Two processes share a ring: the child sends readings, and the parent adds them up. C99 and C++.
 *
 *   cc ring.c $(pkg-config --static --cflags --libs millstream) -static -o ring && ./ring /dev/shm/readings
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "millstream.h"

struct reading {
    uint32_t sensor;
    int32_t millidegrees;
};

enum { SENSORS = 4, ROUNDS = 10000 };

/* The sensor number that marks the last event, because a ring has no end marker. */
#define NO_SENSOR UINT32_MAX

/* A negative timeout waits without limit. */
#define FOREVER (-1)

static void check(int32_t status) {
    if (status != MILLSTREAM_OK) {
        fprintf(stderr, "%s\n", millstream_error_message());
        exit(1);
    }
}

static void measure(int fd, const millstream_ring_setup *setup) {
    millstream_ring_producer *producer;
    struct reading readings[SENSORS], end = {NO_SENSOR, 0};
    size_t sent;
    check(millstream_ring_producer_new(fd, setup, &producer));
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t sensor = 0; sensor < SENSORS; sensor++) {
            readings[sensor].sensor = sensor;
            readings[sensor].millidegrees = 20000 + round % 7;
        }
        /* One call publishes all readings, so they take one wake-up. */
        check(millstream_ring_send(producer, readings, SENSORS, FOREVER, &sent));
    }
    check(millstream_ring_send(producer, &end, 1, FOREVER, &sent));
    millstream_ring_producer_free(producer);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    int fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    millstream_ring_setup setup;
    memset(&setup, 0, sizeof setup);
    setup.struct_bytes = sizeof setup;
    setup.slots = 1024;
    setup.event_bytes = sizeof(struct reading);

    pid_t child = fork();
    if (child == 0) {
        measure(fd, &setup);
        return 0;
    }
    millstream_ring_consumer *consumer;
    check(millstream_ring_consumer_new(fd, &setup, &consumer));
    long readings = 0;
    double sum = 0;
    for (int ended = 0; !ended;) {
        const void *events;
        size_t count;
        check(millstream_ring_peek(consumer, FOREVER, &events, &count));
        const struct reading *found = (const struct reading *)events;
        for (size_t i = 0; i < count; i++) {
            if (found[i].sensor == NO_SENSOR) {
                ended = 1;
            } else {
                readings++;
                sum += found[i].millidegrees / 1000.0;
            }
        }
        /* If this process is killed before this call, its successor sees the events again. */
        check(millstream_ring_consume(consumer, count));
    }
    millstream_ring_consumer_free(consumer);
    int outcome;
    waitpid(child, &outcome, 0);
    printf("%ld readings, %.3f degrees on average\n", readings, sum / (double)readings);
    return outcome == 0 && close(fd) == 0 && unlink(argv[1]) == 0 ? 0 : 1;
}
