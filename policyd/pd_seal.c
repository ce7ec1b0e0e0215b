/* Sealed credentials and the file of the master key. See pd_seal.h; the cryptography is
 * proto/mcp_hash.c's. */
#include "pd_seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"

#define PURPOSE "policyd-credential-v1"
#define MAX_CREDENTIAL (64u * 1024) /* bytes of a credential as JSON */
#define MAX_DEPTH 8                 /* of a credential's nesting */
#define KEY_HEX (2 * MCP_KEY_BYTES)

/* --- credentials ---------------------------------------------------------------- */

/* "ID NUL ORIGIN": no id and origin can be read as another pair. */
static pd_status_t associated(const char *connection_id, const char *origin, apr_pool_t *pool,
                              unsigned char **ret, size_t *ret_bytes)
{
    size_t id_bytes = strlen(connection_id) + 1;
    size_t origin_bytes = strlen(origin);
    unsigned char *ad;

    if (id_bytes == 1 || origin_bytes == 0) {
        return PD_E_INVALID; /* a seal bound to nothing would open anywhere */
    }
    ad = pool == NULL ? malloc(id_bytes + origin_bytes) : apr_palloc(pool, id_bytes + origin_bytes);
    if (ad == NULL) {
        return PD_E_NOMEM;
    }
    memcpy(ad, connection_id, id_bytes);
    memcpy(ad + id_bytes, origin, origin_bytes);
    *ret = ad;
    *ret_bytes = id_bytes + origin_bytes;
    return PD_OK;
}

pd_status_t pd_seal_credential(const unsigned char key[32], const char *connection_id,
                               const char *origin, const json_t *credential, apr_pool_t *pool,
                               const void **ret, size_t *ret_bytes)
{
    unsigned char *ad;
    unsigned char *sealed;
    size_t ad_bytes;
    size_t bytes;
    char *text;
    pd_status_t status = associated(connection_id, origin, pool, &ad, &ad_bytes);

    if (status != PD_OK) {
        return status;
    }
    if (!json_is_object(credential)) {
        return PD_E_INVALID;
    }
    text = mcp_json_text(credential, &bytes);
    if (text == NULL) {
        return PD_E_NOMEM;
    }
    status = PD_E_INVALID;
    if (bytes <= MAX_CREDENTIAL) {
        sealed = apr_palloc(pool, bytes + MCP_SEAL_EXTRA);
        status = PD_E_CRYPTO;
        if (mcp_seal_bytes(key, PURPOSE, ad, ad_bytes, text, bytes, sealed,
                           bytes + MCP_SEAL_EXTRA) == MCP_OK) {
            *ret = sealed;
            *ret_bytes = bytes + MCP_SEAL_EXTRA;
            status = PD_OK;
        }
    }
    mcp_wipe(text, bytes);
    free(text);
    return status;
}

static pd_status_t parse_opened(const unsigned char *text, size_t bytes, json_t **ret)
{
    json_t *credential = NULL;

    if (mcp_json_parse((const char *)text, bytes, MAX_DEPTH, &credential, NULL) != MCP_OK) {
        return PD_E_CRYPTO;
    }
    if (!json_is_object(credential)) {
        pd_seal_wipe(credential);
        json_decref(credential);
        return PD_E_CRYPTO;
    }
    *ret = credential;
    return PD_OK;
}

pd_status_t pd_unseal_credential(const unsigned char key[32], const char *connection_id,
                                 const char *origin, const void *sealed, size_t bytes, json_t **ret)
{
    unsigned char *ad;
    unsigned char *text;
    size_t ad_bytes;
    size_t text_bytes;
    pd_status_t status;

    if (bytes <= MCP_SEAL_EXTRA || bytes - MCP_SEAL_EXTRA > MAX_CREDENTIAL) {
        return PD_E_CRYPTO;
    }
    status = associated(connection_id, origin, NULL, &ad, &ad_bytes);
    if (status != PD_OK) {
        return status;
    }
    text_bytes = bytes - MCP_SEAL_EXTRA;
    text = malloc(text_bytes);
    status = PD_E_NOMEM;
    if (text != NULL) {
        status = PD_E_CRYPTO;
        if (mcp_unseal_bytes(key, PURPOSE, ad, ad_bytes, sealed, bytes, text, text_bytes) ==
            MCP_OK) {
            status = parse_opened(text, text_bytes, ret);
        }
        mcp_wipe(text, text_bytes);
    }
    free(text);
    free(ad);
    return status;
}

/* jansson hands its strings out as const, though the memory is its own and writable: the detour
 * over an integer says so to the compiler. */
static void wipe_string(const json_t *value)
{
    mcp_wipe((void *)(uintptr_t)json_string_value(value), json_string_length(value));
}

