/* Many that wait, at the worst moments. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int started;

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
    log_in_children();
    puts("waits: ok");
    return 0;
}
