/* Operations with identical templates that a rule tears apart: see op_rule_items.h.  For the URL check
 * they are one: an explicit block of either refuses the calls of both, and leaving one off an allowlist
 * holds by its name alone. Either is worth a word to whoever writes the rule. */
#include "op_rule_items.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "pd_snapshot.h"
#include "pd_template.h"

#define MAX_WARNINGS 20

typedef struct twins {
    pd_op_call_t *call;
    pd_rules_t rules;
    json_t *warnings;
    size_t found;
} twins_t;

/* What stands for one template: an operation that is left and one that is withheld, as far as they
 * were met. */
typedef struct shape {
    const pd_operation_t *left;
    const pd_operation_t *withheld;
    int is_blocked; /* the withheld one, and not merely left off an allowlist */
    int is_told;
} shape_t;

/* --- the target's rules with this one among them ------------------------------------ */

static const pd_layer_t *standing_layer(const pd_op_call_t *call, const pd_rule_t *rule)
{
    const pd_rulebook_t *book = call->snapshot->rulebook;

    return rule->role != NULL ? apr_hash_get(book->by_role, rule->role, APR_HASH_KEY_STRING)
                              : apr_hash_get(book->by_member, rule->member, APR_HASH_KEY_STRING);
}

static apr_status_t release_layer(void *baton)
{
    pd_layer_t *layer = baton;

    pd_layer_release(&layer);
    return APR_SUCCESS;
}

/* The layer, of the call's pool, and what it comes to when it governs alone. */
static pd_status_t gather(pd_op_call_t *call, pd_rule_t *rule, pd_rules_t *ret)
{
    const pd_layer_t *standing = standing_layer(call, rule);
    apr_array_header_t *rules = apr_array_make(call->pool, 8, sizeof(pd_rule_t *));
    apr_hash_t *chosen = apr_hash_make(call->pool);
    apr_hash_t *none = apr_hash_make(call->pool);
    const char *roles[2] = {rule->role, NULL};
    pd_layer_t *layer = NULL;
    pd_status_t status;
    int i;

    for (i = 0; standing != NULL && i < standing->rules->nelts; i++) {
        pd_rule_t *other = APR_ARRAY_IDX(standing->rules, i, pd_rule_t *);

        if (strcmp(other->id, rule->id) != 0) {
            APR_ARRAY_PUSH(rules, pd_rule_t *) = other;
        }
    }
    APR_ARRAY_PUSH(rules, pd_rule_t *) = rule;
    status = pd_layer_make(rules, standing == NULL || standing->is_readable, &layer);
    if (status != PD_OK) {
        return status;
    }
    apr_pool_cleanup_register(call->pool, layer, release_layer, apr_pool_cleanup_null);
    apr_hash_set(chosen, rule->role != NULL ? rule->role : rule->member, APR_HASH_KEY_STRING,
                 layer);
    pd_rules_choose(rule->role != NULL ? chosen : none, rule->role != NULL ? none : chosen,
                    rule->member != NULL ? rule->member : "", roles, call->pool, ret);
    return PD_OK;
}

/* --- comparing ----------------------------------------------------------------------- */

static pd_status_t tell(twins_t *t, const pd_connector_t *connector, const shape_t *shape)
{
    const char *text;

    if (++t->found > MAX_WARNINGS) {
        return PD_OK;
    }
    text = apr_psprintf(t->call->pool,
                        shape->is_blocked
                            ? "%s: the operations %s and %s have the same URL template; the first stays "
                              "listed, but its calls are refused too, since the second is blocked."
                            : "%s: the operations %s and %s have the same URL template; the first stays "
                              "and the second is withheld, but its URL can be reached by the first.",
                        connector->slug, shape->left->id, shape->withheld->id);
    return json_array_append_new(t->warnings, json_string(text)) == 0 ? PD_OK : PD_E_NOMEM;
}

static pd_status_t compare(twins_t *t, const pd_connector_t *connector, apr_pool_t *pool)
{
    apr_hash_t *shapes = apr_hash_make(pool);
    pd_status_t status = PD_OK;
    pd_bearing_t bearing;
    int i;

    pd_rules_bear(&t->rules, connector->id, pool, &bearing);
    for (i = 0; status == PD_OK && !bearing.is_uniform && i < connector->operations->nelts; i++) {
        const pd_operation_t *operation = &APR_ARRAY_IDX(connector->operations, i, pd_operation_t);
        const char *text = pd_template_shape(pd_template_read(operation, pool));
        shape_t *shape = apr_hash_get(shapes, text, APR_HASH_KEY_STRING);
        pd_verdict_t verdict;

        if (operation->klass == MCP_CLASS_FORBIDDEN) {
            continue; /* withheld from all, whatever the rules say */
        }
        if (shape == NULL) {
            shape = apr_pcalloc(pool, sizeof(*shape));
            apr_hash_set(shapes, text, APR_HASH_KEY_STRING, shape);
        }
        verdict = pd_rules_judge(&bearing, operation->id, NULL, NULL);
        if (verdict == PD_VERDICT_ALLOWED) {
            shape->left = operation;
        } else if (!shape->is_blocked) { /* a block says more than a mere withholding */
            shape->withheld = operation;
            shape->is_blocked = verdict == PD_VERDICT_BLOCKED;
        }
        if (shape->left != NULL && shape->withheld != NULL && !shape->is_told) {
            shape->is_told = 1;
            status = tell(t, connector, shape);
        }
    }
    return status;
}

/* Only connectors that the rule names can be torn by it: it treats all others alike. */
static pd_status_t compare_named(twins_t *t, const pd_rule_t *rule)
{
    apr_pool_t *pool;
    apr_hash_index_t *i;
    pd_status_t status = PD_OK;

    if (apr_pool_create(&pool, t->call->pool) != APR_SUCCESS) {
        return PD_E_NOMEM;
    }
    for (i = apr_hash_first(t->call->pool, rule->parts); status == PD_OK && i != NULL;
         i = apr_hash_next(i)) {
        const pd_connector_t *connector =
            pd_snapshot_connector(t->call->snapshot, apr_hash_this_key(i));

        if (connector != NULL) {
            status = compare(t, connector, pool);
            apr_pool_clear(pool);
        }
    }
    apr_pool_destroy(pool);
    return status;
}

static apr_status_t release_rule(void *baton)
{
    pd_rule_t *rule = baton;

    pd_rule_release(&rule);
    return APR_SUCCESS;
}

pd_status_t pd_op_rule_twins(pd_op_call_t *call, const char *id, const json_t *doc,
                             json_t *warnings)
{
    twins_t t = {.call = call, .warnings = warnings};
    pd_rule_t *rule = NULL;
    pd_status_t status = pd_rule_make(id, doc, &rule);

    if (status != PD_OK) {
        /* a document that we made ourselves and that does not compile would deny everything */
        return status == PD_E_INVALID ? PD_E_INTERNAL : status;
    }
    apr_pool_cleanup_register(call->pool, rule, release_rule, apr_pool_cleanup_null);
    status = gather(call, rule, &t.rules);
    if (status == PD_OK) {
        status = compare_named(&t, rule);
    }
    if (status == PD_OK && t.found > MAX_WARNINGS) {
        const char *text = apr_psprintf(call->pool, "%lu more pairs of such operations.",
                                        (unsigned long)(t.found - MAX_WARNINGS));

        status = json_array_append_new(warnings, json_string(text)) == 0 ? PD_OK : PD_E_NOMEM;
    }
    return status;
}
