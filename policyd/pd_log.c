/* The daemon's log: one line a message, to stderr or syslog.
 *
 * A line is written by one write(2), so that lines of several threads never mix.  Whatever a caller
 * formats, control bytes cannot leave this room: a tool name with a newline forges no second line.
 * Warnings and errors of one site are limited to a burst in a window; what was held back is counted
 * and told by the first line of a later window. */
#include "pd_log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 2048
#define BURST      20  /* lines of one site within a window */
#define WINDOW_S   10
#define SITES      256 /* direct-mapped; two sites that share a slot only reset each other's count */

typedef struct site {
    int id;
    unsigned written;
    unsigned held;
    time_t since;
} site_t;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_to_syslog;
static int log_level = PD_LOG_NOTICE;
static site_t log_sites[SITES];

static const char *level_text(int level)
{
    static const char *const texts[] = {"error", "warning", "notice", "info", "debug"};

    return level < PD_LOG_ERR || level > PD_LOG_DEBUG ? "error" : texts[level - PD_LOG_ERR];
}

void pd_log_open(int to_syslog, int level)
{
    (void)pthread_mutex_lock(&log_lock); /* a default mutex fails only for bugs */
    if (to_syslog && !log_to_syslog) {
        openlog("policyd", LOG_PID | LOG_NDELAY, LOG_DAEMON);
    }
    __atomic_store_n(&log_to_syslog, to_syslog, __ATOMIC_RELAXED);
    __atomic_store_n(&log_level, level, __ATOMIC_RELAXED);
    (void)pthread_mutex_unlock(&log_lock);
}

/* 1 if the line may be written; *ret_held is what was kept back before it. */
static int site_admits(int id, unsigned *ret_held)
{
    struct timespec now = {0, 0};
    site_t *site = &log_sites[(unsigned)id % SITES];
    int is_admitted = 0;

    *ret_held = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    (void)pthread_mutex_lock(&log_lock);
    if (site->id != id || now.tv_sec - site->since >= WINDOW_S) {
        *ret_held = site->id == id ? site->held : 0;
        site->id = id;
        site->written = 0;
        site->held = 0;
        site->since = now.tv_sec;
    }
    if (site->written < BURST) {
        site->written++;
        is_admitted = 1;
    } else {
        site->held++;
    }
    (void)pthread_mutex_unlock(&log_lock);
    return is_admitted;
}

/* The last guard against forged lines; quoting of single values is pd_log_quote()'s. */
static void flatten(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = ' ';
        }
    }
}

static void write_stderr(int level, int id, const char *text)
{
    char line[LINE_BYTES + 128];
    char stamp[32];
    struct timespec now = {0, 0};
    struct tm parts;
    int used;
    size_t done = 0;

    memset(&parts, 0, sizeof parts);
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    (void)gmtime_r(&now.tv_sec, &parts);
    (void)strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
    used = snprintf(line, sizeof line, "%s.%03ldZ policyd[%ld] %s PD%04d: %s\n", stamp,
                    now.tv_nsec / 1000000, (long)getpid(), level_text(level), id, text);
    if (used < 0) {
        return;
    }
    if ((size_t)used >= sizeof line) {
        used = (int)sizeof line - 1;
        line[sizeof line - 2] = '\n';
    }
    while (done < (size_t)used) {
        ssize_t wrote = write(STDERR_FILENO, line + done, (size_t)used - done);

        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return; /* nowhere left to say so */
        }
        done += (size_t)wrote;
    }
}

void pd_log(int level, int id, const char *format, ...)
{
    char text[LINE_BYTES];
    unsigned held = 0;
    int saved = errno;
    int used;
    va_list args;

    if (level > __atomic_load_n(&log_level, __ATOMIC_RELAXED)) {
        return;
    }
    if (level <= PD_LOG_WARNING && !site_admits(id, &held)) {
        return;
    }
    va_start(args, format);
    used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (used < 0) {
        text[0] = '\0';
        used = 0;
    }
    if ((size_t)used >= sizeof text) {
        memcpy(text + sizeof text - 4, "...", 4);
        used = (int)sizeof text - 1;
    }
    if (held > 0) {
        (void)snprintf(text + used, sizeof text - (size_t)used, " (%u alike held back)", held);
    }
    flatten(text);
    if (__atomic_load_n(&log_to_syslog, __ATOMIC_RELAXED)) {
        syslog(level, "PD%04d: %s", id, text); /* PD_LOG_* are syslog's own numbers */
    } else {
        write_stderr(level, id, text);
    }
    errno = saved;
}

const char *pd_log_quote(const char *text, char *buf, unsigned size)
{
    static const char digits[] = "0123456789abcdef";
    unsigned used = 0;
    const char *from = text == NULL ? "" : text;

    if (size == 0) {
        return "";
    }
    for (; *from != '\0'; from++) {
        unsigned char byte = (unsigned char)*from;
        unsigned need = byte < 0x20 || byte > 0x7e || byte == '\\' ? 4 : 1;

        if (size < 4 || used + need > size - 4) { /* room for "..." and NUL stays */
            unsigned dots = size - 1 - used < 3 ? size - 1 - used : 3;

            memcpy(buf + used, "...", dots);
            used += dots;
            break;
        }
        if (need == 1) {
            buf[used++] = (char)byte;
        } else {
            buf[used++] = '\\';
            buf[used++] = 'x';
            buf[used++] = digits[byte >> 4];
            buf[used++] = digits[byte & 15];
        }
    }
    buf[used] = '\0';
    return buf;
}
