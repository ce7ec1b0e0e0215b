/* Directories and keys: see pd_init.h.
 *
 * Owners when started as root with a `user`: the daemon's own files are the user's; key_dir is root's, so
 * that a taken-over daemon can't replace keys; httpd.key is root's, because httpd reads it as root before
 * it forks and a key that httpd's user could read would be a CGI program's too. */
#include "pd_init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../proto/mcp_hash.h"
#include "pd_curve.h"
#include "pd_seal.h"

typedef struct job {
    const pd_config_t *config;
    const pd_privs_t *privs;
    void (*tell)(const char *line); /* NULL: silent */
    char *why;
    size_t size;
} job_t;

static pd_status_t refuse(const job_t *job, pd_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static pd_status_t refuse(const job_t *job, pd_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(job->why, job->size, format, args);
    va_end(args);
    return status;
}

static void tell(const job_t *job, const char *what, const char *path)
{
    char line[4200];

    if (job->tell != NULL) {
        (void)snprintf(line, sizeof line, "%s %s", what, path); /* cut only for show */
        job->tell(line);
    }
}

/* --- directories ----------------------------------------------------------- */

/* An existing directory: nobody else may put names into it. A sticky one (/tmp) keeps strangers from
 * replacing ours and is good enough for sockets, never for keys and stores. */
static pd_status_t judge_directory(const job_t *job, const char *path, const struct stat *info,
                                   int is_private)
{
    if (!S_ISDIR(info->st_mode)) {
        return refuse(job, PD_E_INVALID, "%s is no directory; move it away, or configure another path",
                      path);
    }
    if (info->st_uid != 0 && info->st_uid != geteuid() && info->st_uid != job->privs->uid) {
        return refuse(job, PD_E_INVALID, "%s belongs to another user; chown it to policyd's", path);
    }
    if ((info->st_mode & S_IWOTH) != 0 && (is_private || (info->st_mode & S_ISVTX) == 0)) {
        return refuse(job, PD_E_INVALID, "anybody can write to %s; chmod o-w it", path);
    }
    return PD_OK;
}

/* Parents that are missing, for a path that is made: 0755, the maker's. */
static pd_status_t make_parents(const job_t *job, const char *path)
{
    char part[4096];
    size_t i, bytes = strlen(path);

    if (bytes >= sizeof part) {
        return refuse(job, PD_E_INVALID, "%s is too long", path);
    }
    memcpy(part, path, bytes + 1);
    for (i = 1; i < bytes; i++) {
        if (part[i] == '/') {
            part[i] = '\0';
            if (mkdir(part, 0755) != 0 && errno != EEXIST) {
                return refuse(job, PD_E_SYSTEM, "%s can't be made: %s", part, strerror(errno));
            }
            part[i] = '/';
        }
    }
    return PD_OK;
}

static pd_status_t own_directory(const job_t *job, const char *path, mode_t mode, uid_t uid, gid_t gid,
                                 int is_private)
{
    struct stat info;
    pd_status_t status;

    if (stat(path, &info) == 0) {
        tell(job, "kept", path);
        return judge_directory(job, path, &info, is_private);
    }
    if (errno != ENOENT) {
        return refuse(job, PD_E_SYSTEM, "%s: %s", path, strerror(errno));
    }
    status = make_parents(job, path);
    if (status != PD_OK) {
        return status;
    }
    if (mkdir(path, 0700) != 0 || chown(path, uid, gid) != 0 || chmod(path, mode) != 0) {
        return refuse(job, PD_E_SYSTEM,
                      "%s can't be made: %s; run policyd --init as root, or make it by hand", path,
                      strerror(errno));
    }
    tell(job, "made", path);
    return PD_OK;
}

/* Directory part of a path, in buf. */
static const char *parent_of(const char *path, char *buf, size_t size)
{
    const char *slash = strrchr(path, '/');
    size_t bytes = slash == NULL || slash == path ? 1 : (size_t)(slash - path);

    if (bytes >= size) {
        return "/";
    }
    memcpy(buf, path, bytes);
    buf[bytes] = '\0';
    return buf;
}

static pd_status_t run_directories(const job_t *job)
{
    const pd_config_t *config = job->config;
    const pd_privs_t *privs = job->privs;
    const uid_t uid = privs->is_root ? privs->uid : (uid_t)-1;
    const gid_t gid = privs->is_root ? privs->gid : (gid_t)-1;
    const gid_t httpd_gid = privs->httpd_gid != (gid_t)-1 ? privs->httpd_gid : gid;
    char buf[4096];
    pd_status_t status;
    int i;

    /* these first: they stay open to all, their files have modes of their own */
    status = own_directory(job, parent_of(config->pid_file, buf, sizeof buf), 0755, uid, gid, 0);
    if (status == PD_OK) {
        status = own_directory(job, parent_of(config->admin_socket, buf, sizeof buf), 0755, uid, gid, 0);
    }
    for (i = 0; i < config->query_endpoints->nelts && status == PD_OK; i++) {
        const char *endpoint = APR_ARRAY_IDX(config->query_endpoints, i, const char *);

        if (strncmp(endpoint, "ipc://", 6) == 0) {
            status = own_directory(job, parent_of(endpoint + 6, buf, sizeof buf), 0750, uid, httpd_gid,
                                   0);
        }
    }
    return status;
}

/* A directory that only --init makes. */
static pd_status_t expect_directory(const job_t *job, const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        return refuse(job, PD_E_SYSTEM, "%s: %s; run policyd --init -c %s", path, strerror(errno),
                      job->config->file);
    }
    return judge_directory(job, path, &info, 1);
}

