/* Fills a policy store with an organisation of a size, straight through the store's own functions: ten thousand members through the
 * control plane would take longer than what is measured. policyd must not run meanwhile.
 *
 *   fill_store STATE_DIR RESOURCE ORIGIN MEMBERS ROLES ITEMS CONNECTORS OPERATIONS GRANTS
 *
 * ROLES roles share ITEMS items of restrictions (rules of 50 single operations each; of those of a role one in ten blocks and the rest
 * allow, but one role in twenty has blocks alone, so that its members have almost everything), CONNECTORS connectors at ORIGIN have
 * OPERATIONS operations each and one shared connection; members have one to three roles, or Member where there are none; the first
 * GRANTS members a token.
 * Standard output: one token a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "policyd/pd_access.h"
#include "policyd/pd_catalog.h"
#include "policyd/pd_store.h"
#include "proto/mcp_hash.h"

#define RULE_ITEMS 50

typedef struct sizes {
    const char *resource;
    const char *origin;
    int members, roles, items, connectors, operations, grants;
} sizes_t;

/* One unit: a slice of one kind. */
typedef struct slice {
    const sizes_t *sizes;
    int from, to;
    pd_status_t status;
    int is_done;
} slice_t;

static unsigned long long random_state = 88172645463325252ull;

/* xorshift: the same organisation every time. */
static int pick(int below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int)(random_state % (unsigned long long)below);
}

static pd_status_t insert(pd_tx_t *tx, const char *kind, const char *id, const char *owner, json_t *doc,
                          const char *key)
{
    const char *keys[] = {key, NULL};
    pd_status_t status = doc != NULL ? pd_tx_insert(tx, kind, id, owner, doc, key != NULL ? keys : NULL)
                                     : PD_E_NOMEM;

    json_decref(doc);
    return status;
}

static const char *format(pd_tx_t *tx, const char *text, int number)
{
    return apr_psprintf(pd_tx_pool(tx), "%s%06d", text, number);
}

static json_t *connector_file(const sizes_t *sizes, const char *slug)
{
    json_t *operations = json_array();
    char id[32];
    int i;

    for (i = 0; i < sizes->operations; i++) {
        (void)snprintf(id, sizeof(id), "get_item_%d", i);
        json_array_append_new(
            operations,
            json_pack("{s:s,s:s,s:o,s:s,s:[{s:s,s:s,s:b,s:{s:s}},{s:s,s:s,s:{s:s}}]}", "id", id, "method",
                      i % 5 == 4 ? "POST" : "GET", "path", json_sprintf("/kind%d/{item}", i),
                      "description", "Answers one item of this kind with all its fields, by its id.",
                      "parameters", "name", "item", "in", "path", "required", 1, "schema", "type",
                      "string", "name", "fields", "in", "query", "schema", "type", "string"));
    }
    return json_pack("{s:s,s:s,s:s,s:{s:s},s:o}", "slug", slug, "label", slug, "base_url", sizes->origin,
                     "auth", "type", "none", "operations", operations);
}

