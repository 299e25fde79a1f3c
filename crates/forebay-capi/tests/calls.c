/* Calls each function with valid and invalid arguments. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static char dir[] = "/tmp/forebay-calls-XXXXXX";

static const char *path_of(const char *name) {
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int make_file(const char *name, const char *contents) {
    int fd = open(path_of(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, contents, strlen(contents)) == (ssize_t)strlen(contents));
    return fd;
}

static int says(const char *part) {
    size_t len = 0;
    const char *text = forebay_last_error(&len);
    return strlen(text) == len && strstr(text, part) != NULL;
}

static void versions(void) {
    CHECK(forebay_version() == FOREBAY_VERSION);
    OK(forebay_check_version(FOREBAY_VERSION));
    IS(FOREBAY_E_VERSION, forebay_check_version(FOREBAY_VERSION + 1));
    CHECK(says("install that version"));
    IS(FOREBAY_E_VERSION, forebay_check_version(7000000));
    CHECK(forebay_features() & FOREBAY_FEATURE_EVENTS);
    CHECK(strcmp(forebay_code_name(FOREBAY_E_HANDLE), "FOREBAY_E_HANDLE") == 0);
    CHECK(strcmp(forebay_code_name(77), "unknown") == 0);
}

static char logged[4096];
static void log_to(void *context, int level, const char *text, size_t len) {
    CHECK(context == logged && (level == FOREBAY_LOG_WARN || level == FOREBAY_LOG_INFO));
    if (logged[0] == 0 && len < sizeof logged) {
        memcpy(logged + 1, text + 1, len - 1);
        __atomic_store_n(logged, text[0], __ATOMIC_RELEASE);
    }
}

static void schedulers(void) {
    forebay_scheduler scheduler = 0;
    IS(FOREBAY_E_CONFIG, forebay_scheduler_from_file(FOREBAY_STR("/nowhere.yaml"), 0, &scheduler));
    CHECK(says("/nowhere.yaml") && scheduler == 0);
    close(make_file("wrong.yaml", "disks:\n  - mountpoint: /\n    read_iopps: 7\n"));
    IS(FOREBAY_E_CONFIG, forebay_scheduler_from_file(path_of("wrong.yaml"), strlen(path_of("wrong.yaml")), 0, &scheduler));
    CHECK(says("read_iopps"));
    IS(FOREBAY_E_INVALID, forebay_scheduler_from_file(NULL, 1, 0, &scheduler));
    IS(FOREBAY_E_INVALID, forebay_scheduler_from_file(FOREBAY_STR("x"), 0, NULL));
    IS(FOREBAY_E_INVALID, forebay_scheduler_from_file("x", SIZE_MAX, 0, &scheduler));

    char right[512];
    snprintf(right, sizeof right,
             "disks:\n  - mountpoint: %s\n    read_iops: 1000\n    read_bandwidth: 100000000\n"
             "    write_iops: 1000\n    write_bandwidth: 100000000\n", dir);
    close(make_file("right.yaml", right));
    char file[PATH_MAX];
    strcpy(file, path_of("right.yaml"));
    IS(FOREBAY_E_INVALID, forebay_scheduler_from_file(file, strlen(file), 64, &scheduler));
    OK(forebay_scheduler_from_file(file, strlen(file), FOREBAY_STRICT, &scheduler));
    OK(forebay_scheduler_reload(scheduler, file, strlen(file)));
    IS(FOREBAY_E_CONFIG, forebay_scheduler_reload(scheduler, FOREBAY_STR("/nowhere.yaml")));
    /* no entry covers the disk of /proc */
    forebay_class class, on;
    OK(forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &class));
    int unlisted = open("/proc/self/stat", O_RDONLY), listed = open(file, O_RDONLY);
    IS(FOREBAY_E_UNLISTED, forebay_class_on_file(class, unlisted, &on));
    OK(forebay_class_on_file(class, listed, &on));
    OK(forebay_free(on));
    OK(forebay_class_on_disk(class, dir, strlen(dir), &on));
    IS(FOREBAY_E_NOT_FOUND, forebay_class_on_disk(class, FOREBAY_STR("nobody's"), &on));
    IS(FOREBAY_E_INVALID, forebay_class_on_file(class, -1, &on));
    IS(FOREBAY_E_SYSTEM, forebay_class_on_file(class, 9999, &on));
    CHECK(forebay_last_errno() == EBADF);
    OK(forebay_free(class));
    OK(forebay_free(scheduler));

    /* the size of the first structure applies to all; fields of a newer header are refused */
    struct { forebay_disk disk; uint64_t newer; } disks[2] = {{FOREBAY_INIT(forebay_disk), 0}, {FOREBAY_INIT(forebay_disk), 0}};
    for (int i = 0; i < 2; i++) {
        disks[i].disk.size = sizeof disks[i];
        disks[i].disk.name = i ? "two" : "one";
        disks[i].disk.name_len = 3;
        disks[i].disk.read_iops = disks[i].disk.write_iops = 100000;
        disks[i].disk.read_bandwidth = disks[i].disk.write_bandwidth = 1000000000;
    }
    OK(forebay_scheduler_from_rates(&disks[0].disk, 2, 0, &scheduler));
    OK(forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &class));
    OK(forebay_class_on_disk(class, FOREBAY_STR("two"), &on));
    disks[1].newer = 7;
    IS(FOREBAY_E_VERSION, forebay_scheduler_from_rates(&disks[0].disk, 2, 0, &scheduler));
    disks[1].newer = 0;
    for (size_t size = 8; size <= 4096; size *= 8) {
        disks[1].disk.size = size;
        IS(FOREBAY_E_INVALID, forebay_scheduler_from_rates(&disks[0].disk, 2, 0, &scheduler));
    }
    IS(FOREBAY_E_INVALID, forebay_scheduler_from_rates(NULL, 1, 0, &scheduler));
    disks[0].disk.read_iops = 0;
    IS(FOREBAY_E_CONFIG, forebay_scheduler_from_rates(&disks[0].disk, 1, 0, &scheduler));
    disks[0].disk.name = "\xff";
    disks[0].disk.name_len = 1;
    IS(FOREBAY_E_INVALID, forebay_scheduler_from_rates(&disks[0].disk, 1, 0, &scheduler));

    OK(forebay_set_log(log_to, logged));
    OK(forebay_scheduler_from_rates(NULL, 0, 0, &scheduler));
    OK(forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &class));
    OK(forebay_class_on_file(class, unlisted, &on));
    for (int i = 0; i < 10000 && !__atomic_load_n(logged, __ATOMIC_ACQUIRE); i++)
        usleep(1000);
    CHECK(strstr(logged, "/proc"));
    OK(forebay_set_log(NULL, NULL));
    close(unlisted), close(listed);
}

