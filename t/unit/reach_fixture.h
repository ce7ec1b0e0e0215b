/* A snapshot in memory, built from a policy as one JSON document, for the tests of what a member can
 * have:
 *
 *   {"connectors":[{"id","slug","operations":[{"id","classification"}]}],
 *    "connections":[{"id","connector","label","owner"?,"toolbox_only"?,"state"?}],
 *    "toolboxes":[{"id", and the stored document}],
 *    "restrictions":[{"id","unreadable"?, and the stored document}],
 *    "lost_target"?:true}
 *
 * Restrictions, toolboxes and connectors go through the code that a store's objects go through. */
#ifndef REACH_FIXTURE_H
#define REACH_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <jansson.h>

#include "../../policyd/pd_reach.h"
#include "../../proto/mcp_body.h"
#include "../../proto/mcp_hash.h"
#include "../../proto/mcp_names.h"

#define UNUSED __attribute__((unused))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Compiling takes longer than everything else here, and the same few connectors come again and
 * again. */
static struct {
    apr_pool_t *pool;
    apr_hash_t *connectors; /* the policy's text of it -> pd_connector_t * */
} reach_cache;

typedef struct reach_world {
    apr_pool_t *pool;
    json_t *policy; /* borrowed */
    pd_snapshot_t snapshot;
} reach_world_t;

/* --- connectors --------------------------------------------------------------------------- */

static json_t *reach_connector_doc(const json_t *connector)
{
    const json_t *operations = json_object_get(connector, "operations");
    const char *slug = mcp_json_str(connector, "slug");
    json_t *file = json_pack("{s:s,s:s,s:s,s:{s:s},s:[]}", "slug", slug, "label", slug, "base_url",
                             "https://api.example", "auth", "type", "none", "operations");
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    const json_t *operation;
    json_t *doc = NULL;
    size_t i;

    json_array_foreach(operations, i, operation)
    {
        json_array_append_new(
            json_object_get(file, "operations"),
            json_pack("{s:s,s:s,s:o,s:s,s:s}", "id", mcp_json_str(operation, "id"), "method",
                      "POST", "path", json_sprintf("/op%d", (int)i), "description", "An operation.",
                      "classification", mcp_json_str(operation, "classification")));
    }
    if (json_array_size(operations) ==
        0) { /* no file says so, but what is stored may have come to it */
        return file;
    }
    if (pd_catalog_check(file, &doc, &fault) != PD_OK) {
        fail_msg("the test's own connector is refused: %s", fault.message);
    }
    json_decref(file);
    return doc;
}

/* Borrowed from the cache. */
static pd_connector_t *reach_connector(const json_t *connector)
{
    char text[4096];
    size_t bytes = json_dumpb(connector, text, sizeof(text) - 1, JSON_COMPACT);
    pd_connector_t *made;
    json_t *doc;

    assert_true(bytes > 0 && bytes < sizeof(text));
    text[bytes] = '\0';
    made = apr_hash_get(reach_cache.connectors, text, (apr_ssize_t)bytes);
    if (made == NULL) {
        doc = reach_connector_doc(connector);
        assert_int_equal(pd_catalog_compile(mcp_json_str(connector, "id"), doc, &made), PD_OK);
        json_decref(doc);
        apr_hash_set(reach_cache.connectors, apr_pstrdup(reach_cache.pool, text),
                     (apr_ssize_t)bytes, made);
    }
    return made;
}

/* --- connections --------------------------------------------------------------------------- */

static int reach_by_tool_name(const void *a, const void *b)
{
    return strcmp(((const pd_tool_t *)a)->name, ((const pd_tool_t *)b)->name);
}