pd_status_t pd_init_directories(const pd_config_t *config, const pd_privs_t *privs, char *why,
                                size_t size)
{
    const job_t job = {config, privs, NULL, why, size};
    pd_status_t status = expect_directory(&job, config->state_dir);

    if (status == PD_OK) {
        status = expect_directory(&job, config->key_dir);
    }
    return status == PD_OK ? run_directories(&job) : status;
}

/* --- key files ------------------------------------------------------------- */

static int exists(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0;
}

/* Writes a new file and nothing but a new one. */
static pd_status_t write_new(const job_t *job, const char *path, const char *text, mode_t mode, uid_t uid,
                             gid_t gid)
{
    size_t bytes = strlen(text);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        return refuse(job, PD_E_SYSTEM, "%s can't be made: %s", path, strerror(errno));
    }
    if (write(fd, text, bytes) != (ssize_t)bytes || fchown(fd, uid, gid) != 0 ||
        fchmod(fd, mode) != 0 || fsync(fd) != 0) {
        pd_status_t status =
            refuse(job, PD_E_SYSTEM, "%s can't be written: %s", path, strerror(errno));

        (void)close(fd);
        (void)unlink(path); /* half a key file is worse than none */
        return status;
    }
    if (close(fd) != 0) {
        return refuse(job, PD_E_SYSTEM, "%s can't be written: %s", path, strerror(errno));
    }
    tell(job, "made", path);
    return PD_OK;
}

static pd_status_t make_server_key(const job_t *job, const char *path, pd_curve_pair_t *ret)
{
    const uid_t uid = job->privs->is_root ? job->privs->uid : (uid_t)-1;
    const gid_t gid = job->privs->is_root ? job->privs->gid : (gid_t)-1;
    char text[256];
    pd_status_t status = pd_curve_make(ret);

    if (status != PD_OK) {
        return refuse(job, status, "libzmq was built without CURVE; install one that has it");
    }
    (void)snprintf(text, sizeof text,
                   "# policyd's CURVE key; secret\npublic = %s\nsecret = %s\n", ret->public_key,
                   ret->secret_key); /* has room */
    status = write_new(job, path, text, 0600, uid, gid);
    mcp_wipe(text, sizeof text);
    return status;
}

static pd_status_t make_httpd_key(const job_t *job, const char *path, const char *server_public,
                                  pd_curve_httpd_t *ret)
{
    pd_curve_pair_t pair;
    char text[512];
    pd_status_t status = pd_curve_make(&pair);

    if (status != PD_OK) {
        return refuse(job, status, "libzmq was built without CURVE; install one that has it");
    }
    memcpy(ret->server_public, server_public, PD_CURVE_TEXT);
    memcpy(ret->client_public, pair.public_key, PD_CURVE_TEXT);
    (void)snprintf(text, sizeof text,
                   "# for httpd's MCPPolicyKey; secret\nserver_public = %s\nclient_public = %s\n"
                   "client_secret = %s\n",
                   server_public, pair.public_key, pair.secret_key); /* has room */
    status = write_new(job, path, text, 0640, (uid_t)-1, (gid_t)-1);
    mcp_wipe(text, sizeof text);
    mcp_wipe(&pair, sizeof pair);
    return status;
}

/* The list is policyd's to read and an admin's to write. */
static pd_status_t make_allow(const job_t *job, const char *path, const char *client_public)
{
    const gid_t gid = job->privs->is_root ? job->privs->gid : (gid_t)-1;
    char text[256];

    (void)snprintf(text, sizeof text,
                   "# public keys of those who may ask policyd, one a line; SIGHUP reads it again\n"
                   "%s httpd\n",
                   client_public); /* has room */
    return write_new(job, path, text, 0640, (uid_t)-1, gid);
}

