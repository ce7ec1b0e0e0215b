/* Start and end of a child: see mcp_lifecycle.h. */
#include "mcp_lifecycle.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include <ap_mpm.h>
#include <http_core.h>
#include <jansson.h>

#include "../proto/mcp_hash.h"
#include "mcp_api.h"
#include "mcp_config.h"
#include "mcp_status.h"

#ifndef MCP_RELEASE
#define MCP_RELEASE "0"
#endif

#define IDLE_PER_ORIGIN 32
#define IDLE_TOTAL      256
#define IDLE_MS         60000
#define CONNECT_MS      10000
#define EXTRA_SOCKETS   4 /* mod_http2 runs requests on threads of its own */

/* Set once in child_init, read by the child's threads; the parent never sets it. */
static mcp_child_t the_child;
static pid_t child_pid; /* 0: closed */
static int is_threaded;

const mcp_child_t *mcp_lifecycle_child(void)
{
    return child_pid != 0 && child_pid == getpid() ? &the_child : NULL;
}

/* An id that all children share: policyd counts their calls together where they can't (prefork). APR's own randomness, since libsodium is not
 * set up in the parent; it is an id and no secret. */
static void draw_server_id(mcp_server_conf_t *conf)
{
    unsigned char id[16];

    if (apr_generate_random_bytes(id, sizeof(id)) == APR_SUCCESS) {
        ap_bin2hex(id, sizeof(id), conf->server_id);
    }
}

int mcp_lifecycle_post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *server)
{
    (void)plog;
    (void)ptemp;
    /* the first pass at start is a rehearsal in another process, perhaps */
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG || !mcp_config_serves(server)) {
        return OK;
    }
    draw_server_id(mcp_config_server(server));
    if (mcp_status_create(pconf) != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     "MCP0203: no shared memory for counters: server-status shows none");
    }
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, server, "MCP0201: mod_mcp/" MCP_RELEASE " configured");
    return OK;
}

/* Resource URIs of all endpoints of all servers, and what else REST APIs ask tokens for, for hello. */
static apr_array_header_t *resources(apr_pool_t *pool, const server_rec *server)
{
    apr_array_header_t *all = apr_array_make(pool, 4, sizeof(const char *));

    for (; server != NULL; server = server->next) {
        const apr_array_header_t *endpoints = mcp_config_server(server)->endpoints;
        const apr_array_header_t *apis = mcp_config_server(server)->apis;
        int i;

        for (i = 0; i < endpoints->nelts; i++) {
            APR_ARRAY_PUSH(all, const char *) = mcp_config_resource(
                APR_ARRAY_IDX(endpoints, i, const mcp_dir_conf_t *), server, pool);
        }
        for (i = 0; i < apis->nelts; i++) {
            const mcp_dir_conf_t *api = APR_ARRAY_IDX(apis, i, const mcp_dir_conf_t *);

            if (api->resource != NULL) {
                APR_ARRAY_PUSH(all, const char *) = api->resource;
            }
        }
    }
    return all;
}

/* Closes what is there, in the reverse order of making. */
static void close_child(void)
{
    mcp_egress_close(the_child.egress);
    if (mcp_link_close(the_child.link)) { /* else a request still asks: what it uses is left to the process's end */
        mcp_api_free(&the_child.api);
        mcp_view_free(&the_child.views);
        mcp_ask_free(&the_child.ask);
    }
    memset(&the_child, 0, sizeof(the_child));
}

/* Runs before httpd destroys the child's pool and before OpenSSL's exit handlers. Under prefork this is on the stack of a signal handler, above
 * whatever was interrupted: nothing may be touched there, and the process ends anyway. */
static apr_status_t teardown(void *unused)
{
    (void)unused;
    if (is_threaded && child_pid == getpid()) {
        mcp_link_shut(the_child.link);
        child_pid = 0;
        close_child();
    }
    child_pid = 0;
    return APR_SUCCESS;
}

