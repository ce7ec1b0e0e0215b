/* Control-plane tools: see mcp_control.h. */
#include "mcp_control.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_names.h"
#include "mcp_failure.h"
#include "mcp_rpc.h"

#define MAX_MS 30000 /* that an operation may take, whatever MCPCallTimeout says: policyd's lanes are bounded */

/* --- names ----------------------------------------------------------------------------- */

apr_status_t mcp_control_prefix(mcp_turn_t *turn, const char **ret, mcp_err_t *err)
{
    if (turn->terms->control_prefix != NULL) {
        *ret = turn->terms->control_prefix;
        return APR_SUCCESS;
    }
    return mcp_ask_hello_text(turn->child->ask, MCP_HELLO_PREFIX, turn->terms->policy_ms, turn->pool,
                              ret, err);
}

apr_status_t mcp_control_op(mcp_turn_t *turn, const char *name, const char **ret, mcp_err_t *err)
{
    const char *prefix = NULL;
    apr_status_t status = mcp_control_prefix(turn, &prefix, err);
    size_t bytes;

    if (status != APR_SUCCESS) {
        return status;
    }
    bytes = strlen(prefix);
    /* what can't be an operation's name is left to call.begin, which knows how to record any text */
    *ret = strncmp(name, prefix, bytes) == 0 && strncmp(name + bytes, "__", 2) == 0 &&
                   mcp_name_is_tool(name + bytes + 2)
               ? name + bytes + 2
               : NULL;
    return APR_SUCCESS;
}

/* --- results ------------------------------------------------------------------------------ */

const char *mcp_control_shape(const json_t *result, const mcp_era_t *era, apr_pool_t *pool)
{
    const char *head = mcp_failure_result_head(era, pool);
    int is_structured = era->is_modern || era->revision >= MCP_REV_2025_06_18;
    size_t bytes = 0;
    char *text = mcp_json_text(result, &bytes);
    const char *shaped;

    if (text == NULL) {
        return NULL;
    }
    shaped = apr_pstrcat(pool, "{", head, head[0] != '\0' ? "," : "",
                         "\"content\":[{\"type\":\"text\",\"text\":", mcp_rpc_quote(text, bytes, pool),
                         "}]", is_structured ? ",\"structuredContent\":" : "", is_structured ? text : "",
                         "}", NULL);
    free(text);
    return shaped;
}

/* What the REST door answers as a status of its own is told in-band here; what is not there, or not for this caller, gives the bytes of a name that never
 * existed. */
static apr_status_t refuse(mcp_turn_t *turn, const char *name, mcp_err_t *err)
{
    const char *audit = err->audit;

    switch ((int)err->code) {
    case MCP_CODE_UNKNOWN_TOOL:
    case MCP_CODE_RESTRICTED:
    case MCP_CODE_FORBIDDEN:
        (void)mcp_err_set(err, turn->pool, MCP_FAIL_PARAMS, MCP_CODE_UNKNOWN_TOOL, NULL,
                          "Unknown tool: %s", name);
        err->audit = audit;
        break;
    case MCP_CODE_TOO_LARGE: /* a word of the link, which reaches no client */
        err->fail = MCP_FAIL_TOOL;
        err->code = MCP_CODE_INVALID_REQUEST;
        break;
    default:
        break;
    }
    return MCP_STATUS_REFUSED;
}

static apr_status_t invoke(mcp_turn_t *turn, const char *op, const json_t *arguments, const char *via,
                           json_t **ret, mcp_err_t *err)
{
    int64_t budget_ms = turn->terms->call_ms < MAX_MS ? turn->terms->call_ms : MAX_MS;
    const char *audit = NULL;
    json_t *none = NULL;
    /* where nobody answers, a caller should not wait as long as an operation may take */
    apr_status_t status =
        mcp_ask_knock(turn->child->ask, turn->terms->policy_ms, turn->pool, err);

    if (status != APR_SUCCESS) {
        return status;
    }
    if (arguments == NULL) {
        none = json_object();
        arguments = none;
    }
    status = mcp_ask_invoke(turn->child->ask, &turn->who, op, arguments, via, turn->trace_id, budget_ms,
                            turn->pool, ret, &audit, err);
    json_decref(none);
    return status;
}

apr_status_t mcp_control_run(mcp_turn_t *turn, const mcp_era_t *era, const char *name, const char *op,
                             const json_t *arguments, const char *via, const char **ret,
                             size_t *ret_bytes, mcp_err_t *err)
{
    json_t *result = NULL;
    const char *shaped;

    if (invoke(turn, op, arguments, via, &result, err) != APR_SUCCESS) {
        return refuse(turn, name, err);
    }
    shaped = mcp_control_shape(result, era, turn->pool);
    if (shaped == NULL) {
        return mcp_err_set(err, turn->pool, MCP_FAIL_TOOL, MCP_CODE_INTERNAL,
                           "the operation was run; look at the object before you try again",
                           "the answer can't be written");
    }
    *ret = shaped;
    *ret_bytes = strlen(shaped);
    return APR_SUCCESS;
}
