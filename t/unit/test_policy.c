/* The policy in force over the real store: snapshots that follow, views and guards by rung and owner, plans, blobs and the key ring. */
#include "policy_world.h"

#include "../../policyd/pd_blob.h"
#include "../../policyd/pd_keys.h"
#include "../../policyd/pd_plan.h"
#include "../../policyd/pd_running.h"
#include "../../policyd/pd_seal.h"
#include "../../policyd/pd_snapshot.h"
#include "../../policyd/pd_view.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ALL (MCP_SCOPE_READ | MCP_SCOPE_WRITE | MCP_SCOPE_DESTRUCTIVE | MCP_SCOPE_TOOLS)

/* --- what is in the store --------------------------------------------------------------- */

/* A connector with an operation of each class. */
static json_t *shop_file(const char *slug, const char *label, const char *auth)
{
    return json_pack(
        "{s:s,s:s,s:s,s:{s:s},s:[{s:s,s:s,s:s,s:s,s:[{s:s,s:s,s:{s:s}}]},{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:"
        "s},{s:s,s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s}]}",
        "slug", slug, "label", label, "base_url", "https://shop.example/api", "auth", "type", auth,
        "operations", "id", "get", "method", "GET", "path", "/items/{id}", "description", "Reads.",
        "parameters", "name", "id", "in", "path", "schema", "type", "string", "id", "add", "method", "POST",
        "path", "/items", "description", "Adds.", "id", "drop", "method", "DELETE", "path", "/items",
        "description", "Drops.", "id", "burn", "method", "DELETE", "path", "/", "description", "Burns.",
        "classification", "forbidden", "id", "list", "method", "GET", "path", "/items?all&x=1%202",
        "description", "Lists.");
}

static const char *make_shop(const char *slug)
{
    return world_make("connectors__create", "connector", shop_file(slug, "Shop", "none"));
}

static const char *connect_to(const char *slug, const char *label, const char *owner)
{
    return world_make("connections__create", "connection",
                      owner != NULL ? json_pack("{s:s,s:s,s:s}", "connector", slug, "label", label,
                                                "owner", owner)
                                    : json_pack("{s:s,s:s,s:b}", "connector", slug, "label", label,
                                                "shared", 1));
}

/* Somebody who may execute, with these scopes. */
static pd_actor_t actor_of(const char *member, unsigned scopes)
{
    static const char *const permissions[] = {"tool:execute", NULL};
    static const char *const no_roles[] = {NULL};
    pd_actor_t actor;

    memset(&actor, 0, sizeof(actor));
    actor.member_id = member;
    actor.roles = "";
    actor.role_names = no_roles;
    actor.permissions = permissions;
    actor.scopes = mcp_scope_close(scopes);
    return actor;
}

static pd_connection_t *shop_connection(void)
{
    pd_connection_t *connection = pd_snapshot_reach(world.core.policy->snapshot, NULL, "shop", 4);

    assert_non_null(connection);
    return connection;
}

/* --- reading blobs ------------------------------------------------------------------------- */

static json_t *blob_question(const char *digest, size_t offset)
{
    return json_pack("{s:s,s:I}", "digest", digest, "offset", (json_int_t)offset);
}

static int is_readable(const char *digest)
{
    world_ask(MCP_KIND_BLOB_GET, pd_on_blob_get, blob_question(digest, 0));
    return world.refused == MCP_CODE_NONE;
}

/* A blob as JSON; its hash is checked as a worker does. */
static json_t *blob(const char *digest)
{
    char hex[MCP_DIGEST_HEX + 1];
    json_t *value;

    assert_true(is_readable(digest));
    assert_int_equal(world.raw_more, 0);
    mcp_digest_hex(world.raw, world.raw_bytes, hex);
    assert_string_equal(hex, digest);
    value = json_loadb(world.raw, world.raw_bytes, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(value);
    return value;
}

static const char *view_of(const pd_actor_t *actor)
{
    const char *digest = NULL;

    assert_int_equal(pd_view_digest(&world.core, actor, &digest), PD_OK);
    return apr_pstrdup(world.scratch, digest);
}

/* 1 if the chunk's tool of this index is the caller's: tool i is bit i & 7 of byte i >> 3; without a selection all are. */
static int is_selected(const json_t *entry, size_t index)
{
    const char *select = mcp_json_str(entry, "select");
    unsigned char byte = 0;
    char hex[3] = "";

    if (select == NULL) {
        return 1;
    }
    assert_true(strlen(select) > 2 * (index >> 3) + 1);
    memcpy(hex, select + 2 * (index >> 3), 2);
    assert_int_equal(mcp_unhex(hex, &byte, 1), MCP_OK);
    return byte >> (index & 7) & 1;
}

/* Accounts and tool names of a view: "mine: a b; shop: c", in order. */
static const char *view_text(const pd_actor_t *actor)
{
    json_t *manifest = blob(view_of(actor));
    const char *text = "";
    const json_t *entry;
    size_t i;

    assert_int_equal(mcp_json_int(manifest, "v", 0), 1);
    assert_string_equal(mcp_json_str(manifest, "control_prefix"), "elaichi");
    json_array_foreach(json_object_get(manifest, "chunks"), i, entry)
    {
        json_t *chunk = blob(mcp_json_str(entry, "digest"));
        const json_t *tool;
        int count = 0;
        size_t k;

        text = apr_pstrcat(world.scratch, text, text[0] != '\0' ? "; " : "",
                           mcp_json_str(entry, "account"), ":", NULL);
        json_array_foreach(json_object_get(chunk, "tools"), k, tool)
        {
            const char *name = mcp_json_str(tool, "name");

            assert_string_equal(mcp_json_str(json_object_get(tool, "def"), "name"), name);
            if (is_selected(entry, k)) {
                text = apr_pstrcat(world.scratch, text, " ", strstr(name, "__") + 2, NULL);
                count++;
            }
        }
        assert_int_equal(mcp_json_int(entry, "tools", -1), count);
        json_decref(chunk);
    }
    json_decref(manifest);
    return text;
}

/* Digest of the chunk of one account in an actor's view. */
static const char *chunk_digest(const pd_actor_t *actor, const char *account)
{
    json_t *manifest = blob(view_of(actor));
    const char *digest = NULL;
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(manifest, "chunks"), i, entry)
    {
        if (strcmp(mcp_json_str(entry, "account"), account) == 0) {
            digest = apr_pstrdup(world.scratch, mcp_json_str(entry, "digest"));
        }
    }
    json_decref(manifest);
    assert_non_null(digest);
    return digest;
}

/* --- views ------------------------------------------------------------------------------------ */

