/* Rings, their way into the file, and what happens at fork and at the end. See stream.h. */
#define _GNU_SOURCE
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FLUSH_NS = 100000000, ANCHOR_EVERY = 20, NAME_MAX_BYTES = 64 };

typedef struct kept { /* a definition, for the file of a child */
    struct kept *next;
    uint32_t what, id, domain, bytes;
    char text[];
} kept;

__thread ring *stream_mine;
void (*stream_forked)(void);

static ring *_Atomic all;
static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int fd = -1, state; /* 0 fresh, 1 open, -1 given up */
static off_t size;
static _Atomic uint64_t lost;
static _Atomic int closed;
static kept *first_kept, **last_kept = &first_kept;
static char process_name[NAME_MAX_BYTES + 1];

/* Only these are read of an environment: it may hold secrets. */
static const char *const variables[] = {
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
    "SLURM_PROCID", "SLURM_NTASKS", "MASTER_ADDR", NULL,
};

void stream_lost(uint32_t slots) { atomic_fetch_add(&lost, slots); }

/* Write one chunk whole or not at all: what stands behind half a chunk could not be found. */
static int write_chunk(uint16_t kind, uint32_t tid, uint32_t what, uint32_t id, struct iovec *body,
                       int parts) {
    static const char zeros[sizeof(slot)];
    struct iovec all_parts[5];
    size_t bytes = 0, total;
    for (int i = 0; i < parts; i++) bytes += body[i].iov_len;
    size_t pad = (sizeof(slot) - bytes % sizeof(slot)) % sizeof(slot);
    chunk_head head = {MAGIC, VERSION, kind, tid, (uint32_t)(bytes + pad),
                       atomic_load(&lost), what, id};
    all_parts[0] = (struct iovec){&head, sizeof head};
    for (int i = 0; i < parts; i++) all_parts[1 + i] = body[i];
    all_parts[1 + parts] = (struct iovec){(void *)zeros, pad};
    total = sizeof head + bytes + pad;
    pthread_mutex_lock(&file_lock);
    ssize_t done;
    do done = fd < 0 ? -1 : writev(fd, all_parts, parts + 2);
    while (done < 0 && errno == EINTR);
    int whole = done == (ssize_t)total;
    if (whole) size += (off_t)total;
    else if (done > 0 && ftruncate(fd, size) != 0) { close(fd); fd = -1; }
    pthread_mutex_unlock(&file_lock);
    return whole;
}

void stream_flush(ring *r) {
    while (atomic_flag_test_and_set_explicit(&r->flushing, memory_order_acquire)) sched_yield();
    uint64_t tail = atomic_load(&r->tail), head = atomic_load_explicit(&r->head, memory_order_acquire);
    if (head != tail) {
        uint32_t from = tail % RING_SLOTS, n = (uint32_t)(head - tail);
        uint32_t to_end = RING_SLOTS - from < n ? RING_SLOTS - from : n;
        struct iovec body[2] = {{&r->slots[from], to_end * sizeof(slot)},
                                {&r->slots[0], (n - to_end) * sizeof(slot)}};
        int saved = errno;
        if (!write_chunk(CHUNK_EVENTS, r->tid, 0, 0, body, 2)) stream_lost(n);
        errno = saved;
        atomic_store_explicit(&r->tail, head, memory_order_release);
    }
    atomic_flag_clear_explicit(&r->flushing, memory_order_release);
}

static void anchor(void) {
    int64_t best[4] = {0, 0, 0, INT64_MAX}; /* real, monotonic, boot, width of the reading */
    for (int i = 0; i < 5; i++) {
        int64_t before = now_ns(CLOCK_MONOTONIC), real = now_ns(CLOCK_REALTIME);
        int64_t after = now_ns(CLOCK_MONOTONIC), boot = now_ns(CLOCK_BOOTTIME);
        if (after - before < best[3]) {
            best[0] = real; best[1] = before + (after - before) / 2; best[2] = boot;
            best[3] = after - before;
        }
    }
    struct iovec body = {best, sizeof best};
    write_chunk(CHUNK_ANCHOR, 0, 0, 0, &body, 1);
}

