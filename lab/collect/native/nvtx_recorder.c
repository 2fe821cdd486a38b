/* An NVTX tool for machines without Nsight Systems: NVTX_INJECTION64_PATH names this library, and
 * the NVTX headers inside a program load it at their first call. What the program annotates goes
 * into a stream file for each process (TELLER_NVTX_DIR); the program itself is not changed.
 * Synchronisation objects, resources and the names of CUDA objects are not kept. */
#define _GNU_SOURCE
#include "nvtx_abi.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define RARE __attribute__((noinline, cold))

enum { HASHES = 1 << 16, PROBES = 16, REGISTERED = 1 << 31, UNTABLED = 1 << 30 };
enum { MORE_BYTES = 30, PAYLOAD_MAX = 4096, SCHEMA_TEXT = 16384 };

/* Texts that were seen, by hash: the text itself stands in the stream, so memory is bounded.
 * Two of a million texts have the same hash with a chance of 3 in 10^8. */
static _Atomic uint64_t hashes[HASHES];
static _Atomic uint32_t untabled, registered, ranges, dynamic_schemas;
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static char *domain_names[DOMAINS];
static uint32_t domain_count = 1; /* 0 is the default domain */

static inline ring *mine(void) { return stream_mine ? stream_mine : stream_attach(); }

static inline uint64_t mixed(uint64_t a, uint64_t b) {
    __uint128_t m = (__uint128_t)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xe7037ed1a0b428dbull);
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t hash_of(const char *s, size_t n) {
    uint64_t h = n, part = 0;
    for (; n > 8; s += 8, n -= 8) { memcpy(&part, s, 8); h = mixed(h, part); }
    part = 0;
    memcpy(&part, s, n);
    h = mixed(mixed(h, part), 0x8ebc6af09c88c6e3ull);
    return h ? h : 1;
}

/* Put bytes behind a slot, in slots of their own. The ring has room for them. */
static inline uint32_t put_bytes(ring *r, uint32_t at, const char *bytes, uint32_t n) {
    while (n) {
        uint32_t some = n < MORE_BYTES ? n : MORE_BYTES;
        more_slot *m = (more_slot *)ring_at(r, at++);
        memcpy(m->bytes, bytes, some);
        m->kind = SLOT_MORE;
        m->count = (uint8_t)some;
        bytes += some;
        n -= some;
    }
    return at;
}

static RARE void write_text(ring *r, uint32_t id, const char *s, uint32_t n) {
    uint32_t used = 1 + (n + MORE_BYTES - 1) / MORE_BYTES;
    ring_room(r, used);
    *ring_at(r, 0) = (slot){.text = id, .extra = n, .kind = SLOT_TEXT};
    put_bytes(r, 1, s, n);
    ring_commit(r, used);
}

static inline uint32_t text_id(ring *r, const char *s) {
    if (!s) return 0;
    size_t n = strlen(s);
    if (n > TEXT_MAX) n = TEXT_MAX;
    uint64_t h = hash_of(s, n);
    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t at = (uint32_t)(h + i) % HASHES;
        uint64_t there = atomic_load_explicit(&hashes[at], memory_order_relaxed);
        if (there == h) return at + 1;
        if (there) continue;
        if (atomic_compare_exchange_strong(&hashes[at], &there, h)) {
            write_text(r, at + 1, s, (uint32_t)n);
            return at + 1;
        }
        if (there == h) return at + 1;
    }
    uint32_t id = UNTABLED | (atomic_fetch_add(&untabled, 1) & (UNTABLED - 1));
    write_text(r, id, s, (uint32_t)n);
    return id;
}

/* UTF-8 of a wide text, cut at TEXT_MAX bytes. */
static RARE const char *narrow(const wchar_t *w, char *out) {
    uint32_t n = 0;
    for (; w && *w && n < TEXT_MAX - 4; w++) {
        uint32_t c = (uint32_t)*w;
        if (c < 0x80) { out[n++] = (char)c; continue; }
        if (c < 0x800) out[n++] = (char)(0xc0 | c >> 6);
        else {
            if (c < 0x10000) out[n++] = (char)(0xe0 | c >> 12);
            else { out[n++] = (char)(0xf0 | (c >> 18 & 7)); out[n++] = (char)(0x80 | (c >> 12 & 63)); }
            out[n++] = (char)(0x80 | (c >> 6 & 63));
        }
        out[n++] = (char)(0x80 | (c & 63));
    }
    out[n] = 0;
    return out;
}

static RARE uint32_t wide_id(ring *r, const wchar_t *w) {
    char text[TEXT_MAX + 1];
    return w ? text_id(r, narrow(w, text)) : 0;
}

