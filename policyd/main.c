/* policyd: arguments, and the order in which the daemon comes up and goes down.
 *
 * It stays in the foreground under a supervisor: no fork after the first thread, context or database.  Each
 * step of the start is one line of start(); each has its reason to stand where it stands.  Teardown is
 * the reverse, and every step of it accepts what never came up. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <apr_strings.h>
#include <jansson.h>

#include "../proto/mcp_hash.h"
#include "pd_admin.h"
#include "pd_bus.h"
#include "pd_config.h"
#include "pd_control.h"
#include "pd_core.h"
#include "pd_init.h"
#include "pd_log.h"
#include "pd_loop.h"
#include "pd_ops.h"
#include "pd_policy.h"
#include "pd_privs.h"
#include "pd_lexicon.h"
#include "pd_routes.h"
#include "pd_seal.h"

#ifndef POLICYD_VERSION
#define POLICYD_VERSION "0.1.0"
#endif
#define DEFAULT_CONFIG "/etc/policyd/policyd.conf"

#define TICK_MS        1000
#define DRAIN_CHECK_MS 20
#define DRAIN_MAX_MS   5000

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef enum run_mode { MODE_RUN, MODE_TEST, MODE_INIT } run_mode_t;

typedef struct daemon {
    const char *file;
    run_mode_t mode;
    pd_config_t *config; /* core.config, writable: SIGHUP replaces what is live in it */
    pd_privs_t privs;
    pd_core_t core;
    int lock_fd;
    int admin_fd; /* -1: not bound, or the admin room's by now */
    int drain_timer;
    pd_boot_t drain_until;
    char why[1024];
} daemon_t;

/* --- arguments ------------------------------------------------------------- */

static void usage(FILE *to)
{
    (void)fputs("usage: policyd [-c FILE]          run in the foreground\n"
                "       policyd [-c FILE] -t       check the configuration\n"
                "       policyd [-c FILE] --init   make missing directories and keys\n"
                "       policyd -h | -V            this text, or the version\n"
                "FILE is " DEFAULT_CONFIG " unless -c names another. See policyd(8).\n",
                to);
}

/* The exit status, or -1 to go on. */
static int read_arguments(daemon_t *daemon, int argc, char **argv)
{
    static const struct option names[] = {{"init", no_argument, NULL, 'i'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'V'},
                                          {NULL, 0, NULL, 0}};
    int option;

    opterr = 0;
    daemon->file = DEFAULT_CONFIG;
    for (;;) {
        option = getopt_long(argc, argv, "c:thV", names, NULL);
        if (option == -1) {
            break;
        }
        switch (option) {
        case 'c':
            daemon->file = optarg;
            break;
        case 't':
            daemon->mode = MODE_TEST;
            break;
        case 'i':
            daemon->mode = MODE_INIT;
            break;
        case 'h':
            usage(stdout);
            return EXIT_DONE;
        case 'V':
            (void)puts("policyd " POLICYD_VERSION);
            return EXIT_DONE;
        default:
            (void)fprintf(stderr, "policyd: unknown option, or -c without a file\n");
            usage(stderr);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "policyd: nothing is expected after the options\n");
        usage(stderr);
        return EXIT_USAGE;
    }
    return -1;
}

/* --- steps of the start: 1, or 0 with `why` set ----------------------------- */

static int failed(daemon_t *daemon, pd_status_t status, const char *what)
{
    if (daemon->why[0] == '\0') {
        (void)snprintf(daemon->why, sizeof daemon->why, "%s: %s", what, pd_status_text(status));
    }
    return 0;
}

static int start_libraries(daemon_t *daemon)
{
    if (apr_pool_create(&daemon->core.pool, NULL) != APR_SUCCESS) {
        return failed(daemon, PD_E_NOMEM, "memory");
    }
    json_object_seed(0); /* before any thread; a seed of the kernel's own */
    if (mcp_hash_init() != MCP_OK) {
        return failed(daemon, PD_E_CRYPTO, "randomness");
    }
    do {
        mcp_random(&daemon->core.generation, sizeof daemon->core.generation);
    } while (daemon->core.generation == 0); /* 0 means any */
    return 1;
}

static int read_config(daemon_t *daemon)
{
    if (pd_config_load(daemon->file, daemon->core.pool, &daemon->config, daemon->why,
                       sizeof daemon->why) != PD_OK) {
        return 0;
    }
    daemon->core.config = daemon->config;
    return 1;
}

