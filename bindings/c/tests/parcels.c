/* Calls every function of parcels, with an input that has an answer and with one that has none. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static millstream_slab *made(uint64_t caches) {
    millstream_slab_options options = {
        .struct_bytes = sizeof options, .object_bytes = 16, .max_objects = 1000, .caches = caches, .owners = 1};
    millstream_slab *slab = NULL;
    EXPECT(millstream_slab_create_memfd(&options, &slab) == MILLSTREAM_OK);
    return slab;
}

static uint64_t allocated(const millstream_slab *slab) {
    millstream_slab_usage_result usage = {.struct_bytes = sizeof usage};
    EXPECT(millstream_slab_usage(slab, &usage) == MILLSTREAM_OK);
    return usage.held + usage.published + usage.orphans;
}

static uint64_t objects(const millstream_slab_parcel *parcel) {
    uint64_t found = UINT64_MAX;
    EXPECT(millstream_slab_parcel_objects(parcel, &found) == MILLSTREAM_OK);
    return found;
}

static void objects_go_in_and_out(void) {
    millstream_slab *slab = made(0);
    millstream_slab_cache *cache;
    millstream_slab_parcel *parcel = NULL;
    millstream_slab_private object, other;
    void *bytes;
    uint64_t kept;
    EXPECT(millstream_slab_cache_new(slab, &cache) == MILLSTREAM_OK);
    EXPECT(millstream_slab_parcel_new(slab, &parcel) == MILLSTREAM_OK);
    EXPECT(millstream_slab_parcel_pop(parcel, cache, &other) == MILLSTREAM_SLAB_END && other.bytes == NULL);

    EXPECT(millstream_slab_private_new(cache, &object) == MILLSTREAM_OK);
    memcpy(object.bytes, "first           ", 16);
    EXPECT(millstream_slab_parcel_push(parcel, &object) == MILLSTREAM_OK && object.bytes == NULL);
    EXPECT(millstream_slab_parcel_push(parcel, &object) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_alloc(parcel, cache, &bytes) == MILLSTREAM_OK);
    memcpy(bytes, "second          ", 16);
    EXPECT(objects(parcel) == 2 && allocated(slab) == 2);

    EXPECT(millstream_slab_parcel_pop(parcel, cache, &other) == MILLSTREAM_OK);
    EXPECT(memcmp(other.bytes, "second ", 7) == 0);
    millstream_slab_private_free(&other);
    EXPECT(millstream_slab_parcel_clear(parcel, cache) == MILLSTREAM_OK);
    EXPECT(objects(parcel) == 0 && allocated(slab) == 0);
    EXPECT(millstream_slab_parcel_kept(parcel, &kept) == MILLSTREAM_OK && kept == 1);
    EXPECT(millstream_slab_parcel_flush(parcel, cache) == MILLSTREAM_OK);
    EXPECT(millstream_slab_parcel_kept(parcel, &kept) == MILLSTREAM_OK && kept == 0);
    for (int i = 0; i < 100; i++) {
        EXPECT(millstream_slab_parcel_alloc(parcel, cache, &bytes) == MILLSTREAM_OK);
    }
    EXPECT(millstream_slab_parcel_delete(parcel, cache) == MILLSTREAM_OK && allocated(slab) == 0);
    EXPECT(millstream_slab_parcel_alloc(parcel, cache, &bytes) == MILLSTREAM_OK);
    /* Neither the slab nor the cache is needed to free a parcel, and its objects are freed with it. */
    millstream_slab_cache_free(cache);
    millstream_slab_parcel_free(parcel);
    EXPECT(allocated(slab) == 0);
    millstream_slab_parcel_free(NULL);
    millstream_slab_free(slab);
}

