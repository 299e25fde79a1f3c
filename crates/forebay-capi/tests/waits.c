/* Many that wait, at the worst moments. */
#include <pthread.h>

#include "check.h"

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
    puts("waits: ok");
    return 0;
}
