/* What the process may do: see pd_privs.h. */
#include "pd_privs.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* LeakSanitizer stops the process by ptrace, which an undumpable one refuses: a compile switch, never a
 * runtime one. */
#if defined(__SANITIZE_ADDRESS__)
#define STAYS_DUMPABLE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STAYS_DUMPABLE 1
#endif
#endif
#ifndef STAYS_DUMPABLE
#define STAYS_DUMPABLE 0
#endif

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

static pd_status_t find_group(const char *key, const char *name, gid_t *ret, char *why, size_t size)
{
    const struct group *group;

    *ret = (gid_t)-1;
    if (name == NULL) {
        return PD_OK;
    }
    group = getgrnam(name);
    if (group == NULL) {
        return refuse(why, size, PD_E_SYSTEM, "%s = %s: there is no such group", key, name);
    }
    *ret = group->gr_gid;
    return PD_OK;
}

static pd_status_t find_user(const pd_config_t *config, pd_privs_t *ret, char *why, size_t size)
{
    const struct passwd *user = getpwnam(config->user);
    gid_t gid;
    pd_status_t status;

    if (user == NULL) {
        return refuse(why, size, PD_E_SYSTEM, "user = %s: there is no such user", config->user);
    }
    if (user->pw_uid == 0) {
        return refuse(why, size, PD_E_INVALID, "user = %s is root; name an account of policyd's own",
                      config->user);
    }
    ret->uid = user->pw_uid;
    ret->gid = user->pw_gid;
    status = find_group("group", config->group, &gid, why, size);
    if (status == PD_OK && gid != (gid_t)-1) {
        ret->gid = gid;
    }
    ret->may_drop = 1;
    return status;
}

pd_status_t pd_privs_find(const pd_config_t *config, pd_privs_t *ret, char *why, size_t size)
{
    pd_status_t status = PD_OK;

    memset(ret, 0, sizeof *ret);
    ret->is_root = geteuid() == 0;
    ret->uid = geteuid();
    ret->gid = getegid();
    ret->user = config->user;
    if (ret->is_root && config->user != NULL) {
        status = find_user(config, ret, why, size);
    }
    if (status == PD_OK) {
        status = find_group("httpd_group", config->httpd_group, &ret->httpd_gid, why, size);
    }
    if (status == PD_OK) {
        status = find_group("audit_group", config->audit_group, &ret->audit_gid, why, size);
    }
    if (status == PD_OK) {
        status = find_group("admin_group", config->admin_group, &ret->admin_gid, why, size);
    }
    return status;
}

pd_status_t pd_privs_harden(char *why, size_t size)
{
    static const struct rlimit none = {0, 0};
    struct rlimit files;

    if (setrlimit(RLIMIT_CORE, &none) != 0) {
        return refuse(why, size, PD_E_SYSTEM, "core files can't be turned off: %s", strerror(errno));
    }
    if (!STAYS_DUMPABLE && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return refuse(why, size, PD_E_SYSTEM, "ptrace can't be turned off: %s", strerror(errno));
    }
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        return refuse(why, size, PD_E_SYSTEM, "SIGPIPE can't be ignored: %s", strerror(errno));
    }
    /* each DEALER of each httpd child is a descriptor here */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* fewer descriptors are no reason not to start */
    }
    return PD_OK;
}

static void add_group(gid_t *groups, int *count, gid_t gid)
{
    int i;

    if (gid == (gid_t)-1) {
        return;
    }
    for (i = 0; i < *count; i++) {
        if (groups[i] == gid) {
            return;
        }
    }
    groups[(*count)++] = gid;
}

pd_status_t pd_privs_drop(const pd_privs_t *privs, char *why, size_t size)
{
    gid_t groups[PD_PRIVS_MAX_GROUPS + 3];
    int count = PD_PRIVS_MAX_GROUPS;

    if (privs->may_drop) {
        if (getgrouplist(privs->user, privs->gid, groups, &count) < 0) {
            return refuse(why, size, PD_E_SYSTEM, "user %s is in more than %d groups", privs->user,
                          PD_PRIVS_MAX_GROUPS);
        }
        add_group(groups, &count, privs->httpd_gid);
        add_group(groups, &count, privs->audit_gid);
        add_group(groups, &count, privs->admin_gid);
        if (setgroups((size_t)count, groups) != 0 ||
            setresgid(privs->gid, privs->gid, privs->gid) != 0 ||
            setresuid(privs->uid, privs->uid, privs->uid) != 0) {
            return refuse(why, size, PD_E_SYSTEM, "can't become user %s: %s", privs->user,
                          strerror(errno));
        }
        if (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0 || geteuid() != privs->uid ||
            getegid() != privs->gid) {
            return refuse(why, size, PD_E_SYSTEM, "root was not given up for good");
        }
        if (!STAYS_DUMPABLE && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
            return refuse(why, size, PD_E_SYSTEM, "ptrace can't be turned off: %s", strerror(errno));
        }
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return refuse(why, size, PD_E_SYSTEM, "no-new-privs can't be set: %s", strerror(errno));
    }
    return PD_OK;
}

pd_status_t pd_privs_lock(const char *file, const pd_privs_t *privs, int *ret_fd, char *why, size_t size)
{
    char text[32];
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0644);
    int bytes;

    if (fd < 0) {
        return refuse(why, size, PD_E_SYSTEM, "pid_file = %s: %s", file, strerror(errno));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int is_held = errno == EWOULDBLOCK;

        (void)close(fd); /* nothing was written */
        return is_held ? refuse(why, size, PD_E_LOCKED, "another policyd holds %s; stop it first", file)
                       : refuse(why, size, PD_E_SYSTEM, "%s can't be locked: %s", file, strerror(errno));
    }
    bytes = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)bytes, 0) != bytes ||
        (privs->may_drop && fchown(fd, privs->uid, privs->gid) != 0)) {
        pd_status_t status =
            refuse(why, size, PD_E_SYSTEM, "%s can't be written: %s", file, strerror(errno));

        (void)close(fd); /* gives the lock back */
        return status;
    }
    *ret_fd = fd;
    return PD_OK;
}

void pd_privs_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address;
    size_t bytes;
    int fd;

    if (path == NULL || (*path != '/' && *path != '@')) {
        return;
    }
    bytes = strlen(path);
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (bytes >= sizeof address.sun_path) {
        return;
    }
    memcpy(address.sun_path, path, bytes);
    if (*path == '@') {
        address.sun_path[0] = '\0'; /* the abstract name space */
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    /* the supervisor notices by its own timeout when this is lost */
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                 (const struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes));
    (void)close(fd);
}
