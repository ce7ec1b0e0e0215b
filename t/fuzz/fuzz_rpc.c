/* Fuzzes the JSON-RPC reader, the classifier behind it and the answer to whatever they refuse.
 * Input: a body.  What is held against it: an id that was echoed makes sound JSON, and every
 * refusal has an answer that is JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>

#include "../../mod_mcp/mcp_era.h"
#include "../../mod_mcp/mcp_failure.h"
#include "../../mod_mcp/mcp_rpc.h"
#include "../../proto/mcp_hash.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static apr_pool_t *root;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (apr_initialize() != APR_SUCCESS || mcp_hash_init() != MCP_OK ||
        apr_pool_create(&root, NULL) != APR_SUCCESS)
        __builtin_trap();
    return 0;
}

static void answer(const mcp_err_t *err, const char *id, const mcp_era_t *era, apr_pool_t *pool)
{
    mcp_answer_t ret;
    mcp_failure_answer(err, id, era, pool, &ret);
    json_t *body = json_loadb(ret.body, ret.body_bytes, JSON_REJECT_DUPLICATES, NULL);
    if (body == NULL || ret.http < 200)
        __builtin_trap();
    json_decref(body);
}

static void one_message(const mcp_rpc_message_t *message, apr_pool_t *pool)
{
    static const char *const versions[] = {NULL, "2026-07-28", "2025-06-18", "x"};
    if (message->err.fail != MCP_FAIL_NONE) {
        answer(&message->err, message->id, NULL, pool);
        return;
    }
    if (message->type == MCP_RPC_REQUEST && (message->id == NULL || message->method == NULL))
        __builtin_trap();
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        mcp_era_headers_t headers = {versions[i], message->method, NULL, NULL};
        mcp_era_t era;
        mcp_err_t err;
        memset(&err, 0, sizeof err);
        if (mcp_era_classify(&headers, message, pool, &era, &err) != APR_SUCCESS)
            answer(&err, message->id, NULL, pool);
        else if (message->id != NULL)
            answer(NULL, message->id, &era, pool);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mcp_rpc_body_t body;
    mcp_err_t err;
    apr_pool_t *pool = NULL;
    if (apr_pool_create(&pool, root) != APR_SUCCESS)
        __builtin_trap();
    memset(&err, 0, sizeof err);
    if (mcp_rpc_parse((const char *)data, size, pool, &body, &err) != APR_SUCCESS) {
        answer(&err, NULL, NULL, pool);
    } else {
        mcp_era_headers_t headers = {NULL, NULL, NULL, NULL};
        (void)mcp_era_check_batch(&headers, &body, MCP_REV_NONE, pool, NULL);
        for (int i = 0; i < body.count; i++)
            one_message(&body.messages[i], pool);
    }
    apr_pool_destroy(pool);
    return 0;
}
