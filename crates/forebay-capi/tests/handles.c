/* Calls every function with handles that are null, freed, freed twice, of another kind, of another
 * process or invented: from one thread, from eight, and in a forked child. Each call returns an error. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { SCHEDULER, CLASS, GROUP, WAITING, EVENTS, WRITER, DELETER, DELETION, SNAPSHOT, PERMIT, KINDS };

#define OF(kind) (1u << (kind))
#define ANY (OF(KINDS) - 1)

/* Valid arguments for the calls with invalid handles. */
static __thread uint64_t good_class, good_permit, good_events;

static void callback(void *context, int code, forebay_permit permit) {
    (void)context, (void)code;
    forebay_complete(permit, 0);
}

typedef struct {
    const char *name;
    int (*call)(uint64_t handle);
    unsigned kinds;
} function;

#define CALL(name, ...) \
    static int call_##name(uint64_t h) { \
        uint64_t out = 0, more = 0; \
        (void)out, (void)more; \
        return __VA_ARGS__; \
    }

static char text[16];
static size_t len;
static int fd;
static uint32_t shares;
static forebay_limits limits = FOREBAY_INIT(forebay_limits);
static __thread forebay_event event = FOREBAY_INIT(forebay_event);
static __thread forebay_deleted deleted = FOREBAY_INIT(forebay_deleted);
static __thread forebay_disk_stats disk_stats = FOREBAY_INIT(forebay_disk_stats);
static __thread forebay_class_stats class_stats = FOREBAY_INIT(forebay_class_stats);

CALL(reload, forebay_scheduler_reload(h, FOREBAY_STR("/nowhere")))
CALL(class_add, forebay_class_add(h, FOREBAY_STR("new"), 100, &out))
CALL(group_add, forebay_group_add(h, FOREBAY_STR("new"), 100, &out))
CALL(class_find, forebay_class_find(h, FOREBAY_STR("class"), &out))
CALL(class_on, forebay_class_on_disk(h, FOREBAY_STR("disk"), &out))
CALL(class_on_file, forebay_class_on_file(h, fd, &out))
CALL(remove, forebay_remove(h))
CALL(shares, forebay_get_shares(h, &shares))
CALL(set_shares, forebay_set_shares(h, 100))
CALL(get_limits, forebay_get_limits(h, &limits))
CALL(set_limits, forebay_set_limits(h, &limits))
CALL(class_enter, forebay_class_enter(h))
CALL(class_leave, forebay_class_leave(h))
CALL(admit, forebay_admit(h, FOREBAY_READ, 4096, 0, &out))
CALL(admit_file, forebay_admit_file(h, fd, FOREBAY_READ, 0, 4096, 0, &out))
CALL(admit_part, forebay_admit_part(h, fd, FOREBAY_READ, 0, 4096, 0, &out, &more))
CALL(admit_nested, forebay_admit_nested(h, good_class, FOREBAY_READ, 4096, 0, &out))
CALL(admit_nested_in, forebay_admit_nested(good_permit, h, FOREBAY_READ, 4096, 0, &out))
CALL(complete, forebay_complete(h, 4096))
CALL(admit_callback, forebay_admit_callback(h, FOREBAY_READ, 4096, callback, NULL, &out, &more))
CALL(admit_event, forebay_admit_event(h, FOREBAY_READ, 4096, good_events, 7, &out, &more))
CALL(admit_event_to, forebay_admit_event(good_class, FOREBAY_READ, 4096, h, 7, &out, &more))
CALL(events_fd, forebay_events_fd(h, &fd))
CALL(events_next, forebay_events_next(h, &event))
CALL(writer_new, forebay_writer_new(h, fd, 0, &out))
CALL(write, forebay_write(h, text, sizeof text, 0))
CALL(write_back, forebay_write_back(h))
CALL(write_back_after, forebay_writer_set_write_back_after(h, 1))
CALL(writer_sync, forebay_writer_sync(h, 0))
CALL(writer_dirty, forebay_writer_dirty(h, &out))
CALL(sync, forebay_sync(h, fd, 0))
CALL(read, forebay_read(h, fd, text, sizeof text, 0, &len))
CALL(prefetch, forebay_prefetch(h, fd, 0, UINT64_MAX))
CALL(deleter_new, forebay_deleter_new(h, NULL, &out))
CALL(delete, forebay_delete(h, FOREBAY_STR("/nowhere/file"), &out))
CALL(empty_trash, forebay_deleter_empty_trash(h, FOREBAY_STR("/nowhere"), &out))
CALL(drain, forebay_deleter_drain(h))
CALL(deletion_wait, forebay_deletion_wait(h, &deleted))
CALL(removed, forebay_deletion_wait_removed(h))
CALL(progress, forebay_deletion_progress(h, &deleted))
CALL(cancel, forebay_deletion_cancel(h))
CALL(snapshot_take, forebay_snapshot_take(h, NULL, &out))
CALL(snapshot_disk, forebay_snapshot_disk(h, 0, &disk_stats))
CALL(snapshot_class, forebay_snapshot_class(h, 0, 0, &class_stats))
CALL(snapshot_disk_name, forebay_snapshot_disk_name(h, 0, text, sizeof text, &len))
CALL(snapshot_class_name, forebay_snapshot_class_name(h, 0, 0, text, sizeof text, &len))
CALL(open_metrics, forebay_snapshot_openmetrics(h, text, sizeof text, &len))
CALL(free, forebay_free(h))