static pd_status_t connectors_unit(pd_tx_t *tx, void *baton)
{
    const slice_t *slice = baton;
    pd_status_t status = PD_OK;
    int i;

    for (i = slice->from; status == PD_OK && i < slice->to; i++) {
        const char *slug = apr_psprintf(pd_tx_pool(tx), "app%d", i);
        const char *id = format(tx, "con_bench", i);
        json_t *file = connector_file(slice->sizes, slug);
        json_t *doc = NULL;
        pd_fault_t fault = {.code = MCP_CODE_NONE};

        status = pd_catalog_check(file, &doc, &fault);
        json_decref(file);
        if (status != PD_OK) {
            (void)fprintf(stderr, "fill_store: %s\n", fault.message);
            return status;
        }
        status = insert(tx, "connector", id, NULL, doc, apr_pstrcat(pd_tx_pool(tx), "slug:", slug, NULL));
        if (status == PD_OK) {
            status = insert(tx, "connector_summary", id, NULL,
                            json_pack("{s:s,s:s,s:s,s:s,s:i,s:{}}", "slug", slug, "label", slug,
                                      "base_url", slice->sizes->origin, "auth", "none", "operations",
                                      slice->sizes->operations, "by_class"),
                            NULL);
        }
        if (status == PD_OK) {
            status = insert(tx, "connection", format(tx, "cxn_bench", i), NULL,
                            json_pack("{s:s,s:s,s:s,s:b,s:b,s:{},s:s,s:s}", "connector", id,
                                      "connector_slug", slug, "label", slug, "shared", 1, "toolbox_only",
                                      0, "variables", "base", slice->sizes->origin, "state", "ready"),
                            apr_pstrcat(pd_tx_pool(tx), "label:", slug, NULL));
        }
    }
    return status;
}

static pd_status_t roles_unit(pd_tx_t *tx, void *baton)
{
    const slice_t *slice = baton;
    pd_status_t status = PD_OK;
    int i;

    for (i = slice->from; status == PD_OK && i < slice->to; i++) {
        const char *name = apr_psprintf(pd_tx_pool(tx), "Role %d", i);

        status = insert(tx, "role", format(tx, "rol_bench", i), NULL,
                        json_pack("{s:s,s:[s,s]}", "name", name, "permissions", "tool:execute",
                                  "connector:read"),
                        apr_pstrcat(pd_tx_pool(tx), "name:", name, NULL));
    }
    return status;
}

static int is_block(int rule, int roles)
{
    return rule % roles % 20 == 19 || rule / roles % 10 == 9;
}

static pd_status_t rules_unit(pd_tx_t *tx, void *baton)
{
    const slice_t *slice = baton;
    const sizes_t *sizes = slice->sizes;
    pd_status_t status = PD_OK;
    char operation[32];
    int i, k;

    for (i = slice->from; status == PD_OK && i < slice->to; i++) {
        json_t *items = json_array();

        for (k = 0; k < RULE_ITEMS; k++) {
            (void)snprintf(operation, sizeof(operation), "get_item_%d", pick(sizes->operations));
            json_array_append_new(items, json_pack("{s:s,s:s}", "connector",
                                                   format(tx, "con_bench", pick(sizes->connectors)),
                                                   "operation", operation));
        }
        status = insert(tx, "restriction", format(tx, "rst_bench", i), NULL,
                        json_pack("{s:s,s:{s:o},s:o}", "effect", is_block(i, sizes->roles) ? "block" : "allow", "target",
                                  "role", json_sprintf("Role %d", i % sizes->roles), "items", items),
                        NULL);
    }
    return status;
}

static pd_status_t members_unit(pd_tx_t *tx, void *baton)
{
    const slice_t *slice = baton;
    pd_status_t status = PD_OK;
    int i, k;

    for (i = slice->from; status == PD_OK && i < slice->to; i++) {
        const char *email = apr_psprintf(pd_tx_pool(tx), "member%d@bench.example", i);
        json_t *roles = json_array();

        for (k = slice->sizes->roles > 0 ? pick(3) : -1; k >= 0; k--) {
            json_array_append_new(roles, json_sprintf("Role %d", pick(slice->sizes->roles)));
        }
        if (json_array_size(roles) == 0) {
            json_array_append_new(roles, json_string("Member"));
        }
        status = insert(tx, "member", format(tx, "mem_bench", i), NULL,
                        json_pack("{s:s,s:o,s:s}", "email", email, "roles", roles, "state", "active"),
                        apr_pstrcat(pd_tx_pool(tx), "email:", email, NULL));
    }
    return status;
}