static void classes(void) {
    forebay_scheduler scheduler = scheduler_of(100000, 0);
    forebay_class class, within, found;
    forebay_group group, deeper;
    OK(forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &class));
    IS(FOREBAY_E_EXISTS, forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &found));
    IS(FOREBAY_E_INVALID, forebay_class_add(scheduler, FOREBAY_STR("other"), 0, &found));
    IS(FOREBAY_E_INVALID, forebay_class_add(scheduler, FOREBAY_STR("other"), 100, NULL));
    OK(forebay_group_add(scheduler, FOREBAY_STR("group"), 200, &group));
    OK(forebay_group_add(group, FOREBAY_STR("deeper"), 200, &deeper));
    OK(forebay_class_add(deeper, FOREBAY_STR("within"), 300, &within));
    IS(FOREBAY_E_BUSY, forebay_remove(deeper));
    OK(forebay_class_find(scheduler, FOREBAY_STR("within"), &found));
    IS(FOREBAY_E_NOT_FOUND, forebay_class_find(scheduler, FOREBAY_STR("nobody"), &found));
    CHECK(says("untagged"));

    uint32_t shares = 0;
    OK(forebay_set_shares(class, 700));
    OK(forebay_get_shares(class, &shares));
    CHECK(shares == 700);
    OK(forebay_get_shares(group, &shares));
    CHECK(shares == 200);
    IS(FOREBAY_E_INVALID, forebay_set_shares(group, 1000000000));
    forebay_limits limits = FOREBAY_INIT(forebay_limits), read = FOREBAY_INIT(forebay_limits);
    limits.operations_per_second = 50;
    OK(forebay_set_limits(group, &limits));
    OK(forebay_get_limits(group, &read));
    CHECK(read.size == sizeof read && read.operations_per_second == 50 && read.bytes_per_second == 0);
    limits.size = 8;
    IS(FOREBAY_E_INVALID, forebay_set_limits(group, &limits));
    IS(FOREBAY_E_INVALID, forebay_get_limits(group, NULL));

    IS(FOREBAY_E_INVALID, forebay_class_leave(class));
    OK(forebay_class_enter(class));
    OK(forebay_class_enter(within));
    OK(forebay_class_leave(class));
    OK(forebay_class_leave(within));
    OK(forebay_remove(within));
    IS(FOREBAY_E_REMOVED, forebay_set_shares(within, 5));
    forebay_permit permit;
    IS(FOREBAY_E_REMOVED, forebay_admit(within, FOREBAY_READ, 4096, FOREBAY_FOREVER, &permit));
    OK(forebay_remove(deeper));
    OK(forebay_free(scheduler));
    /* a class outlives the handle of its scheduler */
    OK(forebay_admit(class, FOREBAY_READ, 4096, FOREBAY_FOREVER, &permit));
    OK(forebay_complete(permit, 4096));
}

