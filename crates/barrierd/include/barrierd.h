/*
 * barrierd's shared memory: when did each processor last pass a full barrier?
 *
 * The daemon (`millstream barrierd`) hands two descriptors to each client that connects to its socket. Both are for
 * mapping read-only, shared, from offset 0:
 *
 *   the page    BARRIERD_PAGE_BYTES(cpus)    the daemon's statements, and the futex words to sleep on
 *   the times   BARRIERD_TIMES_BYTES(cpus)   the statements of a program inside the kernel, from each processor
 *
 * Each starts with a head; an entry for each possible processor follows, in the order of the kernel's numbers; in
 * the page, an entry for each of BARRIERD_CLIENTS connections comes last. Words are in the machine's byte order. Times
 * are nanoseconds of CLOCK_MONOTONIC. Read every word that is not marked constant with an atomic load; the words that
 * say when a processor passed, with an acquire load.
 *
 * How to use it, from C11:
 *
 *   atomic_store_explicit(&flag, 1, memory_order_relaxed);    // the write that the others have to see
 *   atomic_thread_fence(memory_order_seq_cst);
 *   uint64_t since = atomic_load_explicit(&times->virtual_now, memory_order_relaxed);
 *   send a struct barrierd_request with virtual_time = since, once;
 *   until every processor's virtual time, the largest of
 *         times_cpu[i].virtual_time, page_cpu[i].virtual_time, page->all_virtual,
 *     is above since: do other work, or sleep on page->least_turn (FUTEX_WAIT, not private);
 *     while page_client[hello.client].rests is not zero the daemon leaves requests in the socket, because the user has
 *     used up its part of the daemon's share: sleep 2 ms and look, and send after 20 ms; the daemon reads such requests
 *     later;
 *   atomic_thread_fence(memory_order_seq_cst);
 *   // every thread has passed a full barrier in between
 *
 * The daemon has ended when the socket says so; its statements stay true, and no more come.
 */
#ifndef MILLSTREAM_BARRIERD_H
#define MILLSTREAM_BARRIERD_H

#include <stdint.h>

/* "barrierd" */
#define BARRIERD_MAGIC_BYTES "barrierd"
/* A reader that finds another version must not continue. */
#define BARRIERD_VERSION 2
/* The largest number of connections. */
#define BARRIERD_CLIENTS 1000
/* The longest text of a refusal, in bytes. */
#define BARRIERD_REASON_BYTES 240
#define BARRIERD_SOURCE_NONE 0
#define BARRIERD_SOURCE_BPF 1
#define BARRIERD_SOCKET "/run/millstream-barrierd/socket"

/* The page's head: 128 bytes. */
struct barrierd_page {
	char magic[8];          /* BARRIERD_MAGIC_BYTES; constant */
	uint32_t version;       /* BARRIERD_VERSION; constant */
	uint32_t cpus;          /* possible processors: entries of both tables; constant */
	uint8_t boot_id[16];    /* the kernel's boot id: the page says nothing about another boot; constant */
	uint32_t source;        /* BARRIERD_SOURCE_…: whether a program writes the times; constant */
	uint32_t daemon;        /* the daemon's process; constant */
	uint32_t turn;          /* a futex: advances when the daemon has fulfilled a request */
	uint32_t least_turn;    /* a futex: advances when the daemon has found a larger minimum */
	uint64_t least_time;    /* the minimum of all processors' times at the daemon's last look */
	uint64_t least_virtual; /* the same in virtual time */
	uint64_t all_time;      /* every processor passed after this time */
	uint64_t all_virtual;   /* the same in virtual time */
	uint8_t reserved[48];
};

/* The daemon's statements about a processor (idle, offline, or running the daemon): 64 bytes. */
struct barrierd_page_cpu {
	uint64_t time;         /* the processor passed after this time */
	uint64_t virtual_time; /* the processor passed after any read of a smaller virtual time */
	uint8_t reserved[48];
};

/* The daemon's statement about a connection: 4 bytes. */
struct barrierd_page_client {
	uint32_t rests; /* not zero while its requests stay in the socket; a hint */
};

/* The times' head: 64 bytes. */
struct barrierd_times {
	uint64_t virtual_now; /* virtual time: a counter */
	uint64_t advanced_at; /* when a processor last advanced it; a hint */
	uint8_t reserved[48];
};

/* The program's statements about the processor it runs on: 64 bytes. */
struct barrierd_times_cpu {
	uint64_t time;         /* the processor passed after the program had read this from the clock */
	uint64_t virtual_time; /* the processor passed after the program had read this from virtual_now */
	uint64_t idle;         /* 1 while the processor is idle; only the daemon may act on it */
	uint8_t reserved[40];
};

/*
 * Comes with the two descriptors (SCM_RIGHTS: page, times) on a new connection (AF_UNIX, SOCK_SEQPACKET). With cpus = 0
 * it is a refusal: no descriptors, and after it the reason as text, BARRIERD_REASON_BYTES at most.
 */
struct barrierd_hello {
	char magic[8];
	uint32_t version;
	uint32_t cpus;
	uint32_t client; /* the connection's place in the page's last table */
	uint8_t reserved[4];
};

/*
 * A client's message, any number of times: wake sleepers when all these processors have a virtual time above this one.
 * A bit for each processor follows, from the lowest bit of the first 64-bit word on; without bits, all processors count.
 */
struct barrierd_request {
	uint64_t virtual_time;
};

#define BARRIERD_PAGE_BYTES(cpus) \
	(sizeof(struct barrierd_page) + (cpus) * sizeof(struct barrierd_page_cpu) + BARRIERD_CLIENTS * sizeof(struct barrierd_page_client))
#define BARRIERD_TIMES_BYTES(cpus) (sizeof(struct barrierd_times) + (cpus) * sizeof(struct barrierd_times_cpu))

#endif