static void own_and_shared_connections_make_the_view_in_the_order_of_their_labels(void **state)
{
    const char *ada = world_member("ada@example.com", "Member");
    const char *bob = world_member("bob@example.com", "Member");
    pd_actor_t of_ada = actor_of(ada, MCP_SCOPE_READ | MCP_SCOPE_TOOLS);
    pd_actor_t of_bob = actor_of(bob, MCP_SCOPE_READ | MCP_SCOPE_TOOLS);
    pd_actor_t of_nobody = actor_of(NULL, MCP_SCOPE_READ | MCP_SCOPE_TOOLS);

    (void)state;
    (void)make_shop("shop");
    assert_string_equal(view_text(&of_ada), "");
    (void)connect_to("shop", "m-shared", NULL);
    (void)connect_to("shop", "z-shared", NULL);
    (void)connect_to("shop", "n-own", ada);
    (void)connect_to("shop", "a-own", ada);
    (void)connect_to("shop", "n-own", bob); /* two members may use one label */
    assert_string_equal(view_text(&of_ada), "a-own: get list; m-shared: get list; n-own: get list; "
                                            "z-shared: get list");
    assert_string_equal(view_text(&of_bob),
                        "m-shared: get list; n-own: get list; z-shared: get list");
    assert_string_equal(view_text(&of_nobody), "m-shared: get list; z-shared: get list");
    assert_string_not_equal(chunk_digest(&of_ada, "n-own"), "");
    /* the same name, but another connection behind it */
    assert_string_equal(chunk_digest(&of_ada, "n-own"), chunk_digest(&of_bob, "n-own"));
    assert_string_not_equal(view_of(&of_ada), view_of(&of_bob));
}

static void a_rung_shows_what_it_reaches_and_forbidden_is_on_none(void **state)
{
    static const struct {
        unsigned scopes;
        const char *wanted;
    } cases[] = {{0, ""},
                 {MCP_SCOPE_TOOLS, ""},
                 {MCP_SCOPE_READ, ""}, /* mcp:tools replaces no rung, and no rung replaces it */
                 {MCP_SCOPE_DESTRUCTIVE, ""},
                 {MCP_SCOPE_TOOLS | MCP_SCOPE_READ, "shop: get list"},
                 {MCP_SCOPE_TOOLS | MCP_SCOPE_WRITE, "shop: add get list"},
                 {MCP_SCOPE_TOOLS | MCP_SCOPE_DESTRUCTIVE, "shop: add drop get list"},
                 {0xffffffffu & ~0x7ffffff0u, "shop: add drop get list"}};
    size_t i;

    (void)state;
    (void)make_shop("shop");
    (void)connect_to("shop", "shop", NULL);
    for (i = 0; i < COUNT(cases); i++) {
        pd_actor_t actor = actor_of("mem_1", cases[i].scopes);

        assert_string_equal(view_text(&actor), cases[i].wanted);
    }
}

static void without_the_permission_the_list_is_empty(void **state)
{
    pd_actor_t actor = actor_of("mem_1", ALL);

    (void)state;
    (void)make_shop("shop");
    (void)connect_to("shop", "shop", NULL);
    actor.permissions = NULL;
    assert_string_equal(view_text(&actor), "");
    actor.is_owner = 1;
    assert_string_equal(view_text(&actor), "shop: add drop get list");
}

static void a_connection_for_toolboxes_yields_no_plain_tools(void **state)
{
    pd_actor_t actor = actor_of("mem_1", ALL);

    (void)state;
    (void)make_shop("shop");
    world_done("connections__create", json_pack("{s:s,s:s,s:b,s:b}", "connector", "shop", "label", "box",
                                                "shared", 1, "toolbox_only", 1));
    (void)connect_to("shop", "open", NULL);
    assert_string_equal(view_text(&actor), "open: add drop get list");
}

static void tools_carry_our_own_hints_and_say_when_the_credential_is_missing(void **state)
{
    static const struct {
        const char *name;
        int reads, destroys, repeats;
    } cases[] = {{"shop__get", 1, 0, 1}, {"shop__add", 0, 0, 0}, {"shop__drop", 0, 1, 1}};
    pd_actor_t actor = actor_of("mem_1", ALL);
    json_t *chunk;
    const json_t *tool;
    size_t i;
    size_t k;

    (void)state;
    world_done("connectors__create", shop_file("shop", "Shop", "bearer"));
    (void)connect_to("shop", "shop", NULL); /* without a credential */
    chunk = blob(chunk_digest(&actor, "shop"));
    json_array_foreach(json_object_get(chunk, "tools"), i, tool)
    {
        const json_t *def = json_object_get(tool, "def");
        const json_t *hints = json_object_get(def, "annotations");

        assert_int_equal(strncmp(mcp_json_str(def, "description"), "[needs reauthorisation] ", 24), 0);
        assert_true(json_is_object(json_object_get(def, "inputSchema")));
        for (k = 0; k < COUNT(cases); k++) {
            if (strcmp(mcp_json_str(tool, "name"), cases[k].name) == 0) {
                assert_int_equal(mcp_json_bool(hints, "readOnlyHint"), cases[k].reads);
                assert_int_equal(mcp_json_bool(hints, "destructiveHint"), cases[k].destroys);
                assert_int_equal(mcp_json_bool(hints, "idempotentHint"), cases[k].repeats);
                assert_int_equal(mcp_json_bool(hints, "openWorldHint"), 1);
            }
        }
    }
    json_decref(chunk);
    world_done("connections__update", json_pack("{s:s,s:{s:s}}", "connection", "shop", "credential",
                                                "token", "s3cret"));
    chunk = blob(chunk_digest(&actor, "shop"));
    tool = json_array_get(json_object_get(chunk, "tools"), 0);
    assert_string_equal(mcp_json_str(json_object_get(tool, "def"), "description"), "Adds.");
    json_decref(chunk);
}

static void a_chunk_keeps_its_digest_while_only_others_change(void **state)
{
    const char *ada = world_member("ada@example.com", "Member");
    pd_actor_t actor = actor_of(ada, ALL);
    pd_actor_t less = actor_of(ada, MCP_SCOPE_READ | MCP_SCOPE_TOOLS);
    const char *shop = make_shop("shop");
    const char *connection = connect_to("shop", "shop", NULL);
    const char *before = chunk_digest(&actor, "shop");
    const char *view = view_of(&actor);
    json_t *file;

    (void)state;
    (void)make_shop("other");
    (void)connect_to("other", "other", NULL);
    assert_string_not_equal(view_of(&actor), view); /* the manifest is another */
    assert_string_equal(chunk_digest(&actor, "shop"), before);
    (void)connect_to("other", "own", ada);
    world_done("settings__set", json_pack("{s:s,s:i}", "key", "collapse.threshold", "value", 5));
    world_done("members__suspend", json_pack("{s:s}", "member", ada));
    (void)world_member("bob@example.com", "Member");
    file = shop_file("other", "Another", "none");
    json_object_set_new(file, "connector", json_string("other"));
    world_done("connectors__update", file);
    world_done("connections__update", json_pack("{s:s,s:b}", "connection", "other", "toolbox_only", 1));
    assert_string_equal(chunk_digest(&actor, "shop"), before);
    world_done("connections__delete", json_pack("{s:s}", "connection", "other"));
    assert_string_equal(chunk_digest(&actor, "shop"), before);
    /* what of it a caller has is a selection in his manifest: the chunk is the same for everybody */
    assert_string_equal(chunk_digest(&less, "shop"), before);
    assert_string_not_equal(view_of(&less), view_of(&actor));
    /* and what is its own changes it */
    world_done("connections__update", json_pack("{s:s,s:s}", "connection", connection, "label", "store"));
    assert_string_not_equal(chunk_digest(&actor, "store"), before);
    world_done("connections__update", json_pack("{s:s,s:s}", "connection", connection, "label", "shop"));
    assert_string_equal(chunk_digest(&actor, "shop"), before); /* the same again is the same */
    file = shop_file("shop", "Shop", "none");
    json_object_set_new(json_array_get(json_object_get(file, "operations"), 1), "description",
                        json_string("Adds one."));
    json_object_set_new(file, "connector", json_string(shop));
    world_done("connectors__update", file);
    assert_string_not_equal(chunk_digest(&actor, "shop"), before);
}