static void *complete_it(void *permit) {
    OK(forebay_complete(*(forebay_permit *)permit, -1));
    return NULL;
}

static void permits(void) {
    forebay_scheduler scheduler = scheduler_of(200, 0);
    forebay_class class;
    OK(forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &class));
    forebay_permit permit, more, held[64];
    errno = 77;
    IS(FOREBAY_E_INVALID, forebay_admit(class, 4, 4096, 0, &permit));
    IS(FOREBAY_E_INVALID, forebay_admit(class, FOREBAY_READ, 0, 0, &permit));
    IS(FOREBAY_E_INVALID, forebay_admit(class, FOREBAY_READ, UINT64_MAX, 0, &permit));
    IS(FOREBAY_E_INVALID, forebay_admit(class, FOREBAY_READ, 4096, 0, NULL));
    IS(FOREBAY_E_INVALID, forebay_admit(class, FOREBAY_READ, 4096, FOREBAY_FOREVER - 1, &permit));
    CHECK(says("`timeout_ns` is -2: below 0 only FOREBAY_FOREVER is allowed"));
    OK(forebay_admit(class, FOREBAY_FLUSH, 0, FOREBAY_FOREVER, &permit));
    CHECK(errno == 77);
    OK(forebay_complete(permit, 0));
    IS(FOREBAY_E_HANDLE, forebay_complete(permit, 0));

    int count = 0, code;
    while ((code = forebay_admit(class, FOREBAY_READ, 1 << 20, 0, &held[count])) == FOREBAY_OK)
        count++;
    IS(FOREBAY_E_TIMED_OUT, code);
    CHECK(count > 0 && count < 64);
    IS(FOREBAY_E_TIMED_OUT, forebay_admit(class, FOREBAY_READ, 1 << 20, 1000, &permit));
    IS(FOREBAY_E_INVALID, forebay_admit_nested(held[0], class, FOREBAY_READ, 4096, -2, &more));
    OK(forebay_admit_nested(held[0], class, FOREBAY_READ, 4096, FOREBAY_FOREVER, &more));
    OK(forebay_complete(more, 4096));
    while (count-- > 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, complete_it, &held[count]) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    int fd = make_file("data", "0123456789");
    OK(forebay_admit_file(class, fd, FOREBAY_WRITE, 4096, 4096, FOREBAY_FOREVER, &permit));
    OK(forebay_free(permit));
    OK(forebay_admit_file(class, fd, FOREBAY_READ, FOREBAY_OFFSET_UNKNOWN, 4096, 0, &permit));
    OK(forebay_free(permit));
    OK(forebay_admit_file(class, fd, FOREBAY_READ, 0, 4096, 1000000000, &permit));
    OK(forebay_free(permit));
    uint64_t part = 0;
    /* a negative offset is an error */
    IS(FOREBAY_E_INVALID, forebay_admit_file(class, fd, FOREBAY_READ, -4096, 4096, 0, &permit));
    CHECK(says("`offset` is -4096: below 0 only FOREBAY_OFFSET_UNKNOWN is allowed"));
    IS(FOREBAY_E_INVALID, forebay_admit_file(class, fd, FOREBAY_READ, 0, 4096, INT64_MIN, &permit));
    IS(FOREBAY_E_INVALID, forebay_admit_part(class, fd, FOREBAY_READ, INT64_MIN, 1, 0, &permit, &part));
    IS(FOREBAY_E_INVALID, forebay_admit_part(class, fd, FOREBAY_READ, 0, 1, -2, &permit, &part));
    OK(forebay_admit_part(class, fd, FOREBAY_READ, 0, 1, FOREBAY_FOREVER, &permit, &part));
    CHECK(part == 1);
    OK(forebay_free(permit));
    OK(forebay_admit_part(class, fd, FOREBAY_READ, 0, 1 << 30, FOREBAY_FOREVER, &permit, &part));
    CHECK(part == 16 << 20);
    OK(forebay_free(permit));
    IS(FOREBAY_E_INVALID, forebay_admit_part(class, fd, FOREBAY_READ, 0, 0, 0, &permit, &part));
    IS(FOREBAY_E_INVALID, forebay_admit_part(class, fd, FOREBAY_READ, 0, 1, 0, &permit, NULL));
    close(fd);
    OK(forebay_free(scheduler_of(1, FOREBAY_UNLIMITED)));
}

