/* A program that is not linked with libibverbs: it opens it, as NCCL does, for tests/scripts/run_faults.sh. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include <infiniband/verbs.h>

static int failed_checks;

static void* function(void* library, const char* name)
{
    void* const found = dlvsym(library, name, "IBVERBS_1.1");
    if (!found) {
        printf("FAILED: %s: %s\n", name, dlerror());
        ++failed_checks;
    }
    return found;
}

/* Opens a device and a domain, and closes them again. */
static void once(void)
{
    void* const library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("FAILED: %s\n", dlerror());
        ++failed_checks;
        return;
    }
    struct ibv_device** (*const list)(int*) = function(library, "ibv_get_device_list");
    void (*const free_list)(struct ibv_device**) = function(library, "ibv_free_device_list");
    struct ibv_context* (*const open)(struct ibv_device*) = function(library, "ibv_open_device");
    int (*const close)(struct ibv_context*) = function(library, "ibv_close_device");
    struct ibv_pd* (*const alloc)(struct ibv_context*) = function(library, "ibv_alloc_pd");
    int (*const dealloc)(struct ibv_pd*) = function(library, "ibv_dealloc_pd");
    if (failed_checks)
        return;
    int count = 0;
    struct ibv_device** const all = list(&count);
    struct ibv_context* const context = count == 1 ? open(all[0]) : NULL;
    struct ibv_pd* const pd = context ? alloc(context) : NULL;
    if (!pd || dealloc(pd) != 0 || close(context) != 0) {
        printf("FAILED: %d devices, context %p, domain %p\n", count, (void*)context, (void*)pd);
        ++failed_checks;
    }
    if (all)
        free_list(all);
    dlclose(library);
}

int main(void)
{
    once();
    once();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
