/* Which members gain or lose which tools by a change: who there is before and after it. See pd_impact.h. */
#include "pd_impact.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "pd_impact_private.h"
#include "pd_roles.h"

#define PAGE 500     /* members read at once */
#define MAX_ROLES 64 /* of a member */

static const char yes[] = "yes";
static const char no[] = "no";

int pd_impact_is_late(const pd_impact_t *impact)
{
    return pd_boot_left_ms(impact->deadline) <= 0;
}

/* --- who there is ---------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The roles of a member's document, sorted, each once. */
static void read_roles(pd_impact_t *impact, const json_t *doc, pd_impact_role_set_t *ret)
{
    const json_t *roles = json_object_get(doc, "roles");
    const char *names[MAX_ROLES + 1];
    const char *const *shared;
    const char **own;
    char *key = apr_pstrdup(impact->pool, "");
    size_t i;
    int count = 0;
    int kept = 0;
    int k;

    for (i = 0; i < json_array_size(roles) && count < MAX_ROLES; i++) {
        names[count] = json_string_value(json_array_get(roles, i));
        count += names[count] != NULL;
    }
    qsort(names, (size_t)count, sizeof(*names), by_text);
    for (k = 0; k < count; k++) {
        if (kept == 0 || strcmp(names[kept - 1], names[k]) != 0) {
            names[kept++] = names[k];
            key = apr_pstrcat(impact->pool, key, names[k], "\n", (char *)NULL);
        }
    }
    ret->count = kept;
    ret->key = key;
    shared = apr_hash_get(impact->sets, key, APR_HASH_KEY_STRING);
    if (shared == NULL) {
        own = apr_pcalloc(impact->pool, ((size_t)kept + 1) * sizeof(*own));
        for (k = 0; k < kept; k++) {
            own[k] = apr_pstrdup(impact->pool, names[k]);
        }
        shared = own;
        apr_hash_set(impact->sets, key, APR_HASH_KEY_STRING, shared);
    }
    ret->names = shared;
}

static const pd_impact_role_set_t nobody = {(const char *const[]){NULL}, 0, ""};

static void read_side(pd_impact_t *impact, const pd_object_t *member, pd_impact_person_t *person,
                      int side)
{
    const char *state = mcp_json_str(member->doc, "state");
    const char *email = mcp_json_str(member->doc, "email");

    read_roles(impact, member->doc, &person->roles[side]);
    person->is_active[side] = state != NULL && strcmp(state, "active") == 0;
    if (email != NULL) {
        person->email = apr_pstrdup(impact->pool, email);
    }
}

static pd_impact_person_t *add_person(pd_impact_t *impact, const char *id)
{
    pd_impact_person_t *person = apr_pcalloc(impact->pool, sizeof(*person));

    person->id = apr_pstrdup(impact->pool, id);
    person->email = person->id; /* until one is read */
    person->roles[PD_BEFORE] = nobody;
    person->roles[PD_AFTER] = nobody;
    APR_ARRAY_PUSH(impact->people, pd_impact_person_t *) = person;
    apr_hash_set(impact->by_id, person->id, APR_HASH_KEY_STRING, person);
    return person;
}

static void remember(pd_impact_t *impact, const pd_object_t *member)
{
    pd_impact_person_t *person = add_person(impact, member->id);

    read_side(impact, member, person, PD_BEFORE);
    person->roles[PD_AFTER] = person->roles[PD_BEFORE];
    person->is_active[PD_AFTER] = person->is_active[PD_BEFORE];
}

static pd_status_t read_people(pd_impact_t *impact, pd_tx_t *tx)
{
    const char *after = NULL;

    if (impact->only != NULL) {
        pd_object_t *member = NULL;
        pd_status_t status = pd_tx_get(tx, "member", impact->only, &member);

        if (status == PD_OK) {
            remember(impact, member);
        }
        return status == PD_E_NOT_FOUND ? PD_OK : status;
    }
    for (;;) {
        apr_array_header_t *page = NULL;
        pd_status_t status = pd_tx_list(tx, "member", NULL, after, PAGE, &page);
        int i;

        if (status == PD_OK && pd_impact_is_late(impact)) {
            status = PD_E_TIMEOUT;
        }
        for (i = 0; status == PD_OK && i < page->nelts; i++) {
            const pd_object_t *member = APR_ARRAY_IDX(page, i, pd_object_t *);

            remember(impact, member);
            after = member->id;
        }
        if (status != PD_OK || page->nelts < PAGE) {
            return status;
        }
    }
}