static inline uint32_t message_id(ring *r, const nvtx_attributes *a) {
    if (a->message_type == NVTX_MESSAGE_REGISTERED) return (uint32_t)(uintptr_t)a->message.registered;
    if (a->message_type == NVTX_MESSAGE_ASCII) return text_id(r, a->message.ascii);
    return a->message_type == NVTX_MESSAGE_UNICODE ? wide_id(r, a->message.unicode) : 0;
}

static RARE void put_payload(ring *r, slot s, const nvtx_payload *p) {
    uint32_t n = p && p->bytes && p->size <= PAYLOAD_MAX ? (uint32_t)p->size : 0;
    if (p && p->size > PAYLOAD_MAX) stream_lost(1);
    uint32_t used = 1 + (n + MORE_BYTES - 1) / MORE_BYTES;
    s.value = p ? p->schema : 0;
    s.payload = p ? 7 : 0;
    ring_room(r, used);
    *ring_at(r, 0) = s;
    put_bytes(r, 1, n ? p->bytes : NULL, n);
    ring_commit(r, used);
}

static inline void put(ring *r, slot s) {
    ring_room(r, 1);
    *ring_at(r, 0) = s;
    ring_commit(r, 1);
}

static inline void put_attributes(ring *r, slot s, const nvtx_attributes *a) {
    s.category = a->category;
    if (a->payload_type == NVTX_PAYLOAD_EXT) {
        put_payload(r, s, (const nvtx_payload *)(uintptr_t)a->payload);
        return;
    }
    if (a->payload_type > NVTX_PAYLOAD_NONE && a->payload_type <= NVTX_PAYLOAD_LARGEST) {
        s.payload = (uint8_t)a->payload_type;
        s.value = a->payload;
    }
    put(r, s);
}

/* Each record is made between ENTER and LEAVE; a signal handler that comes between is left out. */
#define ENTER(none) \
    ring *r = mine(); \
    if (__builtin_expect(!r || r->busy, 0)) return none; \
    r->busy = 1
#define LEAVE r->busy = 0
static inline uint32_t domain_of(const void *h) { return (uint32_t)(uintptr_t)h % DOMAINS; }

/* The text is found before the clock is read, so that its cost is not inside the range. */
#define PUSH(dom, text_expr, write) \
    ENTER(-2); \
    uint32_t d = dom, text = text_expr, level = r->depth[d]++; \
    slot s = {.time_ns = now_ns(CLOCK_MONOTONIC), .text = text, .extra = level, \
              .domain = (uint16_t)d, .kind = SLOT_PUSH}; \
    write; \
    LEAVE; \
    return (int)level
static int push_a(const char *m) { PUSH(0, text_id(r, m), put(r, s)); }
static int push_w(const wchar_t *m) { PUSH(0, wide_id(r, m), put(r, s)); }
static int push_in(const void *h, const nvtx_attributes *a) {
    if (!a) return -1;
    PUSH(domain_of(h), message_id(r, a), put_attributes(r, s, a));
}
static int push_ex(const nvtx_attributes *a) { return push_in(NULL, a); }
static int push_payload(const void *h, const nvtx_payload *p, size_t n) {
    PUSH(domain_of(h), 0, put_payload(r, s, n ? p : NULL));
}

static inline int pop_with(const void *h, const nvtx_payload *p) {
    int64_t t = now_ns(CLOCK_MONOTONIC);
    ENTER(-2);
    uint32_t d = domain_of(h);
    if (!r->depth[d]) { LEAVE; return -1; }
    uint32_t level = --r->depth[d];
    slot s = {.time_ns = t, .extra = level, .domain = (uint16_t)d, .kind = SLOT_POP};
    if (p) put_payload(r, s, p); else put(r, s);
    LEAVE;
    return (int)level;
}
static int pop(void) { return pop_with(NULL, NULL); }
static int pop_in(const void *h) { return pop_with(h, NULL); }
static int pop_payload(const void *h, const nvtx_payload *p, size_t n) {
    return pop_with(h, n ? p : NULL);
}

#define MARK(dom, text_expr, write) \
    ENTER(); \
    slot s = {.time_ns = now_ns(CLOCK_MONOTONIC), .text = text_expr, \
              .domain = (uint16_t)(dom), .kind = SLOT_MARK}; \
    write; \
    LEAVE
static void mark_a(const char *m) { MARK(0, text_id(r, m), put(r, s)); }
static void mark_w(const wchar_t *m) { MARK(0, wide_id(r, m), put(r, s)); }
static void mark_in(const void *h, const nvtx_attributes *a) {
    if (!a) return;
    MARK(domain_of(h), message_id(r, a), put_attributes(r, s, a));
}
static void mark_ex(const nvtx_attributes *a) { mark_in(NULL, a); }
static void mark_payload(const void *h, const nvtx_payload *p, size_t n) {
    MARK(domain_of(h), 0, put_payload(r, s, n ? p : NULL));
}

