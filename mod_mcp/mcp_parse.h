/* Values of directives: text in, value out.  Every parser takes the whole text or nothing, and
 * answers NULL or a sentence that names the remedy, ready to be httpd's answer to the directive.
 * *ret is written on success only.  Pure, thread-safe; texts are from pool. */
#ifndef MCP_PARSE_H
#define MCP_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include <apr_pools.h>
#include <apr_time.h>

/* Digits and one of `ms`, `s`, `m`, `h`, within min_us and max_us: "1500ms", "30s". In
 * microseconds, like apr_interval_time_t. */
const char *mcp_parse_duration(apr_pool_t *pool, const char *text, apr_interval_time_t min_us,
                               apr_interval_time_t max_us, apr_interval_time_t *ret_us);

/* Digits and one of `B`, `K`, `M`, `G` (powers of 1024), within min and max: "64K". In bytes. */
const char *mcp_parse_size(apr_pool_t *pool, const char *text, size_t min, size_t max,
                           size_t *ret_bytes);

/* Digits, within min and max (neither below 0); no sign, no unit, no leading zero but "0". */
const char *mcp_parse_int(apr_pool_t *pool, const char *text, int64_t min, int64_t max,
                          int64_t *ret);

/* `on` or `off`, in any letter case, like httpd's own flags. */
const char *mcp_parse_flag(apr_pool_t *pool, const char *text, int *ret);

/* One word of a table, in any letter case; the error lists the words. */
typedef struct mcp_parse_word {
    const char *word;
    int value;
} mcp_parse_word_t;
const char *mcp_parse_enum(apr_pool_t *pool, const char *text, const mcp_parse_word_t *table,
                           size_t count, int *ret);

#define MCP_PARSE_MAX_URL 2048 /* bytes */

/* http(s)://host[:port] and nothing more. *ret is normalised: scheme and host in lower case, an
 * IPv6 address in its shortest form, the default port dropped. */
const char *mcp_parse_origin(apr_pool_t *pool, const char *text, const char **ret);

/* An absolute http or https URL without userinfo and fragment. Its origin is normalised as above,
 * the rest stays byte for byte. */
const char *mcp_parse_url(apr_pool_t *pool, const char *text, const char **ret);

#endif
