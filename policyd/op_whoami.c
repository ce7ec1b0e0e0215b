/* whoami get: open to every active member, and to the admin socket's peers. */
#include "op_whoami.h"

#include "../proto/mcp_kind_text.h"
#include "op_find.h"
#include "pd_roles.h"

static json_t *texts(const char *const *list)
{
    json_t *array = json_array();

    for (; array != NULL && list != NULL && *list != NULL; list++) {
        if (json_array_append_new(array, json_string(*list)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *scopes_of(unsigned scopes)
{
    static const unsigned bits[] = {MCP_SCOPE_READ, MCP_SCOPE_WRITE, MCP_SCOPE_DESTRUCTIVE,
                                    MCP_SCOPE_TOOLS};
    json_t *array = json_array();
    size_t i;

    for (i = 0; array != NULL && i < sizeof(bits) / sizeof(bits[0]); i++) {
        if ((scopes & bits[i]) != 0 &&
            json_array_append_new(array, json_string(mcp_scope_text(bits[i]))) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

pd_status_t pd_op_whoami_get(pd_op_call_t *call)
{
    const pd_actor_t *actor = call->actor;
    char expires[32];

    pd_wall_text((pd_wall_t){actor->expires_us}, expires);
    return pd_op_answer(
        call, json_pack("{s:s*, s:s*, s:s*, s:s*, s:o, s:o, s:s*, s:s*, s:s*, s:o, s:s, s:I}",
                        "member", actor->member_id, "email", actor->email, "name", actor->name,
                        "label", actor->label, "roles", texts(actor->role_names), "permissions",
                        texts(actor->is_owner ? pd_roles_builtin("Owner") : actor->permissions),
                        "grant", actor->grant_id, "client", actor->client, "expires_at",
                        actor->expires_us != 0 ? expires : NULL, "scopes",
                        scopes_of(mcp_scope_close(actor->scopes)), "surface",
                        mcp_surface_text(actor->surface), "policy_revision",
                        (json_int_t)actor->revision));
}
