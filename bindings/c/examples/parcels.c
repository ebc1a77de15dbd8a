/* One thread allocates and fills objects, and another reads and frees them: only the parcel goes back and forth.
 * C99 and C++.
 *
 *   cc parcels.c $(pkg-config --static --cflags --libs millstream) -static -o parcels && ./parcels
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "millstream.h"

enum { ROUNDS = 100, OBJECTS = 50 };

struct work {
    millstream_slab *slab;
    millstream_slab_parcel *parcel;
    uint64_t sum;
};

static void check(int32_t status) {
    if (status != MILLSTREAM_OK) {
        fprintf(stderr, "%s\n", millstream_error_message());
        exit(1);
    }
}

/* Takes an object out of the parcel, and frees all others. */
static void *consume(void *argument) {
    struct work *work = (struct work *)argument;
    millstream_slab_cache *cache;
    millstream_slab_private object;
    check(millstream_slab_cache_new(work->slab, &cache));
    check(millstream_slab_parcel_pop(work->parcel, cache, &object));
    work->sum += *(uint64_t *)object.bytes;
    millstream_slab_private_free(&object);
    check(millstream_slab_parcel_clear(work->parcel, cache));
    millstream_slab_cache_free(cache);
    return NULL;
}

int main(void) {
    millstream_slab_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    options.object_bytes = sizeof(uint64_t);
    options.max_objects = 1000;
    struct work work;
    memset(&work, 0, sizeof work);
    check(millstream_slab_create_memfd(&options, &work.slab));
    check(millstream_slab_parcel_new(work.slab, &work.parcel));
    millstream_slab_cache *cache;
    check(millstream_slab_cache_new(work.slab, &cache));

    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < OBJECTS; i++) {
            void *bytes;
            check(millstream_slab_parcel_alloc(work.parcel, cache, &bytes));
            *(uint64_t *)bytes = round;
        }
        pthread_t thread;
        /* Starting and joining the thread pass the parcel on. */
        if (pthread_create(&thread, NULL, consume, &work) != 0 || pthread_join(thread, NULL) != 0) {
            return 1;
        }
    }
    uint64_t kept;
    check(millstream_slab_parcel_kept(work.parcel, &kept));
    millstream_slab_parcel_free(work.parcel);
    millstream_slab_cache_free(cache);

    millstream_slab_usage_result usage;
    memset(&usage, 0, sizeof usage);
    usage.struct_bytes = sizeof usage;
    check(millstream_slab_usage(work.slab, &usage));
    printf("sum %d, kept %d, left %d\n", (int)work.sum, (int)kept, (int)(usage.held + usage.published + usage.orphans));
    millstream_slab_free(work.slab);
    return 0;
}
