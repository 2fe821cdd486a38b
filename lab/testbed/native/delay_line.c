/* Holds packets for a while, for kernels without netem.
 *
 *   delay_line QUEUE DELAY_US JITTER_US
 *
 * Packets that a rule sends to the NFQUEUE are released in order after the delay, plus or minus up
 * to the jitter. Only this queue is in user space: round trip times, windows and retransmissions
 * stay the kernel's. Prints "ready" once packets may come; ends at SIGTERM and lets go of all. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#define CAPACITY 65536u
#define SECOND 1000000000LL

struct held {
    uint32_t id;
    int64_t due;
};

static struct held ring[CAPACITY];
static unsigned first, last; /* ring[first % CAPACITY] is the oldest; empty when equal */
static int64_t delay_ns, jitter_ns, latest;
static volatile sig_atomic_t over;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static void stop(int signal) {
    (void)signal;
    over = 1;
}

static int packet(struct nfq_q_handle *queue, struct nfgenmsg *msg, struct nfq_data *data,
                  void *unused) {
    struct nfqnl_msg_packet_hdr *head = nfq_get_msg_packet_hdr(data);
    int64_t due = now() + delay_ns;
    (void)msg;
    (void)unused;
    if (!head)
        return 0;
    if (jitter_ns)
        due += (int64_t)(random() % (2 * jitter_ns + 1)) - jitter_ns;
    if (due < latest) /* packets of one connection must not overtake each other */
        due = latest;
    latest = due;
    if (last - first >= CAPACITY)
        return nfq_set_verdict(queue, ntohl(head->packet_id), NF_DROP, 0, NULL);
    ring[last % CAPACITY].id = ntohl(head->packet_id);
    ring[last % CAPACITY].due = due;
    last++;
    return 0;
}

static void release(struct nfq_q_handle *queue, int64_t until) {
    for (; first != last && ring[first % CAPACITY].due <= until; first++)
        nfq_set_verdict(queue, ring[first % CAPACITY].id, NF_ACCEPT, 0, NULL);
}

static void serve(struct nfq_handle *handle, struct nfq_q_handle *queue) {
    static char buffer[1 << 20];
    struct pollfd wait = {nfq_fd(handle), POLLIN, 0};
    while (!over) {
        struct timespec left, *limit = NULL;
        if (first != last) {
            int64_t ns = ring[first % CAPACITY].due - now();
            ns = ns < 0 ? 0 : ns;
            left.tv_sec = ns / SECOND;
            left.tv_nsec = ns % SECOND;
            limit = &left;
        }
        if (ppoll(&wait, 1, limit, NULL) > 0) {
            ssize_t size = recv(wait.fd, buffer, sizeof buffer, MSG_DONTWAIT);
            if (size > 0)
                nfq_handle_packet(handle, buffer, (int)size);
        }
        release(queue, now());
    }
    release(queue, INT64_MAX);
}

int main(int count, char **words) {
    struct nfq_handle *handle;
    struct nfq_q_handle *queue;
    if (count != 4) {
        fprintf(stderr, "usage: %s QUEUE DELAY_US JITTER_US\n", words[0]);
        return 2;
    }
    delay_ns = atoll(words[2]) * 1000;
    jitter_ns = atoll(words[3]) * 1000;
    prctl(PR_SET_TIMERSLACK, 1000);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    handle = nfq_open();
    queue = handle ? nfq_create_queue(handle, (uint16_t)atoi(words[1]), packet, NULL) : NULL;
    if (!queue) {
        perror("delay_line");
        return 1;
    }
    nfq_set_mode(queue, NFQNL_COPY_META, 0);
    nfq_set_queue_maxlen(queue, CAPACITY);
    nfq_set_queue_flags(queue, NFQA_CFG_F_GSO | NFQA_CFG_F_FAIL_OPEN,
                        NFQA_CFG_F_GSO | NFQA_CFG_F_FAIL_OPEN);
    puts("ready");
    fflush(stdout);
    serve(handle, queue);
    return 0;
}
