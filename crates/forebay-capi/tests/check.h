/* Helpers of the tests. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "forebay.h"

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s; the last error: %s\n", __FILE__, __LINE__, #condition, \
                    forebay_last_error(NULL)); \
            abort(); \
        } \
    } while (0)

/* Checks that a call returns this code. */
#define IS(wanted, call) \
    do { \
        int code_ = (call); \
        if (code_ != (wanted)) { \
            fprintf(stderr, "%s:%d: %s is %s, not %s; the last error: %s\n", __FILE__, __LINE__, #call, \
                    forebay_code_name(code_), forebay_code_name(wanted), forebay_last_error(NULL)); \
            abort(); \
        } \
    } while (0)

#define OK(call) IS(FOREBAY_OK, call)

/* A disk that does the given number of requests per second. */
static inline forebay_scheduler scheduler_of(uint64_t iops, uint32_t flags) {
    forebay_disk disk = FOREBAY_INIT(forebay_disk);
    disk.name = "disk";
    disk.name_len = 4;
    disk.read_iops = disk.write_iops = iops;
    disk.read_bandwidth = disk.write_bandwidth = iops * 100000;
    forebay_scheduler scheduler = 0;
    OK(forebay_scheduler_from_rates(&disk, 1, flags, &scheduler));
    return scheduler;
}

#endif
