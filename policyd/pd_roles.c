/* Built-in roles as rules over the registry's permissions, and the union of a member's roles. */
#include "pd_roles.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_tables.h>

#include "../proto/mcp_body.h"
#include "pd_ops.h"

#define MAX_PERMISSIONS 256

/* Permissions that no row of the registry names. */
static const char *const extra_permissions[] = {
    "connection:admin",    /* shared connections, and those of other members */
    "connection:read_all", /* sees the connections of other members */
    "grant:read_all",      /* sees the grants of other members */
    "tool:execute",        /* the MCP endpoint at all */
    "toolbox:read_all",    /* sees toolboxes that are for others */
    "usage:read",          /* counts of calls by member and tool */
};

static const char *const member_permissions[] = {
    "approval:read", "connection:read", "connection:write", "connector:read", "footprint:read",
    "grant:read",    "recipe:read",     "tool:execute",     "tool:read",      "toolbox:read",
    NULL};
static const char *const guest_permissions[] = {"connector:read", "grant:read", NULL};
static const char *const billing_permissions[] = {"member:read", "usage:read", NULL};

typedef enum rule { RULE_ALL, RULE_READ, RULE_LISTED } rule_t;

typedef struct builtin {
    const char *name;
    const char *text;
    rule_t rule;
    const char *const *listed; /* of these, the ones that exist */
} builtin_t;

static const builtin_t builtins[] = {
    {"Owner", "Everything, and alone makes and ends Owners.", RULE_ALL, NULL},
    {"Admin", "Everything but making and ending Owners.", RULE_ALL, NULL},
    {"Member", "Uses connected tools and manages connections of their own.", RULE_LISTED,
     member_permissions},
    {"Guest", "Sees connectors and their own grants; runs nothing.", RULE_LISTED,
     guest_permissions},
    {"Auditor", "Reads everything, changes and runs nothing.", RULE_READ, NULL},
    {"Billing Admin", "Sees members and usage.", RULE_LISTED, billing_permissions},
};

#define BUILTINS (sizeof(builtins) / sizeof(builtins[0]))

static pthread_once_t made_once = PTHREAD_ONCE_INIT;
static const char *all[MAX_PERMISSIONS + 1];
static size_t all_count;
static const char *of_builtin[BUILTINS][MAX_PERMISSIONS + 1];

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t sort_unique(const char **names, size_t count)
{
    size_t kept = 0;
    size_t i;

    qsort(names, count, sizeof(*names), by_text);
    for (i = 0; i < count; i++) {
        if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0) {
            names[kept++] = names[i];
        }
    }
    return kept;
}