static void write_kept(kept *k) {
    struct iovec body = {k->text, k->bytes};
    uint32_t lead[2] = {k->domain, k->bytes};
    struct iovec parts[2] = {{lead, sizeof lead}, body};
    write_chunk(CHUNK_DEFINITION, 0, k->what, k->id, parts, 2);
}

void stream_define(enum definition what, uint32_t id, uint32_t domain, const char *text,
                   uint32_t bytes) {
    kept *k = malloc(sizeof *k + bytes);
    if (!k) return;
    k->next = NULL;
    k->what = what; k->id = id; k->domain = domain; k->bytes = bytes;
    memcpy(k->text, text, bytes);
    pthread_mutex_lock(&state_lock);
    *last_kept = k;
    last_kept = &k->next;
    int open_now = state == 1;
    pthread_mutex_unlock(&state_lock);
    if (open_now) write_kept(k);
}

static size_t read_file(const char *path, char *out, size_t most) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? 0 : read(file, out, most - 1);
    if (file >= 0) close(file);
    out[n > 0 ? n : 0] = 0;
    return strcspn(out, "\n");
}

/* Servers give their workers titles ("VLLM::Worker_TP1"), some time after the start. */
static void name_process(void) {
    char line[4 * NAME_MAX_BYTES], name[NAME_MAX_BYTES + 1] = "";
    read_file("/proc/self/cmdline", line, sizeof line);
    line[strcspn(line, " ")] = 0; /* what follows may be arguments, and those may hold secrets */
    const char *slash = line[0] == '/' || line[0] == '.' ? strrchr(line, '/') : NULL;
    memccpy(name, slash ? slash + 1 : line, 0, NAME_MAX_BYTES);
    if (!name[0] || !strcmp(name, process_name)) return;
    memcpy(process_name, name, sizeof name);
    uint32_t lead[2] = {0, (uint32_t)strlen(name)};
    struct iovec body[2] = {{lead, sizeof lead}, {name, strlen(name)}};
    write_chunk(CHUNK_DEFINITION, 0, DEFINE_PROCESS, 0, body, 2);
}

static void name_thread(uint32_t tid) {
    char path[64], name[NAME_MAX_BYTES];
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
    uint32_t n = (uint32_t)read_file(path, name, sizeof name);
    uint32_t lead[2] = {0, n};
    struct iovec body[2] = {{lead, sizeof lead}, {name, n}};
    if (n) write_chunk(CHUNK_DEFINITION, 0, DEFINE_OS_NAME, tid, body, 2);
}

static void flush_all(void) {
    for (ring *r = atomic_load(&all); r; r = r->next) stream_flush(r);
}

static void *helper(void *nothing) {
    struct timespec pause = {0, FLUSH_NS};
    for (unsigned round = 1; !atomic_load(&closed); round++) {
        nanosleep(&pause, NULL);
        flush_all();
        if (round % ANCHOR_EVERY) continue;
        anchor();
        name_process();
        for (ring *r = atomic_load(&all); r; r = r->next)
            if (atomic_load(&r->used)) name_thread(r->tid);
    }
    return nothing;
}

static void start_helper(void) {
    pthread_t thread;
    pthread_attr_t how;
    sigset_t every, before;
    sigfillset(&every); /* the program's signals are for the program's threads */
    pthread_sigmask(SIG_SETMASK, &every, &before);
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&how, PTHREAD_STACK_MIN + 65536);
    if (!pthread_create(&thread, &how, helper, NULL)) pthread_setname_np(thread, "teller-nvtx");
    pthread_attr_destroy(&how);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int create_file(void) {
    const char *folder = getenv("TELLER_NVTX_DIR");
    char host[HOST_NAME_MAX + 1] = "", path[PATH_MAX];
    gethostname(host, sizeof host - 1);
    for (int again = 0; again < 1000; again++) { /* a program that execs keeps its pid */
        snprintf(path, sizeof path, "%s/%s.%d.%d.nvtx", folder && *folder ? folder : ".", host,
                 (int)getpid(), again);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
        if (fd >= 0 || errno != EEXIST) break;
    }
    if (fd < 0) fprintf(stderr, "teller: no NVTX ranges are kept: %s: %s\n", path, strerror(errno));
    return fd >= 0;
}

