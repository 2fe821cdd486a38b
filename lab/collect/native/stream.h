/* The stream file of a process: rings that threads fill without locks, and chunks on disk.
 *
 * File = chunks, each 32 bytes of head and a body of whole 32-byte slots. A body of events comes
 * from one thread, in its order. Nothing refers to a later byte, so a file that ends anywhere is
 * readable up to there. `nvtx_stream.py` reads it; a change here is a change of VERSION. */
#ifndef TELLER_STREAM_H
#define TELLER_STREAM_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

enum { MAGIC = 0x54584e54, VERSION = 1 }; /* "TNXT" */
enum { RING_SLOTS = 2048, DOMAINS = 1024, TEXT_MAX = 4096 };

enum chunk_kind { CHUNK_SESSION = 1, CHUNK_EVENTS, CHUNK_DEFINITION, CHUNK_ANCHOR, CHUNK_END };
enum slot_kind { SLOT_PUSH = 1, SLOT_POP, SLOT_MARK, SLOT_START, SLOT_END, SLOT_TEXT, SLOT_MORE };
enum definition {
    DEFINE_DOMAIN = 1, DEFINE_STRING, DEFINE_CATEGORY, DEFINE_THREAD, DEFINE_SCHEMA, DEFINE_PROCESS,
    DEFINE_OS_NAME, /* of a thread; a name that the program gave goes before it */
};

typedef struct {
    uint32_t magic;
    uint16_t version, kind;
    uint32_t tid;
    uint32_t bytes; /* of the body */
    uint64_t lost;  /* slots of this process that could not be written so far */
    uint32_t what, id; /* of a definition; `id` of a category is below its domain */
} chunk_head;

typedef struct {
    int64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t value;  /* payload; of the extension its schema */
    uint32_t text;   /* id, 0 for none */
    uint32_t category;
    uint32_t extra; /* depth of a push or pop, id of a start or end, bytes of a text */
    uint16_t domain;
    uint8_t kind, payload;
} slot;

typedef struct { /* of SLOT_MORE: bytes that belong to the slot before it */
    uint8_t bytes[30], kind, count;
} more_slot;

typedef struct ring {
    _Atomic uint64_t head, tail; /* slots ever written by the thread, and to the file */
    atomic_flag flushing;
    _Atomic int used;
    volatile int busy; /* a signal handler that annotates finds it set */
    uint32_t tid;
    struct ring *next;
    uint32_t depth[DOMAINS];
    slot slots[RING_SLOTS];
} ring;

static inline int64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int stream_open(void);            /* 0 where nothing can be written; once is enough */
ring *stream_attach(void);        /* the ring of this thread, NULL where there is none */
void stream_flush(ring *r);       /* write what is in it */
void stream_lost(uint32_t slots); /* count what was left out */
void stream_define(enum definition what, uint32_t id, uint32_t domain, const char *text,
                   uint32_t bytes); /* written at once, and again into the file of a child */
extern __thread ring *stream_mine;
extern void (*stream_forked)(void); /* called in a child before its first record */

/* Give room for `n` slots; the caller fills them and commits. */
static inline int ring_room(ring *r, uint32_t n) {
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (head + n - atomic_load_explicit(&r->tail, memory_order_acquire) <= RING_SLOTS) return 1;
    stream_flush(r);
    return 1;
}
static inline slot *ring_at(ring *r, uint32_t i) {
    return &r->slots[(atomic_load_explicit(&r->head, memory_order_relaxed) + i) % RING_SLOTS];
}
static inline void ring_commit(ring *r, uint32_t n) {
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    atomic_store_explicit(&r->head, head + n, memory_order_release);
}
#endif