static void a_write_is_in_the_next_view(void **state)
{
    const char *ada = world_member("ada@example.com", "Member");
    pd_actor_t actor = actor_of(ada, ALL);
    const char *shop = make_shop("shop");
    const char *connection;
    int64_t revision;

    (void)state;
    assert_string_equal(view_text(&actor), "");
    connection = connect_to("shop", "shop", NULL);
    assert_string_equal(view_text(&actor), "shop: add drop get list");
    world_done("connections__update", json_pack("{s:s,s:s}", "connection", connection, "label", "x"));
    assert_string_equal(view_text(&actor), "x: add drop get list");
    revision = world.core.policy->snapshot->revision;
    world_done("connections__delete", json_pack("{s:s}", "connection", connection));
    assert_string_equal(view_text(&actor), "");
    assert_int_equal(world.core.policy->snapshot->revision, revision + 1);
    (void)connect_to("shop", "own", ada);
    assert_string_equal(view_text(&actor), "own: add drop get list");
    world_done("members__remove", json_pack("{s:s}", "member", ada)); /* takes the connection along */
    assert_string_equal(view_text(&actor), "");
    world_done("connectors__delete", json_pack("{s:s}", "connector", shop));
    assert_string_equal(view_text(&actor), "");
}

static pd_status_t drop_connection(pd_tx_t *tx, void *baton)
{
    return pd_tx_delete(tx, "connection", baton, 0);
}

static void a_change_made_elsewhere_is_followed_within_five_seconds(void **state)
{
    pd_actor_t actor = actor_of("mem_1", ALL);
    char *id;
    int i;

    (void)state;
    (void)make_shop("shop");
    id = apr_pstrdup(world.scratch, connect_to("shop", "shop", NULL));
    world.is_elsewhere = 1;
    assert_int_equal(world_unit(PD_LANE_WRITE, drop_connection, id), PD_OK);
    assert_string_equal(view_text(&actor), "shop: add drop get list");
    for (i = 0; i < 5; i++) {
        pd_policy_tick(&world.core);
    }
    assert_string_equal(view_text(&actor), "");
}

static void many_classes_do_not_grow_without_end(void **state)
{
    pd_actor_t actor = actor_of("mem_1", ALL);
    const char *digest = NULL;
    const char *shared;
    int i;

    (void)state;
    (void)make_shop("shop");
    (void)connect_to("shop", "shop", NULL);
    shared = view_of(&actor);
    for (i = 0; i < 1000; i++) { /* members without connections of their own are one class */
        actor = actor_of(apr_psprintf(world.scratch, "mem_%d", i), ALL);
        assert_int_equal(pd_view_digest(&world.core, &actor, &digest), PD_OK);
        assert_string_equal(digest, shared);
    }
}

/* --- snapshots: following equals loading ------------------------------------------------------- */

static const char *hash_keys(apr_hash_t *table)
{
    apr_array_header_t *keys = apr_array_make(world.scratch, 16, sizeof(const char *));
    apr_hash_index_t *i;
    const char *text = "";
    int a;
    int b;

    for (i = apr_hash_first(world.scratch, table); i != NULL; i = apr_hash_next(i)) {
        APR_ARRAY_PUSH(keys, const char *) = apr_hash_this_key(i);
    }
    for (a = 0; a < keys->nelts; a++) { /* few: any order will do, as long as it is one */
        for (b = a + 1; b < keys->nelts; b++) {
            const char **x = &APR_ARRAY_IDX(keys, a, const char *);
            const char **y = &APR_ARRAY_IDX(keys, b, const char *);

            if (strcmp(*x, *y) > 0) {
                const char *swap = *x;

                *x = *y;
                *y = swap;
            }
        }
        text = apr_pstrcat(world.scratch, text, APR_ARRAY_IDX(keys, a, const char *), "\n", NULL);
    }
    return text;
}

static const char *connection_text(const pd_connection_t *c)
{
    const char *text = apr_psprintf(world.scratch, "  %s label=%s owner=%s base=%s %d%d of %s:", c->id,
                                    c->label, c->owner != NULL ? c->owner : "-", c->base, c->is_ready,
                                    c->is_toolbox_only, c->connector->id);
    int i;

    assert_int_equal(apr_hash_count(c->by_name), c->tools->nelts);
    for (i = 0; i < c->tools->nelts; i++) {
        const pd_tool_t *tool = &APR_ARRAY_IDX(c->tools, i, pd_tool_t);

        assert_ptr_equal(pd_snapshot_tool(c, tool->name), tool);
        text = apr_pstrcat(world.scratch, text, " ", tool->name, "=", tool->operation->digest, NULL);
    }
    return apr_pstrcat(world.scratch, text, "\n", NULL);
}

static const char *list_text(const apr_array_header_t *list)
{
    const char *text = "";
    int i;

    for (i = 0; i < list->nelts; i++) {
        text = apr_pstrcat(world.scratch, text, connection_text(APR_ARRAY_IDX(list, i, pd_connection_t *)),
                           NULL);
    }
    return text;
}

