/* Programs that annotate, for the tests of the recorder: `annotates STORY`. Each prints what it
 * knows itself, so that the recording can be held against it. */
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static nvtxEventAttributes_t with(const char *text) {
    nvtxEventAttributes_t a = {0};
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = text;
    return a;
}

/* Ranges of two domains that cross each other, which each domain may by itself. */
static void nesting(void) {
    nvtxDomainHandle_t model = nvtxDomainCreateA("model"), again = nvtxDomainCreateA("model");
    nvtxEventAttributes_t layer = with("layer"), mlp = with("mlp");
    printf("same %d\n", model == again);
    for (int i = 0; i < 3; i++) {
        printf("outer %lld ", now());
        int level = nvtxRangePushA("step");
        printf("%lld level %d\n", now(), level);
        nvtxDomainRangePushEx(model, &layer);
        printf("inner level %d\n", nvtxDomainRangePushEx(model, &mlp));
        nvtxDomainRangePop(model);
        printf("end %lld ", now());
        nvtxRangePop(); /* the layer of the other domain is still open */
        printf("%lld\n", now());
        nvtxDomainRangePop(model);
    }
    printf("empty %d\n", nvtxRangePop());
}

static void payloads(void) {
    nvtxEventAttributes_t a = with("p");
    nvtxDomainHandle_t domain = nvtxDomainCreateA("values");
    nvtxDomainNameCategoryA(domain, 7, "memory");
    a.category = 7;
    a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64; a.payload.ullValue = ~0ULL;
    nvtxDomainMarkEx(domain, &a);
    a.payloadType = NVTX_PAYLOAD_TYPE_INT64; a.payload.llValue = -5;
    nvtxDomainMarkEx(domain, &a);
    a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE; a.payload.dValue = 0.5;
    nvtxDomainMarkEx(domain, &a);
    a.payloadType = NVTX_PAYLOAD_TYPE_INT32; a.payload.iValue = -7;
    nvtxDomainMarkEx(domain, &a);
    a.payloadType = NVTX_PAYLOAD_TYPE_FLOAT; a.payload.fValue = 0.25f;
    nvtxDomainMarkEx(domain, &a);
    a.payloadType = NVTX_PAYLOAD_UNKNOWN;
    a.messageType = NVTX_MESSAGE_TYPE_UNICODE; a.message.unicode = L"größer → 𝄞";
    nvtxDomainMarkEx(domain, &a);
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = nvtxDomainRegisterStringA(domain, "kept");
    nvtxDomainMarkEx(domain, &a);
}

/* What NCCL does: a structure of its own, described once. */
typedef struct { uint64_t comm; int32_t rank; size_t bytes; } call;
static void described(void) {
    nvtxDomainHandle_t nccl = nvtxDomainCreateA("NCCL");
    const nvtxPayloadSchemaEntry_t entries[] = {
        {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", NULL, 0, 0, NULL, NULL},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", NULL, 0, offsetof(call, rank), NULL, NULL},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", NULL, 0, offsetof(call, bytes), NULL, NULL},
    };
    const nvtxPayloadSchemaAttr_t schema = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID,
        .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, .entries = entries, .numEntries = 3,
        .payloadStaticSize = sizeof(call), .schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5,
    };
    nvtxPayloadSchemaRegister(nccl, &schema);
    for (uint64_t i = 0; i < 3; i++) {
        call one = {0xabcdef0123456789, 2, 1024 << i};
        nvtxPayloadData_t data = {schema.schemaId, sizeof one, &one};
        nvtxEventAttributes_t a = with("ncclAllReduce");
        a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
        a.reserved0 = 1;
        a.payload.ullValue = (uint64_t)(uintptr_t)&data;
        nvtxDomainRangePushEx(nccl, &a);
        nvtxDomainRangePop(nccl);
    }
}

static nvtxRangeId_t handed;
static void *ender(void *nothing) {
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "the ender");
    printf("ender %ld\n", (long)syscall(SYS_gettid));
    nvtxRangeEnd(handed);
    nvtxRangePushA("open when its thread ended");
    return nothing;
}
static void *worker(void *nothing) {
    for (int i = 0; i < 1000; i++) { nvtxRangePushA("work"); nvtxRangePop(); }
    return nothing;
}
static void threads(void) {
    pthread_t t, several[8];
    handed = nvtxRangeStartA("handed over");
    pthread_create(&t, NULL, ender, NULL);
    pthread_join(t, NULL);
    for (int round = 0; round < 3; round++) { /* rings are used again */
        for (int i = 0; i < 8; i++) pthread_create(&several[i], NULL, worker, NULL);
        for (int i = 0; i < 8; i++) pthread_join(several[i], NULL);
    }
    nvtxRangePushA("main goes on");
    nvtxRangePop();
}

static void forks(void) {
    nvtxDomainHandle_t domain = nvtxDomainCreateA("shared");
    nvtxEventAttributes_t a = with("");
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = nvtxDomainRegisterStringA(domain, "of the parent");
    nvtxRangePushA("around the fork");
    nvtxRangePushA("before");
    nvtxRangePop();
    fflush(stdout);
    if (!fork()) {
        printf("child %d\n", (int)getpid());
        nvtxDomainRangePushEx(domain, &a);
        nvtxRangePushA("before"); /* the same text as in the parent */
        nvtxRangePop();
        nvtxDomainRangePop(domain);
        nvtxRangePop(); /* begun in the parent: not ours to end */
        exit(0);
    }
    wait(NULL);
    nvtxRangePop();
}

enum { STEADY = 100000 };
static void killed(void) {
    for (long i = 0;; i++) {
        nvtxRangePushA("step");
        nvtxRangePushA(i % 2 ? "odd" : "even");
        nvtxRangePop();
        nvtxRangePop();
        if (i + 1 == STEADY) { printf("%d\n", STEADY); fflush(stdout); }
    }
}

static long peak(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
}
static void million(void) {
    char text[32];
    nvtxRangePushA("warm");
    nvtxRangePop();
    long before = peak();
    for (int i = 0; i < 1000000; i++) {
        snprintf(text, sizeof text, "request %d", i); /* each text once */
        nvtxRangePushA(text);
        nvtxRangePop();
    }
    printf("KiB %ld\n", peak() - before);
}

int main(int count, char **words) {
    const struct { const char *name; void (*run)(void); } stories[] = {
        {"nesting", nesting}, {"payloads", payloads}, {"described", described}, {"threads", threads},
        {"forks", forks}, {"killed", killed}, {"million", million},
    };
    for (size_t i = 0; count == 2 && i < sizeof stories / sizeof *stories; i++)
        if (!strcmp(words[1], stories[i].name)) { stories[i].run(); return 0; }
    return 2;
}
