/* Paths of unix sockets: see pd_socket.h. */
#include "pd_socket.h"

#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64

static pd_status_t refuse(char *why, size_t size, pd_status_t status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static pd_status_t refuse(char *why, size_t size, pd_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, size, format, args);
    va_end(args);
    return status;
}

static pd_status_t fill_address(const char *path, struct sockaddr_un *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof ret->sun_path) {
        return PD_E_INVALID;
    }
    memcpy(ret->sun_path, path, strlen(path) + 1);
    return PD_OK;
}

int pd_socket_is_live(const char *path)
{
    struct sockaddr_un address;
    int fd, is_live;

    if (fill_address(path, &address) != PD_OK) {
        return 0;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return 0;
    }
    /* EAGAIN: its backlog is full, so somebody listens */
    is_live = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN;
    (void)close(fd); /* nothing was sent */
    return is_live;
}

/* PD_OK when the path is free or was a dead process's. */
static pd_status_t clear_path(const char *path, char *why, size_t size)
{
    struct stat info;

    if (lstat(path, &info) != 0) {
        return errno == ENOENT ? PD_OK
                               : refuse(why, size, PD_E_SYSTEM, "%s: %s", path, strerror(errno));
    }
    if (!S_ISSOCK(info.st_mode)) {
        return refuse(why, size, PD_E_INVALID,
                      "%s exists and is no socket; move it away, or configure another path", path);
    }
    if (pd_socket_is_live(path)) {
        return refuse(why, size, PD_E_LOCKED, "another policyd answers at %s; stop it first", path);
    }
    return unlink(path) == 0 || errno == ENOENT
               ? PD_OK
               : refuse(why, size, PD_E_SYSTEM, "%s of a dead process can't be removed: %s", path,
                        strerror(errno));
}

static pd_status_t find_group(const char *name, gid_t *ret, char *why, size_t size)
{
    const struct group *group = name == NULL ? NULL : getgrnam(name);

    *ret = (gid_t)-1;
    if (name != NULL && group == NULL) {
        return refuse(why, size, PD_E_SYSTEM, "there is no group %s; create it, or configure another",
                      name);
    }
    if (group != NULL) {
        *ret = group->gr_gid;
    }
    return PD_OK;
}

static pd_status_t refuse_group(const char *path, const char *group, char *why, size_t size)
{
    return refuse(why, size, PD_E_SYSTEM,
                  "%s can't be given to group %s: %s; start policyd as root, or make its user a member of "
                  "that group",
                  path, group == NULL ? "-" : group, strerror(errno));
}

pd_status_t pd_socket_share(const char *path, const char *group, char *why, size_t size)
{
    gid_t gid;
    pd_status_t status = find_group(group, &gid, why, size);

    if (status != PD_OK) {
        return status;
    }
    if ((gid != (gid_t)-1 && chown(path, (uid_t)-1, gid) != 0) || chmod(path, 0660) != 0) {
        return refuse_group(path, group, why, size);
    }
    return PD_OK;
}

pd_status_t pd_socket_listen(const char *path, long uid, const char *group, int *ret_fd, char *why,
                             size_t size)
{
    struct sockaddr_un address;
    gid_t gid = (gid_t)-1;
    pd_status_t status = fill_address(path, &address);
    mode_t before;
    int fd, bound;

    if (status != PD_OK) {
        return refuse(why, size, status, "%s is too long for a socket", path);
    }
    status = clear_path(path, why, size);
    if (status == PD_OK) {
        status = find_group(group, &gid, why, size);
    }
    if (status != PD_OK) {
        return status;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return refuse(why, size, PD_E_SYSTEM, "no socket: %s", strerror(errno));
    }
    before = umask(0177); /* closed to all others until its group is right */
    bound = bind(fd, (const struct sockaddr *)&address, sizeof address);
    (void)umask(before); /* cannot fail */
    if (bound != 0) {
        status = refuse(why, size, PD_E_SYSTEM, "%s can't be bound: %s", path, strerror(errno));
        goto failed;
    }
    if (chown(path, (uid_t)uid, gid) != 0 || chmod(path, group == NULL ? 0600 : 0660) != 0 ||
        listen(fd, BACKLOG) != 0) {
        status = refuse_group(path, group, why, size);
        (void)unlink(path); /* ours since a moment ago */
        goto failed;
    }
    *ret_fd = fd;
    return PD_OK;

failed:
    (void)close(fd); /* nothing was sent */
    return status;
}
