/* What the calls of one child share: idle lines and the counts behind the caps. */
#include "mcp_egress_pool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <apr_thread_mutex.h>

/* Newest first, so the list is ordered by age and what is too old is its tail. */
typedef struct idle_line {
    struct idle_line *next;
    void *line;
    int64_t since_ms;
    const char *connection; /* within key */
    char key[];             /* origin NUL connection NUL */
} idle_line_t;

typedef struct busy_count {
    struct busy_count *next;
    int calls;
    char connection[];
} busy_count_t;

struct mcp_egress_pool {
    mcp_egress_pool_limits_t limits;
    void (*close_line)(void *line);
    apr_thread_mutex_t *mutex; /* guards all below */
    pid_t pid;
    idle_line_t *idle;
    busy_count_t *busy; /* connections with calls, at most max_calls entries */
    int calls;
};

int64_t mcp_egress_now_ms(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

apr_status_t mcp_egress_pool_create(const mcp_egress_pool_limits_t *limits,
                                    void (*close_line)(void *line), apr_pool_t *pool,
                                    mcp_egress_pool_t **ret)
{
    mcp_egress_pool_t *lines = calloc(1, sizeof *lines);
    if (lines == NULL)
        return APR_ENOMEM;
    apr_status_t status = apr_thread_mutex_create(&lines->mutex, APR_THREAD_MUTEX_UNNESTED, pool);
    if (status != APR_SUCCESS) {
        free(lines);
        return status;
    }
    lines->limits = *limits;
    lines->close_line = close_line;
    lines->pid = getpid();
    *ret = lines;
    return APR_SUCCESS;
}

/* An inherited list is dropped and its memory given up: closing would end TLS sessions that the
 * parent still uses. The parent's running calls are none of ours either. */
static void lock(mcp_egress_pool_t *lines)
{
    (void)apr_thread_mutex_lock(lines->mutex); /* fails only for misuse of the mutex */
    if (lines->pid != getpid()) {
        lines->pid = getpid();
        lines->idle = NULL;
        lines->busy = NULL;
        lines->calls = 0;
    }
}

static void unlock(mcp_egress_pool_t *lines)
{
    (void)apr_thread_mutex_unlock(lines->mutex); /* fails only for misuse of the mutex */
}

/* Cuts off what is too old or too much, origin being the one that just grew (or NULL); with the
 * mutex held. */
static idle_line_t *prune(mcp_egress_pool_t *lines, const char *origin)
{
    idle_line_t *dead = NULL;
    idle_line_t **link = &lines->idle;
    int64_t now_ms = mcp_egress_now_ms();
    int total = 0;
    int same = 0;
    while (*link != NULL) {
        idle_line_t *entry = *link;
        int is_same = origin != NULL && strcmp(entry->key, origin) == 0;
        if (now_ms - entry->since_ms >= lines->limits.idle_ms ||
            total >= lines->limits.idle_total ||
            (is_same && same >= lines->limits.idle_per_origin)) {
            *link = entry->next;
            entry->next = dead;
            dead = entry;
            continue;
        }
        total++;
        same += is_same;
        link = &entry->next;
    }
    return dead;
}

static void bury(const mcp_egress_pool_t *lines, idle_line_t *dead)
{
    while (dead != NULL) {
        idle_line_t *next = dead->next;
        lines->close_line(dead->line);
        free(dead);
        dead = next;
    }
}

void mcp_egress_pool_close(mcp_egress_pool_t *lines)
{
    if (lines == NULL)
        return;
    if (lines->pid == getpid()) {
        bury(lines, lines->idle);
        while (lines->busy != NULL) {
            busy_count_t *next = lines->busy->next;
            free(lines->busy);
            lines->busy = next;
        }
    }
    free(lines);
}

void *mcp_egress_pool_take(mcp_egress_pool_t *lines, const char *origin, const char *connection)
{
    idle_line_t *found = NULL;
    lock(lines);
    idle_line_t *dead = prune(lines, NULL);
    for (idle_line_t **link = &lines->idle; *link != NULL; link = &(*link)->next) {
        if (strcmp((*link)->key, origin) == 0 && strcmp((*link)->connection, connection) == 0) {
            found = *link;
            *link = found->next;
            break;
        }
    }
    unlock(lines);
    bury(lines, dead);
    void *line = found != NULL ? found->line : NULL;
    free(found);
    return line;
}

void mcp_egress_pool_keep(mcp_egress_pool_t *lines, const char *origin, const char *connection,
                          void *line)
{
    size_t origin_bytes = strlen(origin) + 1;
    size_t connection_bytes = strlen(connection) + 1;
    idle_line_t *entry = malloc(sizeof *entry + origin_bytes + connection_bytes);
    if (entry == NULL) {
        lines->close_line(line);
        return;
    }
    memcpy(entry->key, origin, origin_bytes);
    memcpy(entry->key + origin_bytes, connection, connection_bytes);
    entry->connection = entry->key + origin_bytes;
    entry->line = line;
    lock(lines);
    entry->since_ms = mcp_egress_now_ms(); /* under the mutex: the list stays ordered */
    entry->next = lines->idle;
    lines->idle = entry;
    idle_line_t *dead = prune(lines, origin);
    unlock(lines);
    bury(lines, dead);
}

void mcp_egress_pool_tidy(mcp_egress_pool_t *lines)
{
    lock(lines);
    idle_line_t *dead = prune(lines, NULL);
    unlock(lines);
    bury(lines, dead);
}

static busy_count_t **find_busy(mcp_egress_pool_t *lines, const char *connection)
{
    busy_count_t **link = &lines->busy;
    while (*link != NULL && strcmp((*link)->connection, connection) != 0)
        link = &(*link)->next;
    return link;
}

mcp_egress_place_t mcp_egress_pool_enter(mcp_egress_pool_t *lines, const char *connection)
{
    size_t bytes = strlen(connection) + 1;
    busy_count_t *fresh = malloc(sizeof *fresh + bytes);
    if (fresh == NULL)
        return MCP_EGRESS_PLACE_NO_MEMORY;
    fresh->calls = 0;
    memcpy(fresh->connection, connection, bytes);
    mcp_egress_place_t place = MCP_EGRESS_PLACE_TAKEN;
    lock(lines);
    busy_count_t *count = *find_busy(lines, connection);
    if (count != NULL && count->calls >= lines->limits.max_per_connection) {
        place = MCP_EGRESS_PLACE_CONNECTION_FULL;
    } else if (lines->calls >= lines->limits.max_calls) {
        place = MCP_EGRESS_PLACE_CHILD_FULL;
    } else {
        if (count == NULL) {
            count = fresh;
            count->next = lines->busy;
            lines->busy = count;
            fresh = NULL;
        }
        count->calls++;
        lines->calls++;
    }
    unlock(lines);
    free(fresh);
    return place;
}

void mcp_egress_pool_leave(mcp_egress_pool_t *lines, const char *connection)
{
    busy_count_t *empty = NULL;
    lock(lines);
    busy_count_t **link = find_busy(lines, connection);
    if (*link != NULL) {
        lines->calls--;
        (*link)->calls--;
        if ((*link)->calls == 0) {
            empty = *link;
            *link = empty->next;
        }
    }
    unlock(lines);
    free(empty);
}