static void granted(void *context, int code, forebay_permit permit) {
    IS(FOREBAY_OK, code);
    OK(forebay_complete(permit, 4096));
    __atomic_add_fetch((int *)context, 1, __ATOMIC_RELEASE);
}

static void never(void *context, int code, forebay_permit permit) {
    (void)code, (void)permit;
    *(int *)context = 1;
}

static void event_loop(void) {
    forebay_scheduler scheduler = scheduler_of(2000, 0);
    forebay_class class;
    forebay_events events;
    OK(forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &class));
    OK(forebay_events_new(&events));
    IS(FOREBAY_E_INVALID, forebay_events_new(NULL));
    struct pollfd readable = {-1, POLLIN, 0};
    OK(forebay_events_fd(events, &readable.fd));
    forebay_event event = FOREBAY_INIT(forebay_event);
    IS(FOREBAY_E_AGAIN, forebay_events_next(events, &event));
    CHECK(poll(&readable, 1, 0) == 0);

    enum { REQUESTS = 200 };
    int waits = 0, told[REQUESTS] = {0}, called = 0, pending = 0, cancelled = 0;
    forebay_permit permit;
    forebay_waiting waiting;
    for (int i = 0; i < REQUESTS; i++) {
        int code = forebay_admit_event(class, FOREBAY_READ, 65536, events, i, &permit, &waiting);
        CHECK(code == FOREBAY_OK ? permit != 0 && waiting == 0 : code == FOREBAY_PENDING && waiting != 0);
        if (code == FOREBAY_OK)
            told[i] = 1, forebay_complete(permit, 65536);
        else if (i % 5 == 0 && forebay_free(waiting) == FOREBAY_OK)
            told[i] = 1, cancelled++;
        else
            waits++;
        code = forebay_admit_callback(class, FOREBAY_READ, 65536, granted, &called, &permit, &waiting);
        if (code == FOREBAY_OK)
            forebay_complete(permit, 65536);
        else
            pending++;
    }
    int silent = 0;
    IS(FOREBAY_PENDING, forebay_admit_callback(class, FOREBAY_READ, 65536, never, &silent, &permit, &waiting));
    OK(forebay_free(waiting));
    CHECK(waits > 0 && pending > 0 && cancelled > 0);
    while (waits > 0) {
        CHECK(poll(&readable, 1, 60000) == 1);
        while (forebay_events_next(events, &event) == FOREBAY_OK) {
            IS(FOREBAY_OK, event.code);
            CHECK(event.user_data < REQUESTS && told[event.user_data]++ == 0);
            IS(FOREBAY_E_HANDLE, forebay_free(event.waiting));
            OK(forebay_complete(event.permit, 65536));
            waits--;
        }
    }
    CHECK(poll(&readable, 1, 0) == 0);
    for (int i = 0; i < 60000 && __atomic_load_n(&called, __ATOMIC_ACQUIRE) < pending; i++)
        usleep(1000);
    CHECK(called == pending && silent == 0);
    for (int i = 0; i < REQUESTS; i++)
        CHECK(told[i] == 1);

    IS(FOREBAY_E_INVALID, forebay_admit_callback(class, FOREBAY_READ, 4096, NULL, NULL, &permit, &waiting));
    IS(FOREBAY_E_INVALID, forebay_admit_event(class, FOREBAY_READ, 4096, events, 0, &permit, NULL));
    IS(FOREBAY_E_INVALID, forebay_admit_event(class, FOREBAY_READ, 0, events, 0, &permit, &waiting));
    CHECK(waiting == 0);
    /* a permit that is granted to a freed queue ends */
    OK(forebay_admit(class, FOREBAY_READ, 1 << 20, FOREBAY_FOREVER, &permit));
    forebay_permit other;
    while (forebay_admit_event(class, FOREBAY_READ, 1 << 20, events, 0, &other, &waiting) == FOREBAY_OK)
        ;
    OK(forebay_free(events));
    OK(forebay_free(permit));
    OK(forebay_admit(class, FOREBAY_READ, 4096, FOREBAY_FOREVER, &permit));
    OK(forebay_free(permit));
}