static void reach_make_tools(apr_pool_t *pool, pd_connection_t *made)
{
    const apr_array_header_t *operations = made->connector->operations;
    char name[MCP_MAX_TOOL_NAME + 1];
    int i;

    made->tools = apr_array_make(pool, operations->nelts + 1, sizeof(pd_tool_t));
    for (i = 0; i < operations->nelts; i++) {
        pd_tool_t *tool = apr_array_push(made->tools);

        memset(tool, 0, sizeof(*tool));
        tool->operation = &APR_ARRAY_IDX(operations, i, pd_operation_t);
        assert_int_equal(mcp_name_tool(made->label, made->connector->slug, tool->operation->id,
                                       name, sizeof(name)),
                         MCP_OK);
        tool->name = apr_pstrdup(pool, name);
    }
    qsort(made->tools->elts, (size_t)made->tools->nelts, sizeof(pd_tool_t), reach_by_tool_name);
    made->pool = pool;
    pd_snapshot_index(made);
}

static int reach_by_label(const void *a, const void *b)
{
    const pd_connection_t *x = *(pd_connection_t *const *)a;
    const pd_connection_t *y = *(pd_connection_t *const *)b;
    int order = strcmp(x->label, y->label);

    return order != 0 ? order : strcmp(x->id, y->id);
}

static void reach_sort(apr_array_header_t *connections)
{
    qsort(connections->elts, (size_t)connections->nelts, sizeof(pd_connection_t *), reach_by_label);
}

static void reach_add_connection(reach_world_t *world, const json_t *doc)
{
    pd_ground_t *ground = world->snapshot.ground;
    const char *owner = mcp_json_str(doc, "owner");
    const char *state = mcp_json_str(doc, "state");
    pd_connection_t *made = apr_pcalloc(world->pool, sizeof(*made));
    apr_array_header_t *beside = ground->shared;
    apr_array_header_t *alike;

    made->connector =
        apr_hash_get(ground->connectors, mcp_json_str(doc, "connector"), APR_HASH_KEY_STRING);
    if (made->connector == NULL) { /* left out, as the ground does */
        return;
    }
    made->id = mcp_json_str(doc, "id");
    made->label = mcp_json_str(doc, "label");
    made->owner = owner;
    made->base = "https://api.example";
    made->is_ready = state == NULL || strcmp(state, "ready") == 0;
    made->is_toolbox_only = mcp_json_bool(doc, "toolbox_only");
    reach_make_tools(world->pool, made);
    apr_hash_set(ground->connections, made->id, APR_HASH_KEY_STRING, made);
    alike = apr_hash_get(ground->any_label, made->label, APR_HASH_KEY_STRING);
    if (alike == NULL) {
        alike = apr_array_make(world->pool, 4, sizeof(pd_connection_t *));
        apr_hash_set(ground->any_label, made->label, APR_HASH_KEY_STRING, alike);
    }
    APR_ARRAY_PUSH(alike, pd_connection_t *) = made;
    reach_sort(alike);
    if (owner == NULL) {
        apr_hash_set(ground->by_label, made->label, APR_HASH_KEY_STRING, made);
    } else {
        beside = apr_hash_get(ground->by_owner, owner, APR_HASH_KEY_STRING);
        if (beside == NULL) {
            beside = apr_array_make(world->pool, 4, sizeof(pd_connection_t *));
            apr_hash_set(ground->by_owner, owner, APR_HASH_KEY_STRING, beside);
        }
    }
    APR_ARRAY_PUSH(beside, pd_connection_t *) = made;
    reach_sort(beside);
}

static void reach_add_ground(reach_world_t *world)
{
    apr_pool_t *pool = world->pool;
    pd_ground_t *ground = apr_pcalloc(pool, sizeof(*ground));
    const json_t *doc;
    size_t i;

    world->snapshot.ground = ground;
    ground->connectors = apr_hash_make(pool);
    ground->by_slug = apr_hash_make(pool);
    ground->connections = apr_hash_make(pool);
    ground->shared = apr_array_make(pool, 8, sizeof(pd_connection_t *));
    ground->by_label = apr_hash_make(pool);
    ground->by_owner = apr_hash_make(pool);
    ground->any_label = apr_hash_make(pool);
    ground->left_out = apr_hash_make(pool);
    json_array_foreach(json_object_get(world->policy, "connectors"), i, doc)
    {
        pd_connector_t *connector = reach_connector(doc);

        apr_hash_set(ground->connectors, connector->id, APR_HASH_KEY_STRING, connector);
        apr_hash_set(ground->by_slug, connector->slug, APR_HASH_KEY_STRING, connector);
    }
    json_array_foreach(json_object_get(world->policy, "connections"), i, doc)
    {
        reach_add_connection(world, doc);
    }
}

