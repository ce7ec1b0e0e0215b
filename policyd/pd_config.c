/* The configuration file: see pd_config.h.
 *
 * One table says which keys exist, of which type and with which default; the parser, the comparison at
 * SIGHUP and the checks all walk it.  Nothing is guessed: what is not understood stops the start. */
#include "pd_config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../proto/mcp_names.h"
#include "pd_log.h"

typedef struct reader reader_t;

/* Takes one value; NULL, or what is wrong with it and the remedy (in the reader's pool). */
typedef const char *value_fn(reader_t *reader, const char *value, void *member);

typedef struct key_row {
    const char *name;
    value_fn *take;
    size_t offset;      /* of the member in pd_config_t */
    const char *otherwise; /* default as it would stand in the file; NULL: none */
    int is_repeated;    /* may stand on several lines */
    int is_live;        /* SIGHUP takes it over */
} key_row_t;

struct reader {
    const char *file;
    unsigned line; /* 0: a check of the whole */
    apr_pool_t *pool;
    pd_config_t *config;
    char *why;
    size_t size;
};

typedef struct option {
    const char *text;
    int value;
} option_t;

static const option_t log_sinks[] = {{"stderr", 0}, {"syslog", 1}, {NULL, 0}};
static const option_t log_levels[] = {{"error", PD_LOG_ERR},   {"warning", PD_LOG_WARNING},
                                      {"notice", PD_LOG_NOTICE}, {"info", PD_LOG_INFO},
                                      {"debug", PD_LOG_DEBUG},  {NULL, 0}};

/* --- values ---------------------------------------------------------------- */

static const char *take_option(const option_t *options, const char *value, int *ret)
{
    for (; options->text != NULL; options++) {
        if (strcmp(options->text, value) == 0) {
            *ret = options->value;
            return NULL;
        }
    }
    return "not one of the words that this key knows";
}

static const char *take_log(reader_t *reader, const char *value, void *member)
{
    (void)reader; /* the signature is the table's */
    return take_option(log_sinks, value, member) == NULL ? NULL : "write stderr or syslog";
}

static const char *take_log_level(reader_t *reader, const char *value, void *member)
{
    (void)reader; /* the signature is the table's */
    return take_option(log_levels, value, member) == NULL
               ? NULL
               : "write error, warning, notice, info or debug";
}

static const char *take_text(reader_t *reader, const char *value, void *member)
{
    if (strlen(value) > 128) {
        return "too long; at most 128 bytes";
    }
    *(const char **)member = apr_pstrdup(reader->pool, value);
    return NULL;
}

/* Absolute, no component "." or "..", nothing that needs quoting in a unit file or an endpoint. */
static int is_path(const char *value)
{
    const char *at = value;

    if (*value != '/' || value[1] == '\0' || strchr(value, '*') != NULL) {
        return 0;
    }
    while (*at == '/') {
        size_t part = strcspn(++at, "/");

        if ((part == 1 && at[0] == '.') || (part == 2 && at[0] == '.' && at[1] == '.')) {
            return 0;
        }
        at += part;
    }
    return 1;
}

static const char *take_path(reader_t *reader, const char *value, void *member)
{
    if (!is_path(value)) {
        return "write an absolute path without . and .. in it";
    }
    *(const char **)member = apr_pstrdup(reader->pool, value);
    return NULL;
}

static const char *take_socket(reader_t *reader, const char *value, void *member)
{
    struct sockaddr_un address;

    if (strlen(value) >= sizeof address.sun_path) {
        return "too long for a socket; at most 107 bytes";
    }
    return take_path(reader, value, member);
}

static const char *take_account(reader_t *reader, const char *value, void *member)
{
    if (strlen(value) > 64 || strpbrk(value, " \t:/,") != NULL || *value == '-') {
        return "write one name of a user or group";
    }
    *(const char **)member = apr_pstrdup(reader->pool, value);
    return NULL;
}

/* host:port with a literal address, a name or `*`; the port counts. */
static int is_tcp_address(const char *value)
{
    const char *colon = strrchr(value, ':');
    size_t digits;

    if (colon == NULL || colon == value) {
        return 0;
    }
    digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > 5 || colon[1 + digits] != '\0' || colon[1] == '0' ||
        strtol(colon + 1, NULL, 10) > 65535) {
        return 0;
    }
    return strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_*[]:%") ==
           strlen(value);
}

