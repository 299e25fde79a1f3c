/* Many that wait, at the worst moments. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* More than the largest window of these disks: 256 of the first, which holds 30 requests at 100,000 a second. */
enum { HELD_MAX = 8192 };

/* Permits until the next one has to wait. */
static int fill(forebay_class class, uint64_t len, forebay_permit held[HELD_MAX]) {
    int count = 0;
    while (count < HELD_MAX &&
           forebay_admit(class, FOREBAY_READ, len, count ? 0 : FOREBAY_FOREVER, &held[count]) == FOREBAY_OK)
        count++;
    CHECK(count < HELD_MAX);
    return count;
}

static void free_all(forebay_permit *held, int count) {
    while (count-- > 0)
        OK(forebay_free(held[count]));
}

static void granted(void *context, int code, forebay_permit permit) {
    IS(FOREBAY_OK, code);
    OK(forebay_complete(permit, 4096));
    __atomic_add_fetch((int *)context, 1, __ATOMIC_RELEASE);
}

/* Requests that are granted one by the end of the other: all in the stack of one thread. */
static void long_chain(void) {
    enum { REQUESTS = 20000 };
    forebay_scheduler scheduler = scheduler_of(1000000, 0);
    forebay_class class;
    forebay_permit held[HELD_MAX], permit;
    forebay_waiting waiting;
    int called = 0;
    OK(forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &class));
    int count = fill(class, UINT64_C(1) << 40, held);
    for (int i = 0; i < REQUESTS; i++)
        IS(FOREBAY_PENDING, forebay_admit_callback(class, FOREBAY_READ, 4096, granted, &called, &permit, &waiting));
    free_all(held, count);
    for (int i = 0; i < 60000 && __atomic_load_n(&called, __ATOMIC_ACQUIRE) < REQUESTS; i++)
        usleep(1000);
    CHECK(__atomic_load_n(&called, __ATOMIC_ACQUIRE) == REQUESTS);
}

/* A queue of events that is freed keeps no room, however many requests wait for it. */
static void freed_queue(void) {
    forebay_scheduler scheduler = scheduler_of(20000, 0);
    forebay_class class;
    forebay_events events;
    forebay_permit held[HELD_MAX], permit;
    forebay_waiting waiting;
    OK(forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &class));
    OK(forebay_events_new(&events));
    int count = fill(class, 1 << 20, held);
    for (int i = 0; i < 500;)
        i += forebay_admit_event(class, FOREBAY_READ, 1 << 20, events, 0, &permit, &waiting) == FOREBAY_PENDING ||
             forebay_free(permit) != FOREBAY_OK;
    OK(forebay_free(held[--count]));
    /* some of it may be in the queue by now */
    OK(forebay_free(events));
    free_all(held, count);
    forebay_class_stats stats = FOREBAY_INIT(forebay_class_stats);
    do {
        forebay_snapshot snapshot;
        OK(forebay_snapshot_take(scheduler, NULL, &snapshot));
        OK(forebay_snapshot_class(snapshot, 0, 1, &stats));
        OK(forebay_free(snapshot));
        CHECK(stats.in_disk < 100);
        usleep(1000);
    } while (stats.queued > 0);
}

static int started;

typedef struct {
    forebay_permit held[HELD_MAX];
    int count;
} permits_held;

static void *free_now(void *context) {
    permits_held *all = context;
    while (!__atomic_load_n(&started, __ATOMIC_ACQUIRE))
        ;
    free_all(all->held, all->count);
    return NULL;
}

/* What cannot be taken back any more has its event in the queue, at whichever moment it was granted. */
static void taken_back(void) {
    forebay_scheduler scheduler = scheduler_of(100000, 0);
    forebay_class class;
    forebay_events events;
    forebay_permit permit;
    forebay_waiting waiting[16];
    permits_held all;
    OK(forebay_class_add(scheduler, FOREBAY_STR("class"), 100, &class));
    OK(forebay_events_new(&events));
    for (int round = 0; round < 4000; round++) {
        pthread_t thread;
        all.count = fill(class, 4096, all.held);
        int waits = 0;
        for (int asked = 0; asked < 16; asked++)
            if (forebay_admit_event(class, FOREBAY_READ, 4096, events, 0, &permit, &waiting[waits]) == FOREBAY_OK)
                OK(forebay_free(permit));
            else
                waits++;
        __atomic_store_n(&started, 0, __ATOMIC_RELEASE);
        CHECK(pthread_create(&thread, NULL, free_now, &all) == 0);
        __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
        usleep(round % 50);
        int events_due = 0;
        while (waits-- > 0)
            events_due += forebay_free(waiting[waits]) != FOREBAY_OK;
        for (; events_due > 0; events_due--) {
            forebay_event event = FOREBAY_INIT(forebay_event);
            OK(forebay_events_next(events, &event));
            OK(forebay_free(event.permit));
        }
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static void log_to(void *context, int level, const char *text, size_t len) {
    (void)context, (void)level, (void)text, (void)len;
}

static void *change_log(void *context) {
    while (__atomic_load_n(&started, __ATOMIC_ACQUIRE)) {
        OK(forebay_set_log(log_to, context));
        OK(forebay_set_log(NULL, NULL));
    }
    return NULL;
}

/* A child waits for no lock that another thread of its parent had. */
static void log_in_children(void) {
    pthread_t thread;
    __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
    CHECK(pthread_create(&thread, NULL, change_log, NULL) == 0);
    for (int i = 0; i < 100; i++) {
        int status = 0;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(60);
            OK(forebay_set_log(NULL, NULL));
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    __atomic_store_n(&started, 0, __ATOMIC_RELEASE);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void *call_first(void *context) {
    IS(FOREBAY_E_HANDLE, forebay_free(0));
    return context;
}

/* The first call of a process may come from a thread with a small stack. */
static void small_stack(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 64 << 10) == 0);
    CHECK(pthread_create(&thread, &attributes, call_first, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

int main(void) {
    small_stack();
    long_chain();
    freed_queue();
    taken_back();
    log_in_children();
    puts("waits: ok");
    return 0;
}