static int find_accounts(daemon_t *daemon)
{
    return pd_privs_find(daemon->config, &daemon->privs, daemon->why, sizeof daemon->why) == PD_OK;
}

static int open_log(daemon_t *daemon)
{
    pd_log_open(daemon->config->log_to_syslog, daemon->config->log_level);
    pd_log(PD_LOG_NOTICE, 1001, "policyd %s starts with %s", POLICYD_VERSION, daemon->config->file);
    return 1;
}

static int harden(daemon_t *daemon)
{
    return pd_privs_harden(daemon->why, sizeof daemon->why) == PD_OK;
}

static int make_directories(daemon_t *daemon)
{
    return pd_init_directories(daemon->config, &daemon->privs, daemon->why, sizeof daemon->why) == PD_OK;
}

static int take_lock(daemon_t *daemon)
{
    return pd_privs_lock(daemon->config->pid_file, &daemon->privs, &daemon->lock_fd, daemon->why,
                         sizeof daemon->why) == PD_OK;
}

static int bind_admin(daemon_t *daemon)
{
    const long uid = daemon->privs.may_drop ? (long)daemon->privs.uid : -1;

    return pd_admin_listen(daemon->config, uid, &daemon->admin_fd, daemon->why, sizeof daemon->why) ==
           PD_OK;
}

static int drop_privileges(daemon_t *daemon)
{
    return pd_privs_drop(&daemon->privs, daemon->why, sizeof daemon->why) == PD_OK;
}

static int make_loop(daemon_t *daemon)
{
    pd_status_t status = pd_loop_new(daemon->core.pool, &daemon->core.loop);

    return status == PD_OK ? 1 : failed(daemon, status, "loop");
}

static int load_master_key(daemon_t *daemon)
{
    const char *file = apr_pstrcat(daemon->core.pool, daemon->config->key_dir, "/master.key", NULL);

    return pd_seal_load_key(file, daemon->core.master_key, daemon->why, sizeof daemon->why) == PD_OK;
}

static void reap(void *baton)
{
    daemon_t *daemon = baton;

    pd_trail_reap(daemon->core.trail);
    pd_store_reap(daemon->core.store);
}

static int open_stores(daemon_t *daemon)
{
    pd_core_t *core = &daemon->core;
    const char *dir = daemon->config->state_dir;
    const int gid = daemon->privs.audit_gid == (gid_t)-1 ? -1 : (int)daemon->privs.audit_gid;
    pd_status_t status;

    if (pd_store_open(dir, pd_loop_wake, core->loop, &core->store, daemon->why,
                      sizeof daemon->why) != PD_OK ||
        pd_trail_open(dir, pd_loop_wake, core->loop, &core->trail, daemon->why,
                      sizeof daemon->why) != PD_OK ||
        pd_audit_open(dir, gid, core->trail, &core->audit, daemon->why, sizeof daemon->why) != PD_OK) {
        return failed(daemon, PD_E_SYSTEM, "stores");
    }
    status = pd_loop_on_wake(core->loop, reap, daemon);
    return status == PD_OK ? 1 : failed(daemon, status, "loop");
}

static int check_operations(daemon_t *daemon)
{
    pd_status_t status = pd_ops_init(daemon->core.pool, daemon->why, sizeof daemon->why);

    if (status == PD_OK) {
        status = pd_control_make(daemon->core.pool);
    }
    if (status == PD_OK) {
        status = pd_routes_make(daemon->core.pool); /* logs why not */
    }
    if (status == PD_OK) {
        status = pd_lexicon_load(daemon->core.config->data_dir, daemon->core.pool);
    }
    return status == PD_OK ? 1 : failed(daemon, status, "operations");
}

static void tick(void *baton)
{
    pd_policy_tick(baton);
}

static int load_policy(daemon_t *daemon)
{
    pd_core_t *core = &daemon->core;
    pd_status_t status = pd_policy_new(core, daemon->why, sizeof daemon->why);

    if (status != PD_OK) {
        return failed(daemon, status, "policy");
    }
    status = pd_loop_every(core->loop, TICK_MS, tick, core) > 0 ? PD_OK : PD_E_FULL;
    return status == PD_OK ? 1 : failed(daemon, status, "loop");
}

static int serve_admin(daemon_t *daemon)
{
    int fd = daemon->admin_fd;
    pd_status_t status;

    daemon->admin_fd = -1;
    status = pd_admin_new(&daemon->core, fd, &daemon->core.admin);
    return status == PD_OK ? 1 : failed(daemon, status, "admin socket");
}