static const char *take_endpoint(reader_t *reader, const char *value, void *member)
{
    apr_array_header_t *list = *(apr_array_header_t **)member;
    int i;

    if (strncmp(value, "ipc://", 6) == 0) {
        struct sockaddr_un address;

        if (!is_path(value + 6) || strlen(value + 6) >= sizeof address.sun_path) {
            return "write ipc:// and an absolute path of at most 107 bytes";
        }
    } else if (strncmp(value, "tcp://", 6) != 0 || !is_tcp_address(value + 6)) {
        return "write ipc:///PATH or tcp://ADDRESS:PORT";
    }
    if (list->nelts >= PD_CONFIG_MAX_ENDPOINTS) {
        return "too many endpoints; at most 8";
    }
    for (i = 0; i < list->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(list, i, const char *), value) == 0) {
            return "this endpoint stands on an earlier line; remove one";
        }
    }
    APR_ARRAY_PUSH(list, const char *) = apr_pstrdup(reader->pool, value);
    return NULL;
}

static int is_email(const char *text)
{
    const char *at = strchr(text, '@');

    return at != NULL && at != text && at[1] != '\0' && strchr(at + 1, '@') == NULL &&
           strlen(text) <= 254 && strpbrk(text, " \t\"<>(),;:\\") == NULL;
}

static const char *take_actor(reader_t *reader, const char *value, void *member)
{
    static const char remedy[] = "write unix:UID EMAIL, as in unix:1000 ada@example.com";
    apr_array_header_t *list = *(apr_array_header_t **)member;
    pd_config_actor_t actor;
    size_t digits;
    const char *email;
    int i;

    if (strncmp(value, "unix:", 5) != 0) {
        return remedy;
    }
    digits = strspn(value + 5, "0123456789");
    if (digits == 0 || digits > 10 || (value[5] == '0' && digits > 1)) {
        return remedy;
    }
    actor.uid = strtol(value + 5, NULL, 10);
    email = value + 5 + digits;
    if (*email != ' ' && *email != '\t') {
        return remedy;
    }
    email += strspn(email, " \t");
    if (!is_email(email)) {
        return remedy;
    }
    if (actor.uid == 0) {
        return "uid 0 is always the Owner; remove this line";
    }
    if (actor.uid >= 4294967295L) {
        return "no user can have this uid";
    }
    if (list->nelts >= PD_CONFIG_MAX_ACTORS) {
        return "too many actors; at most 256";
    }
    for (i = 0; i < list->nelts; i++) {
        if (APR_ARRAY_IDX(list, i, pd_config_actor_t).uid == actor.uid) {
            return "this uid has an actor on an earlier line; remove one";
        }
    }
    actor.email = apr_pstrdup(reader->pool, email);
    APR_ARRAY_PUSH(list, pd_config_actor_t) = actor;
    return NULL;
}

static void reserve(reader_t *reader, apr_array_header_t *list, const char *label)
{
    int i;

    for (i = 0; i < list->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(list, i, const char *), label) == 0) {
            return;
        }
    }
    APR_ARRAY_PUSH(list, const char *) = apr_pstrdup(reader->pool, label);
}

static const char *take_reserved(reader_t *reader, const char *value, void *member)
{
    apr_array_header_t *list = *(apr_array_header_t **)member;

    while (*value != '\0') {
        size_t bytes = strcspn(value, " \t,");
        const char *label = apr_pstrmemdup(reader->pool, value, bytes);

        if (!mcp_name_is_label(label)) {
            return "write labels of a-z, 0-9 and inner '-', separated by spaces";
        }
        if (list->nelts >= PD_CONFIG_MAX_RESERVED) {
            return "too many labels; at most 64";
        }
        reserve(reader, list, label);
        value += bytes;
        value += strspn(value, " \t,");
    }
    return NULL;
}