static void page_cache(void) {
    forebay_scheduler scheduler = scheduler_of(100000, 0);
    forebay_class class;
    OK(forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &class));
    static char data[3000000], back[3000000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7 + i / 4096);
    int fd = make_file("written", "");
    forebay_writer writer;
    uint64_t dirty = 0;
    size_t done = 0;
    OK(forebay_writer_new(class, fd, 1 << 20, &writer));
    OK(forebay_write(writer, data, 1000000, FOREBAY_OFFSET_NEXT));
    OK(forebay_write(writer, data + 2000000, 1000000, 2000000));
    OK(forebay_write(writer, data + 1000000, 1000000, FOREBAY_OFFSET_NEXT));
    OK(forebay_write_back(writer));
    OK(forebay_writer_set_write_back_after(writer, 1 << 20));
    OK(forebay_writer_sync(writer, 0));
    OK(forebay_writer_sync(writer, FOREBAY_SYNC_ALL));
    OK(forebay_writer_dirty(writer, &dirty));
    CHECK(dirty == 0);
    IS(FOREBAY_E_INVALID, forebay_writer_sync(writer, 2));
    IS(FOREBAY_E_INVALID, forebay_write(writer, NULL, 1, 0));
    /* a negative offset does not append */
    IS(FOREBAY_E_INVALID, forebay_write(writer, data, 1, -4096));
    CHECK(says("`offset` is -4096: below 0 only FOREBAY_OFFSET_NEXT is allowed"));
    IS(FOREBAY_E_INVALID, forebay_write(writer, data, 1, INT64_MIN));
    IS(FOREBAY_E_SYSTEM, forebay_read(class, fd, back, 1, -4096, &done));
    CHECK(forebay_last_errno() == EINVAL && lseek(fd, 0, SEEK_END) == sizeof data);
    OK(forebay_write(writer, NULL, 0, 0));
    OK(forebay_read(scheduler, fd, back, sizeof back, 0, &done));
    CHECK(done == sizeof back && memcmp(data, back, sizeof back) == 0);
    OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    OK(forebay_prefetch(class, fd, 4096, UINT64_MAX));
    OK(forebay_prefetch(scheduler, fd, UINT64_MAX, UINT64_MAX));
    IS(FOREBAY_E_INVALID, forebay_prefetch(class, -1, 0, 1));
    IS(FOREBAY_E_SYSTEM, forebay_prefetch(class, 9999, 0, 1));
    OK(forebay_read(class, fd, back, 100, sizeof back - 10, &done));
    CHECK(done == 10);
    OK(forebay_sync(class, fd, 0));
    OK(forebay_sync(class, fd, FOREBAY_SYNC_ALL));
    OK(forebay_free(writer));
    close(fd);
    IS(FOREBAY_E_SYSTEM, forebay_read(class, fd, back, 100, 0, &done));
    CHECK(forebay_last_errno() == EBADF);
    fd = open(path_of("written"), O_RDONLY);
    IS(FOREBAY_E_INVALID, forebay_writer_new(class, fd, 0, &writer));
    close(fd);
}

