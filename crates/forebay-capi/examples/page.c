/* Reads a page under a permit, and the rest of the file through the page cache.
 *
 *     cc -o page page.c $(pkg-config --cflags --libs forebay) && ./page FILE */
#define _XOPEN_SOURCE 500
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <forebay.h>

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, forebay_last_error(NULL));
    return 1;
}

int main(int argc, char **argv) {
    char page[4096];
    forebay_scheduler scheduler;
    forebay_class queries;
    forebay_permit permit;
    forebay_disk disk = FOREBAY_INIT(forebay_disk);
    int fd = open(argc > 1 ? argv[1] : argv[0], O_RDONLY);
    if (fd < 0) {
        perror("open");
        return 1;
    }
    if (forebay_check_version(FOREBAY_VERSION) != FOREBAY_OK)
        return fail("libforebay");

    disk.name = "data";
    disk.name_len = strlen(disk.name);
    disk.mountpoint = "/";
    disk.mountpoint_len = 1;
    disk.read_iops = 218000;
    disk.write_iops = 121000;
    disk.read_bandwidth = 1542000000;
    disk.write_bandwidth = 1130000000;
    if (forebay_scheduler_from_rates(&disk, 1, 0, &scheduler) != FOREBAY_OK)
        return fail("scheduler");
    if (forebay_class_add(scheduler, FOREBAY_STR("queries"), 1000, &queries) != FOREBAY_OK)
        return fail("class");

    /* hold a permit during I/O of your own */
    if (forebay_admit(queries, FOREBAY_READ, sizeof page, FOREBAY_FOREVER, &permit) != FOREBAY_OK)
        return fail("admit");
    ssize_t result = pread(fd, page, sizeof page, 0);
    forebay_complete(permit, result);

    /* a read through the page cache needs a permit only for pages that are not in memory */
    size_t done;
    if (forebay_read(queries, fd, page, sizeof page, 4096, &done) != FOREBAY_OK)
        return fail("read");
    printf("%ld and %lu bytes\n", (long)result, (unsigned long)done);
    close(fd);
    forebay_free(queries);
    forebay_free(scheduler);
    return result < 0;
}