/* --- toolboxes ------------------------------------------------------------------------------- */

static int reach_by_toolbox_name(const void *a, const void *b)
{
    return strcmp((*(pd_toolbox_t *const *)a)->name, (*(pd_toolbox_t *const *)b)->name);
}

static void reach_add_toolboxes(reach_world_t *world)
{
    pd_toolboxes_t *made = apr_pcalloc(world->pool, sizeof(*made));
    const json_t *doc;
    size_t i;

    world->snapshot.toolboxes = made;
    made->by_id = apr_hash_make(world->pool);
    made->by_name = apr_hash_make(world->pool);
    made->sorted = apr_array_make(world->pool, 4, sizeof(pd_toolbox_t *));
    json_array_foreach(json_object_get(world->policy, "toolboxes"), i, doc)
    {
        pd_toolbox_t *toolbox = NULL;

        if (pd_toolbox_make(mcp_json_str(doc, "id"), doc, &toolbox) != PD_OK) {
            fail_msg("the test's own toolbox is refused: %s", json_dumps(doc, JSON_COMPACT));
        }
        apr_hash_set(made->by_id, toolbox->id, APR_HASH_KEY_STRING, toolbox);
        apr_hash_set(made->by_name, toolbox->name, APR_HASH_KEY_STRING, toolbox);
        APR_ARRAY_PUSH(made->sorted, pd_toolbox_t *) = toolbox;
    }
    qsort(made->sorted->elts, (size_t)made->sorted->nelts, sizeof(pd_toolbox_t *),
          reach_by_toolbox_name);
}

/* --- restrictions ----------------------------------------------------------------------------- */

typedef struct reach_target {
    apr_array_header_t *rules;
    int is_lost;
} reach_target_t;

static reach_target_t *reach_target(apr_pool_t *pool, apr_hash_t *targets, const char *name)
{
    reach_target_t *target = apr_hash_get(targets, name, APR_HASH_KEY_STRING);

    if (target == NULL) {
        target = apr_pcalloc(pool, sizeof(*target));
        target->rules = apr_array_make(pool, 4, sizeof(pd_rule_t *));
        apr_hash_set(targets, name, APR_HASH_KEY_STRING, target);
    }
    return target;
}

static void reach_make_layers(reach_world_t *world, apr_hash_t *targets, apr_hash_t *layers)
{
    apr_hash_index_t *at;

    for (at = apr_hash_first(world->pool, targets); at != NULL; at = apr_hash_next(at)) {
        reach_target_t *target = apr_hash_this_val(at);
        pd_layer_t *layer = NULL;
        int i;

        assert_int_equal(pd_layer_make(target->rules, !target->is_lost, &layer), PD_OK);
        for (i = 0; i < target->rules->nelts; i++) {
            pd_rule_release(&APR_ARRAY_IDX(target->rules, i, pd_rule_t *));
        }
        apr_hash_set(layers, apr_hash_this_key(at), APR_HASH_KEY_STRING, layer);
    }
}