static void misuse_has_its_status(void) {
    millstream_slab *slab = made(2), *foreign = made(0);
    millstream_slab_cache *cache, *stranger;
    millstream_slab_parcel *parcel = NULL, *second = (millstream_slab_parcel *)&parcel;
    millstream_slab_private object;
    void *bytes = &object;
    uint64_t number;
    EXPECT(millstream_slab_cache_new(slab, &cache) == MILLSTREAM_OK);
    EXPECT(millstream_slab_cache_new(foreign, &stranger) == MILLSTREAM_OK);
    EXPECT(millstream_slab_parcel_new(NULL, &parcel) == MILLSTREAM_NULL && parcel == NULL);
    EXPECT(millstream_slab_parcel_new(slab, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_new(slab, &parcel) == MILLSTREAM_OK);
    EXPECT(millstream_slab_parcel_new(slab, &second) == MILLSTREAM_SLAB_NO_CACHE);
    EXPECT(second == (millstream_slab_parcel *)&parcel);

    EXPECT(millstream_slab_private_new(stranger, &object) == MILLSTREAM_OK);
    EXPECT(millstream_slab_parcel_push(parcel, &object) == MILLSTREAM_SLAB_FOREIGN && object.bytes == NULL);
    EXPECT(allocated(foreign) == 0);
    EXPECT(millstream_slab_parcel_alloc(parcel, stranger, &bytes) == MILLSTREAM_SLAB_FOREIGN && bytes == &object);
    EXPECT(millstream_slab_parcel_alloc(parcel, cache, &bytes) == MILLSTREAM_OK);
    EXPECT(millstream_slab_parcel_pop(parcel, stranger, &object) == MILLSTREAM_SLAB_FOREIGN && object.bytes == NULL);
    EXPECT(millstream_slab_parcel_delete(parcel, stranger) == MILLSTREAM_SLAB_FOREIGN);
    EXPECT(millstream_slab_parcel_clear(parcel, stranger) == MILLSTREAM_SLAB_FOREIGN);
    EXPECT(millstream_slab_parcel_flush(parcel, stranger) == MILLSTREAM_SLAB_FOREIGN);
    EXPECT(objects(parcel) == 1);

    EXPECT(millstream_slab_parcel_push(NULL, &object) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_push(parcel, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_alloc(NULL, cache, &bytes) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_alloc(parcel, NULL, &bytes) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_alloc(parcel, cache, NULL) == MILLSTREAM_NULL && objects(parcel) == 1);
    EXPECT(millstream_slab_parcel_pop(parcel, cache, NULL) == MILLSTREAM_NULL && objects(parcel) == 1);
    EXPECT(millstream_slab_parcel_pop(NULL, cache, &object) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_delete(parcel, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_clear(NULL, cache) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_flush(NULL, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_objects(NULL, &number) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_kept(parcel, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_parcel_set_owner(NULL, 1) == MILLSTREAM_NULL);

    pid_t child = fork();
    if (child == 0) {
        /* The parcel belongs to the parent: the child neither changes nor frees it. */
        int32_t status = millstream_slab_parcel_clear(parcel, cache);
        millstream_slab_parcel_free(parcel);
        _exit(status == MILLSTREAM_SLAB_UNUSABLE ? 0 : 1);
    }
    int outcome;
    EXPECT(waitpid(child, &outcome, 0) == child && outcome == 0);
    EXPECT(objects(parcel) == 1 && allocated(slab) == 1);
    millstream_slab_parcel_free(parcel);
    millstream_slab_cache_free(cache);
    millstream_slab_cache_free(stranger);
    millstream_slab_free(foreign);
    millstream_slab_free(slab);
}

struct work {
    const millstream_slab *slab;
    millstream_slab_parcel *parcel;
    uint64_t sum;
};

static void *empty(void *argument) {
    struct work *work = argument;
    millstream_slab_cache *cache;
    millstream_slab_private object;
    EXPECT(millstream_slab_cache_new(work->slab, &cache) == MILLSTREAM_OK);
    while (millstream_slab_parcel_pop(work->parcel, cache, &object) == MILLSTREAM_OK) {
        work->sum += *(uint64_t *)object.bytes;
        millstream_slab_private_free(&object);
    }
    millstream_slab_cache_free(cache);
    return NULL;
}

static void another_thread_takes_the_objects(void) {
    millstream_slab *slab = made(0);
    millstream_slab_cache *cache;
    struct work work = {.slab = slab};
    pthread_t thread;
    EXPECT(millstream_slab_cache_new(slab, &cache) == MILLSTREAM_OK);
    EXPECT(millstream_slab_parcel_new(slab, &work.parcel) == MILLSTREAM_OK);
    for (uint64_t i = 1; i <= 100; i++) {
        void *bytes;
        EXPECT(millstream_slab_parcel_alloc(work.parcel, cache, &bytes) == MILLSTREAM_OK);
        *(uint64_t *)bytes = i;
    }
    EXPECT(pthread_create(&thread, NULL, empty, &work) == 0 && pthread_join(thread, NULL) == 0);
    EXPECT(work.sum == 5050 && allocated(slab) == 0);
    millstream_slab_parcel_free(work.parcel);
    millstream_slab_cache_free(cache);
    millstream_slab_free(slab);
}

static void a_killed_process_leaves_orphans_of_its_owner(void) {
    millstream_slab *slab = made(0);
    pid_t child = fork();
    if (child == 0) {
        millstream_slab_cache *cache;
        millstream_slab_parcel *parcel;
        void *bytes;
        EXPECT(millstream_slab_cache_new(slab, &cache) == MILLSTREAM_OK);
        EXPECT(millstream_slab_parcel_new(slab, &parcel) == MILLSTREAM_OK);
        EXPECT(millstream_slab_parcel_set_owner(parcel, 42) == MILLSTREAM_OK);
        EXPECT(millstream_slab_parcel_alloc(parcel, cache, &bytes) == MILLSTREAM_OK);
        _exit(failures);
    }
    uint64_t from = 0, recovered = 0;
    int outcome;
    millstream_slab_object object = {.struct_bytes = sizeof object};
    EXPECT(waitpid(child, &outcome, 0) == child && outcome == 0);
    EXPECT(millstream_slab_recover(slab, &recovered) == MILLSTREAM_OK);
    EXPECT(millstream_slab_next(slab, &from, &object) == MILLSTREAM_OK);
    EXPECT(object.state == MILLSTREAM_SLAB_ORPHAN && object.owner == 42);
    millstream_slab_free(slab);
}

int main(void) {
    objects_go_in_and_out();
    misuse_has_its_status();
    another_thread_takes_the_objects();
    a_killed_process_leaves_orphans_of_its_owner();
    return failures != 0;
}