static void deletions(void) {
    forebay_scheduler scheduler = scheduler_of(100000, 0);
    forebay_class class;
    forebay_deleter deleter;
    forebay_deletion deletion;
    forebay_deleter_options options = FOREBAY_INIT(forebay_deleter_options);
    forebay_deleted deleted = FOREBAY_INIT(forebay_deleted);
    OK(forebay_class_add(scheduler, FOREBAY_STR("deletes"), 50, &class));
    options.rate = 512 << 20;
    options.flags = FOREBAY_DELETE_ALWAYS_IN_STEPS;
    OK(forebay_deleter_new(class, &options, &deleter));
    close(make_file("victim", "bytes"));
    char victim[PATH_MAX];
    strcpy(victim, path_of("victim"));
    OK(forebay_delete(deleter, victim, strlen(victim), &deletion));
    OK(forebay_deletion_wait_removed(deletion));
    CHECK(access(victim, F_OK) != 0);
    OK(forebay_deletion_wait(deletion, &deleted));
    CHECK(deleted.files == 1 && deleted.state == FOREBAY_DELETION_ENDED);
    OK(forebay_deletion_wait(deletion, NULL));
    OK(forebay_deletion_progress(deletion, &deleted));
    IS(FOREBAY_E_BUSY, forebay_deletion_cancel(deletion));
    OK(forebay_free(deletion));
    OK(forebay_delete(deleter, victim, strlen(victim), &deletion));
    IS(FOREBAY_E_SYSTEM, forebay_deletion_wait(deletion, NULL));
    CHECK(forebay_last_errno() == ENOENT && says(victim));
    OK(forebay_delete(deleter, victim, strlen(victim), NULL));
    OK(forebay_deleter_empty_trash(deleter, dir, strlen(dir), &deletion));
    OK(forebay_deletion_wait(deletion, &deleted));
    OK(forebay_deleter_drain(deleter));
    options.flags = 64;
    IS(FOREBAY_E_INVALID, forebay_deleter_new(class, &options, &deleter));
}