static pd_status_t grants_unit(pd_tx_t *tx, void *baton)
{
    const slice_t *slice = baton;
    pd_status_t status = PD_OK;
    int i;

    for (i = slice->from; status == PD_OK && i < slice->to; i++) {
        const char *token = apr_psprintf(pd_tx_pool(tx), "mcp_bench-token-of-member-%06d", i);
        const char *member = format(tx, "mem_bench", i);
        char hash[MCP_DIGEST_HEX + 1];
        const char *key;

        mcp_token_hash(token, strlen(token), hash);
        key = pd_access_token_key(hash, pd_tx_pool(tx));
        status = insert(tx, "grant", format(tx, "gra_bench", i), member,
                        json_pack("{s:s,s:s,s:[s,s,s,s],s:s,s:i,s:s,s:s}", "member", member, "client",
                                  "bench", "scopes", "mcp:read", "mcp:write", "mcp:destructive",
                                  "mcp:tools", "resource", slice->sizes->resource, "expires_us", 0,
                                  "state", "active", "token_key", key),
                        key);
        (void)printf("%s\n", token);
    }
    return status;
}

static void done(pd_status_t status, int64_t revision, void *baton)
{
    slice_t *slice = baton;

    (void)revision;
    slice->status = status;
    slice->is_done = 1;
}

static void wake(void *baton)
{
    (void)baton; /* the loop below looks by itself */
}

/* In slices, so that no transaction is larger than the store's users make them. */
static int fill(pd_store_t *store, const sizes_t *sizes, pd_unit_fn *unit, int count, int step)
{
    const struct timespec moment = {0, 1000000};
    int from;

    for (from = 0; from < count; from += step) {
        slice_t slice = {.sizes = sizes, .from = from, .to = from + step < count ? from + step : count};

        if (pd_store_submit(store, PD_LANE_WRITE, pd_boot_in(60000), unit, done, &slice) != PD_OK) {
            return 0;
        }
        while (!slice.is_done) {
            pd_store_reap(store);
            (void)nanosleep(&moment, NULL); /* woken early: looked once more */
        }
        if (slice.status != PD_OK) {
            (void)fprintf(stderr, "fill_store: %s\n", pd_status_text(slice.status));
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    pd_store_t *store = NULL;
    char why[512] = "";
    sizes_t sizes;
    int is_good;

    if (argc != 10) {
        (void)fprintf(stderr, "usage: fill_store STATE_DIR RESOURCE ORIGIN MEMBERS ROLES ITEMS CONNECTORS "
                              "OPERATIONS GRANTS\n");
        return 2;
    }
    sizes.resource = argv[2];
    sizes.origin = argv[3];
    sizes.members = (int)strtol(argv[4], NULL, 10);
    sizes.roles = (int)strtol(argv[5], NULL, 10);
    sizes.items = (int)strtol(argv[6], NULL, 10);
    sizes.connectors = (int)strtol(argv[7], NULL, 10);
    sizes.operations = (int)strtol(argv[8], NULL, 10);
    sizes.grants = (int)strtol(argv[9], NULL, 10);
    if (apr_initialize() != APR_SUCCESS || mcp_hash_init() != MCP_OK || sizes.roles < 0 ||
        (sizes.roles == 0 && sizes.items > 0) || sizes.connectors < 1 || sizes.operations < 1 || sizes.grants > sizes.members) {
        return 2;
    }
    if (pd_store_open(argv[1], wake, NULL, &store, why, sizeof(why)) != PD_OK) {
        (void)fprintf(stderr, "fill_store: %s\n", why);
        return 1;
    }
    is_good = fill(store, &sizes, connectors_unit, sizes.connectors, 10) &&
              fill(store, &sizes, roles_unit, sizes.roles, 100) &&
              fill(store, &sizes, rules_unit, sizes.items / RULE_ITEMS, 200) &&
              fill(store, &sizes, members_unit, sizes.members, 1000) &&
              fill(store, &sizes, grants_unit, sizes.grants, 1000);
    pd_store_close(&store);
    return is_good ? 0 : 1;
}