static int bind_bus(daemon_t *daemon)
{
    pd_core_t *core = &daemon->core;

    return pd_bus_new(core, &core->bus, daemon->why, sizeof daemon->why) == PD_OK &&
           pd_bus_bind(core->bus, daemon->why, sizeof daemon->why) == PD_OK;
}

static int tell_ready(daemon_t *daemon)
{
    pd_privs_notify("READY=1\nSTATUS=serving\n");
    pd_log(PD_LOG_NOTICE, 1002, "ready: generation %llu, pid %ld",
           (unsigned long long)daemon->core.generation, (long)getpid());
    return 1;
}

/* --- signals --------------------------------------------------------------- */

/* Nothing waits any more, or the patience is over: the end. */
static void check_drained(void *baton)
{
    daemon_t *daemon = baton;
    size_t waiting = pd_bus_waiting(daemon->core.bus) + pd_admin_waiting(daemon->core.admin);

    if (waiting > 0 && pd_boot_left_ms(daemon->drain_until) > 0) {
        return;
    }
    if (waiting > 0) {
        pd_log(PD_LOG_WARNING, 1003, "%zu questions stay unanswered: they took too long", waiting);
    }
    pd_loop_stop(daemon->core.loop);
}

/* First time: accept nothing new and answer what runs. Again: at once. */
static void on_term(void *baton)
{
    daemon_t *daemon = baton;

    if (daemon->core.is_draining) {
        pd_loop_stop(daemon->core.loop);
        return;
    }
    pd_log(PD_LOG_NOTICE, 1004, "asked to stop: what runs is answered first");
    pd_privs_notify("STOPPING=1\n");
    daemon->core.is_draining = 1;
    pd_admin_drain(daemon->core.admin);
    daemon->drain_until = pd_boot_in(DRAIN_MAX_MS);
    daemon->drain_timer = pd_loop_every(daemon->core.loop, DRAIN_CHECK_MS, check_drained, daemon);
    if (daemon->drain_timer < 0) {
        pd_loop_stop(daemon->core.loop);
    }
}

static void reload_config(daemon_t *daemon)
{
    apr_pool_t *scratch = NULL;
    pd_config_t *fresh = NULL;
    char why[1024] = "";
    const char *key;

    if (apr_pool_create(&scratch, daemon->core.pool) != APR_SUCCESS) {
        pd_log(PD_LOG_ERR, 1005, "reload: out of memory; the configuration in force stays");
        return;
    }
    if (pd_config_load(daemon->file, scratch, &fresh, why, sizeof why) != PD_OK) {
        pd_log(PD_LOG_ERR, 1006, "reload: %s; the configuration in force stays", why);
    } else {
        /* a few bytes an actor stay behind at each reload: work under way may still read the old ones */
        key = pd_config_adopt(daemon->config, fresh, daemon->core.pool);
        pd_log_open(daemon->config->log_to_syslog, daemon->config->log_level);
        pd_log(PD_LOG_NOTICE, 1007, "reload: %d actors in force", daemon->config->actors->nelts);
        if (key != NULL) {
            pd_log(PD_LOG_WARNING, 1008, "reload: %s has changed, which needs a restart", key);
        }
    }
    apr_pool_destroy(scratch);
}

static void on_hup(void *baton)
{
    daemon_t *daemon = baton;
    struct timespec now = {0, 0};
    char state[64];
    char why[1024] = "";

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    (void)snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%lld\n",
                   (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000); /* has room */
    pd_privs_notify(state);
    reload_config(daemon);
    if (pd_bus_reload(daemon->core.bus, why, sizeof why) != PD_OK) {
        pd_log(PD_LOG_ERR, 1009, "reload: %s; the list in force stays", why);
    } else {
        pd_log(PD_LOG_NOTICE, 1010, "reload: clients.allow taken over");
    }
    pd_privs_notify("READY=1\n");
}

/* --- story ----------------------------------------------------------------- */

