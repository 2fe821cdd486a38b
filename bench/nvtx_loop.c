/* What annotations cost: N pairs of push and pop, the best of many rounds, in ns a pair. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAIRS = 20000, ROUNDS = 50 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t kept;
static void plain(void) { nvtxRangePushA("execute_context_0(0)_generation_8(8)"); nvtxRangePop(); }
static void registered(void) { nvtxDomainRangePushEx(domain, &kept); nvtxDomainRangePop(domain); }
static void clocks(void) { (void)now(); (void)now(); }

static void measure(const char *name, void (*pair)(void)) {
    double took[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double begun = now();
        for (int i = 0; i < PAIRS; i++) pair();
        took[r] = (now() - begun) / PAIRS;
    }
    qsort(took, ROUNDS, sizeof *took, by_size);
    printf("%s %.1f %.1f %.1f\n", name, took[0], took[ROUNDS / 2], took[ROUNDS * 9 / 10]);
}

int main(void) {
    domain = nvtxDomainCreateA("model");
    kept.version = NVTX_VERSION;
    kept.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    kept.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    kept.message.registered = nvtxDomainRegisterStringA(domain, "mlp");
    measure("clocks", clocks);
    measure("plain", plain);
    measure("registered", registered);
    return 0;
}
