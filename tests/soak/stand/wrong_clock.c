/* Preloaded into the instance's processes: the time of day is off by what the file SOAK_CLOCK says, 8 bytes of nanoseconds, and
 * follows it at once. The monotonic clock is right, as on a machine whose clock an operator or NTP has set. (libfaketime 0.9.10
 * fails every sleep where the monotonic clock is not faked too.) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define TIME_OF_DAY_S 1000000000LL /* The monotonic clock counts from the start of the machine, and is never so far. */

static const int64_t none;
static const volatile int64_t *offset = &none;
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SOAK_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) offset = mapped;
    close(file);
}

static struct timespec moved(struct timespec at, int64_t by) {
    int64_t total = at.tv_sec * SECOND + at.tv_nsec + by;
    return (struct timespec){.tv_sec = total / SECOND, .tv_nsec = total % SECOND};
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real_gettime) real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real_gettime(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) *now = moved(*now, *offset);
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    int failed = clock_gettime(CLOCK_REALTIME, &exact);
    *now = (struct timeval){.tv_sec = exact.tv_sec, .tv_usec = exact.tv_nsec / 1000};
    return failed;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}

/* Deadlines by the time of day were computed from the wrong one. */
static struct timespec deadline(const struct timespec *at) {
    return at->tv_sec > TIME_OF_DAY_S ? moved(*at, -*offset) : *at;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict at) {
    static int (*real)(sem_t *, const struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec until = deadline(at);
    return real(semaphore, &until);
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict at) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    /* Of two versions of it, dlsym gives that of before 2003. */
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec until = deadline(at);
    return real(condition, mutex, &until);
}