static int start(daemon_t *daemon)
{
    return open_log(daemon) &&         /* from here on the log is where the file says */
           harden(daemon) &&           /* before any secret is in memory */
           make_directories(daemon) && /* as root, if we are: sockets and pid file need them */
           take_lock(daemon) &&        /* before anything of a live instance could be touched */
           bind_admin(daemon) &&       /* as root: its group may be one that the user is not in */
           drop_privileges(daemon) &&  /* before any input is read but the configuration */
           make_loop(daemon) &&        /* blocks signals, so that no later thread gets one */
           load_master_key(daemon) &&  /* the policy's key ring is sealed with it */
           open_stores(daemon) &&      /* their threads start */
           check_operations(daemon) && /* an unsound registry serves nobody */
           load_policy(daemon) &&      /* open attempts of the last life included */
           serve_admin(daemon) &&      /* an admin can look before httpd asks */
           bind_bus(daemon) &&         /* the handler runs before the first bind */
           tell_ready(daemon);
}

/* What the loop left under way when its patience was over ends first, while all that completions use is
 * still there: a change is committed, its end is appended, its asker is answered. */
static void end_work(pd_core_t *core)
{
    pd_audit_release(core->audit); /* a list that waits for a copy that is held up would hold its thread */
    pd_store_stop(core->store);    /* its completions append to the trail */
    pd_trail_stop(core->trail);    /* its completions find the write lane closed */
}

static void stop(daemon_t *daemon)
{
    pd_core_t *core = &daemon->core;

    end_work(core);
    pd_audit_close(&core->audit); /* copies to the trail's end, and reads the trail: before it */
    pd_trail_close(&core->trail);
    pd_store_close(&core->store); /* the log is checkpointed */
    pd_policy_free(core);
    if (core->loop != NULL) {
        pd_bus_free(&core->bus); /* answers under way leave */
        pd_admin_free(&core->admin);
    }
    if (daemon->admin_fd >= 0) {
        (void)close(daemon->admin_fd); /* nothing was accepted */
        (void)unlink(daemon->config->admin_socket);
    }
    pd_loop_free(&core->loop); /* the stores' threads woke it until they ended */
    mcp_wipe(core->master_key, sizeof core->master_key);
    if (daemon->lock_fd >= 0) {
        if (ftruncate(daemon->lock_fd, 0) != 0) { /* no pid of ours stays */
            pd_log(PD_LOG_WARNING, 1014, "%s keeps an old pid: %s", daemon->config->pid_file,
                   strerror(errno));
        }
        (void)close(daemon->lock_fd); /* the lock goes with it */
    }
}

static int run(daemon_t *daemon)
{
    pd_status_t status;
    int exit_status = EXIT_DONE;

    if (!start(daemon)) {
        pd_log(PD_LOG_ERR, 1011, "policyd does not start: %s", daemon->why);
        exit_status = EXIT_FAILED;
    } else {
        status = pd_loop_run(daemon->core.loop, on_term, on_hup, daemon);
        if (status != PD_OK) {
            pd_log(PD_LOG_ERR, 1012, "the loop ended: %s", pd_status_text(status));
            exit_status = EXIT_FAILED;
        }
    }
    stop(daemon);
    if (exit_status == EXIT_DONE) {
        pd_log(PD_LOG_NOTICE, 1013, "policyd has stopped");
    }
    return exit_status;
}

static void tell_line(const char *line)
{
    (void)puts(line);
}

static int make_missing(daemon_t *daemon)
{
    if (pd_init_run(daemon->config, &daemon->privs, daemon->core.pool, tell_line, daemon->why,
                    sizeof daemon->why) != PD_OK) {
        (void)fprintf(stderr, "policyd: %s\n", daemon->why);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static int act(daemon_t *daemon)
{
    if (!start_libraries(daemon) || !read_config(daemon) || !find_accounts(daemon)) {
        (void)fprintf(stderr, "policyd: %s\n", daemon->why);
        return EXIT_FAILED;
    }
    switch (daemon->mode) {
    case MODE_TEST:
        (void)printf("%s: syntax ok\n", daemon->file);
        return EXIT_DONE;
    case MODE_INIT:
        return make_missing(daemon);
    case MODE_RUN:
    default:
        return run(daemon);
    }
}

int main(int argc, char **argv)
{
    static daemon_t daemon; /* zeroed */
    int status;

    daemon.lock_fd = -1;
    daemon.admin_fd = -1;
    status = read_arguments(&daemon, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (apr_initialize() != APR_SUCCESS) {
        (void)fprintf(stderr, "policyd: APR does not start\n");
        return EXIT_FAILED;
    }
    status = act(&daemon);
    if (daemon.core.pool != NULL) {
        apr_pool_destroy(daemon.core.pool);
    }
    apr_terminate();
    return status;
}