static const char *take_prefix(reader_t *reader, const char *value, void *member)
{
    if (!mcp_name_is_label(value)) {
        return "write one label of a-z, 0-9 and inner '-', at most 32 bytes";
    }
    *(const char **)member = apr_pstrdup(reader->pool, value);
    return NULL;
}

/* --- keys ------------------------------------------------------------------ */

#ifndef MCP_DATA_DIR
#define MCP_DATA_DIR "/usr/local/share/mod_mcp"
#endif

#define MEMBER(name) offsetof(pd_config_t, name)

static const key_row_t keys[] = {
    {"organisation", take_text, MEMBER(organisation), "My organisation", 0, 0},
    {"state_dir", take_path, MEMBER(state_dir), "/var/lib/policyd", 0, 0},
    {"data_dir", take_path, MEMBER(data_dir), MCP_DATA_DIR, 0, 0},
    {"query_endpoint", take_endpoint, MEMBER(query_endpoints), "ipc:///run/policyd/query/policyd.sock",
     1, 0},
    {"admin_socket", take_socket, MEMBER(admin_socket), "/run/policyd/admin.sock", 0, 0},
    {"key_dir", take_path, MEMBER(key_dir), "/etc/policyd/keys", 0, 0},
    {"user", take_account, MEMBER(user), NULL, 0, 0},
    {"group", take_account, MEMBER(group), NULL, 0, 0},
    {"httpd_group", take_account, MEMBER(httpd_group), NULL, 0, 0},
    {"audit_group", take_account, MEMBER(audit_group), NULL, 0, 0},
    {"admin_group", take_account, MEMBER(admin_group), NULL, 0, 0},
    {"pid_file", take_path, MEMBER(pid_file), "/run/policyd/policyd.pid", 0, 0},
    {"log", take_log, MEMBER(log_to_syslog), "stderr", 0, 0},
    {"log_level", take_log_level, MEMBER(log_level), "notice", 0, 1},
    {"actor", take_actor, MEMBER(actors), NULL, 1, 1},
    {"reserved_labels", take_reserved, MEMBER(reserved_labels), NULL, 0, 0},
    {"control_prefix", take_prefix, MEMBER(control_prefix), "elaichi", 0, 0},
};

#define KEYS (sizeof keys / sizeof keys[0])

static void *member_of(pd_config_t *config, const key_row_t *row)
{
    return (char *)config + row->offset;
}

