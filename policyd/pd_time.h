/* Time as two types, so that clocks can't be mixed. */
#ifndef PD_TIME_H
#define PD_TIME_H

#include <stdint.h>

/* Wall clock: microseconds of UTC since the epoch. */
typedef struct pd_wall {
    int64_t us;
} pd_wall_t;

/* Boot clock (CLOCK_BOOTTIME): microseconds; deadlines and intervals. */
typedef struct pd_boot {
    int64_t us;
} pd_boot_t;

pd_wall_t pd_wall_now(void);
/* Notes a time that stands in the trail; any thread. */
void pd_wall_note(pd_wall_t recorded);
/* Now, but never before the latest time noted: a clock that is set back revives no grant. Any thread. */
pd_wall_t pd_wall_steady(void);
pd_boot_t pd_boot_now(void);
/* now + ms. */
pd_boot_t pd_boot_in(int64_t ms);
/* Milliseconds until then, 0 when it has passed; at most INT32_MAX. */
int64_t pd_boot_left_ms(pd_boot_t then);
/* RFC 3339 in UTC with microseconds into buf (32 bytes). */
void pd_wall_text(pd_wall_t when, char *buf);

#endif