/* What the ground and the settings of a snapshot tell, as one text; of the other blocks, and of sharing: test_snapshot.c. */
static const char *snapshot_text(const pd_snapshot_t *s)
{
    const pd_ground_t *g = s->ground;
    const char *text = apr_psprintf(
        world.scratch, "connectors:\n%sconnections:\n%sleft out:\n%slabels:\n%sany:\n%sshared:\n%s",
        hash_keys(g->connectors), hash_keys(g->connections), hash_keys(g->left_out), hash_keys(g->by_label),
        hash_keys(g->any_label), list_text(g->shared));
    apr_hash_index_t *i;
    char *owners;
    char *last = NULL;
    char *owner;

    owners = apr_pstrdup(world.scratch, hash_keys(g->by_owner));
    for (owner = apr_strtok(owners, "\n", &last); owner != NULL; owner = apr_strtok(NULL, "\n", &last)) {
        text = apr_pstrcat(world.scratch, text, "owner ", owner, "\n",
                           list_text(pd_snapshot_own(s, owner)), NULL);
    }
    for (i = apr_hash_first(world.scratch, s->settings); i != NULL; i = apr_hash_next(i)) {
        assert_non_null(apr_hash_this_val(i));
    }
    owners = apr_pstrdup(world.scratch, hash_keys(s->settings));
    for (owner = apr_strtok(owners, "\n", &last); owner != NULL; owner = apr_strtok(NULL, "\n", &last)) {
        char *value = json_dumps(apr_hash_get(s->settings, owner, APR_HASH_KEY_STRING), JSON_ENCODE_ANY);

        text = apr_pstrcat(world.scratch, text, owner, " = ", value, "\n", NULL);
        free(value);
    }
    return text;
}

static pd_status_t load(pd_tx_t *tx, void *baton)
{
    return pd_snapshot_load(tx, baton);
}

static void expect_followed(int round)
{
    pd_snapshot_t *loaded = NULL;
    const char *wanted;
    const char *got;

    assert_int_equal(world_unit(PD_LANE_LOOP, load, &loaded), PD_OK);
    wanted = snapshot_text(loaded);
    got = snapshot_text(world.core.policy->snapshot);
    assert_int_equal(world.core.policy->snapshot->revision, loaded->revision);
    if (strcmp(wanted, got) != 0) {
        fail_msg("round %d: followed:\n%s\nloaded:\n%s", round, got, wanted);
    }
    pd_snapshot_free(&loaded);
}

typedef struct random_writes {
    unsigned seed;
    json_t *documents[3]; /* of good connectors: with five, with two operations, with another base */
    const char *owners[3];
} random_writes_t;

static int pick(random_writes_t *writes, int below)
{
    writes->seed = writes->seed * 1103515245u + 12345u;
    return (int)(writes->seed >> 16) % below;
}

/* Writes an object, whether or not it is there. doc: stolen. */
static pd_status_t put_object(pd_tx_t *tx, const char *kind, const char *id, const char *owner, json_t *doc)
{
    pd_status_t status = pd_tx_update(tx, kind, id, owner, doc, NULL, 0, NULL);

    if (status == PD_E_NOT_FOUND) {
        status = pd_tx_insert(tx, kind, id, owner, doc, NULL);
    }
    json_decref(doc);
    return status;
}

static pd_status_t drop_object(pd_tx_t *tx, const char *kind, const char *id)
{
    pd_status_t status = pd_tx_delete(tx, kind, id, 0);

    return status == PD_E_NOT_FOUND ? PD_OK : status;
}

static pd_status_t write_connector(pd_tx_t *tx, random_writes_t *writes)
{
    const char *id = apr_psprintf(pd_tx_pool(tx), "con_%d", pick(writes, 3));

    switch (pick(writes, 4)) {
    case 0:
        return drop_object(tx, "connector", id);
    case 1: /* one that can't be compiled: such a store was written by others */
        return put_object(tx, "connector", id, NULL, json_pack("{s:s}", "slug", "broken"));
    default:
        return put_object(tx, "connector", id, NULL,
                          json_deep_copy(writes->documents[pick(writes, 3)]));
    }
}

static pd_status_t write_connection(pd_tx_t *tx, random_writes_t *writes)
{
    int place = pick(writes, 6);
    const char *id = apr_psprintf(pd_tx_pool(tx), "cxn_%d", place);
    json_t *doc;

    if (pick(writes, 4) == 0) {
        return drop_object(tx, "connection", id);
    }
    doc = json_pack("{s:o,s:o,s:s,s:s,s:b}", "connector",
                    json_sprintf("con_%d", pick(writes, 4)), /* con_3 never is */
                    "label", json_sprintf("l%d-%d", place, pick(writes, 2)), "base",
                    pick(writes, 2) ? "https://a.example" : "https://b.example", "state",
                    pick(writes, 3) ? "ready" : "needs_reauth", "toolbox_only", pick(writes, 4) == 0);
    if (pick(writes, 8) == 0) {
        (void)json_object_del(doc, pick(writes, 2) ? "base" : "connector");
    } else if (pick(writes, 8) == 0) {
        json_object_set_new(doc, "label", json_string("Not A Label"));
    }
    return put_object(tx, "connection", id, writes->owners[pick(writes, 3)], doc);
}

static pd_status_t write_setting(pd_tx_t *tx, random_writes_t *writes)
{
    int place = pick(writes, 4);
    const char *id = apr_psprintf(pd_tx_pool(tx), "set_%d", place);
    json_t *doc;

    if (pick(writes, 3) == 0) {
        return drop_object(tx, "setting", id);
    }
    doc = json_pack("{s:o,s:i}", "key", json_sprintf("k.%d", place / 2), "value", pick(writes, 5));
    if (place == 1) {
        json_object_set_new(doc, "client", json_string("claude"));
    } else if (place == 3) {
        json_object_set_new(doc, "grant", json_string("grt_1"));
    }
    return put_object(tx, "setting", id, NULL, doc);
}

static pd_status_t write_unrelated(pd_tx_t *tx, random_writes_t *writes)
{
    return put_object(tx, "role", apr_psprintf(pd_tx_pool(tx), "rol_%d", pick(writes, 3)), NULL,
                      json_pack("{s:i}", "n", pick(writes, 100)));
}

static pd_status_t write_some(pd_tx_t *tx, void *baton)
{
    static pd_status_t (*const kinds[])(pd_tx_t *, random_writes_t *) = {
        write_connector, write_connection, write_connection, write_setting, write_unrelated};
    random_writes_t *writes = baton;
    int left = 1 + pick(writes, 4);
    pd_status_t status = PD_OK;

    for (; status == PD_OK && left > 0; left--) {
        status = kinds[pick(writes, (int)COUNT(kinds))](tx, writes);
    }
    return status;
}

static json_t *document(json_t *file)
{
    pd_fault_t fault = {.code = MCP_CODE_NONE};
    json_t *doc = NULL;

    assert_int_equal(pd_catalog_check(file, &doc, &fault), PD_OK);
    json_decref(file);
    return doc;
}