static int ends_in(const char *text, const char *end)
{
    size_t bytes = strlen(text);
    size_t end_bytes = strlen(end);

    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

static int is_listed(const char *const *list, const char *name)
{
    size_t i;

    for (i = 0; list != NULL && list[i] != NULL; i++) {
        if (strcmp(list[i], name) == 0) {
            return 1;
        }
    }
    return 0;
}

static int rule_takes(const builtin_t *role, const char *permission)
{
    switch (role->rule) {
    case RULE_ALL:
        return 1;
    case RULE_READ:
        return ends_in(permission, ":read") || ends_in(permission, ":read_all");
    case RULE_LISTED:
        return is_listed(role->listed, permission);
    }
    return 0;
}

static void make_tables(void)
{
    const char *names[MAX_PERMISSIONS];
    size_t count = 0;
    size_t role;
    size_t i;
    int row;

    for (i = 0; i < sizeof(extra_permissions) / sizeof(extra_permissions[0]); i++) {
        names[count++] = extra_permissions[i];
    }
    for (row = 0; pd_ops_row(row) != NULL; row++) {
        const char *permission = pd_ops_row(row)->permission;

        /* beyond the bound a permission stays unknown: nobody holds it, and pd_ops_init says so */
        if (permission != NULL && count < MAX_PERMISSIONS) {
            names[count++] = permission;
            count = sort_unique(names, count);
        }
    }
    all_count = sort_unique(names, count);
    memcpy(all, names, all_count * sizeof(*names));
    for (role = 0; role < BUILTINS; role++) {
        size_t held = 0;

        for (i = 0; i < all_count; i++) {
            if (rule_takes(&builtins[role], all[i])) {
                of_builtin[role][held++] = all[i];
            }
        }
    }
}

static int builtin_index(const char *name)
{
    size_t i;

    for (i = 0; name != NULL && i < BUILTINS; i++) {
        if (strcmp(builtins[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *const *pd_roles_builtin(const char *name)
{
    int i = builtin_index(name);

    (void)pthread_once(&made_once, make_tables); /* cannot fail with a static control */
    return i >= 0 ? of_builtin[i] : NULL;
}

const char *pd_roles_builtin_name(int i)
{
    return i >= 0 && (size_t)i < BUILTINS ? builtins[i].name : NULL;
}

const char *pd_roles_builtin_text(const char *name)
{
    int i = builtin_index(name);

    return i >= 0 ? builtins[i].text : NULL;
}

int pd_roles_is_permission(const char *permission)
{
    (void)pthread_once(&made_once, make_tables); /* cannot fail with a static control */
    return bsearch(&permission, all, all_count, sizeof(*all), by_text) != NULL;
}

static void push_list(apr_array_header_t *into, const char *const *list)
{
    for (; *list != NULL; list++) {
        APR_ARRAY_PUSH(into, const char *) = *list;
    }
}

#define MAX_KNOWN 4096 /* custom roles that are remembered */

/* A custom role's stored permissions. One that is gone, or is not what we wrote, gives nothing. */
static pd_status_t read_custom(pd_tx_t *tx, const char *name, apr_pool_t *pool,
                               const char *const **ret)
{
    pd_object_t *role = NULL;
    pd_status_t status = pd_tx_find(
        tx, "role", apr_pstrcat(pd_tx_pool(tx), "name:", name, (char *)NULL), &role);
    const json_t *permissions =
        status == PD_OK ? json_object_get(role->doc, "permissions") : NULL;
    const char **made;
    size_t count = 0;
    size_t i;

    if (status != PD_OK && status != PD_E_NOT_FOUND) {
        return status;
    }
    made = apr_pcalloc(pool, (json_array_size(permissions) + 1) * sizeof(*made));
    for (i = 0; i < json_array_size(permissions); i++) {
        const char *permission = json_string_value(json_array_get(permissions, i));

        if (permission != NULL) {
            made[count++] = apr_pstrdup(pool, permission);
        }
    }
    *ret = made;
    return PD_OK;
}

static pd_status_t push_custom(pd_tx_t *tx, const char *name, apr_hash_t *known, apr_pool_t *pool,
                               apr_array_header_t *into)
{
    const char *const *held =
        known != NULL ? apr_hash_get(known, name, APR_HASH_KEY_STRING) : NULL;
    int is_kept = known != NULL && held == NULL && apr_hash_count(known) < MAX_KNOWN;
    pd_status_t status = PD_OK;

    if (held == NULL) {
        status = read_custom(tx, name, is_kept ? apr_hash_pool_get(known) : pool, &held);
    }
    if (status == PD_OK && is_kept) {
        apr_hash_set(known, apr_pstrdup(apr_hash_pool_get(known), name), APR_HASH_KEY_STRING,
                     held);
    }
    if (status == PD_OK) {
        push_list(into, held);
    }
    return status;
}

pd_status_t pd_roles_permissions(pd_tx_t *tx, const json_t *roles, apr_pool_t *pool,
                                 const char *const **ret, int *ret_owner)
{
    return pd_roles_permissions_by(tx, roles, NULL, pool, ret, ret_owner);
}

pd_status_t pd_roles_permissions_by(pd_tx_t *tx, const json_t *roles, apr_hash_t *known,
                                    apr_pool_t *pool, const char *const **ret, int *ret_owner)
{
    apr_array_header_t *held = apr_array_make(pool, 32, sizeof(const char *));
    int is_owner = 0;
    const char **names;
    size_t count;
    size_t i;

    for (i = 0; i < json_array_size(roles); i++) {
        const char *name = json_string_value(json_array_get(roles, i));
        const char *const *builtin = pd_roles_builtin(name);
        pd_status_t status = PD_OK;

        if (builtin != NULL) {
            push_list(held, builtin);
            is_owner |= strcmp(name, "Owner") == 0;
        } else if (name != NULL) {
            status = push_custom(tx, name, known, pool, held);
        }
        if (status != PD_OK) {
            return status;
        }
    }
    count = (size_t)held->nelts;
    names = apr_palloc(pool, (count + 1) * sizeof(*names));
    if (count > 0) {
        memcpy(names, held->elts, count * sizeof(*names));
        count = sort_unique(names, count);
    }
    names[count] = NULL;
    *ret = names;
    *ret_owner = is_owner;
    return PD_OK;
}
