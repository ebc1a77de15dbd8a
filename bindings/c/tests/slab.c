/* Calls every function of slabs, with an input that has an answer and with one that has none.
 * The argument is an empty folder.
 */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Offsets in bytes of the words that these tests change: see docs/slab.md. */
enum { VERSION = 8, OBJECT_BYTES = 16, CHECKSUM = 88, FIRST_WORD = 8192 };

static const millstream_slab_handle none = {0, 0};

static millstream_slab_options sized(uint64_t object_bytes, uint64_t max_objects) {
    millstream_slab_options options = {
        .struct_bytes = sizeof options, .object_bytes = object_bytes, .max_objects = max_objects};
    return options;
}

static millstream_slab *memory(uint64_t object_bytes, uint64_t max_objects) {
    millstream_slab_options options = sized(object_bytes, max_objects);
    millstream_slab *slab = NULL;
    EXPECT(millstream_slab_create_memfd(&options, &slab) == MILLSTREAM_OK);
    return slab;
}

/* Changes a word of a file. */
static void change(const char *file, off_t at, uint64_t word) {
    int fd = open(file, O_RDWR);
    EXPECT(pwrite(fd, &word, sizeof word, at) == sizeof word);
    close(fd);
}

/* Recomputes the checksum of a changed header: FNV-1a. */
static void seal(const char *file) {
    unsigned char bytes[CHECKSUM];
    uint64_t hash = 0xcbf29ce484222325;
    int fd = open(file, O_RDONLY);
    EXPECT(pread(fd, bytes, sizeof bytes, 0) == sizeof bytes);
    close(fd);
    for (size_t i = 0; i < sizeof bytes; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
    change(file, CHECKSUM, hash);
}

static void objects_are_put_and_got(void) {
    millstream_slab *slab = NULL;
    millstream_slab_cache *cache = NULL;
    millstream_slab_handle handle;
    char bytes[16];
    EXPECT(millstream_slab_create("plain", 16, 1000, &slab) == MILLSTREAM_OK);
    EXPECT(millstream_slab_cache_new(slab, &cache) == MILLSTREAM_OK);
    EXPECT(millstream_slab_put(cache, "fifteen letters", &handle) == MILLSTREAM_OK);
    EXPECT(millstream_slab_get(slab, handle, bytes) == MILLSTREAM_OK && strcmp(bytes, "fifteen letters") == 0);
    EXPECT(millstream_slab_set(cache, handle, "FIFTEEN LETTERS") == MILLSTREAM_OK);
    EXPECT(millstream_slab_sync(slab) == MILLSTREAM_OK);
    EXPECT(millstream_slab_sync_object(slab, handle) == MILLSTREAM_OK);
    void *place = NULL;
    EXPECT(millstream_slab_pointer(slab, handle, &place) == MILLSTREAM_OK && strcmp(place, "FIFTEEN LETTERS") == 0);
    EXPECT(millstream_slab_delete(cache, handle) == MILLSTREAM_OK);

    EXPECT(millstream_slab_delete(cache, handle) == MILLSTREAM_SLAB_STALE);
    EXPECT(millstream_slab_get(slab, handle, bytes) == MILLSTREAM_SLAB_STALE);
    EXPECT(millstream_slab_set(cache, handle, bytes) == MILLSTREAM_SLAB_STALE);
    EXPECT(millstream_slab_sync_object(slab, handle) == MILLSTREAM_SLAB_STALE);
    EXPECT(millstream_slab_pointer(slab, handle, &place) == MILLSTREAM_SLAB_STALE);
    EXPECT(millstream_slab_get(slab, none, bytes) == MILLSTREAM_SLAB_FOREIGN);
    EXPECT(millstream_slab_put(cache, NULL, &handle) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_get(slab, handle, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_set(cache, handle, NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_delete(NULL, handle) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_sync(NULL) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_cache_new(NULL, &cache) == MILLSTREAM_NULL);
    millstream_slab_cache_free(cache);
    millstream_slab_cache_free(NULL);
    millstream_slab_free(slab);
    millstream_slab_free(NULL);
}

/* Rounding up an object size of 0 would overrun the buffers of the caller that asked for it. */
static void object_bytes_are_a_multiple_of_8_and_not_0(void) {
    static const uint64_t wrong[] = {0, 1, 7, 12, 17, UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        millstream_slab_options options = sized(wrong[i], 10);
        millstream_slab *slab = NULL;
        EXPECT(millstream_slab_create("wrong", wrong[i], 10, &slab) == MILLSTREAM_OUT_OF_RANGE);
        EXPECT(strstr(millstream_error_message(), "a multiple of 8") != NULL);
        /* The sizes that the message names are accepted. */
        EXPECT(strstr(millstream_error_message(), "from 8 to 1073741824") != NULL);
        EXPECT(millstream_slab_create_with("wrong", &options, &slab) == MILLSTREAM_OUT_OF_RANGE);
        EXPECT(millstream_slab_create_memfd(&options, &slab) == MILLSTREAM_OUT_OF_RANGE);
        EXPECT(slab == NULL && access("wrong", F_OK) != 0);
    }
}

static void a_mode_is_nothing_but_permissions(void) {
    static const uint32_t wrong[] = {01000, 04755, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        millstream_slab_options options = sized(8, 10);
        options.mode = wrong[i];
        millstream_slab *slab = NULL;
        EXPECT(millstream_slab_create_with("wrong", &options, &slab) == MILLSTREAM_OUT_OF_RANGE);
        EXPECT(millstream_slab_create_memfd(&options, &slab) == MILLSTREAM_OUT_OF_RANGE);
        EXPECT(slab == NULL && access("wrong", F_OK) != 0);
    }
}

static void a_file_that_others_may_write_to_is_opened_by_its_descriptor(void) {
    millstream_slab *slab = NULL;
    EXPECT(millstream_slab_create("others", 8, 10, &slab) == MILLSTREAM_OK);
    millstream_slab_free(slab);
    EXPECT(chmod("others", 0666) == 0);
    EXPECT(millstream_slab_open("others", &slab) == MILLSTREAM_SLAB_UNTRUSTED);
    int fd = open("others", O_RDWR);
    EXPECT(millstream_slab_open_fd(fd, &slab) == MILLSTREAM_OK);
    close(fd);
    millstream_slab_free(slab);
}

static void options_are_heeded(void) {
    millstream_slab_options options = sized(24, 4096);
    options.capacity = 128;
    options.caches = 2;
    options.chain = 1;
    options.tag = 0x7365737365696f6e;
    options.huge_pages = 1;
    options.reserve = 1;
    options.mode = 0640;
    millstream_slab *slab = NULL;
    millstream_slab_cache *caches[3];
    EXPECT(millstream_slab_create_with("options", &options, &slab) == MILLSTREAM_OK);
    uint64_t object_bytes = 0, max_objects = 0, tag = 0;
    EXPECT(millstream_slab_object_bytes(slab, &object_bytes) == MILLSTREAM_OK && object_bytes == 24);
    EXPECT(millstream_slab_max_objects(slab, &max_objects) == MILLSTREAM_OK && max_objects == 4096);
    EXPECT(millstream_slab_tag(slab, &tag) == MILLSTREAM_OK && tag == options.tag);
    EXPECT(millstream_slab_object_bytes(NULL, &tag) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_max_objects(NULL, &tag) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_tag(slab, NULL) == MILLSTREAM_NULL);

    EXPECT(millstream_slab_cache_new(slab, &caches[0]) == MILLSTREAM_OK);
    EXPECT(millstream_slab_cache_new(slab, &caches[1]) == MILLSTREAM_OK);
    EXPECT(millstream_slab_cache_new(slab, &caches[2]) == MILLSTREAM_SLAB_NO_CACHE);
    millstream_slab_handle handle;
    millstream_slab_usage_result usage = {.struct_bytes = sizeof usage};
    EXPECT(millstream_slab_put(caches[0], "twenty-three characters", &handle) == MILLSTREAM_OK);
    EXPECT(millstream_slab_usage(slab, &usage) == MILLSTREAM_OK);
    EXPECT(usage.capacity == 128 && usage.caches == 2 && usage.virgin == 127 && usage.cached == 0);
    millstream_slab_cache_free(caches[0]);
    millstream_slab_cache_free(caches[1]);
    millstream_slab_free(slab);

    options.capacity = 5000;
    EXPECT(millstream_slab_create_with("more", &options, &slab) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(millstream_slab_create_with("more", NULL, &slab) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_create_memfd(NULL, &slab) == MILLSTREAM_NULL);
}

/* A program with a newer header has a longer struct; if its additional options are 0, it asks for nothing new. */
static void options_of_another_version_are_read_or_refused(void) {
    struct {
        millstream_slab_options known;
        uint64_t unknown;
    } younger = {sized(8, 10), 0};
    millstream_slab *slab = NULL;
    younger.known.struct_bytes = sizeof younger;
    EXPECT(millstream_slab_create_memfd(&younger.known, &slab) == MILLSTREAM_OK);
    millstream_slab_free(slab);
    younger.unknown = 1;
    EXPECT(millstream_slab_create_memfd(&younger.known, &slab) == MILLSTREAM_OUT_OF_RANGE);
    EXPECT(strstr(millstream_error_message(), "too old") != NULL);
    static const uint64_t wrong[] = {0, 8, sizeof younger.known - 1, 4097, UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        younger.known.struct_bytes = wrong[i];
        EXPECT(millstream_slab_create_memfd(&younger.known, &slab) == MILLSTREAM_OUT_OF_RANGE);
    }
}

static void a_descriptor_is_as_good_as_a_name(void) {
    millstream_slab *slab = memory(8, 100), *same = NULL;
    millstream_slab_cache *cache;
    millstream_slab_handle handle;
    uint64_t number = 42;
    int32_t fd = -1;
    EXPECT(millstream_slab_cache_new(slab, &cache) == MILLSTREAM_OK);
    EXPECT(millstream_slab_put(cache, &number, &handle) == MILLSTREAM_OK);
    EXPECT(millstream_slab_fd(slab, &fd) == MILLSTREAM_OK && fd >= 0);
    int copy = dup(fd);
    EXPECT(millstream_slab_open_fd(copy, &same) == MILLSTREAM_OK);
    close(copy);
    number = 0;
    EXPECT(millstream_slab_get(same, handle, &number) == MILLSTREAM_OK && number == 42);
    millstream_slab_free(same);
    millstream_slab_cache_free(cache);
    millstream_slab_free(slab);
    EXPECT(millstream_slab_open_fd(-1, &same) == MILLSTREAM_SLAB_SYSTEM && millstream_error_number() == EBADF);
    EXPECT(millstream_slab_open_fd(copy, &same) == MILLSTREAM_SLAB_SYSTEM && millstream_error_number() == EBADF);
    EXPECT(millstream_slab_fd(NULL, &fd) == MILLSTREAM_NULL);
}

static void every_reason_has_its_code(void) {
    millstream_slab *slab = NULL;
    EXPECT(millstream_slab_open("codes", &slab) == MILLSTREAM_SLAB_SYSTEM && millstream_error_number() == ENOENT);
    EXPECT(millstream_slab_create("nowhere/codes", 8, 10, &slab) == MILLSTREAM_SLAB_SYSTEM);
    EXPECT(millstream_error_number() == ENOENT);
    EXPECT(millstream_slab_create("codes", 8, 10, &slab) == MILLSTREAM_OK);
    millstream_slab_free(slab);
    EXPECT(millstream_slab_create("codes", 8, 10, &slab) == MILLSTREAM_SLAB_EXISTS && millstream_error_number() == 0);
    EXPECT(millstream_slab_open("codes", &slab) == MILLSTREAM_OK);
    millstream_slab_free(slab);
    EXPECT(millstream_slab_create(NULL, 8, 10, &slab) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_open(NULL, &slab) == MILLSTREAM_NULL);

    /* Numbers out of range count as damage here, because they do not come from the caller. */
    change("codes", OBJECT_BYTES, 0);
    EXPECT(millstream_slab_open("codes", &slab) == MILLSTREAM_SLAB_DAMAGED);
    seal("codes");
    EXPECT(millstream_slab_open("codes", &slab) == MILLSTREAM_SLAB_DAMAGED);
    EXPECT(strstr(millstream_error_message(), "object_bytes is 0") != NULL);
    change("codes", VERSION, (uint64_t)9 << 32);
    EXPECT(millstream_slab_open("codes", &slab) == MILLSTREAM_SLAB_VERSION);
    change("codes", 0, 0);
    EXPECT(millstream_slab_open("codes", &slab) == MILLSTREAM_SLAB_NOT_A_SLAB);

    EXPECT(millstream_slab_create("short", 8, 10, &slab) == MILLSTREAM_OK);
    millstream_slab_free(slab);
    EXPECT(truncate("short", 4096) == 0);
    EXPECT(millstream_slab_open("short", &slab) == MILLSTREAM_SLAB_DAMAGED);
}

static void a_path_is_any_bytes(void) {
    static const char path[] = "caf\xe9";
    millstream_slab *slab = NULL;
    EXPECT(millstream_slab_create(path, 8, 10, &slab) == MILLSTREAM_OK && access(path, F_OK) == 0);
    millstream_slab_free(slab);
    EXPECT(millstream_slab_open(path, &slab) == MILLSTREAM_OK);
    millstream_slab_free(slab);
    EXPECT(millstream_slab_create(path, 8, 10, &slab) == MILLSTREAM_SLAB_EXISTS);
    EXPECT(millstream_slab_open("caf\xe8", &slab) == MILLSTREAM_SLAB_SYSTEM);
}

static void private_objects_are_filled_in_place(void) {
    millstream_slab *slab = memory(8, 100);
    millstream_slab_cache *cache;
    millstream_slab_private object;
    millstream_slab_handle handle;
    millstream_slab_usage_result usage = {.struct_bytes = sizeof usage};
    uint64_t number = 0;
    EXPECT(millstream_slab_cache_new(slab, &cache) == MILLSTREAM_OK);
    EXPECT(millstream_slab_private_new(cache, &object) == MILLSTREAM_OK);
    *(uint64_t *)object.bytes = 42;
    EXPECT(millstream_slab_private_publish(&object, NULL) == MILLSTREAM_NULL && object.bytes != NULL);
    EXPECT(millstream_slab_private_publish(&object, &handle) == MILLSTREAM_OK && object.bytes == NULL);
    EXPECT(millstream_slab_get(slab, handle, &number) == MILLSTREAM_OK && number == 42);
    EXPECT(millstream_slab_private_publish(&object, &handle) == MILLSTREAM_NULL);
    millstream_slab_private_free(&object);
    EXPECT(millstream_slab_get(slab, handle, &number) == MILLSTREAM_OK);

    EXPECT(millstream_slab_private_claim(cache, handle, &object) == MILLSTREAM_OK);
    EXPECT(millstream_slab_get(slab, handle, &number) == MILLSTREAM_SLAB_HELD);
    *(uint64_t *)object.bytes += 1;
    EXPECT(millstream_slab_private_publish(&object, &handle) == MILLSTREAM_OK);
    EXPECT(millstream_slab_get(slab, handle, &number) == MILLSTREAM_OK && number == 43);

    EXPECT(millstream_slab_private_claim(cache, handle, &object) == MILLSTREAM_OK);
    millstream_slab_private_free(&object);
    millstream_slab_private_free(&object);
    millstream_slab_private_free(NULL);
    EXPECT(millstream_slab_private_claim(cache, handle, &object) == MILLSTREAM_SLAB_STALE);
    EXPECT(millstream_slab_usage(slab, &usage) == MILLSTREAM_OK);
    EXPECT(usage.held + usage.published + usage.orphans == 0 && usage.max_objects == 100);
    EXPECT(millstream_slab_private_new(NULL, &object) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_private_claim(NULL, handle, &object) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_private_publish(NULL, &handle) == MILLSTREAM_NULL);

    uint64_t objects = 0;
    int32_t status;
    while ((status = millstream_slab_put(cache, &objects, &handle)) == MILLSTREAM_OK) {
        objects++;
    }
    EXPECT(status == MILLSTREAM_SLAB_FULL && objects == 100);
    memset(&object, 0xff, sizeof object);
    EXPECT(millstream_slab_private_new(cache, &object) == MILLSTREAM_SLAB_FULL);
    EXPECT(object.bytes == NULL);
    millstream_slab_private_free(&object);
    millstream_slab_cache_free(cache);
    millstream_slab_free(slab);
}

static void next_tells_in_whose_hands_an_object_is_and_whose_it_was(void) {
    millstream_slab_options options = sized(8, 100);
    options.owners = 1;
    millstream_slab *slab = NULL;
    EXPECT(millstream_slab_create_memfd(&options, &slab) == MILLSTREAM_OK);
    millstream_slab_cache *cache;
    millstream_slab_private kept;
    millstream_slab_handle published, killed;
    uint64_t number = 1, changed = 2, recovered = 0, from = 0;
    EXPECT(millstream_slab_cache_new(slab, &cache) == MILLSTREAM_OK);
    EXPECT(millstream_slab_set_owner(cache, 7) == MILLSTREAM_OK);
    EXPECT(millstream_slab_set_owner(NULL, 7) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_put(cache, &number, &published) == MILLSTREAM_OK);
    EXPECT(millstream_slab_put(cache, &number, &killed) == MILLSTREAM_OK);
    EXPECT(millstream_slab_private_new(cache, &kept) == MILLSTREAM_OK);
    pid_t child = fork();
    if (child == 0) {
        millstream_slab_cache *own;
        millstream_slab_private object;
        EXPECT(millstream_slab_cache_new(slab, &own) == MILLSTREAM_OK);
        EXPECT(millstream_slab_set_owner(own, 42) == MILLSTREAM_OK);
        EXPECT(millstream_slab_private_claim(own, killed, &object) == MILLSTREAM_OK);
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
    EXPECT(millstream_slab_recover(slab, &recovered) == MILLSTREAM_OK && recovered == 1);
    EXPECT(millstream_slab_recover(NULL, &recovered) == MILLSTREAM_NULL);

    millstream_slab_object object = {.struct_bytes = sizeof object};
    int seen[3] = {0};
    while (millstream_slab_next(slab, &from, &object) == MILLSTREAM_OK) {
        seen[object.state]++;
        EXPECT(object.pid == (object.state == MILLSTREAM_SLAB_PRIVATE ? (uint32_t)getpid() : 0));
        EXPECT((object.state == MILLSTREAM_SLAB_ORPHAN) == (memcmp(&object.handle, &killed, sizeof killed) == 0));
        EXPECT(object.owner == (object.state == MILLSTREAM_SLAB_ORPHAN ? 42 : 7));
    }
    EXPECT(seen[MILLSTREAM_SLAB_PUBLISHED] == 1 && seen[MILLSTREAM_SLAB_ORPHAN] == 1);
    EXPECT(seen[MILLSTREAM_SLAB_PRIVATE] == 1);
    EXPECT(millstream_slab_next(slab, &from, &object) == MILLSTREAM_SLAB_END);
    EXPECT(millstream_slab_next(slab, NULL, &object) == MILLSTREAM_NULL);

    /* An orphan is read as its process left it, and setting it publishes it. */
    EXPECT(millstream_slab_get(slab, killed, &number) == MILLSTREAM_OK);
    EXPECT(millstream_slab_set(cache, killed, &changed) == MILLSTREAM_OK);
    from = killed.low & 0xffffffff;
    EXPECT(millstream_slab_next(slab, &from, &object) == MILLSTREAM_OK && object.state == MILLSTREAM_SLAB_PUBLISHED);
    millstream_slab_private_free(&kept);
    millstream_slab_cache_free(cache);
    millstream_slab_free(slab);
}

static void damage_is_counted_and_told(void) {
    millstream_slab_options options = sized(8, 100);
    options.caches = 1;
    millstream_slab *slab = NULL;
    millstream_slab_cache *cache;
    millstream_slab_handle handle;
    millstream_slab_usage_result usage = {.struct_bytes = sizeof usage};
    uint64_t number = 0, problems = 1;
    EXPECT(millstream_slab_create_with("damage", &options, &slab) == MILLSTREAM_OK);
    EXPECT(millstream_slab_cache_new(slab, &cache) == MILLSTREAM_OK);
    EXPECT(millstream_slab_put(cache, &number, &handle) == MILLSTREAM_OK);
    EXPECT(millstream_slab_verify(slab, &problems) == MILLSTREAM_OK && problems == 0);

    change("damage", FIRST_WORD + 8 * (off_t)(handle.low & 0xffffffff), UINT64_MAX);
    EXPECT(millstream_slab_verify(slab, &problems) == MILLSTREAM_OK && problems == 1);
    EXPECT(strstr(millstream_error_message(), "makes no sense") != NULL);
    EXPECT(millstream_slab_usage(slab, &usage) == MILLSTREAM_OK && usage.damaged == 1 && usage.published == 0);
    EXPECT(millstream_slab_get(slab, handle, &number) == MILLSTREAM_SLAB_DAMAGED);
    for (off_t i = 0; i < 100; i++) {
        change("damage", FIRST_WORD + 8 * i, UINT64_MAX);
    }
    EXPECT(millstream_slab_verify(slab, &problems) == MILLSTREAM_OK && problems == 100);
    EXPECT(strlen(millstream_error_message()) < 2000);
    EXPECT(millstream_slab_verify(NULL, &problems) == MILLSTREAM_NULL);
    EXPECT(millstream_slab_usage(NULL, &usage) == MILLSTREAM_NULL);
    millstream_slab_cache_free(cache);
    millstream_slab_free(slab);
}

int main(int argc, char **argv) {
    EXPECT(argc == 2 && chdir(argv[1]) == 0);
    objects_are_put_and_got();
    object_bytes_are_a_multiple_of_8_and_not_0();
    a_mode_is_nothing_but_permissions();
    a_file_that_others_may_write_to_is_opened_by_its_descriptor();
    options_are_heeded();
    options_of_another_version_are_read_or_refused();
    a_descriptor_is_as_good_as_a_name();
    every_reason_has_its_code();
    a_path_is_any_bytes();
    private_objects_are_filled_in_place();
    next_tells_in_whose_hands_an_object_is_and_whose_it_was();
    damage_is_counted_and_told();
    return failures != 0;
}