/* Under prefork a child runs one call, so that its own caps say nothing: MCPMaxCalls is then of the whole server. */
static void fill_identity(mcp_ask_identity_t *identity, apr_pool_t *pool, server_rec *server,
                          int max_calls)
{
    const mcp_server_conf_t *conf = mcp_config_server(server);
    int daemons = 1;

    memset(identity, 0, sizeof(*identity));
    identity->resources = resources(pool, server);
    identity->max_calls = max_calls;
    if (is_threaded || conf->server_id[0] == '\0') {
        return;
    }
    (void)ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &daemons); /* stays 1 where the MPM does not say */
    identity->server = conf->server_id;
    identity->server_calls = mcp_config_max_calls(conf, daemons);
    identity->connection_calls = identity->server_calls / 4 > 0 ? identity->server_calls / 4 : 1;
}

static apr_status_t open_child(apr_pool_t *pchild, server_rec *server, mcp_err_t *err)
{
    const mcp_server_conf_t *conf = mcp_config_server(server);
    mcp_egress_options_t options;
    mcp_ask_identity_t identity;
    int threads = 1;
    int max_calls;
    apr_status_t status;

    (void)ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads); /* stays 1 where the MPM does not say */
    (void)ap_mpm_query(AP_MPMQ_IS_THREADED, &is_threaded);
    if (threads < 1) {
        threads = 1;
    }
    max_calls = mcp_config_max_calls(conf, threads);
    memset(&options, 0, sizeof(options));
    options.max_calls = max_calls;
    options.max_per_connection = max_calls / 4 > 0 ? max_calls / 4 : 1;
    options.idle_per_origin = IDLE_PER_ORIGIN;
    options.idle_total = IDLE_TOTAL;
    options.idle_ms = IDLE_MS;
    options.connect_ms = CONNECT_MS;
    options.ca_file = conf->egress_ca;
    if (mcp_hash_init() != MCP_OK) {
        return mcp_err_set(err, pchild, MCP_FAIL_INTERNAL, MCP_CODE_INTERNAL, NULL,
                           "libsodium finds no entropy");
    }
    status = mcp_egress_init(err);
    if (status == APR_SUCCESS) {
        status = mcp_egress_create(&options, pchild, &the_child.egress, err);
    }
    if (status == APR_SUCCESS) {
        status = mcp_link_create(conf->policy_endpoints, conf->policy_key, threads + EXTRA_SOCKETS, pchild,
                                 &the_child.link, err);
    }
    if (status == APR_SUCCESS) {
        fill_identity(&identity, pchild, server, max_calls);
        status = mcp_ask_create(the_child.link, &identity, &the_child.ask);
    }
    if (status == APR_SUCCESS) {
        status = mcp_view_create(the_child.ask, (size_t)mcp_config_cache_bytes(conf), &the_child.views);
    }
    if (status == APR_SUCCESS) {
        status = mcp_api_create(the_child.ask, &the_child.api);
    }
    return status;
}

/* Where teardown() may touch nothing, pools with our cleanups are left to the exit of the process; in httpd's one-process mode (-X) that is after
 * the module was unloaded. */
static void stay_loaded(void)
{
    Dl_info self;

    if (dladdr(&mcp_module, &self) != 0 && self.dli_fname != NULL) {
        (void)dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE); /* never given back: that is the purpose */
    }
}

void mcp_lifecycle_child_init(apr_pool_t *pchild, server_rec *server)
{
    const mcp_server_conf_t *conf = mcp_config_server(server);
    mcp_err_t err;
    apr_status_t status;

    if (!mcp_config_serves(server) || conf->policy_endpoints == NULL || conf->policy_key == NULL) {
        return;
    }
    memset(&err, 0, sizeof(err));
    json_object_seed(0); /* from the system's entropy, in each child its own */
    status = open_child(pchild, server, &err);
    if (status != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, status, server,
                     "MCP0202: this child can't serve MCP and answers 503: %s",
                     err.message != NULL ? err.message : "out of memory");
        close_child();
        return;
    }
    if (!is_threaded) {
        stay_loaded();
    }
    apr_pool_pre_cleanup_register(pchild, NULL, teardown);
    child_pid = getpid();
}

void mcp_lifecycle_child_stopping(apr_pool_t *pchild, int graceful)
{
    (void)pchild;
    /* prefork calls this from a signal handler, with graceful 0 even then */
    if (is_threaded && !graceful && child_pid == getpid()) {
        mcp_link_shut(the_child.link); /* wakes requests that wait for policyd: the stop takes no longer for them */
    }
}