static void following_any_changes_equals_loading_anew(void **state)
{
    random_writes_t writes = {.owners = {NULL, "mem_1", "mem_2"}};
    pd_actor_t actor = actor_of("mem_1", ALL);
    json_t *small = shop_file("shop", "Shop", "none");
    json_t *bearer = shop_file("shop", "Shop", "bearer");
    int sequence;
    int round;
    int i;

    (void)state;
    pd_log_open(0, PD_LOG_ERR - 1); /* what is left out is told each time */
    assert_int_equal(json_array_remove(json_object_get(small, "operations"), 0), 0);
    writes.documents[0] = document(shop_file("shop", "Shop", "none"));
    writes.documents[1] = document(small);
    writes.documents[2] = document(bearer);
    for (sequence = 0; sequence < 6; sequence++) {
        writes.seed = 4711u + (unsigned)sequence;
        for (round = 0; round < 60; round++) {
            apr_pool_clear(world.scratch);
            world.is_elsewhere = pick(&writes, 3) == 0; /* then several are followed at once */
            assert_int_equal(world_unit(PD_LANE_WRITE, write_some, &writes), PD_OK);
            if (world.is_elsewhere) {
                continue;
            }
            expect_followed(round);
            (void)view_text(&actor); /* a view of it can be made and read */
        }
        world.is_elsewhere = 0;
        for (i = 0; i < 5; i++) {
            pd_policy_tick(&world.core);
        }
        expect_followed(round);
    }
    for (i = 0; i < 3; i++) {
        json_decref(writes.documents[i]);
    }
    pd_log_open(0, PD_LOG_ERR);
}

static void who_reaches_which_label(void **state)
{
    const char *ada = world_member("ada@example.com", "Member");
    const char *bob = world_member("bob@example.com", "Member");
    const pd_snapshot_t *snapshot;
    pd_connection_t *found;

    (void)state;
    (void)make_shop("shop");
    (void)connect_to("shop", "shared", NULL);
    (void)connect_to("shop", "own", ada);
    snapshot = world.core.policy->snapshot;
    assert_non_null(pd_snapshot_reach(snapshot, ada, "shared", 6));
    assert_ptr_equal(pd_snapshot_reach(snapshot, ada, "shared__get", 6),
                     pd_snapshot_reach(snapshot, bob, "shared", 6));
    found = pd_snapshot_reach(snapshot, ada, "own__get", 3);
    assert_non_null(found);
    assert_string_equal(found->owner, ada);
    assert_null(pd_snapshot_reach(snapshot, bob, "own", 3));
    assert_null(pd_snapshot_reach(snapshot, NULL, "own", 3));
    assert_null(pd_snapshot_reach(snapshot, ada, "ow", 2));
    assert_null(pd_snapshot_reach(snapshot, ada, "", 0));
    assert_null(pd_snapshot_own(snapshot, bob));
    assert_int_equal(pd_snapshot_own(snapshot, ada)->nelts, 1);
}

/* A job that still reads the snapshot it was given while the policy goes on. */
static void a_snapshot_in_use_outlives_its_successors(void **state)
{
    pd_snapshot_t *held;
    const char *before;
    const char *id;

    (void)state;
    (void)make_shop("shop");
    id = connect_to("shop", "shop", NULL);
    held = pd_snapshot_hold(world.core.policy->snapshot);
    before = snapshot_text(held);
    world_done("connections__delete", json_pack("{s:s}", "connection", id));
    world_done("connectors__delete", json_pack("{s:s}", "connector", "shop"));
    world_done("settings__set", json_pack("{s:s,s:i}", "key", "collapse.threshold", "value", 5));
    assert_ptr_not_equal(world.core.policy->snapshot, held);
    assert_true(world.core.policy->snapshot->revision > held->revision);
    assert_string_equal(snapshot_text(held), before);
    assert_int_equal(held->refs, 1); /* the policy has let go of it */
    pd_snapshot_free(&held);
    assert_null(held);
}

/* A connection that is still in use when the snapshot it came from goes. */
static void a_connection_in_use_outlives_its_snapshot(void **state)
{
    pd_connection_t *held;
    const char *id;

    (void)state;
    (void)make_shop("shop");
    id = connect_to("shop", "shop", NULL);
    held = pd_snapshot_reach(world.core.policy->snapshot, NULL, "shop", 4);
    pd_snapshot_retain(held);
    world_done("connections__delete", json_pack("{s:s}", "connection", id));
    world_done("connectors__delete", json_pack("{s:s}", "connector", "shop"));
    assert_null(pd_snapshot_reach(world.core.policy->snapshot, NULL, "shop", 4));
    assert_string_equal(held->label, "shop");
    assert_string_equal(held->connector->slug, "shop");
    assert_string_equal(pd_snapshot_tool(held, "shop__get")->operation->method, "GET");
    pd_snapshot_release(&held);
    assert_null(held);
}

/* --- blobs ---------------------------------------------------------------------------------------- */

static void a_blob_is_held_for_two_minutes_after_it_was_named(void **state)
{
    pd_blobs_t *blobs = world.core.policy->blobs;
    char digest[MCP_DIGEST_HEX + 1];

    (void)state;
    mcp_digest_hex("bytes", 5, digest);
    assert_int_equal(pd_blobs_put(blobs, digest, "bytes", 5), PD_OK);
    world_pass_ms(119000);
    pd_blobs_tick(blobs);
    assert_true(pd_blobs_touch(blobs, digest)); /* named again */
    world_pass_ms(119000);
    pd_blobs_tick(blobs);
    assert_true(is_readable(digest)); /* which names it too */
    assert_int_equal(world.raw_bytes, 5);
    world_pass_ms(119000);
    assert_int_equal(pd_blobs_put(blobs, digest, "bytes", 5), PD_OK); /* as does putting it again */
    world_pass_ms(119000);
    pd_blobs_tick(blobs);
    assert_true(is_readable(digest));
    world_pass_ms(121000);
    pd_blobs_tick(blobs);
    assert_false(is_readable(digest));
    assert_int_equal(world.refused, MCP_CODE_NOT_FOUND);
    assert_false(pd_blobs_touch(blobs, digest));
}

static void a_manifest_that_is_named_again_and_again_keeps_its_chunks(void **state)
{
    pd_actor_t actor = actor_of("mem_1", ALL);
    const char *chunk;
    int minute;

    (void)state;
    (void)make_shop("shop");
    (void)connect_to("shop", "shop", NULL);
    chunk = chunk_digest(&actor, "shop");
    for (minute = 0; minute < 10; minute++) { /* one child knows all of it and only resolves */
        world_pass_ms(60000);
        pd_blobs_tick(world.core.policy->blobs);
        (void)view_of(&actor);
    }
    assert_true(is_readable(chunk)); /* another child has just started */
    world_pass_ms(600000);
    pd_blobs_tick(world.core.policy->blobs); /* nobody asked for ten minutes */
    assert_false(is_readable(chunk));
    assert_string_equal(view_text(&actor), "shop: add drop get list"); /* all is there again */
}

