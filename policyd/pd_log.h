/* The daemon's log: one line a message, each with an id PDnnnn that is never reused (doc/messages.md).
 * Untrusted text goes through pd_log_quote(). Thread-safe. */
#ifndef PD_LOG_H
#define PD_LOG_H

#define PD_LOG_ERR     3
#define PD_LOG_WARNING 4
#define PD_LOG_NOTICE  5
#define PD_LOG_INFO    6
#define PD_LOG_DEBUG   7

/* stderr until pd_log_open(); level is the highest that is written. */
void pd_log_open(int to_syslog, int level);
/* id: the number of the site, written as PDnnnn. */
void pd_log(int level, int id, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Copies text into buf (size), control and non-ASCII bytes as \xNN, cut with "...". Returns buf. */
const char *pd_log_quote(const char *text, char *buf, unsigned size);

#endif