#define START(dom, text_expr, write) \
    ENTER(0); \
    uint32_t id = atomic_fetch_add_explicit(&ranges, 1, memory_order_relaxed) + 1; \
    uint32_t text = text_expr; \
    slot s = {.time_ns = now_ns(CLOCK_MONOTONIC), .text = text, .extra = id, \
              .domain = (uint16_t)(dom), .kind = SLOT_START}; \
    write; \
    LEAVE; \
    return id
static uint64_t start_a(const char *m) { START(0, text_id(r, m), put(r, s)); }
static uint64_t start_w(const wchar_t *m) { START(0, wide_id(r, m), put(r, s)); }
static uint64_t start_in(const void *h, const nvtx_attributes *a) {
    if (!a) return 0;
    START(domain_of(h), message_id(r, a), put_attributes(r, s, a));
}
static uint64_t start_ex(const nvtx_attributes *a) { return start_in(NULL, a); }
static uint64_t start_payload(const void *h, const nvtx_payload *p, size_t n) {
    START(domain_of(h), 0, put_payload(r, s, n ? p : NULL));
}
static void end(uint64_t id) {
    int64_t t = now_ns(CLOCK_MONOTONIC);
    ENTER();
    put(r, (slot){.time_ns = t, .extra = (uint32_t)id, .kind = SLOT_END});
    LEAVE;
}
static void end_in(const void *h, uint64_t id) { (void)h; end(id); }
static void end_payload(const void *h, uint64_t id, const nvtx_payload *p, size_t n) {
    (void)h; (void)p; (void)n;
    end(id);
}

/* ---- what programs define once ---- */

static void *domain_a(const char *name) {
    if (!name) return NULL;
    pthread_mutex_lock(&names_lock);
    uint32_t i = 1;
    while (i < domain_count && strcmp(domain_names[i], name)) i++;
    if (i == domain_count && i < DOMAINS - 1 && (domain_names[i] = strdup(name))) {
        domain_count++;
        stream_define(DEFINE_DOMAIN, i, 0, name, (uint32_t)strnlen(name, TEXT_MAX));
    }
    pthread_mutex_unlock(&names_lock);
    return (void *)(uintptr_t)i;
}
static void *domain_w(const wchar_t *name) {
    char text[TEXT_MAX + 1];
    return name ? domain_a(narrow(name, text)) : NULL;
}

static void *string_a(const void *h, const char *s) {
    if (!s) return NULL;
    uint32_t id = REGISTERED | (atomic_fetch_add(&registered, 1) + 1);
    stream_define(DEFINE_STRING, id, domain_of(h), s, (uint32_t)strnlen(s, TEXT_MAX));
    return (void *)(uintptr_t)id;
}
static void *string_w(const void *h, const wchar_t *s) {
    char text[TEXT_MAX + 1];
    return s ? string_a(h, narrow(s, text)) : NULL;
}

static void category_in(const void *h, uint32_t id, const char *name) {
    if (name) stream_define(DEFINE_CATEGORY, id, domain_of(h), name, (uint32_t)strnlen(name, TEXT_MAX));
}
static void category_in_w(const void *h, uint32_t id, const wchar_t *name) {
    char text[TEXT_MAX + 1];
    category_in(h, id, name ? narrow(name, text) : NULL);
}
static void category_a(uint32_t id, const char *name) { category_in(NULL, id, name); }
static void category_w(uint32_t id, const wchar_t *name) { category_in_w(NULL, id, name); }
static void thread_a(uint32_t tid, const char *name) {
    if (name) stream_define(DEFINE_THREAD, tid, 0, name, (uint32_t)strnlen(name, TEXT_MAX));
}
static void thread_w(uint32_t tid, const wchar_t *name) {
    char text[TEXT_MAX + 1];
    thread_a(tid, name ? narrow(name, text) : NULL);
}
static void nothing(const void *reserved) { (void)reserved; }

static uint64_t schema_id(uint64_t given) {
    return given ? given : ((uint64_t)1 << NVTX_SCHEMA_DYNAMIC_SHIFT) + atomic_fetch_add(&dynamic_schemas, 1);
}