#define ASKS (OF(CLASS) | OF(SCHEDULER))
#define PARENT (OF(SCHEDULER) | OF(GROUP))
#define MEMBER (OF(CLASS) | OF(GROUP))
#define ROW(name, kinds) {#name, call_##name, kinds}

static const function functions[] = {
    ROW(reload, OF(SCHEDULER)), ROW(class_add, PARENT), ROW(group_add, PARENT),
    ROW(class_find, OF(SCHEDULER)), ROW(class_on, OF(CLASS)), ROW(class_on_file, OF(CLASS)),
    ROW(remove, MEMBER), ROW(shares, MEMBER), ROW(set_shares, MEMBER), ROW(get_limits, MEMBER),
    ROW(set_limits, MEMBER), ROW(class_enter, OF(CLASS)), ROW(class_leave, OF(CLASS)),
    ROW(admit, ASKS), ROW(admit_file, ASKS), ROW(admit_part, ASKS), ROW(admit_nested, OF(PERMIT)), ROW(admit_nested_in, ASKS),
    ROW(complete, OF(PERMIT)), ROW(admit_callback, ASKS), ROW(admit_event, ASKS),
    ROW(admit_event_to, OF(EVENTS)), ROW(events_fd, OF(EVENTS)), ROW(events_next, OF(EVENTS)),
    ROW(writer_new, ASKS), ROW(write, OF(WRITER)), ROW(write_back, OF(WRITER)), ROW(write_back_after, OF(WRITER)),
    ROW(writer_sync, OF(WRITER)), ROW(writer_dirty, OF(WRITER)), ROW(sync, ASKS), ROW(read, ASKS), ROW(prefetch, ASKS),
    ROW(deleter_new, ASKS), ROW(delete, OF(DELETER)), ROW(empty_trash, OF(DELETER)),
    ROW(drain, OF(DELETER)), ROW(deletion_wait, OF(DELETION)), ROW(removed, OF(DELETION)),
    ROW(progress, OF(DELETION)), ROW(cancel, OF(DELETION)), ROW(snapshot_take, OF(SCHEDULER)),
    ROW(snapshot_disk, OF(SNAPSHOT)), ROW(snapshot_class, OF(SNAPSHOT)),
    ROW(snapshot_disk_name, OF(SNAPSHOT)), ROW(snapshot_class_name, OF(SNAPSHOT)),
    ROW(open_metrics, OF(SCHEDULER)), ROW(free, ANY),
};
#define FUNCTIONS (sizeof functions / sizeof *functions)

/* One handle of each kind. */
static void make(uint64_t handles[KINDS], int file) {
    handles[SCHEDULER] = scheduler_of(20, 0);
    OK(forebay_class_add(handles[SCHEDULER], FOREBAY_STR("class"), 100, &handles[CLASS]));
    OK(forebay_group_add(handles[SCHEDULER], FOREBAY_STR("group"), 100, &handles[GROUP]));
    OK(forebay_events_new(&handles[EVENTS]));
    OK(forebay_writer_new(handles[CLASS], file, 0, &handles[WRITER]));
    OK(forebay_deleter_new(handles[CLASS], NULL, &handles[DELETER]));
    OK(forebay_delete(handles[DELETER], FOREBAY_STR("/nowhere/file"), &handles[DELETION]));
    OK(forebay_snapshot_take(handles[SCHEDULER], NULL, &handles[SNAPSHOT]));
    OK(forebay_admit(handles[CLASS], FOREBAY_READ, 4096, FOREBAY_FOREVER, &handles[PERMIT]));
    /* the disk is slow, and so one of these waits */
    for (handles[WAITING] = 0; handles[WAITING] == 0;) {
        uint64_t permit = 0;
        int code = forebay_admit_event(handles[CLASS], FOREBAY_READ, 1 << 20, handles[EVENTS], 7, &permit,
                                       &handles[WAITING]);
        CHECK(code == FOREBAY_OK || code == FOREBAY_PENDING);
    }
    CHECK(((handles[CLASS] ^ handles[GROUP]) >> 60) != 0);
}