static pd_status_t refuse(reader_t *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static pd_status_t refuse(reader_t *reader, const char *format, ...)
{
    va_list args;
    int used;

    if (reader->line > 0) {
        used = snprintf(reader->why, reader->size, "%s:%u: ", reader->file, reader->line);
    } else {
        used = snprintf(reader->why, reader->size, "%s: ", reader->file);
    }
    if (used >= 0 && (size_t)used < reader->size) {
        va_start(args, format);
        (void)vsnprintf(reader->why + used, reader->size - (size_t)used, format, args);
        va_end(args);
    }
    return PD_E_INVALID;
}

static const key_row_t *find_key(const char *name)
{
    size_t i;

    for (i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].name, name) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

/* One line without its end; `seen` holds the line where each key stood first. */
static pd_status_t take_line(reader_t *reader, const char *line, size_t bytes, unsigned *seen)
{
    char quoted[80];
    const key_row_t *row;
    const char *key, *value, *wrong, *equals;
    char *copy;
    size_t i;

    if (bytes > PD_CONFIG_MAX_LINE) {
        return refuse(reader, "the line is longer than %d bytes; shorten it", PD_CONFIG_MAX_LINE);
    }
    for (i = 0; i < bytes; i++) {
        if (((unsigned char)line[i] < 0x20 && line[i] != '\t') || line[i] == 0x7f) {
            return refuse(reader, "a control character stands in the line; remove it");
        }
    }
    copy = apr_pstrmemdup(reader->pool, line, bytes);
    key = copy + strspn(copy, " \t");
    for (i = strlen(copy); i > 0 && (copy[i - 1] == ' ' || copy[i - 1] == '\t'); i--) {
        copy[i - 1] = '\0';
    }
    if (*key == '\0' || *key == '#') {
        return PD_OK;
    }
    equals = strchr(key, '=');
    if (equals == NULL || equals == key) {
        return refuse(reader, "not `key = value`; write it so, or begin a comment with #");
    }
    value = equals + 1 + strspn(equals + 1, " \t");
    i = (size_t)(equals - key);
    while (i > 0 && (key[i - 1] == ' ' || key[i - 1] == '\t')) {
        i--;
    }
    key = apr_pstrmemdup(reader->pool, key, i);
    row = find_key(key);
    if (row == NULL) {
        return refuse(reader, "unknown key \"%s\"; policyd.conf(5) lists the keys",
                      pd_log_quote(key, quoted, sizeof quoted));
    }
    if (*value == '\0') {
        return refuse(reader, "%s has no value; write one, or remove the line", row->name);
    }
    if (!row->is_repeated && seen[row - keys] != 0) {
        return refuse(reader, "%s stands in line %u already; remove one of the two", row->name,
                      seen[row - keys]);
    }
    wrong = row->take(reader, value, member_of(reader->config, row));
    if (wrong != NULL) {
        return refuse(reader, "%s = %s: %s", row->name, pd_log_quote(value, quoted, sizeof quoted),
                      wrong);
    }
    if (seen[row - keys] == 0) {
        seen[row - keys] = reader->line;
    }
    return PD_OK;
}

/* What no single line can be blamed for. */
static pd_status_t judge_whole(reader_t *reader, const unsigned *seen)
{
    pd_config_t *config = reader->config;
    size_t i;

    reader->line = 0;
    for (i = 0; i < KEYS; i++) {
        if (seen[i] == 0 && keys[i].otherwise != NULL) {
            const char *wrong =
                keys[i].take(reader, keys[i].otherwise, member_of(config, &keys[i]));

            if (wrong != NULL) {
                return refuse(reader, "default of %s: %s", keys[i].name, wrong);
            }
        }
    }
    reserve(reader, config->reserved_labels, "elaichi");
    reserve(reader, config->reserved_labels, config->control_prefix);
    if (config->group != NULL && config->user == NULL) {
        return refuse(reader, "group is set but user is not; set both, or neither");
    }
    for (i = 0; i < (size_t)config->query_endpoints->nelts; i++) {
        const char *endpoint = APR_ARRAY_IDX(config->query_endpoints, (int)i, const char *);

        if (strncmp(endpoint, "ipc://", 6) == 0 && strcmp(endpoint + 6, config->admin_socket) == 0) {
            return refuse(reader, "query_endpoint and admin_socket are the same path; change one");
        }
    }
    if (strcmp(config->pid_file, config->admin_socket) == 0) {
        return refuse(reader, "pid_file and admin_socket are the same path; change one");
    }
    return PD_OK;
}

pd_status_t pd_config_parse(const char *file, const char *text, size_t bytes, apr_pool_t *pool,
                            pd_config_t **ret, char *why, size_t size)
{
    reader_t reader = {file, 0, pool, NULL, why, size};
    unsigned seen[KEYS] = {0};
    pd_status_t status;
    size_t at = 0;

    if (bytes > PD_CONFIG_MAX_BYTES) {
        return refuse(&reader, "larger than %u bytes; this is no policyd.conf", PD_CONFIG_MAX_BYTES);
    }
    reader.config = apr_pcalloc(pool, sizeof *reader.config);
    reader.config->file = apr_pstrdup(pool, file);
    reader.config->query_endpoints = apr_array_make(pool, 2, sizeof(const char *));
    reader.config->actors = apr_array_make(pool, 4, sizeof(pd_config_actor_t));
    reader.config->reserved_labels = apr_array_make(pool, 4, sizeof(const char *));
    while (at < bytes) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t line = end == NULL ? bytes - at : (size_t)(end - (text + at));
        size_t shown = line > 0 && text[at + line - 1] == '\r' ? line - 1 : line;

        reader.line++;
        status = take_line(&reader, text + at, shown, seen);
        if (status != PD_OK) {
            return status;
        }
        at += end == NULL ? line : line + 1;
    }
    status = judge_whole(&reader, seen);
    if (status == PD_OK) {
        *ret = reader.config;
    }
    return status;
}

