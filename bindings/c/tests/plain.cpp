// Uses the header from C++.
#include <millstream.h>

#include <cstdio>

int main() {
    static_assert(MILLSTREAM_VERSION_MAJOR * 1000000 + MILLSTREAM_VERSION_MINOR * 1000 + MILLSTREAM_VERSION_PATCH ==
                      MILLSTREAM_VERSION,
                  "one version");
    millstream_csm_setup setup{};
    setup.struct_bytes = sizeof setup;
    setup.claim = MILLSTREAM_CSM_AT_LEAST;
    setup.low = 0.9;
    setup.error = 1e-6;
    millstream_csm_driver *driver = nullptr;
    int32_t progress = MILLSTREAM_CSM_RUNNING;
    if (millstream_version() != MILLSTREAM_VERSION || millstream_csm_driver_new(&setup, 0, 0, &driver) != MILLSTREAM_OK) {
        std::fprintf(stderr, "%s\n", millstream_error_message());
        return 1;
    }
    while (progress == MILLSTREAM_CSM_RUNNING) {
        millstream_csm_driver_observe(driver, true, &progress);
    }
    millstream_csm_status status{};
    status.struct_bytes = sizeof status;
    millstream_csm_driver_status(driver, &status);
    millstream_csm_driver_free(driver);

    millstream_slab_options options{};
    options.struct_bytes = sizeof options;
    options.object_bytes = 8;
    options.max_objects = 10;
    millstream_slab *slab = nullptr;
    const bool has_slab = millstream_slab_create_memfd(&options, &slab) == MILLSTREAM_OK;
    millstream_slab_free(slab);
    return has_slab && progress == MILLSTREAM_CSM_HOLDS && status.successes == status.trials ? 0 : 1;
}
