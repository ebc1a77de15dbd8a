/* Two processes share a slab: one is killed, and its published objects are still there.
 *
 *   cc slab.c $(pkg-config --static --cflags --libs millstream) -static -o slab && ./slab /dev/shm/sessions
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "millstream.h"

struct session {
    char user[56];
    uint64_t visits;
};

/* Distinguishes this program's slabs from those of other programs. Change it whenever the struct changes. */
static const uint64_t session_tag = 0x53455353494f4e01;

/* How often to try again while another process is opening the file. Each attempt takes up to ten seconds. */
enum { OPENINGS = 6 };

static void check(int32_t status) {
    if (status != MILLSTREAM_OK) {
        fprintf(stderr, "%s\n", millstream_error_message());
        exit(1);
    }
}

static millstream_slab *create_or_open(const char *path) {
    millstream_slab_options options = {.struct_bytes = sizeof options,
                                       .object_bytes = sizeof(struct session),
                                       .max_objects = 100000,
                                       .tag = session_tag};
    millstream_slab *slab;
    int32_t status = millstream_slab_create_with(path, &options, &slab);
    if (status == MILLSTREAM_SLAB_EXISTS) {
        for (int opening = 0; opening < OPENINGS; opening++) {
            status = millstream_slab_open(path, &slab);
            if (status != MILLSTREAM_SLAB_BUSY) {
                break;
            }
        }
    }
    check(status);
    uint64_t object_bytes, tag;
    check(millstream_slab_object_bytes(slab, &object_bytes));
    check(millstream_slab_tag(slab, &tag));
    if (object_bytes != sizeof(struct session) || tag != session_tag) {
        fprintf(stderr, "%s: expected a slab of sessions, found another kind of objects\n", path);
        exit(1);
    }
    return slab;
}

/* Publishes a session, and is killed before it publishes another. */
static void work(const millstream_slab *slab) {
    millstream_slab_cache *cache;
    millstream_slab_private object;
    millstream_slab_handle handle;
    check(millstream_slab_cache_new(slab, &cache));
    check(millstream_slab_private_new(cache, &object));
    *(struct session *)object.bytes = (struct session){"ada", 1};
    check(millstream_slab_private_publish(&object, &handle));
    check(millstream_slab_sync_object(slab, handle)); /* From now on it also survives a power failure. */

    check(millstream_slab_private_new(cache, &object));
    strcpy(((struct session *)object.bytes)->user, "bob");
    kill(getpid(), SIGKILL);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    millstream_slab *slab = create_or_open(argv[1]);
    pid_t child = fork();
    if (child == 0) {
        work(slab);
    }
    waitpid(child, NULL, 0);

    uint64_t recovered;
    check(millstream_slab_recover(slab, &recovered));
    printf("recovered: %s\n", recovered > 0 ? "the private object of the child" : "nothing");

    millstream_slab_cache *cache;
    check(millstream_slab_cache_new(slab, &cache));
    uint64_t from = 0;
    millstream_slab_object object = {.struct_bytes = sizeof object};
    while (millstream_slab_next(slab, &from, &object) == MILLSTREAM_OK) {
        struct session session;
        check(millstream_slab_get(slab, object.handle, &session));
        if (object.state == MILLSTREAM_SLAB_ORPHAN) {
            printf("%s: not finished\n", session.user);
        } else {
            session.visits++;
            check(millstream_slab_set(cache, object.handle, &session));
            printf("%s: %d visits\n", session.user, (int)session.visits);
        }
        check(millstream_slab_delete(cache, object.handle));
        if (millstream_slab_delete(cache, object.handle) == MILLSTREAM_SLAB_STALE) {
            printf("a second free: %s\n", millstream_error_message());
        }
    }
    millstream_slab_cache_free(cache);

    millstream_slab_usage_result usage = {.struct_bytes = sizeof usage};
    uint64_t problems;
    check(millstream_slab_usage(slab, &usage));
    check(millstream_slab_verify(slab, &problems));
    printf("left: %d objects, %d problems\n", (int)(usage.held + usage.published + usage.orphans), (int)problems);
    check(millstream_slab_sync(slab));
    millstream_slab_free(slab);
    return 0;
}