/* Whoever names a view that was put a moment ago puts nothing again, and a chunk may have been put for another class before. */
static void what_is_named_is_readable_for_two_minutes_whoever_put_it_when(void **state)
{
    pd_actor_t first = actor_of("mem_1", ALL);
    pd_actor_t second = actor_of("mem_1", MCP_SCOPE_TOOLS | MCP_SCOPE_READ);
    const char *chunk;
    const char *view;
    int pause_s;
    int wait_s;

    (void)state;
    (void)make_shop("shop");
    (void)connect_to("shop", "shop", NULL);
    for (pause_s = 1; pause_s <= 61; pause_s += 4) {
        for (wait_s = 0; wait_s <= 60; wait_s += 12) {
            chunk = chunk_digest(&first, "shop");
            world_pass_ms(pause_s * 1000);
            (void)view_of(&second);
            world_pass_ms(wait_s * 1000);
            view = view_of(&second); /* the last time that anybody names any of it */
            world_pass_ms(119000);
            pd_blobs_tick(world.core.policy->blobs);
            assert_true(is_readable(view));
            assert_true(is_readable(chunk));
            world_pass_ms(600000);
            pd_blobs_tick(world.core.policy->blobs);
            assert_false(is_readable(view));
            assert_false(is_readable(chunk));
        }
    }
}

static void a_view_named_before_a_change_stays_readable_after_it(void **state)
{
    pd_actor_t actor = actor_of("mem_1", ALL);
    const char *view;
    const char *chunk;

    (void)state;
    (void)make_shop("shop");
    (void)connect_to("shop", "shop", NULL);
    view = view_of(&actor);
    chunk = chunk_digest(&actor, "shop");
    world_done("connections__delete", json_pack("{s:s}", "connection", "shop"));
    world_done("connectors__delete", json_pack("{s:s}", "connector", "shop"));
    world_pass_ms(100000);
    pd_blobs_tick(world.core.policy->blobs);
    json_decref(blob(view));
    json_decref(blob(chunk));
}

static void a_blob_is_read_in_parts_from_any_offset(void **state)
{
    size_t count = 2 * MCP_MAX_BLOB_PART + 17;
    char *bytes = malloc(count);
    char digest[MCP_DIGEST_HEX + 1];
    size_t i;
    static const struct {
        size_t offset, bytes;
        int more;
    } parts[] = {{0, MCP_MAX_BLOB_PART, 1},
                 {1, MCP_MAX_BLOB_PART, 1},
                 {MCP_MAX_BLOB_PART, MCP_MAX_BLOB_PART, 1},
                 {MCP_MAX_BLOB_PART + 17, MCP_MAX_BLOB_PART, 0},
                 {2 * MCP_MAX_BLOB_PART, 17, 0},
                 {2 * MCP_MAX_BLOB_PART + 17, 0, 0}};

    (void)state;
    assert_non_null(bytes);
    for (i = 0; i < count; i++) {
        bytes[i] = (char)(i * 31 + i / 1000);
    }
    mcp_digest_hex(bytes, count, digest);
    assert_int_equal(pd_blobs_put(world.core.policy->blobs, digest, bytes, count), PD_OK);
    for (i = 0; i < COUNT(parts); i++) {
        world_ask(MCP_KIND_BLOB_GET, pd_on_blob_get, blob_question(digest, parts[i].offset));
        assert_int_equal(world.refused, MCP_CODE_NONE);
        assert_int_equal(world.raw_bytes, parts[i].bytes);
        assert_int_equal(world.raw_more, parts[i].more);
        assert_memory_equal(world.raw, bytes + parts[i].offset, parts[i].bytes);
    }
    world_ask(MCP_KIND_BLOB_GET, pd_on_blob_get, blob_question(digest, count + 1));
    assert_int_equal(world.refused, MCP_CODE_NOT_FOUND);
    free(bytes);
    assert_int_equal(pd_blobs_put(world.core.policy->blobs, digest, "", MCP_MAX_BLOB_BYTES + 1),
                     PD_OK); /* it is there already: nothing is copied */
    mcp_digest_hex("", 0, digest);
    assert_int_equal(pd_blobs_put(world.core.policy->blobs, digest, "", MCP_MAX_BLOB_BYTES + 1),
                     PD_E_FULL);
}

/* --- guards and plans --------------------------------------------------------------------------------- */

static void a_guard_has_every_operation_and_says_nothing_of_callers(void **state)
{
    const char *digest = NULL;
    json_t *guard;
    const json_t *row;
    size_t i;

    (void)state;
    (void)make_shop("shop");
    (void)connect_to("shop", "shop", NULL);
    assert_int_equal(pd_view_guard(&world.core, shop_connection()->connector, &digest), PD_OK);
    assert_string_equal(digest, shop_connection()->connector->guard_digest);
    guard = blob(digest);
    assert_string_equal(mcp_json_str(guard, "connector"), "shop");
    assert_int_equal(json_array_size(json_object_get(guard, "operations")), 5);
    json_array_foreach(json_object_get(guard, "operations"), i, row)
    {
        assert_null(json_object_get(row, "verdict"));
        assert_null(strchr(mcp_json_str(row, "path"), '?'));
        if (strcmp(mcp_json_str(row, "id"), "list") == 0) {
            json_t *query = json_loads("[[\"all\",\"\"],[\"x\",\"1%202\"]]", 0, NULL);

            assert_string_equal(mcp_json_str(row, "path"), "/items");
            assert_true(json_equal(json_object_get(row, "query"), query));
            json_decref(query);
        }
    }
    json_decref(guard);
}

static void verdicts_stand_in_the_order_of_the_guards_rows(void **state)
{
    static const struct {
        unsigned scopes;
        const char *wanted; /* of add, burn, drop, get, list */
    } cases[] = {{MCP_SCOPE_TOOLS, "dbddd"},
                 {MCP_SCOPE_TOOLS | MCP_SCOPE_READ, "dbdaa"},
                 {MCP_SCOPE_TOOLS | MCP_SCOPE_WRITE, "abdaa"},
                 {MCP_SCOPE_TOOLS | MCP_SCOPE_DESTRUCTIVE, "abaaa"}};
    size_t i;

    (void)state;
    (void)make_shop("shop");
    (void)connect_to("shop", "shop", NULL);
    for (i = 0; i < COUNT(cases); i++) {
        pd_actor_t actor = actor_of("mem_1", cases[i].scopes);
        const char *digest = NULL;

        assert_int_equal(pd_view_verdicts(&world.core, &actor, shop_connection(), &digest), PD_OK);
        assert_true(is_readable(digest));
        assert_int_equal(world.raw_bytes, strlen(cases[i].wanted));
        assert_memory_equal(world.raw, cases[i].wanted, world.raw_bytes);
    }
}

static void a_rung_holds_those_below_it(void **state)
{
    (void)state;
    assert_int_equal(pd_view_rung(0), 0);
    assert_int_equal(pd_view_rung(MCP_SCOPE_TOOLS), 0);
    assert_int_equal(pd_view_rung(MCP_SCOPE_READ | MCP_SCOPE_TOOLS), 1);
    assert_int_equal(pd_view_rung(MCP_SCOPE_WRITE), 2);
    assert_int_equal(pd_view_rung(MCP_SCOPE_DESTRUCTIVE), 3);
    assert_int_equal(pd_view_rung(0x80000000u), 0);
}