/* A schema as lines: id, 0, 0, bytes, name; then for each entry flags, type, offset, detail, name. */
static uint64_t schema_in(const void *h, const nvtx_schema *a) {
    if (!a) return 0;
    uint64_t id = schema_id(a->fields & SCHEMA_HAS_ID ? a->id : 0);
    char text[SCHEMA_TEXT];
    const char *name = a->fields & SCHEMA_HAS_NAME ? a->name : NULL;
    size_t count = a->fields & SCHEMA_HAS_COUNT && a->entries ? a->count : 0;
    int n = snprintf(text, sizeof text, "%llu 0 0 %zu %s", (unsigned long long)id,
                     a->fields & SCHEMA_HAS_SIZE ? a->size : 0, name ? name : "");
    for (size_t i = 0; i < count && n < (int)sizeof text; i++) {
        const nvtx_schema_entry *e = &a->entries[i];
        n += snprintf(text + n, sizeof text - (size_t)n, "\n%llu %llu %llu %llu %s",
                      (unsigned long long)e->flags, (unsigned long long)e->type,
                      (unsigned long long)e->offset, (unsigned long long)e->detail,
                      e->name ? e->name : "");
    }
    if (n >= (int)sizeof text) return 0;
    stream_define(DEFINE_SCHEMA, 0, domain_of(h), text, (uint32_t)n);
    return id;
}

/* Values of an enumeration stay numbers; it is kept as a schema of one integer. */
static uint64_t enum_in(const void *h, const nvtx_enum *a) {
    if (!a) return 0;
    nvtx_schema_entry value = {.type = a->size == 8 ? 18 : a->size == 2 ? 14 : a->size == 1 ? 12 : 16};
    nvtx_schema as = {.fields = SCHEMA_HAS_COUNT | SCHEMA_HAS_SIZE, .entries = &value, .count = 1,
                      .size = a->size, .id = a->id};
    if (a->fields & ENUM_HAS_ID) as.fields |= SCHEMA_HAS_ID;
    return schema_in(h, &as);
}
static uint8_t enabled(const void *h) { (void)h; return 1; }

static void forget(void) { /* in a child: its file has none of the parent's texts */
    memset((void *)hashes, 0, sizeof hashes);
    pthread_mutex_init(&names_lock, NULL);
}

/* ---- how a program finds all this ---- */

#define FILL(i, f) if ((unsigned)(i) < count && table[i]) *table[i] = (nvtx_function)(f)

EXPORT int InitializeInjectionNvtx2(nvtx_get_table get) {
    const nvtx_callbacks *callbacks = get ? get(NVTX_TABLE_CALLBACKS) : NULL;
    nvtx_function **table;
    unsigned count;
    stream_forked = forget;
    if (!callbacks || !stream_open()) return 0;
    if (callbacks->module(NVTX_MODULE_CORE, &table, &count)) {
        FILL(CORE_MARK_EX, mark_ex); FILL(CORE_MARK_A, mark_a); FILL(CORE_MARK_W, mark_w);
        FILL(CORE_START_EX, start_ex); FILL(CORE_START_A, start_a); FILL(CORE_START_W, start_w);
        FILL(CORE_END, end); FILL(CORE_PUSH_EX, push_ex); FILL(CORE_PUSH_A, push_a);
        FILL(CORE_PUSH_W, push_w); FILL(CORE_POP, pop); FILL(CORE_CATEGORY_A, category_a);
        FILL(CORE_CATEGORY_W, category_w); FILL(CORE_THREAD_A, thread_a); FILL(CORE_THREAD_W, thread_w);
    }
    if (callbacks->module(NVTX_MODULE_CORE2, &table, &count)) {
        FILL(CORE2_MARK_EX, mark_in); FILL(CORE2_START_EX, start_in); FILL(CORE2_END, end_in);
        FILL(CORE2_PUSH_EX, push_in); FILL(CORE2_POP, pop_in); FILL(CORE2_CATEGORY_A, category_in);
        FILL(CORE2_CATEGORY_W, category_in_w); FILL(CORE2_STRING_A, string_a);
        FILL(CORE2_STRING_W, string_w); FILL(CORE2_DOMAIN_A, domain_a); FILL(CORE2_DOMAIN_W, domain_w);
        FILL(CORE2_INITIALIZE, nothing);
    }
    return 1;
}

EXPORT int InitializeInjectionNvtxExtension(nvtx_module *module) {
    if (!module || module->module != NVTX_EXT_PAYLOAD || !module->count) return 1;
    intptr_t *slots = module->segments[0].slots;
    const intptr_t ours[] = {
        [PAYLOAD_SCHEMA] = (intptr_t)schema_in, [PAYLOAD_ENUM] = (intptr_t)enum_in,
        [PAYLOAD_MARK] = (intptr_t)mark_payload, [PAYLOAD_PUSH] = (intptr_t)push_payload,
        [PAYLOAD_POP] = (intptr_t)pop_payload, [PAYLOAD_START] = (intptr_t)start_payload,
        [PAYLOAD_END] = (intptr_t)end_payload, [PAYLOAD_ENABLED] = (intptr_t)enabled,
    };
    for (size_t i = 0; i < sizeof ours / sizeof *ours && i < module->segments[0].count; i++)
        slots[i] = ours[i];
    return 1;
}