/* --- file ------------------------------------------------------------------ */

static pd_status_t read_file(reader_t *reader, char **ret, size_t *ret_bytes)
{
    struct stat info;
    char *text;
    size_t done = 0;
    int fd = open(reader->file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0) {
        return refuse(reader, "cannot be read: %s; name another file with -c", strerror(errno));
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > PD_CONFIG_MAX_BYTES) {
        (void)close(fd); /* only read */
        return refuse(reader, "not a plain file of at most %u bytes", PD_CONFIG_MAX_BYTES);
    }
    text = apr_palloc(reader->pool, (size_t)info.st_size + 1);
    while (done < (size_t)info.st_size) {
        ssize_t got = read(fd, text + done, (size_t)info.st_size - done);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            (void)close(fd); /* only read */
            return refuse(reader, "cannot be read: %s", strerror(errno));
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    (void)close(fd); /* only read */
    *ret = text;
    *ret_bytes = done;
    return PD_OK;
}

static pd_status_t judge_accounts(reader_t *reader)
{
    const pd_config_t *config = reader->config;
    const struct {
        const char *key, *name;
    } groups[] = {{"group", config->group},
                  {"httpd_group", config->httpd_group},
                  {"audit_group", config->audit_group},
                  {"admin_group", config->admin_group}};
    size_t i;

    if (config->user != NULL && getpwnam(config->user) == NULL) {
        return refuse(reader, "user = %s: there is no such user; create it, or name another",
                      config->user);
    }
    for (i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (groups[i].name != NULL && getgrnam(groups[i].name) == NULL) {
            return refuse(reader, "%s = %s: there is no such group; create it, or name another",
                          groups[i].key, groups[i].name);
        }
    }
    return PD_OK;
}

pd_status_t pd_config_load(const char *file, apr_pool_t *pool, pd_config_t **ret, char *why, size_t size)
{
    reader_t reader = {file, 0, pool, NULL, why, size};
    pd_config_t *config = NULL;
    char *text = NULL;
    size_t bytes = 0;
    pd_status_t status;

    status = read_file(&reader, &text, &bytes);
    if (status != PD_OK) {
        return status;
    }
    status = pd_config_parse(file, text, bytes, pool, &config, why, size);
    if (status != PD_OK) {
        return status;
    }
    reader.config = config;
    status = judge_accounts(&reader);
    if (status == PD_OK) {
        *ret = config;
    }
    return status;
}

/* --- SIGHUP ---------------------------------------------------------------- */

static int same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static int same_list(const apr_array_header_t *a, const apr_array_header_t *b)
{
    int i;

    if (a->nelts != b->nelts) {
        return 0;
    }
    for (i = 0; i < a->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(a, i, const char *), APR_ARRAY_IDX(b, i, const char *)) != 0) {
            return 0;
        }
    }
    return 1;
}

const char *pd_config_adopt(pd_config_t *live, const pd_config_t *fresh, apr_pool_t *pool)
{
    apr_array_header_t *actors = apr_array_copy(pool, fresh->actors);
    size_t i;

    for (i = 0; i < (size_t)actors->nelts; i++) {
        pd_config_actor_t *actor = &APR_ARRAY_IDX(actors, (int)i, pd_config_actor_t);

        actor->email = apr_pstrdup(pool, actor->email);
    }
    live->actors = actors;
    live->log_level = fresh->log_level;
    for (i = 0; i < KEYS; i++) {
        const char *a = (const char *)live + keys[i].offset;
        const char *b = (const char *)fresh + keys[i].offset;
        int is_same;

        if (keys[i].is_live) {
            continue;
        }
        if (keys[i].take == take_log) {
            is_same = *(const int *)(const void *)a == *(const int *)(const void *)b;
        } else if (keys[i].take == take_endpoint || keys[i].take == take_reserved) {
            is_same = same_list(*(apr_array_header_t *const *)(const void *)a,
                                *(apr_array_header_t *const *)(const void *)b);
        } else {
            is_same = same_text(*(const char *const *)(const void *)a,
                                *(const char *const *)(const void *)b);
        }
        if (!is_same) {
            return keys[i].name;
        }
    }
    return NULL;
}