static json_t *plan_for(const char *tool, const json_t *credential, unsigned scopes)
{
    pd_actor_t actor = actor_of("mem_1", scopes);
    pd_subject_t subject = pd_view_subject(&actor);
    pd_found_t found;
    json_t *plan = NULL;

    assert_int_equal(pd_reach_tool(world.core.policy->snapshot, &subject, tool, world.scratch, &found, NULL),
                     PD_REACH_OK);
    if (pd_plan_make(&world.core, &actor, &found, shop_connection(), credential, &plan) != PD_OK) {
        return NULL;
    }
    return plan;
}

static void a_plan_has_all_that_a_worker_needs(void **state)
{
    const char *id;
    json_t *plan;
    json_t *operation;

    (void)state;
    (void)make_shop("shop");
    id = connect_to("shop", "shop", NULL);
    plan = plan_for("shop__get", NULL, ALL);
    assert_non_null(plan);
    assert_string_equal(mcp_json_str(plan, "tool"), "shop__get");
    assert_string_equal(mcp_json_str(plan, "connection"), id);
    assert_string_equal(mcp_json_str(plan, "base"), "https://shop.example/api");
    assert_string_equal(mcp_json_str(plan, "class"), "read");
    assert_string_equal(mcp_json_str(json_object_get(plan, "auth"), "type"), "none");
    assert_int_equal(json_object_size(json_object_get(plan, "defaults")), 0);
    assert_int_equal(json_object_size(json_object_get(plan, "frozen")), 0);
    assert_int_equal(mcp_json_int(plan, "timeout_ms", 0), 30000);
    assert_int_equal(mcp_json_int(plan, "max_bytes", 0), 10485760);
    operation = blob(mcp_json_str(plan, "operation"));
    assert_string_equal(mcp_json_str(operation, "id"), "get");
    json_decref(operation);
    json_decref(blob(mcp_json_str(plan, "guard")));
    assert_true(is_readable(mcp_json_str(plan, "verdicts")));
    assert_int_equal(world.raw_bytes, 5);
    json_decref(plan);
}

static void the_organisation_caps_what_a_connector_asks_for(void **state)
{
    json_t *file = shop_file("shop", "Shop", "none");
    json_t *plan;

    (void)state;
    json_object_set_new(file, "timeout_ms", json_integer(20000));
    json_object_set_new(file, "max_bytes", json_integer(2000000));
    world_done("connectors__create", file);
    (void)connect_to("shop", "shop", NULL);
    plan = plan_for("shop__get", NULL, ALL);
    assert_int_equal(mcp_json_int(plan, "timeout_ms", 0), 20000);
    assert_int_equal(mcp_json_int(plan, "max_bytes", 0), 2000000);
    json_decref(plan);
    world_done("settings__set", json_pack("{s:s,s:i}", "key", "execution.timeout_ms", "value", 5000));
    plan = plan_for("shop__get", NULL, ALL);
    assert_int_equal(mcp_json_int(plan, "timeout_ms", 0), 5000);
    json_decref(plan);
}

typedef struct opened {
    const char *connection_id;
    json_t *credential;
    pd_status_t status;
} opened_t;

static pd_status_t open_credential(pd_tx_t *tx, void *baton)
{
    opened_t *opened = baton;
    const pd_connection_t *connection =
        pd_snapshot_connection(world.core.policy->snapshot, opened->connection_id);

    opened->status = pd_plan_credential(&world.core, tx, connection, &opened->credential);
    return PD_OK;
}

static void a_credential_opens_for_its_own_connection_and_origin_alone(void **state)
{
    opened_t opened = {NULL, NULL, PD_OK};
    opened_t without = {NULL, NULL, PD_OK};
    pd_connection_t *connection;
    const char *base;
    const char *id;
    json_t *plan;

    (void)state;
    world_done("connectors__create", shop_file("shop", "Shop", "bearer"));
    opened.connection_id =
        world_make("connections__create", "connection",
                   json_pack("{s:s,s:s,s:b,s:{s:s}}", "connector", "shop", "label", "shop", "shared", 1,
                             "credential", "token", "s3cret"));
    without.connection_id = connect_to("shop", "bare", NULL);
    assert_int_equal(world_unit(PD_LANE_LOOP, open_credential, &opened), PD_OK);
    assert_int_equal(opened.status, PD_OK);
    assert_string_equal(mcp_json_str(opened.credential, "token"), "s3cret");
    plan = plan_for("shop__get", opened.credential, ALL);
    assert_string_equal(mcp_json_str(json_object_get(plan, "auth"), "value"), "Bearer s3cret");
    json_decref(plan);
    json_decref(opened.credential);
    assert_null(plan_for("shop__get", NULL, ALL)); /* no plan without what the scheme needs */

    assert_int_equal(world_unit(PD_LANE_LOOP, open_credential, &without), PD_OK);
    assert_int_equal(without.status, PD_E_NOT_FOUND);

    connection = pd_snapshot_connection(world.core.policy->snapshot, opened.connection_id);
    base = connection->base;
    connection->base = "https://other.example/api"; /* as in a store that somebody edited */
    opened.credential = NULL;
    assert_int_equal(world_unit(PD_LANE_LOOP, open_credential, &opened), PD_OK);
    assert_int_equal(opened.status, PD_E_CRYPTO);
    connection->base = base;
    id = connection->id;
    connection->id = without.connection_id;
    assert_int_equal(world_unit(PD_LANE_LOOP, open_credential, &opened), PD_OK);
    assert_int_equal(opened.status, PD_E_NOT_FOUND); /* that one has none */
    connection->id = id;
    world.core.master_key[0] ^= 1;
    assert_int_equal(world_unit(PD_LANE_LOOP, open_credential, &opened), PD_OK);
    assert_int_equal(opened.status, PD_E_CRYPTO);
    assert_null(opened.credential);
    world.core.master_key[0] ^= 1;
}

static void an_origin_is_scheme_host_and_port(void **state)
{
    static const struct {
        const char *base, *origin;
    } cases[] = {{"https://a.example", "https://a.example"},
                 {"https://a.example/", "https://a.example"},
                 {"https://a.example:8443/api/v1", "https://a.example:8443"},
                 {"http://[::1]:80/x", "http://[::1]:80"},
                 {"https://a.example?x", "https://a.example"},
                 {"https://a.example#x", "https://a.example"},
                 {"no origin", ""},
                 {"", ""}};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        assert_string_equal(pd_plan_origin(cases[i].base, world.scratch), cases[i].origin);
    }
}

/* --- the key ring ------------------------------------------------------------------------------------------ */

