/* A program that loads the library, uses it, and closes it while a thread waits for a permit. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "forebay.h"

#define CHECK(condition) ((condition) ? (void)0 : (fprintf(stderr, "%d: %s\n", __LINE__, #condition), abort()))
#define LOAD(name) __typeof__(&name) name##_ = (__typeof__(&name))dlsym(library, #name); CHECK(name##_ != NULL)

static void granted(void *context, int code, forebay_permit permit) {
    (void)code, (void)permit;
    __atomic_store_n((int *)context, 1, __ATOMIC_RELEASE);
}

int main(void) {
    void *library = dlopen("libforebay.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    LOAD(forebay_scheduler_from_rates);
    LOAD(forebay_class_add);
    LOAD(forebay_admit_callback);
    forebay_disk disk = FOREBAY_INIT(forebay_disk);
    disk.name = "disk";
    disk.name_len = 4;
    disk.read_iops = disk.write_iops = 100;
    disk.read_bandwidth = disk.write_bandwidth = 10000000;
    forebay_scheduler scheduler;
    forebay_class class;
    forebay_permit permit;
    forebay_waiting waiting;
    int called = 0, code;
    CHECK(forebay_scheduler_from_rates_(&disk, 1, 0, &scheduler) == FOREBAY_OK);
    CHECK(forebay_class_add_(scheduler, FOREBAY_STR("class"), 100, &class) == FOREBAY_OK);
    do
        code = forebay_admit_callback_(class, FOREBAY_READ, 1 << 20, granted, &called, &permit, &waiting);
    while (code == FOREBAY_OK);
    CHECK(code == FOREBAY_PENDING);
    CHECK(dlclose(library) == 0);
    /* its threads go on */
    for (int i = 0; i < 60000 && !__atomic_load_n(&called, __ATOMIC_ACQUIRE); i++)
        usleep(1000);
    CHECK(called);
    puts("unload: ok");
    return 0;
}
