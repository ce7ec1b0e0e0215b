/* op.invoke: an operation asked for over the link, by the holder of a token. */
#include <string.h>

#include <apr_strings.h>

#include "pd_invoke_private.h"

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/mcp_names.h"
#include "pd_keys.h"
#include "pd_policy.h"

/* A name that is no operation, as it may be recorded: itself where it has the form of a tool's
 * name, else its length and keyed hash. */
static const char *recorded_name(const pd_ask_t *ask, const char *name)
{
    const struct pd_policy *policy = ask->core->policy;
    char tag[17] = "";

    if (mcp_name_is_tool(name)) {
        return name;
    }
    if (policy != NULL && policy->keys != NULL) {
        pd_keys_tag(policy->keys, name, tag);
    }
    return apr_psprintf(ask->pool, "#%lu:%s", (unsigned long)strlen(name), tag);
}

/* "name/version" of the client as it says of itself. */
static const char *client_text(const pd_ask_t *ask)
{
    const json_t *client = json_object_get(ask->body, "client");
    const char *name = mcp_json_str(client, "name");
    const char *version = mcp_json_str(client, "version");
    char *text;
    size_t bytes;

    if (name == NULL || name[0] == '\0') {
        return NULL;
    }
    text = apr_psprintf(ask->pool, "%s%s%s", name, version != NULL && version[0] != '\0' ? "/" : "",
                        version != NULL ? version : "");
    bytes = strlen(text);
    if (bytes > 97) {
        /* not inside a character: the text becomes JSON again */
        for (bytes = 97; bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80; bytes--) {
        }
        text[bytes] = '\0';
    }
    return text;
}

static void on_invoked(const pd_op_call_t *call, const char *audit_id, void *baton)
{
    pd_ask_t *ask = baton;
    const char *audit = audit_id[0] != '\0' ? audit_id : NULL;
    json_t *body;

    if (call->fault.code != MCP_CODE_NONE) {
        pd_ask_refuse_fault(ask, &call->fault, audit);
        return;
    }
    body = json_pack("{s:s, s:O}", "audit", audit_id, "result", call->result);
    if (body == NULL) {
        pd_ask_refuse(ask, MCP_CODE_OUTCOME_UNRECORDED,
                      "The answer can't be made; do not repeat a change.", NULL, audit);
        return;
    }
    pd_ask_reply(ask, body);
}

/* As the question says, from the closed list: a literal. */
static const char *via_of(const pd_ask_t *ask)
{
    mcp_via_t via = mcp_via_from_text(mcp_json_str(ask->body, "via"));

    return mcp_via_text(via != MCP_VIA_NONE ? via : MCP_VIA_DIRECT);
}

static const char *access_message(mcp_code_t code)
{
    static const struct {
        mcp_code_t code;
        const char *message;
    } table[] = {
        {MCP_CODE_INVALID_TOKEN, "The token is not valid for this endpoint."},
        {MCP_CODE_GRANT_REVOKED, "The grant was revoked."},
        {MCP_CODE_GRANT_EXPIRED, "The grant has expired."},
        {MCP_CODE_MEMBER_SUSPENDED, "The member is not active."},
        {MCP_CODE_POLICY_UNAVAILABLE, "The policy store does not answer."},
    };
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].code == code) {
            return table[i].message;
        }
    }
    return "The token can't be checked.";
}

/* A refusal that is known before any operation runs: one row, where a grant is known. */
static void refuse_known(pd_ask_t *ask, const pd_op_t *op, const char *name,
                         const pd_actor_t *actor, mcp_code_t code)
{
    pd_invocation_t *inv = pd_invocation_new(
        ask->core, op, actor, json_object_get(ask->body, "args"), ask->deadline, on_invoked, ask);

    if (inv == NULL) {
        pd_ask_refuse(ask, MCP_CODE_POLICY_UNAVAILABLE, "Out of memory.", NULL, NULL);
        return;
    }
    pd_invocation_record(inv, recorded_name(ask, name), mcp_json_str(ask->body, "trace_id"));
    inv->record.via = via_of(ask);
    if (code != MCP_CODE_NONE) {
        (void)pd_fault(&inv->call.fault, code, NULL, "%s",
                       access_message(code)); /* the fault is read below */
    } else {
        (void)pd_invocation_judge(&inv->call); /* refuses at step_exists at the latest */
    }
    pd_invocation_end(inv);
}

static void on_known(mcp_code_t code, const pd_actor_t *actor, void *baton)
{
    pd_ask_t *ask = baton;
    const char *name = mcp_json_str(ask->body, "op");
    const pd_op_t *op = pd_ops_find(name);

    if (code != MCP_CODE_NONE && (actor == NULL || actor->grant_id == NULL)) {
        pd_ask_refuse(ask, code, access_message(code), NULL, NULL);
        return;
    }
    if (code != MCP_CODE_NONE || op == NULL) {
        refuse_known(ask, op, name, actor, code);
        return;
    }
    if (pd_invoke_via(ask->core, op, actor, json_object_get(ask->body, "args"),
                      mcp_json_str(ask->body, "trace_id"), via_of(ask), ask->deadline, ask->pool,
                      on_invoked, ask) != PD_OK) {
        pd_ask_refuse(ask, MCP_CODE_POLICY_UNAVAILABLE, "Out of memory.", NULL, NULL);
    }
}

void pd_on_op_invoke(pd_ask_t *ask)
{
    mcp_surface_t surface = mcp_surface_from_text(mcp_json_str(ask->body, "surface"));

    /* the admin door skips the scopes and has its own identity: it is never spoken for over the
     * link */
    if (surface != MCP_SURFACE_MCP && surface != MCP_SURFACE_REST) {
        pd_ask_refuse(ask, MCP_CODE_MALFORMED, "surface is not one of mcp, rest", NULL, NULL);
        return;
    }
    pd_access_token(ask->core, mcp_json_str(ask->body, "token_hash"), surface,
                    mcp_json_str(ask->body, "resource"), client_text(ask), ask->deadline, ask->pool,
                    on_known, ask);
}