static void reach_add_rulebook(reach_world_t *world)
{
    pd_rulebook_t *made = apr_pcalloc(world->pool, sizeof(*made));
    apr_hash_t *roles = apr_hash_make(world->pool);
    apr_hash_t *members = apr_hash_make(world->pool);
    const json_t *doc;
    size_t i;

    world->snapshot.rulebook = made;
    made->rules = apr_hash_make(world->pool);
    made->targets = apr_hash_make(world->pool);
    made->by_role = apr_hash_make(world->pool);
    made->by_member = apr_hash_make(world->pool);
    made->has_lost_target = mcp_json_bool(world->policy, "lost_target");
    json_array_foreach(json_object_get(world->policy, "restrictions"), i, doc)
    {
        const json_t *for_whom = json_object_get(doc, "target");
        const char *role = mcp_json_str(for_whom, "role");
        reach_target_t *target =
            role != NULL ? reach_target(world->pool, roles, role)
                         : reach_target(world->pool, members, mcp_json_str(for_whom, "member"));
        pd_rule_t *rule = NULL;
        pd_status_t status = pd_rule_make(mcp_json_str(doc, "id"), doc, &rule);

        if ((status != PD_OK) != mcp_json_bool(doc, "unreadable")) {
            fail_msg("a restriction is read or refused against the test's word: %s",
                     json_dumps(doc, JSON_COMPACT));
        }
        if (status == PD_OK) {
            APR_ARRAY_PUSH(target->rules, pd_rule_t *) = rule;
        } else {
            target->is_lost = 1;
        }
    }
    reach_make_layers(world, roles, made->by_role);
    reach_make_layers(world, members, made->by_member);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* policy: borrowed, and must outlive the world. */
UNUSED static reach_world_t *reach_world_make(json_t *policy)
{
    apr_pool_t *pool = NULL;
    reach_world_t *world;

    if (reach_cache.pool == NULL) {
        assert_int_equal(apr_pool_create(&reach_cache.pool, NULL), APR_SUCCESS);
        reach_cache.connectors = apr_hash_make(reach_cache.pool);
    }
    assert_int_equal(apr_pool_create(&pool, NULL), APR_SUCCESS);
    world = apr_pcalloc(pool, sizeof(*world));
    world->pool = pool;
    world->policy = policy;
    world->snapshot.pool = pool;
    world->snapshot.refs = 1;
    world->snapshot.settings = apr_hash_make(pool);
    reach_add_ground(world);
    reach_add_toolboxes(world);
    reach_add_rulebook(world);
    return world;
}

static void reach_release_layers(reach_world_t *world, apr_hash_t *layers)
{
    apr_hash_index_t *at;

    for (at = apr_hash_first(world->pool, layers); at != NULL; at = apr_hash_next(at)) {
        pd_layer_t *layer = apr_hash_this_val(at);

        pd_layer_release(&layer);
    }
}

UNUSED static void reach_world_free(reach_world_t *world)
{
    const apr_array_header_t *toolboxes = world->snapshot.toolboxes->sorted;
    int i;

    reach_release_layers(world, world->snapshot.rulebook->by_role);
    reach_release_layers(world, world->snapshot.rulebook->by_member);
    for (i = 0; i < toolboxes->nelts; i++) {
        pd_toolbox_t *toolbox = APR_ARRAY_IDX(toolboxes, i, pd_toolbox_t *);

        pd_toolbox_release(&toolbox);
    }
    apr_pool_destroy(world->pool);
}

UNUSED static int reach_begin(void **state)
{
    (void)state;
    json_object_seed(1);
    return apr_initialize() == APR_SUCCESS && mcp_hash_init() == MCP_OK ? 0 : -1;
}

UNUSED static int reach_end(void **state)
{
    apr_hash_index_t *at;

    (void)state;
    for (at = reach_cache.pool != NULL ? apr_hash_first(reach_cache.pool, reach_cache.connectors)
                                       : NULL;
         at != NULL; at = apr_hash_next(at)) {
        pd_connector_t *connector = apr_hash_this_val(at);

        pd_catalog_release(&connector);
    }
    if (reach_cache.pool != NULL) {
        apr_pool_destroy(reach_cache.pool);
    }
    apr_terminate();
    return 0;
}

#endif