static void free_all(uint64_t handles[KINDS]) {
    for (int kind = 0; kind < KINDS; kind++) {
        int code = forebay_free(handles[kind]);
        /* the waiting request may have been granted in the meantime */
        CHECK(code == FOREBAY_OK || (kind == WAITING && code == FOREBAY_E_HANDLE));
        IS(FOREBAY_E_HANDLE, forebay_free(handles[kind]));
    }
}

static void refuse(const function *function, uint64_t handle, const char *what) {
    int code = function->call(handle);
    if (code != FOREBAY_E_HANDLE) {
        fprintf(stderr, "%s with %s handle %#llx: %s\n", function->name, what, (unsigned long long)handle,
                forebay_code_name(code));
        abort();
    }
    CHECK(forebay_last_error(NULL)[0] != 0);
}

/* Calls all functions with all invalid handles; `live` are valid ones. */
static void refuse_all(const uint64_t live[KINDS], const uint64_t stale[KINDS]) {
    good_class = live[CLASS], good_permit = live[PERMIT], good_events = live[EVENTS];
    for (size_t f = 0; f < FUNCTIONS; f++) {
        refuse(&functions[f], 0, "a null");
        refuse(&functions[f], UINT64_MAX, "a made up");
        refuse(&functions[f], (uintptr_t)&f, "a pointer as a");
        for (int kind = 0; kind < KINDS; kind++) {
            refuse(&functions[f], stale[kind], "a freed");
            if (!(functions[f].kinds & OF(kind)))
                refuse(&functions[f], live[kind], "another kind's");
            for (int bit = 0; bit < 64; bit += 7)
                refuse(&functions[f], live[kind] ^ (UINT64_C(1) << bit), "a changed");
        }
    }
}

typedef struct {
    const uint64_t *live, *stale;
    uint64_t *shared;
    int file, rounds;
} work;

static void *refuse_in_thread(void *context) {
    const work *work = context;
    for (int round = 0; round < work->rounds; round++) {
        uint64_t own[KINDS];
        make(own, work->file);
        free_all(own);
        refuse_all(work->live, own);
        refuse_all(work->live, work->stale);
    }
    return NULL;
}

/* All threads use and free the same handles: each is freed once, and no other. */
static int freed[KINDS];

static void *race(void *context) {
    const work *work = context;
    good_class = work->live[CLASS], good_permit = work->live[PERMIT], good_events = work->live[EVENTS];
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t f = 0; f + 1 < FUNCTIONS; f++) {
            int waits = functions[f].call == call_drain || functions[f].call == call_complete;
            if ((functions[f].kinds & OF(kind)) && !waits)
                functions[f].call(work->shared[kind]);
        }
        if (forebay_free(work->shared[kind]) == FOREBAY_OK)
            __atomic_add_fetch(&freed[kind], 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void in_threads(void *(*run)(void *), work *work) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, run, work) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* A child calls every function with its parent's handles; then it makes its own. */
static int child(const uint64_t parents[KINDS], const uint64_t stale[KINDS], int file) {
    for (int turn = 0; turn < 2; turn++) {
        for (size_t f = 0; f < FUNCTIONS; f++)
            for (int kind = 0; kind < KINDS; kind++)
                refuse(&functions[f], parents[kind], "the parent's");
        uint64_t own[KINDS];
        make(own, file);
        refuse_all(own, stale);
        refuse_all(own, parents);
        free_all(own);
    }
    return 0;
}

int main(void) {
    const int rounds = 20;
    char path[] = "/tmp/forebay-handles-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && unlink(path) == 0);
    fd = file;
    uint64_t live[KINDS], stale[KINDS], shared[KINDS];
    make(stale, file);
    free_all(stale);
    make(live, file);
    refuse_all(live, stale);

    work work = {live, stale, shared, file, rounds};
    in_threads(refuse_in_thread, &work);
    for (int round = 0; round < rounds; round++) {
        make(shared, file);
        memset(freed, 0, sizeof freed);
        in_threads(race, &work);
        for (int kind = 0; kind < KINDS; kind++)
            CHECK(freed[kind] == 1 || (kind == WAITING && freed[kind] == 0));
    }

    for (int round = 0; round < rounds; round++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            _exit(child(live, stale, file));
        int status = 0;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    refuse_all(live, stale);
    OK(forebay_complete(live[PERMIT], 4096));
    live[PERMIT] = 0;
    OK(forebay_admit(live[CLASS], FOREBAY_READ, 4096, FOREBAY_FOREVER, &live[PERMIT]));
    free_all(live);
    printf("handles: %zu functions, ok\n", FUNCTIONS);
    return 0;
}