static void wipe_level(json_t *value, int depth)
{
    const char *name;
    json_t *child;
    size_t i;

    if (json_is_string(value)) {
        wipe_string(value);
    }
    if (depth == MAX_DEPTH) {
        return; /* nothing that we parsed is deeper */
    }
    json_array_foreach(value, i, child)
    {
        wipe_level(child, depth + 1);
    }
    json_object_foreach(value, name, child)
    {
        wipe_level(child, depth + 1);
    }
}

void pd_seal_wipe(json_t *secret)
{
    wipe_level(secret, 0);
}

/* --- the master key ----------------------------------------------------------------- */

static pd_status_t explain(char *why, size_t size, pd_status_t status, const char *file,
                           const char *what)
{
    (void)snprintf(why, size, "%s: %s", file, what); /* cut is fine */
    return status;
}

/* Who may hold the file, and how; NULL or what is wrong. */
static const char *judge_file(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return "can't be looked at";
    }
    if (!S_ISREG(st.st_mode)) {
        return "is not a regular file";
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        return "belongs to another user; make its owner the one that policyd runs as";
    }
    if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return "can be used by others than its owner; run chmod 600 on it";
    }
    return NULL;
}

/* Reads up to size bytes; -1 on an error. */
static ssize_t read_all(int fd, char *buf, size_t size)
{
    size_t used = 0;

    while (used < size) {
        ssize_t got = read(fd, buf + used, size - used);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    return (ssize_t)used;
}

pd_status_t pd_seal_load_key(const char *file, unsigned char key[32], char *why, size_t size)
{
    char text[KEY_HEX + 2]; /* one more than the form has, to see that nothing follows */
    unsigned char bytes[MCP_KEY_BYTES];
    const char *wrong;
    ssize_t got;
    pd_status_t status = PD_OK;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0) {
        return explain(why, size, errno == ENOENT ? PD_E_NOT_FOUND : PD_E_SYSTEM, file,
                       errno == ENOENT  ? "is missing; without it no stored credential opens"
                       : errno == ELOOP ? "is a symbolic link; name the file itself"
                                        : "can't be opened by the user that policyd runs as");
    }
    wrong = judge_file(fd);
    if (wrong != NULL) {
        (void)close(fd); /* read only */
        return explain(why, size, PD_E_INVALID, file, wrong);
    }
    got = read_all(fd, text, sizeof(text));
    (void)close(fd);
    if (got == KEY_HEX + 1 && text[KEY_HEX] == '\n') {
        text[KEY_HEX] = '\0';
        if (strlen(text) != KEY_HEX || mcp_unhex(text, bytes, sizeof(bytes)) != MCP_OK) {
            status = PD_E_INVALID;
        }
    } else {
        status = PD_E_INVALID;
    }
    if (status == PD_OK) {
        memcpy(key, bytes, sizeof(bytes));
    } else {
        (void)explain(why, size, status, file,
                      "must hold 64 lower-case hexadecimal digits and a newline, nothing else");
    }
    mcp_wipe(text, sizeof(text));
    mcp_wipe(bytes, sizeof(bytes));
    return status;
}

static int write_all(int fd, const char *buf, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t put = write(fd, buf + done, bytes - done);

        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return -1;
        }
        done += (size_t)put;
    }
    return 0;
}

/* The new name is durable only once its directory is. */
static int sync_directory(const char *file)
{
    char path[4096];
    const char *slash = strrchr(file, '/');
    size_t bytes = slash == NULL ? 0 : (size_t)(slash - file);
    int fd;
    int result;

    if (bytes >= sizeof(path)) {
        return -1;
    }
    memcpy(path, file, bytes);
    path[bytes] = '\0';
    fd = open(slash == NULL ? "." : bytes == 0 ? "/" : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    result = fsync(fd);
    (void)close(fd); /* read only */
    return result;
}

pd_status_t pd_seal_make_key(const char *file, char *why, size_t size)
{
    unsigned char bytes[MCP_KEY_BYTES];
    char text[KEY_HEX + 2];
    int failed;
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        return errno == EEXIST
                   ? explain(why, size, PD_E_CONFLICT, file,
                             "exists; it is not overwritten, since stored credentials need it")
                   : explain(why, size, PD_E_SYSTEM, file, "can't be made; check the directory");
    }
    mcp_random(bytes, sizeof(bytes));
    mcp_hex(bytes, sizeof(bytes), text);
    text[KEY_HEX] = '\n';
    failed = fchmod(fd, 0600) != 0; /* whatever the umask took away */
    failed = failed || write_all(fd, text, KEY_HEX + 1) != 0 || fsync(fd) != 0;
    failed = close(fd) != 0 || failed;
    failed = failed || sync_directory(file) != 0;
    mcp_wipe(bytes, sizeof(bytes));
    mcp_wipe(text, sizeof(text));
    if (failed) {
        (void)unlink(
            file); /* half a key is none; a failure here changes nothing about the report */
        return explain(why, size, PD_E_IO, file, "can't be written");
    }
    return PD_OK;
}
