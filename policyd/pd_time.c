/* The two clocks of the daemon.  Both calls cannot fail with these ids on Linux, so that there is
 * no error path for the callers to get wrong. */
#include "pd_time.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PD_US_PER_S  1000000
#define PD_US_PER_MS 1000

static int64_t clock_us(clockid_t clock)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(clock, &now); /* fails for a bad id only */
    return (int64_t)now.tv_sec * PD_US_PER_S + now.tv_nsec / 1000;
}

pd_wall_t pd_wall_now(void)
{
    return (pd_wall_t){clock_us(CLOCK_REALTIME)};
}

/* Of the whole process: there is one wall clock. */
static _Atomic int64_t noted_us;

void pd_wall_note(pd_wall_t recorded)
{
    int64_t before = atomic_load(&noted_us);

    while (before < recorded.us && !atomic_compare_exchange_weak(&noted_us, &before, recorded.us)) {
    }
}

pd_wall_t pd_wall_steady(void)
{
    pd_wall_t now = pd_wall_now();
    int64_t noted = atomic_load(&noted_us);

    if (now.us < noted) {
        now.us = noted;
    }
    return now;
}

pd_boot_t pd_boot_now(void)
{
    return (pd_boot_t){clock_us(CLOCK_BOOTTIME)};
}

pd_boot_t pd_boot_in(int64_t ms)
{
    int64_t now = clock_us(CLOCK_BOOTTIME);
    int64_t most = (INT64_MAX - now) / PD_US_PER_MS;

    if (ms > most) {
        return (pd_boot_t){INT64_MAX};
    }
    if (ms < -most) {
        return (pd_boot_t){0};
    }
    return (pd_boot_t){now + ms * PD_US_PER_MS};
}

int64_t pd_boot_left_ms(pd_boot_t then)
{
    int64_t now = clock_us(CLOCK_BOOTTIME);
    int64_t left_us;
    int64_t left_ms;

    if (then.us <= now) {
        return 0;
    }
    left_us = then.us - now;
    /* Rounded up: a poll() that waits this long doesn't wake just before the time. */
    left_ms = left_us / PD_US_PER_MS + (left_us % PD_US_PER_MS != 0);
    return left_ms > INT32_MAX ? INT32_MAX : left_ms;
}

void pd_wall_text(pd_wall_t when, char *buf)
{
    int64_t seconds = when.us / PD_US_PER_S;
    int64_t micros = when.us % PD_US_PER_S;
    struct tm parts;
    time_t clock;

    if (micros < 0) {
        micros += PD_US_PER_S;
        seconds--;
    }
    /* Years outside 0000-9999 have no RFC 3339 form, and would not fit the buffer. */
    if (seconds < -62167219200LL || seconds > 253402300799LL) {
        seconds = seconds < 0 ? -62167219200LL : 253402300799LL;
        micros = 0;
    }
    clock = (time_t)seconds;
    memset(&parts, 0, sizeof(parts));
    (void)gmtime_r(&clock, &parts); /* the range above makes it succeed */
    (void)snprintf(buf, 32, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ",
                   (unsigned)(parts.tm_year + 1900) % 10000U, (unsigned)(parts.tm_mon + 1) % 100U,
                   (unsigned)parts.tm_mday % 100U, (unsigned)parts.tm_hour % 100U,
                   (unsigned)parts.tm_min % 100U, (unsigned)parts.tm_sec % 100U,
                   (unsigned)micros % 1000000U);
}
