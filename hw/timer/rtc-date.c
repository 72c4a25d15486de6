/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dates: a year is counted from March, so that the leap day is its last one, in eras of 400 years,
 * which all have 146097 days.
 */
#include "hw/timer/rtc-date.h"

#define DAY_S     86400
#define ERA_YEARS 400
#define ERA_DAYS  146097
#define EPOCH_DAY 719468 /* 1970-01-01 from 0000-03-01 */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

RtcDate rtc_date_from_seconds(int64_t seconds)
{
    int64_t days = floor_div(seconds, DAY_S);
    int64_t era = floor_div(days + EPOCH_DAY, ERA_DAYS);
    unsigned in_day = (unsigned)(seconds - days * DAY_S);
    unsigned doe = (unsigned)(days + EPOCH_DAY - era * ERA_DAYS);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / (ERA_DAYS - 1)) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153; /* months from March: 31 30 31 30 31 31 30 31 30 31 31 */
    unsigned month = mp < 10 ? mp + 3 : mp - 9;

    return (RtcDate){
        .year = (int)(era * ERA_YEARS + yoe) + (month <= 2),
        .month = month,
        .day = doy - (153 * mp + 2) / 5 + 1,
        .hour = in_day / 3600,
        .minute = in_day / 60 % 60,
        .second = in_day % 60,
        .weekday = (unsigned)(((days + 4) % 7 + 7) % 7), /* 1970-01-01 was a Thursday */
    };
}

int64_t rtc_date_to_seconds(const RtcDate *d)
{
    int64_t month0 = (int64_t)d->month - 1;
    int64_t year = d->year + floor_div(month0, 12);
    unsigned month = (unsigned)(month0 - floor_div(month0, 12) * 12) + 1;
    int64_t y = year - (month <= 2), era = floor_div(y, ERA_YEARS);
    unsigned yoe = (unsigned)(y - era * ERA_YEARS);
    unsigned doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5;
    int64_t days = era * ERA_DAYS + 365 * yoe + yoe / 4 - yoe / 100 + doy - EPOCH_DAY +
                   (int64_t)d->day - 1;

    return days * DAY_S + (int64_t)d->hour * 3600 + (int64_t)d->minute * 60 + d->second;
}
