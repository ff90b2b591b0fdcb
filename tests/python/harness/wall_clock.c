/* Preloaded into a server: its wall clock is the machine's and as many microseconds more as the first eight
 * bytes of the file $WALL_CLOCK say. When the next eight are not 0, that is so for as many looks at it, and then
 * it is the machine's. The monotonic clock is left alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *step;

static int64_t looked(void) {
    int64_t found = step[0];
    if (step[1] > 0 && --step[1] == 0)
        step[0] = 0;
    return found;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("WALL_CLOCK");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *map = mmap(NULL, 2 * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    step = map == MAP_FAILED ? NULL : map;
    close(file);
}

static int is_wall(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = (int)syscall(SYS_clock_gettime, clock, now);
    if (done != 0 || step == NULL || !is_wall(clock))
        return done;
    int64_t ahead = looked();
    int64_t ns = now->tv_nsec + ahead % 1000000 * 1000;
    now->tv_sec += ahead / 1000000;
    if (ns < 0) {
        ns += 1000000000;
        now->tv_sec--;
    }
    now->tv_sec += ns / 1000000000;
    now->tv_nsec = ns % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
        return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place)
        *place = now.tv_sec;
    return now.tv_sec;
}