static void write_session(void) {
    char text[4096], host[HOST_NAME_MAX + 1] = "", pid_space[64] = "";
    gethostname(host, sizeof host - 1);
    ssize_t n = readlink("/proc/self/ns/pid", pid_space, sizeof pid_space - 1);
    (void)n;
    size_t at = (size_t)snprintf(text, sizeof text, "host=%s%cpid=%d%cppid=%d%cpid_space=%s%c",
        host, 0, (int)getpid(), 0, (int)getppid(), 0, pid_space, 0);
    for (int i = 0; variables[i]; i++) {
        const char *value = getenv(variables[i]);
        if (!value || strlen(value) > 256 || at + 512 > sizeof text) continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "env.%s=%s%c", variables[i], value, 0);
    }
    struct iovec body = {text, at};
    write_chunk(CHUNK_SESSION, 0, 0, 0, &body, 1);
    anchor();
    process_name[0] = 0;
    name_process();
}

static void before_fork(void) { pthread_mutex_lock(&state_lock); pthread_mutex_lock(&file_lock); }
static void after_fork(void) { pthread_mutex_unlock(&file_lock); pthread_mutex_unlock(&state_lock); }

/* The child has one thread and no helper; its file begins with its first record. */
static void in_child(void) {
    pthread_mutex_init(&file_lock, NULL);
    pthread_mutex_init(&state_lock, NULL);
    if (fd >= 0) close(fd);
    fd = -1;
    size = 0;
    if (state == 1) state = 0;
    atomic_store(&lost, 0);
    for (ring *r = atomic_load(&all); r; r = r->next) {
        atomic_store(&r->tail, atomic_load(&r->head));
        atomic_flag_clear(&r->flushing);
        if (r != stream_mine) atomic_store(&r->used, 0);
    }
    if (stream_mine) {
        stream_mine->tid = (uint32_t)syscall(SYS_gettid);
        memset(stream_mine->depth, 0, sizeof stream_mine->depth); /* begun in the parent */
        atomic_store(&stream_mine->used, 0);
        stream_mine->busy = 0;
        stream_mine = NULL;
    }
    if (stream_forked) stream_forked();
}

static void end_of_thread(void *mine) {
    ring *r = mine;
    stream_flush(r);
    name_thread(r->tid);
    stream_mine = NULL;
    atomic_store(&r->used, 0);
}

static void at_end(void) {
    if (state != 1 || atomic_exchange(&closed, 1)) return;
    for (ring *r = atomic_load(&all); r; r = r->next)
        if (atomic_load(&r->used)) name_thread(r->tid);
    flush_all();
    anchor();
    name_process();
    write_chunk(CHUNK_END, 0, 0, 0, NULL, 0);
}
__attribute__((destructor)) static void unloaded(void) { at_end(); }

static void prepare(void) {
    pthread_key_create(&thread_end, end_of_thread);
    pthread_atfork(before_fork, after_fork, in_child);
    atexit(at_end);
}

int stream_open(void) {
    pthread_once(&once, prepare);
    pthread_mutex_lock(&state_lock);
    int fresh = state == 0;
    if (fresh) state = create_file() ? 1 : -1;
    int is_open = state == 1;
    pthread_mutex_unlock(&state_lock);
    if (!fresh || !is_open) return is_open;
    write_session();
    for (kept *k = first_kept; k; k = k->next) write_kept(k);
    start_helper();
    return 1;
}

ring *stream_attach(void) {
    if (atomic_load(&closed) || !stream_open()) return NULL;
    ring *r = atomic_load(&all);
    for (int none = 0; r; r = r->next, none = 0)
        if (!atomic_load(&r->used) && atomic_compare_exchange_strong(&r->used, &none, 1)) break;
    if (!r) {
        r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (r == MAP_FAILED) return NULL;
        atomic_store(&r->used, 1);
        ring *head = atomic_load(&all);
        do r->next = head;
        while (!atomic_compare_exchange_weak(&all, &head, r));
    }
    memset(r->depth, 0, sizeof r->depth);
    r->tid = (uint32_t)syscall(SYS_gettid);
    stream_mine = r;
    pthread_setspecific(thread_end, r);
    return r;
}
