/* The first and only process of the machine that `run` boots: shows whether the null-GS trick works under its kernel.
 *
 * The trick, found by Paul Khuong: a process asks the kernel for a small base in GS, then writes the null selector,
 * which resets the base to 0. A kernel without the FSGSBASE instructions restores the requested base when the process
 * runs again after another one. An access relative to GS that was meant for a word then lands on the padding behind
 * it if the process was switched out since it wrote the selector: a restartable section without the kernel's help.
 *
 * The program shows three things. First, the reads of the article: how often the base comes back over a nap. Then a
 * free list that processes share on one processor, changed by a compare-and-swap without a lock prefix and without
 * generations: it suffers from the ABA problem and hands objects out twice. Last, the same list with its final
 * instruction relative to GS, which does not.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ARCH_SET_GS = 0x1001,
    HAS_FSGSBASE = 1 << 1,
    /* The offset of GS after an interruption: one word. */
    BASE = 8,
    NAPS = 200,
    PROCESSES = 4,
    OBJECTS = 6,
    ROUNDS = 20000,
    NONE = OBJECTS,
};

/* A value that no list's head ever has. */
static const uint64_t PADDING = ~UINT64_C(0);

struct list {
    uint64_t head;
    uint64_t padding;
    uint64_t next[OBJECTS];
    /* How many processes hold each object. */
    uint64_t hands[OBJECTS];
    uint64_t twice;
    uint64_t noticed;
};

static void ask_for_base(void) {
    if (syscall(SYS_arch_prctl, ARCH_SET_GS, (unsigned long)BASE) != 0) {
        perror("arch_prctl");
        exit(1);
    }
}

static inline void write_null_selector(void) {
    __asm__ volatile("mov %0, %%gs" : : "r"(0) : "memory");
}

static inline uint64_t read_by_gs(const uint64_t *word) {
    uint64_t value;
    __asm__ volatile("movq %%gs:(%1), %0" : "=r"(value) : "r"(word) : "memory");
    return value;
}

/* The instruction has no lock prefix: on one processor nothing can divide it. Returns the value found. */
static inline uint64_t compare_and_swap(uint64_t *word, uint64_t old, uint64_t new) {
    __asm__ volatile("cmpxchgq %2, %1" : "+a"(old), "+m"(*word) : "r"(new) : "memory", "cc");
    return old;
}

static inline uint64_t compare_and_swap_by_gs(uint64_t *word, uint64_t old, uint64_t new) {
    __asm__ volatile("cmpxchgq %1, %%gs:(%2)" : "+a"(old) : "r"(new), "r"(word) : "memory", "cc");
    return old;
}

static int reads(void) {
    static const uint64_t words[2] = {0, 1};
    int came_back = 0;
    ask_for_base();
    for (int nap = 0; nap < NAPS; nap++) {
        write_null_selector();
        if (read_by_gs(words) != 0) {
            printf("exhibit: this processor keeps the base when the null selector is written\n");
            return 0;
        }
        struct timespec time = {.tv_nsec = 1000000};
        nanosleep(&time, NULL);
        came_back += read_by_gs(words) == 1;
    }
    return came_back;
}

/* Lets another process run, now and then in the middle of a section. */
static void perhaps_yield(unsigned *seed) {
    if (rand_r(seed) % 4 == 0) sched_yield();
}

static uint64_t change(struct list *list, int by_gs, uint64_t old, uint64_t new) {
    uint64_t found = by_gs ? compare_and_swap_by_gs(&list->head, old, new) : compare_and_swap(&list->head, old, new);
    if (found == PADDING) __atomic_fetch_add(&list->noticed, 1, __ATOMIC_RELAXED);
    return found;
}

static uint64_t pop(struct list *list, int by_gs, unsigned *seed) {
    for (;;) {
        write_null_selector();
        uint64_t head = *(volatile uint64_t *)&list->head;
        if (head == NONE) return NONE;
        uint64_t next = *(volatile uint64_t *)&list->next[head];
        perhaps_yield(seed);
        if (change(list, by_gs, head, next) == head) return head;
    }
}

static void push(struct list *list, int by_gs, uint64_t object) {
    for (;;) {
        write_null_selector();
        uint64_t head = *(volatile uint64_t *)&list->head;
        *(volatile uint64_t *)&list->next[object] = head;
        if (change(list, by_gs, head, object) == head) return;
    }
}

static void use(struct list *list, int by_gs, unsigned seed) {
    uint64_t mine[2];
    ask_for_base();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            mine[i] = pop(list, by_gs, &seed);
            if (mine[i] != NONE && __atomic_fetch_add(&list->hands[mine[i]], 1, __ATOMIC_RELAXED) != 0)
                __atomic_fetch_add(&list->twice, 1, __ATOMIC_RELAXED);
        }
        perhaps_yield(&seed);
        for (int i = 0; i < 2; i++) {
            if (mine[i] == NONE) continue;
            __atomic_fetch_sub(&list->hands[mine[i]], 1, __ATOMIC_RELAXED);
            push(list, by_gs, mine[i]);
        }
    }
}

static struct list *share(int by_gs) {
    struct list *list = mmap(NULL, sizeof *list, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (list == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    list->padding = PADDING;
    for (int object = 0; object < OBJECTS; object++) list->next[object] = object + 1;
    for (int process = 0; process < PROCESSES; process++) {
        if (fork() == 0) {
            use(list, by_gs, process + 1);
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {}
    return list;
}

int main(void) {
    struct utsname name;
    setvbuf(stdout, NULL, _IOLBF, 0);
    uname(&name);
    printf("exhibit: Linux %s, FSGSBASE %s\n", name.release, getauxval(AT_HWCAP2) & HAS_FSGSBASE ? "in use" : "not in use");
    printf("exhibit: the base came back after %d of %d naps\n", reads(), NAPS);
    struct list *bare = share(0);
    printf("exhibit: plain list: %lu objects handed out while in other hands, %lu interruptions noticed\n", bare->twice, bare->noticed);
    struct list *guarded = share(1);
    printf("exhibit: list by GS: %lu objects handed out while in other hands, %lu interruptions noticed\n", guarded->twice, guarded->noticed);
    if (getpid() == 1) {
        sync();
        reboot(RB_AUTOBOOT);
    }
    return 0;
}
