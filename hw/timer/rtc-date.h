/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dates of the proleptic Gregorian calendar. The C library's gmtime_r() and timegm() take a lock
 * that does not inherit priorities, so vCPU threads do not call them.
 */
#ifndef HW_TIMER_RTC_DATE_H
#define HW_TIMER_RTC_DATE_H

#include <stdint.h>

typedef struct RtcDate {
    int year;                 /* 1970, ... */
    unsigned month, day;      /* 1..12, 1..31 */
    unsigned hour, minute, second;
    unsigned weekday;         /* 0: Sunday */
} RtcDate;

/* RT_SAFE. seconds since 1970-01-01 00:00:00. */
RtcDate rtc_date_from_seconds(int64_t seconds);
/* RT_SAFE. Values out of range carry over into the next unit, as timegm() does; weekday is not
 * looked at. */
int64_t rtc_date_to_seconds(const RtcDate *d);

/*
 * RT_SAFE. Nanoseconds. A guest may set a time that is further from the clock's than 64 bits of them
 * reach. The offset between the two wraps then, and so does each sum with it, to what is meant.
 */
static inline int64_t wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t wrap_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

#endif
