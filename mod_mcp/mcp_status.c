/* Shared counters: see mcp_status.h. */
#include "mcp_status.h"

#include <stdatomic.h>

#include <apr_shm.h>
#include <http_protocol.h>
#include <mod_status.h>

/* What is counted of refusals: several classes may share a line. Order and names are part of the machine-readable form. */
typedef enum counted {
    COUNT_REQUESTS,
    COUNT_BROKEN,       /* no JSON, no JSON-RPC, a wrong envelope or header */
    COUNT_UNAUTHORIZED, /* no token or a bad one */
    COUNT_SCOPE,
    COUNT_BUSY,
    COUNT_UNAVAILABLE,
    COUNT_OTHER,
    COUNTS
} counted_t;

static const char *const names[COUNTS] = {"Requests", "Broken", "Unauthorized", "InsufficientScope",
                                          "Busy",     "Unavailable", "OtherRefusals"};

typedef struct counters {
    _Atomic uint64_t of[COUNTS];
} counters_t;

/* Set in the parent by post_config and inherited by its children; NULL after the module is loaded anew until post_config has run. */
static counters_t *counters;

static apr_status_t forget(void *unused)
{
    (void)unused;
    counters = NULL; /* the segment goes with its pool */
    return APR_SUCCESS;
}

apr_status_t mcp_status_create(apr_pool_t *pconf)
{
    apr_shm_t *segment = NULL;
    apr_status_t status = apr_shm_create(&segment, sizeof(counters_t), NULL, pconf); /* anonymous */
    int i;

    if (status != APR_SUCCESS) {
        return status;
    }
    counters = apr_shm_baseaddr_get(segment);
    for (i = 0; i < COUNTS; i++) {
        atomic_init(&counters->of[i], 0);
    }
    apr_pool_cleanup_register(pconf, NULL, forget, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

static void count(counted_t what)
{
    if (counters != NULL) {
        (void)atomic_fetch_add_explicit(&counters->of[what], 1, memory_order_relaxed);
    }
}

void mcp_status_request(void)
{
    count(COUNT_REQUESTS);
}

void mcp_status_refusal(mcp_fail_t fail)
{
    static const struct {
        mcp_fail_t fail;
        counted_t what;
    } rows[] = {{MCP_FAIL_PARSE, COUNT_BROKEN},       {MCP_FAIL_REQUEST, COUNT_BROKEN},
                {MCP_FAIL_ENVELOPE, COUNT_BROKEN},    {MCP_FAIL_HEADER, COUNT_BROKEN},
                {MCP_FAIL_VERSION, COUNT_BROKEN},     {MCP_FAIL_UNAUTHORIZED, COUNT_UNAUTHORIZED},
                {MCP_FAIL_SCOPE, COUNT_SCOPE},        {MCP_FAIL_BUSY, COUNT_BUSY},
                {MCP_FAIL_UNAVAILABLE, COUNT_UNAVAILABLE}};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].fail == fail) {
            count(rows[i].what);
            return;
        }
    }
    count(COUNT_OTHER);
}

int mcp_status_show(request_rec *r, int flags)
{
    int i;

    if (counters == NULL) {
        return DECLINED;
    }
    if ((flags & AP_STATUS_SHORT) == 0) {
        (void)ap_rputs("<hr>\n<h2>MCP</h2>\n<dl>\n", r); /* a client that left is not our concern */
    }
    for (i = 0; i < COUNTS; i++) {
        (void)ap_rprintf(r, (flags & AP_STATUS_SHORT) != 0 ? "MCP%s: %" APR_UINT64_T_FMT "\n"
                                                          : "<dt>%s: %" APR_UINT64_T_FMT "</dt>\n",
                         names[i], (apr_uint64_t)atomic_load_explicit(&counters->of[i],
                                                                      memory_order_relaxed));
    }
    if ((flags & AP_STATUS_SHORT) == 0) {
        (void)ap_rputs("</dl>\n", r);
    }
    return OK;
}