/* Adds a key to a list that lacks it. */
static pd_status_t extend_allow(const job_t *job, const char *path, const char *client_public)
{
    pd_curve_allow_t *allow = NULL;
    char line[PD_CURVE_TEXT + 16];
    pd_status_t status = pd_curve_allow_load(path, &allow, job->why, job->size);
    int fd, bytes, has_key;

    if (status != PD_OK) {
        return status;
    }
    has_key = pd_curve_allow_has(allow, client_public);
    pd_curve_allow_free(&allow);
    tell(job, "kept", path);
    if (has_key) {
        return PD_OK;
    }
    fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return refuse(job, PD_E_SYSTEM, "%s can't be extended: %s", path, strerror(errno));
    }
    bytes = snprintf(line, sizeof line, "\n%s httpd\n", client_public);
    if (write(fd, line, (size_t)bytes) != bytes) {
        status = refuse(job, PD_E_SYSTEM, "%s can't be extended: %s", path, strerror(errno));
    } else {
        tell(job, "added httpd.key's client to", path);
    }
    (void)close(fd); /* a lost line shows at the next --init */
    return status;
}

static pd_status_t make_master_key(const job_t *job, const char *path)
{
    pd_status_t status;

    if (exists(path)) {
        tell(job, "kept", path);
        return PD_OK;
    }
    status = pd_seal_make_key(path, job->why, job->size);
    if (status == PD_OK && job->privs->is_root && chown(path, job->privs->uid, job->privs->gid) != 0) {
        status = refuse(job, PD_E_SYSTEM, "%s can't be given to policyd's user: %s", path,
                        strerror(errno));
    }
    if (status == PD_OK) {
        tell(job, "made", path);
    }
    return status;
}

static pd_status_t make_keys(const job_t *job, apr_pool_t *pool)
{
    const char *dir = job->config->key_dir;
    const char *server_key = apr_pstrcat(pool, dir, "/server.key", NULL);
    const char *httpd_key = apr_pstrcat(pool, dir, "/httpd.key", NULL);
    const char *allow = apr_pstrcat(pool, dir, "/clients.allow", NULL);
    pd_curve_pair_t server;
    pd_curve_httpd_t httpd;
    pd_status_t status;

    if (exists(server_key)) {
        tell(job, "kept", server_key);
        status = pd_curve_load_as(server_key, (long)job->privs->uid, &server, job->why, job->size);
    } else {
        status = make_server_key(job, server_key, &server);
    }
    mcp_wipe(server.secret_key, sizeof server.secret_key);
    if (status != PD_OK) {
        return status;
    }
    if (exists(httpd_key)) {
        tell(job, "kept", httpd_key);
        status = pd_curve_load_httpd(httpd_key, &httpd, job->why, job->size);
        if (status == PD_OK && strcmp(httpd.server_public, server.public_key) != 0) {
            status = refuse(job, PD_E_INVALID,
                            "%s was made for another server.key; move it away and run policyd --init",
                            httpd_key);
        }
    } else {
        status = make_httpd_key(job, httpd_key, server.public_key, &httpd);
    }
    if (status != PD_OK) {
        return status;
    }
    status = exists(allow) ? extend_allow(job, allow, httpd.client_public)
                           : make_allow(job, allow, httpd.client_public);
    if (status != PD_OK) {
        return status;
    }
    return make_master_key(job, apr_pstrcat(pool, dir, "/master.key", NULL));
}

pd_status_t pd_init_run(const pd_config_t *config, const pd_privs_t *privs, apr_pool_t *pool,
                        void (*tell_line)(const char *line), char *why, size_t size)
{
    const job_t job = {config, privs, tell_line, why, size};
    const uid_t uid = privs->is_root ? privs->uid : (uid_t)-1;
    const gid_t gid = privs->is_root ? privs->gid : (gid_t)-1;
    const int has_auditors = privs->audit_gid != (gid_t)-1;
    pd_status_t status;

    /* auditors open audit.db by its path: they pass through the directory, and read what is theirs */
    status = own_directory(&job, config->state_dir, has_auditors ? 0750 : 0700, uid,
                           has_auditors ? privs->audit_gid : gid, 1);
    if (status == PD_OK) {
        status = own_directory(&job, config->key_dir, 0750, (uid_t)-1, gid, 1);
    }
    if (status == PD_OK) {
        status = run_directories(&job);
    }
    return status == PD_OK ? make_keys(&job, pool) : status;
}