static void snapshots(void) {
    forebay_scheduler scheduler = scheduler_of(100000, 0);
    forebay_class class;
    forebay_permit permit;
    static const char name[] = "a class of a name that is much longer than what a structure has room for";
    OK(forebay_class_add(scheduler, FOREBAY_STR(name), 100, &class));
    for (int i = 0; i < 3; i++) {
        OK(forebay_admit(class, FOREBAY_WRITE, 4096, FOREBAY_FOREVER, &permit));
        OK(forebay_complete(permit, i < 2 ? 4096 : -EIO));
    }
    forebay_snapshot snapshot;
    forebay_snapshot_info info = FOREBAY_INIT(forebay_snapshot_info);
    forebay_disk_stats disk = FOREBAY_INIT(forebay_disk_stats);
    forebay_class_stats stats = FOREBAY_INIT(forebay_class_stats);
    OK(forebay_snapshot_take(scheduler, &info, &snapshot));
    CHECK(info.disks == 2 && info.classes == 2 && info.bugs == 0 && info.uptime_ns > 0);
    OK(forebay_snapshot_disk(snapshot, 0, &disk));
    CHECK(strcmp(disk.name, "disk") == 0 && disk.name_len == 4 && disk.effective_goal_ns > 0);
    IS(FOREBAY_E_NOT_FOUND, forebay_snapshot_disk(snapshot, 2, &disk));
    OK(forebay_snapshot_class(snapshot, 0, 1, &stats));
    CHECK(strlen(stats.name) == FOREBAY_NAME_SIZE - 1 && stats.name_len == sizeof name - 1);
    CHECK(stats.operations[FOREBAY_WRITE] == 2 && stats.bytes[FOREBAY_WRITE] == 8192 && stats.errors == 1);
    CHECK(stats.shares == 100 && stats.disk_p99_ns > 0);
    IS(FOREBAY_E_NOT_FOUND, forebay_snapshot_class(snapshot, 0, UINT64_MAX, &stats));
    char whole[sizeof name];
    size_t whole_len = 0;
    IS(FOREBAY_E_TOO_SMALL, forebay_snapshot_class_name(snapshot, 0, 1, whole, stats.name_len - 1, &whole_len));
    OK(forebay_snapshot_class_name(snapshot, 0, 1, whole, whole_len, &whole_len));
    CHECK(whole_len == sizeof name - 1 && memcmp(whole, name, whole_len) == 0);
    IS(FOREBAY_E_NOT_FOUND, forebay_snapshot_class_name(snapshot, 0, 2, whole, sizeof whole, &whole_len));
    OK(forebay_snapshot_disk_name(snapshot, 0, whole, sizeof whole, &whole_len));
    CHECK(whole_len == 4 && memcmp(whole, "disk", 4) == 0);
    IS(FOREBAY_E_NOT_FOUND, forebay_snapshot_disk_name(snapshot, 2, whole, sizeof whole, &whole_len));
    /* a program with an older structure gets the fields that fit */
    memset(&stats, 7, sizeof stats);
    stats.size = 232;
    OK(forebay_snapshot_class(snapshot, 0, 1, &stats));
    OK(forebay_free(snapshot));
    IS(FOREBAY_E_HANDLE, forebay_snapshot_disk(snapshot, 0, &disk));

    size_t len = 0;
    static char text[1 << 20];
    IS(FOREBAY_E_TOO_SMALL, forebay_snapshot_openmetrics(scheduler, NULL, 0, &len));
    CHECK(len > 0 && len < sizeof text);
    OK(forebay_snapshot_openmetrics(scheduler, text, sizeof text, &len));
    CHECK(memcmp(text + len - 6, "# EOF\n", 6) == 0);
}

int main(void) {
    CHECK(mkdtemp(dir) != NULL);
    versions();
    schedulers();
    classes();
    permits();
    event_loop();
    page_cache();
    deletions();
    snapshots();
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    CHECK(system(command) == 0);
    puts("calls: ok");
    return 0;
}
