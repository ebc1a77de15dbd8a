/* Calls every function of rings, with an input that has an answer and with one that has none. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 8 };

/* Long enough for an event that must come, however busy the machine is. */
#define LONG_NS (120 * INT64_C(1000000000))
#define SHORT_NS (10 * INT64_C(1000000))

struct event {
    uint64_t number;
    uint32_t words[4];
};

static millstream_ring_setup eight(void) {
    millstream_ring_setup setup = {
        .struct_bytes = sizeof setup, .slots = SLOTS, .event_bytes = sizeof(struct event)};
    return setup;
}

static int fresh(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT(fd >= 0);
    return fd;
}

static struct event numbered(uint64_t number) {
    struct event event = {.number = number, .words = {1, 2, 3, (uint32_t)number}};
    return event;
}

static void events_arrive_in_order(void) {
    int fd = fresh("order");
    millstream_ring_setup setup = eight();
    millstream_ring_producer *producer = NULL;
    millstream_ring_consumer *consumer = NULL;
    struct event events[2 * SLOTS], got[2 * SLOTS];
    size_t sent, count;
    const void *found;
    uint64_t position;
    EXPECT(millstream_ring_producer_new(fd, &setup, &producer) == MILLSTREAM_OK);
    EXPECT(millstream_ring_consumer_new(fd, &setup, &consumer) == MILLSTREAM_OK);
    EXPECT(close(fd) == 0);
    EXPECT(millstream_ring_peek(consumer, 0, &found, &count) == MILLSTREAM_OK && count == 0);
    EXPECT(millstream_ring_peek(consumer, SHORT_NS, &found, &count) == MILLSTREAM_OK && count == 0);
    EXPECT(millstream_ring_receive(consumer, got, SLOTS, SHORT_NS, &count) == MILLSTREAM_OK && count == 0);

    for (uint64_t i = 0; i < 2 * SLOTS; i++) {
        events[i] = numbered(i);
    }
    /* There is room for as many as there are slots. */
    EXPECT(millstream_ring_send(producer, events, 2 * SLOTS, 0, &sent) == MILLSTREAM_OK && sent == SLOTS);
    EXPECT(millstream_ring_send(producer, events, 1, SHORT_NS, &sent) == MILLSTREAM_OK && sent == 0);
    EXPECT(millstream_ring_send(producer, NULL, 0, -1, &sent) == MILLSTREAM_OK && sent == 0);
    EXPECT(millstream_ring_peek(consumer, -1, &found, &count) == MILLSTREAM_OK && count == SLOTS);
    EXPECT(memcmp(found, events, sizeof(struct event) * SLOTS) == 0 && (uintptr_t)found % 8 == 0);
    EXPECT(millstream_ring_consume(consumer, SLOTS + 1) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(strstr(millstream_error_message(), "count is 9") != NULL);
    EXPECT(millstream_ring_consume(consumer, 0) == MILLSTREAM_OK);
    EXPECT(millstream_ring_consume(consumer, 5) == MILLSTREAM_OK);
    /* The next five wrap around: seen in two runs, received in one call. */
    EXPECT(millstream_ring_send(producer, events + SLOTS, 5, -1, &sent) == MILLSTREAM_OK && sent == 5);
    EXPECT(millstream_ring_peek(consumer, LONG_NS, &found, &count) == MILLSTREAM_OK && count == 3);
    EXPECT(millstream_ring_receive(consumer, got, 2 * SLOTS, -1, &count) == MILLSTREAM_OK && count == SLOTS);
    EXPECT(memcmp(got, events + 5, sizeof(struct event) * SLOTS) == 0);
    EXPECT(millstream_ring_receive(consumer, got, 0, -1, &count) == MILLSTREAM_OK && count == 0);
    EXPECT(millstream_ring_producer_position(producer, &position) == MILLSTREAM_OK && position == 13);
    EXPECT(millstream_ring_consumer_position(consumer, &position) == MILLSTREAM_OK && position == 13);
    millstream_ring_producer_free(producer);
    millstream_ring_consumer_free(consumer);
    millstream_ring_producer_free(NULL);
    millstream_ring_consumer_free(NULL);
}

static void wrong_shapes_are_refused(void) {
    millstream_ring_producer *producer = NULL;
    millstream_ring_consumer *consumer = NULL;
    int fd = fresh("shapes");
    struct {
        uint64_t struct_bytes, slots, event_bytes, event_align;
    } shapes[] = {{0, 8, 8, 0},        {24, 8, 8, 0},  {sizeof(millstream_ring_setup), 0, 8, 0},
                  {32, 12, 8, 0},      {32, 8, 0, 0},  {32, 8, UINT64_C(1) << 32, 0},
                  {32, 8, 24, 16},     {32, 8, 24, 3}, {32, 8, 256, 256},
                  {32, UINT64_C(1) << 63, 8, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        millstream_ring_setup setup = {shapes[i].struct_bytes, shapes[i].slots, shapes[i].event_bytes,
                                       shapes[i].event_align};
        EXPECT(millstream_ring_producer_new(fd, &setup, &producer) == MILLSTREAM_OUT_OF_RANGE && producer == NULL);
        EXPECT(millstream_ring_consumer_new(fd, &setup, &consumer) == MILLSTREAM_OUT_OF_RANGE && consumer == NULL);
    }
    EXPECT(lseek(fd, 0, SEEK_END) == 0);
    close(fd);
}

static void misuse_has_its_status(void) {
    int fd = fresh("misuse"), text = fresh("text");
    millstream_ring_setup setup = eight(), other = eight();
    millstream_ring_producer *producer = NULL, *second = NULL;
    millstream_ring_consumer *consumer = NULL;
    struct event event = numbered(1);
    size_t count = 77;
    uint64_t position;
    const void *found;
    EXPECT(millstream_ring_producer_new(fd, NULL, &producer) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_producer_new(fd, &setup, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_consumer_new(fd, NULL, &consumer) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_consumer_new(fd, &setup, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_producer_new(-1, &setup, &producer) == MILLSTREAM_UNKNOWN);
    EXPECT(millstream_ring_producer_new(1000000, &setup, &producer) == MILLSTREAM_RING_SYSTEM);
    EXPECT(millstream_error_number() == EBADF && producer == NULL);
    EXPECT(write(text, "no ring", 7) == 7);
    EXPECT(millstream_ring_consumer_new(text, &setup, &consumer) == MILLSTREAM_RING_NOT_A_RING);
    EXPECT(lseek(text, 0, SEEK_END) == 7);

    EXPECT(millstream_ring_producer_new(fd, &setup, &producer) == MILLSTREAM_OK);
    EXPECT(millstream_ring_producer_new(fd, &setup, &second) == MILLSTREAM_RING_TAKEN && second == NULL);
    other.event_bytes = 8;
    EXPECT(millstream_ring_consumer_new(fd, &other, &consumer) == MILLSTREAM_RING_MISMATCH);
    other = eight();
    other.event_align = 4;
    EXPECT(millstream_ring_consumer_new(fd, &other, &consumer) == MILLSTREAM_RING_MISMATCH);
    other.event_align = 8;
    EXPECT(millstream_ring_consumer_new(fd, &other, &consumer) == MILLSTREAM_OK);

    EXPECT(millstream_ring_send(NULL, &event, 1, 0, &count) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_send(producer, NULL, 1, 0, &count) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_send(producer, &event, 1, 0, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_send(producer, &event, SIZE_MAX, 0, &count) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_ring_send(producer, &event, SIZE_MAX / sizeof event, 0, &count) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_ring_producer_position(NULL, &position) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_producer_position(producer, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_peek(NULL, 0, &found, &count) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_peek(consumer, 0, NULL, &count) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_peek(consumer, 0, &found, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_consume(NULL, 0) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_consume(consumer, 1) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_ring_receive(NULL, &event, 1, 0, &count) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_receive(consumer, NULL, 1, 0, &count) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_receive(consumer, &event, 1, 0, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_consumer_position(NULL, &position) == MILLSTREAM_NULL);
    EXPECT(millstream_ring_consumer_position(consumer, NULL) == MILLSTREAM_NULL);
    EXPECT(count == 77);
    millstream_ring_producer_free(producer);
    millstream_ring_consumer_free(consumer);
    close(fd);
    close(text);
}

static void *receive(void *consumer) {
    struct event event;
    size_t count = 0;
    int32_t status;
    do {
        status = millstream_ring_receive(consumer, &event, 1, LONG_NS, &count);
    } while (status == MILLSTREAM_IN_USE);
    EXPECT(status == MILLSTREAM_OK && count == 1);
    return NULL;
}

static void a_second_thread_is_refused(void) {
    int fd = fresh("threads");
    millstream_ring_setup setup = eight();
    millstream_ring_producer *producer = NULL;
    millstream_ring_consumer *consumer = NULL;
    struct event event = numbered(1);
    size_t count;
    const void *found;
    uint64_t position;
    pthread_t thread;
    const struct timespec millisecond = {0, 1000000};
    EXPECT(millstream_ring_producer_new(fd, &setup, &producer) == MILLSTREAM_OK);
    EXPECT(millstream_ring_consumer_new(fd, &setup, &consumer) == MILLSTREAM_OK);
    EXPECT(pthread_create(&thread, NULL, receive, consumer) == 0);
    /* The other thread waits in the consumer, sooner or later. */
    while (millstream_ring_consumer_position(consumer, &position) == MILLSTREAM_OK) {
        nanosleep(&millisecond, NULL);
    }
    EXPECT(millstream_ring_peek(consumer, 0, &found, &count) == MILLSTREAM_IN_USE);
    EXPECT(millstream_ring_consume(consumer, 0) == MILLSTREAM_IN_USE);
    EXPECT(millstream_ring_send(producer, &event, 1, -1, &count) == MILLSTREAM_OK);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(millstream_ring_consumer_position(consumer, &position) == MILLSTREAM_OK && position == 1);
    millstream_ring_producer_free(producer);
    millstream_ring_consumer_free(consumer);
    close(fd);
}

static void a_child_leaves_the_role_to_its_parent(void) {
    int fd = fresh("child"), outcome;
    millstream_ring_setup setup = eight();
    millstream_ring_producer *producer = NULL, *second = NULL;
    EXPECT(millstream_ring_producer_new(fd, &setup, &producer) == MILLSTREAM_OK);
    pid_t child = fork();
    if (child == 0) {
        millstream_ring_producer_free(producer);
        _exit(0);
    }
    EXPECT(waitpid(child, &outcome, 0) == child && outcome == 0);
    EXPECT(millstream_ring_producer_new(fd, &setup, &second) == MILLSTREAM_RING_TAKEN);
    millstream_ring_producer_free(producer);
    EXPECT(millstream_ring_producer_new(fd, &setup, &second) == MILLSTREAM_OK);
    millstream_ring_producer_free(second);
    close(fd);
}

static void killed_producers_lose_nothing_that_was_published(void) {
    int fd = fresh("killed");
    millstream_ring_setup setup = eight();
    millstream_ring_consumer *consumer = NULL;
    uint64_t next = 0, position;
    EXPECT(millstream_ring_consumer_new(fd, &setup, &consumer) == MILLSTREAM_OK);
    for (int life = 0; life < 5; life++) {
        pid_t child = fork();
        if (child == 0) {
            millstream_ring_producer *producer = NULL;
            int earlier = failures;
            EXPECT(millstream_ring_producer_new(fd, &setup, &producer) == MILLSTREAM_OK);
            for (size_t sent; failures == earlier;) {
                EXPECT(millstream_ring_producer_position(producer, &position) == MILLSTREAM_OK);
                struct event events[3] = {numbered(position), numbered(position + 1), numbered(position + 2)};
                EXPECT(millstream_ring_send(producer, events, 3, -1, &sent) == MILLSTREAM_OK && sent == 3);
            }
            _exit(1);
        }
        for (uint64_t until = next + 200; next < until;) {
            struct event events[SLOTS];
            size_t count = 0;
            EXPECT(millstream_ring_receive(consumer, events, SLOTS, LONG_NS, &count) == MILLSTREAM_OK && count > 0);
            if (count == 0) {
                break;
            }
            for (size_t i = 0; i < count; i++, next++) {
                EXPECT(events[i].number == next && events[i].words[3] == (uint32_t)next);
            }
        }
        int outcome;
        EXPECT(kill(child, SIGKILL) == 0 && waitpid(child, &outcome, 0) == child && WIFSIGNALED(outcome));
    }
    millstream_ring_consumer_free(consumer);
    close(fd);
}

int main(int argc, char **argv) {
    EXPECT(argc == 2 && chdir(argv[1]) == 0);
    events_arrive_in_order();
    wrong_shapes_are_refused();
    misuse_has_its_status();
    a_second_thread_is_refused();
    a_child_leaves_the_role_to_its_parent();
    killed_producers_lose_nothing_that_was_published();
    return failures != 0;
}
