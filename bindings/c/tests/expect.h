/* Reports a condition that is false, and continues. */
#include <millstream.h>

#include <stdio.h>

static int failures = 0;

#define EXPECT(condition)                                                                   \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, millstream_error_message()); \
            failures++;                                                                     \
        }                                                                                   \
    } while (0)
