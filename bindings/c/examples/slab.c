/* A slab that two processes share: one is killed, and what it published is still there. */
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

static void check(int32_t status) {
    if (status != MILLSTREAM_OK) {
        fprintf(stderr, "%s\n", millstream_error_message());
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    struct millstream_slab *slab;
    check(millstream_slab_create(argv[1], sizeof(struct session), 100000, &slab));

    pid_t child = fork();
    if (child == 0) {
        struct millstream_slab_cache *cache;
        struct session session = {"ada", 1};
        struct millstream_slab_handle handle;
        check(millstream_slab_cache_new(slab, &cache));
        check(millstream_slab_put(cache, (const uint8_t *)&session, &handle));
        kill(getpid(), SIGKILL);
    }
    waitpid(child, NULL, 0);

    uint64_t recovered;
    check(millstream_slab_recover(slab, &recovered));
    printf("recovered: %s\n", recovered > 0 ? "the child's cache" : "nothing");

    struct millstream_slab_cache *cache;
    check(millstream_slab_cache_new(slab, &cache));
    uint64_t from = 0;
    struct millstream_slab_object object;
    while (millstream_slab_next(slab, &from, &object) == MILLSTREAM_OK) {
        struct session session;
        check(millstream_slab_get(slab, object.handle, (uint8_t *)&session));
        session.visits++;
        check(millstream_slab_set(cache, object.handle, (const uint8_t *)&session));
        check(millstream_slab_get(slab, object.handle, (uint8_t *)&session));
        printf("%s: %d visits\n", session.user, (int)session.visits);
        check(millstream_slab_delete(cache, object.handle));
        if (millstream_slab_delete(cache, object.handle) == MILLSTREAM_SLAB_STALE) {
            printf("a second free: %s\n", millstream_error_message());
        }
    }
    millstream_slab_cache_free(cache);
    millstream_slab_free(slab);
    return 0;
}