/* "ID*" of the current key, "ID" of others, in the order that hello names them. */
static const char *ring_text(void)
{
    json_t *keys = pd_keys_json(world.core.policy->keys);
    const char *text = "";
    const json_t *key;
    size_t i;
    int current = 0;

    json_array_foreach(keys, i, key)
    {
        unsigned char bytes[MCP_KEY_BYTES];
        const char *encoded = mcp_json_str(key, "key");
        size_t count = 0;

        assert_int_equal(mcp_unb64url(encoded, strlen(encoded), bytes, sizeof(bytes), &count), MCP_OK);
        assert_int_equal(count, MCP_KEY_BYTES);
        assert_int_equal(strlen(mcp_json_str(key, "id")), 8);
        current += mcp_json_bool(key, "current");
        text = apr_pstrcat(world.scratch, text, i > 0 ? " " : "", mcp_json_str(key, "id"),
                           mcp_json_bool(key, "current") ? "*" : "", NULL);
    }
    assert_int_equal(current, keys != NULL);
    json_decref(keys);
    return text;
}

/* Lets the writes that a tick started end. */
static void tick_keys(void)
{
    pd_keys_tick(&world.core, world.core.policy->keys);
    world_settle();
}

static void the_ring_has_a_key_from_the_start_and_survives_a_restart(void **state)
{
    const char *ring;
    char tag[17], again[17], other[17];

    (void)state;
    tick_keys();
    ring = ring_text();
    assert_int_equal(strlen(ring), 9); /* one, and it is the current one */
    pd_keys_tag(world.core.policy->keys, "name", tag);
    pd_keys_tag(world.core.policy->keys, "namf", other);
    assert_int_equal(strlen(tag), 16);
    assert_string_not_equal(tag, other);
    world_restart();
    assert_string_equal(ring_text(), ring);
    pd_keys_tag(world.core.policy->keys, "name", again);
    assert_string_equal(tag, again);
}

static void a_new_key_is_known_for_a_while_before_it_is_used(void **state)
{
    const char *first;
    const char *both;
    const char *third;
    const int64_t week_ms = (int64_t)PD_KEY_DAYS * 86400 * 1000;

    (void)state;
    tick_keys();
    first = ring_text();
    world_pass_ms(week_ms - 60000);
    tick_keys();
    assert_string_equal(ring_text(), first);
    world_pass_ms(120000);
    tick_keys();
    both = ring_text();
    assert_non_null(strstr(both, first)); /* still the current one, beside the new one */
    assert_int_equal(strlen(both), 8 + 1 + 9);
    world_restart();
    assert_string_equal(ring_text(), both);
    world_pass_ms((int64_t)PD_KEY_STAGE_S * 1000);
    assert_null(strstr(ring_text(), first)); /* now the previous one, and accepted */
    assert_int_equal(strncmp(ring_text(), both, 8), 0);
    assert_int_equal(ring_text()[8], '*');
    world_pass_ms(week_ms);
    tick_keys();
    third = ring_text();
    assert_null(strstr(third, apr_pstrmemdup(world.scratch, first, 8))); /* the oldest is gone */
    assert_non_null(strstr(third, apr_pstrmemdup(world.scratch, both, 8)));
    tick_keys();
    assert_string_equal(ring_text(), third); /* not again before its time */
}

static void keys_under_another_master_key_are_left_out_and_made_anew(void **state)
{
    const char *ring;

    (void)state;
    tick_keys();
    ring = ring_text();
    world_close();
    world.core.master_key[31] ^= 0x80;
    pd_log_open(0, PD_LOG_ERR);
    world_open();
    tick_keys();
    assert_int_equal(strlen(ring_text()), 9);
    assert_string_not_equal(ring_text(), ring);
}

static void hello_hands_the_ring_out(void **state)
{
    const json_t *key;
    char generation[32];

    (void)state;
    tick_keys();
    (void)snprintf(generation, sizeof(generation), "%llu", (unsigned long long)world.core.generation);
    world_ask(MCP_KIND_HELLO, pd_on_hello,
              json_pack("{s:i,s:i,s:s,s:s,s:[s]}", "version_min", 1, "version_max", 1, "software",
                        "mod_mcp/\xc3\xa9", "child", "c1", "resources", WORLD_RESOURCE));
    assert_int_equal(world.refused, MCP_CODE_NONE);
    assert_int_equal(mcp_json_int(world.reply, "version", 0), 1);
    assert_int_equal(mcp_json_int(world.reply, "beat_ms", 0), MCP_BEAT_MS);
    assert_string_equal(mcp_json_str(world.reply, "control_prefix"), "elaichi");
    assert_string_equal(mcp_json_str(world.reply, "generation"), generation);
    key = json_array_get(json_object_get(world.reply, "keys"), 0);
    assert_true(mcp_json_bool(key, "current"));
    assert_string_equal(world.core.policy->first_resource, WORLD_RESOURCE);
    world_ask(MCP_KIND_HELLO, pd_on_hello,
              json_pack("{s:i,s:i,s:s,s:s}", "version_min", 2, "version_max", 9, "software", "x", "child",
                        "c1"));
    assert_int_equal(world.refused, MCP_CODE_UNSUPPORTED);
    world_ask(MCP_KIND_HELLO, pd_on_hello,
              json_pack("{s:i,s:i,s:s,s:s}", "version_min", 0, "version_max", 9, "software", "x", "child",
                        "c1"));
    assert_int_equal(mcp_json_int(world.reply, "version", 0), 1);
    world_ask(MCP_KIND_HELLO, pd_on_hello,
              json_pack("{s:i,s:i,s:s,s:s}", "version_min", 5, "version_max", 1, "software", "x", "child",
                        "c1"));
    assert_int_equal(world.refused, MCP_CODE_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            own_and_shared_connections_make_the_view_in_the_order_of_their_labels, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(a_rung_shows_what_it_reaches_and_forbidden_is_on_none,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(without_the_permission_the_list_is_empty, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_connection_for_toolboxes_yields_no_plain_tools, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(
            tools_carry_our_own_hints_and_say_when_the_credential_is_missing, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(a_chunk_keeps_its_digest_while_only_others_change, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_write_is_in_the_next_view, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_change_made_elsewhere_is_followed_within_five_seconds,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(many_classes_do_not_grow_without_end, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(following_any_changes_equals_loading_anew, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(who_reaches_which_label, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_snapshot_in_use_outlives_its_successors, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_connection_in_use_outlives_its_snapshot, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_blob_is_held_for_two_minutes_after_it_was_named, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(what_is_named_is_readable_for_two_minutes_whoever_put_it_when,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_manifest_that_is_named_again_and_again_keeps_its_chunks,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_view_named_before_a_change_stays_readable_after_it, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_blob_is_read_in_parts_from_any_offset, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_guard_has_every_operation_and_says_nothing_of_callers, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(verdicts_stand_in_the_order_of_the_guards_rows, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_rung_holds_those_below_it, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_plan_has_all_that_a_worker_needs, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(the_organisation_caps_what_a_connector_asks_for, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_credential_opens_for_its_own_connection_and_origin_alone,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(an_origin_is_scheme_host_and_port, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(the_ring_has_a_key_from_the_start_and_survives_a_restart,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_new_key_is_known_for_a_while_before_it_is_used, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(keys_under_another_master_key_are_left_out_and_made_anew,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(hello_hands_the_ring_out, world_setup, world_teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