/* Members that the unit itself has touched. */
static pd_status_t read_changed(pd_impact_t *impact, pd_tx_t *tx)
{
    apr_array_header_t *changes = NULL;
    pd_status_t status = pd_tx_changes(tx, impact->revision, &changes);
    int i;

    for (i = 0; status == PD_OK && i < changes->nelts; i++) {
        const pd_change_t *change = &APR_ARRAY_IDX(changes, i, pd_change_t);
        pd_object_t *member = NULL;
        pd_impact_person_t *person;

        if (strcmp(change->kind, "member") != 0 ||
            (impact->only != NULL && strcmp(change->id, impact->only) != 0)) {
            continue;
        }
        person = apr_hash_get(impact->by_id, change->id, APR_HASH_KEY_STRING);
        if (person == NULL) {
            person = add_person(impact, change->id);
        }
        status = pd_tx_get(tx, "member", change->id, &member);
        if (status == PD_OK) {
            read_side(impact, member, person, PD_AFTER);
        } else if (status == PD_E_NOT_FOUND) {
            person->roles[PD_AFTER] = nobody;
            person->is_active[PD_AFTER] = 0;
            status = PD_OK;
        }
    }
    return status;
}

/* --- who may execute ------------------------------------------------------------- */

static pd_status_t ask_role(pd_impact_t *impact, pd_tx_t *tx, const char *name, int side)
{
    json_t *roles = json_pack("[s]", name);
    const char *const *held = NULL;
    const char *found = no;
    int is_owner = 0;
    pd_status_t status = roles == NULL
                             ? PD_E_NOMEM
                             : pd_roles_permissions(tx, roles, impact->pool, &held, &is_owner);

    json_decref(roles);
    if (status != PD_OK) {
        return status;
    }
    for (; *held != NULL; held++) {
        found = strcmp(*held, "tool:execute") == 0 ? yes : found;
    }
    apr_hash_set(impact->executes[side], name, APR_HASH_KEY_STRING, is_owner ? yes : found);
    return PD_OK;
}

/* Every role that anybody has or had. */
static pd_status_t ask_roles(pd_impact_t *impact, pd_tx_t *tx, int side)
{
    pd_status_t status = PD_OK;
    apr_hash_index_t *at;
    void *value;

    for (at = apr_hash_first(NULL, impact->sets); at != NULL && status == PD_OK;
         at = apr_hash_next(at)) {
        const char *const *name;

        apr_hash_this(at, NULL, NULL, &value);
        for (name = value; *name != NULL && status == PD_OK; name++) {
            if (apr_hash_get(impact->executes[side], *name, APR_HASH_KEY_STRING) == NULL) {
                status = ask_role(impact, tx, *name, side);
            }
        }
    }
    return status;
}

int pd_impact_has_tools(const pd_impact_t *impact, const pd_impact_person_t *person, int side)
{
    const char *const *name;

    for (name = person->roles[side].names; person->is_active[side] && *name != NULL; name++) {
        if (apr_hash_get(impact->executes[side], *name, APR_HASH_KEY_STRING) == yes) {
            return 1;
        }
    }
    return 0;
}

pd_status_t pd_impact_begin(pd_tx_t *tx, const pd_snapshot_t *before, const char *only,
                            pd_boot_t deadline, apr_pool_t *pool, pd_impact_t **ret)
{
    pd_impact_t *impact = apr_pcalloc(pool, sizeof(*impact));
    pd_boot_t most = pd_boot_in(PD_IMPACT_MS);
    pd_status_t status;

    impact->pool = pool;
    impact->snapshot[PD_BEFORE] = before;
    impact->only = only;
    impact->revision = pd_tx_revision(tx);
    impact->deadline = deadline.us < most.us ? deadline : most;
    impact->people = apr_array_make(pool, 64, sizeof(pd_impact_person_t *));
    impact->by_id = apr_hash_make(pool);
    impact->sets = apr_hash_make(pool);
    impact->executes[PD_BEFORE] = apr_hash_make(pool);
    impact->executes[PD_AFTER] = apr_hash_make(pool);
    impact->groups = apr_hash_make(pool);
    status = impact->revision < 0 ? PD_E_IO : read_people(impact, tx);
    if (status == PD_OK) {
        status = ask_roles(impact, tx, PD_BEFORE);
    }
    if (status == PD_OK) {
        *ret = impact;
    }
    return status;
}

pd_status_t pd_impact_end(pd_impact_t *impact, pd_tx_t *tx, const pd_snapshot_t *after,
                          const pd_impact_sight_t *sight, json_t **ret)
{
    pd_status_t status = read_changed(impact, tx);

    if (status == PD_OK) {
        status = ask_roles(impact, tx, PD_AFTER);
    }
    if (status != PD_OK) {
        return status;
    }
    impact->snapshot[PD_AFTER] = after;
    status = pd_impact_compare(impact);
    if (status != PD_OK) {
        return status;
    }
    *ret = pd_impact_show(impact, sight);
    return *ret != NULL ? PD_OK : PD_E_NOMEM;
}
