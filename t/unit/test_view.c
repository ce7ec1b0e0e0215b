/* Blobs made ready for use: manifests and chunks to one list, pages as slices of it, what is kept and what is refused. */
#include "link_peer.h"

#include <apr_time.h>

#include "../../mod_mcp/mcp_failure.h"
#include "../../mod_mcp/mcp_tools.h"
#include "../../mod_mcp/mcp_turn.h"
#include "../../mod_mcp/mcp_view.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BUDGET_MS    5000
#define BLOBS        64

/* What the peer has; each is written before it is counted. */
typedef struct store {
    char digest[BLOBS][MCP_DIGEST_HEX + 1];
    char *bytes[BLOBS];
    _Atomic int is_wrong[BLOBS]; /* served with a byte changed */
    _Atomic int count;
} store_t;

typedef struct world {
    apr_pool_t *pool;
    peer_t *peer;
    store_t store;
    const char *_Atomic view; /* that resolve names */
    mcp_child_t child;
    mcp_terms_t terms;
} world_t;

static void serve(peer_t *peer, const peer_question_t *question)
{
    world_t *world = peer->baton;
    const store_t *store = &world->store;
    const char *digest = mcp_json_str(question->body, "digest");
    size_t offset = (size_t)mcp_json_int(question->body, "offset", 0);
    int i;

    if (question->frame.kind == MCP_KIND_RESOLVE) {
        peer_reply(peer, question, peer_resolve_body("grt_1", world->view));
        return;
    }
    if (question->frame.kind != MCP_KIND_BLOB_GET) {
        peer_honest(peer, question);
        return;
    }
    for (i = 0; i < store->count; i++) {
        size_t bytes = strlen(store->bytes[i]);
        size_t part = bytes - offset > MCP_MAX_BLOB_PART ? MCP_MAX_BLOB_PART : bytes - offset;
        char *copy;

        if (strcmp(store->digest[i], digest) != 0 || offset > bytes) {
            continue;
        }
        copy = strdup(store->bytes[i]);
        if (copy != NULL && store->is_wrong[i]) {
            copy[0] = ' ';
        }
        if (copy != NULL) {
            peer_send_frame(
                peer, question,
                peer_frame(peer, question,
                           MCP_FLAG_RAW | (bytes - offset > part ? MCP_FLAG_MORE : 0)),
                copy + offset, part);
        }
        free(copy);
        return;
    }
    peer_refuse(peer, question, "not_found");
}

/* Gives the peer a blob; its digest. */
static const char *have(world_t *world, const char *text)
{
    store_t *store = &world->store;
    int place = store->count;

    assert_true(place < BLOBS);
    mcp_digest_hex(text, strlen(text), store->digest[place]);
    store->bytes[place] = apr_pstrdup(world->pool, text);
    store->count = place + 1;
    return store->digest[place];
}

static int setup(void **state)
{
    world_t *world = calloc(1, sizeof(*world));

    if (world == NULL || apr_pool_create(&world->pool, NULL) != APR_SUCCESS) {
        free(world);
        return -1;
    }
    world->peer = peer_open(NULL, peer_honest);
    world->peer->baton = world;
    peer_set(world->peer, serve);
    world->child.link = peer_link(world->peer, 6, world->pool);
    world->child.ask = peer_ask(world->child.link, world->pool);
    if (mcp_view_create(world->child.ask, 8 * 1024 * 1024, &world->child.views) != APR_SUCCESS) {
        return -1;
    }
    world->terms.policy_ms = BUDGET_MS;
    world->terms.list_page = 1000;
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    world_t *world = *state;

    peer_close(&world->peer); /* reads texts of the pool */
    apr_pool_destroy(world->pool); /* lets go of what was held for requests */
    mcp_view_free(&world->child.views);
    mcp_ask_free(&world->child.ask);
    mcp_link_close(world->child.link);
    free(world);
    return 0;
}

static int blobs_asked(world_t *world)
{
    return peer_asked(world->peer, MCP_KIND_BLOB_GET);
}

#define DEF(name)      "{\"name\":\"" name "\",\"title\":\"T " name "\",\"description\":\"d\"}"
#define DEF_OLD(name)  "{\"name\":\"" name "\",\"description\":\"d\"}"
#define TOOL(name)     "{\"name\":\"" name "\",\"def\":" DEF(name) ",\"class\":\"read\",\"op\":\"o\"}"

static const char *chunk(world_t *world, const char *tools)
{
    return have(world, apr_pstrcat(world->pool, "{\"tools\":[", tools, "]}", NULL));
}

static const char *manifest(world_t *world, const char *a, const char *b)
{
    return have(world,
                apr_pstrcat(world->pool, "{\"v\":1,\"control_prefix\":\"elaichi\",\"chunks\":[{\"digest\":\"",
                            a, "\"}", b != NULL ? ",{\"digest\":\"" : "", b != NULL ? b : "",
                            b != NULL ? "\"}" : "", "]}", NULL));
}

static const mcp_view_t *get(world_t *world, const char *digest, apr_pool_t *pool)
{
    const mcp_view_t *view = NULL;
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    if (mcp_view_get(world->child.views, digest, NULL, BUDGET_MS, pool, &view, &err) != APR_SUCCESS) {
        fail_msg("view: %s", err.log != NULL ? err.log : "?");
    }
    return view;
}

static void expect_refused(world_t *world, const char *digest)
{
    const mcp_view_t *view = NULL;
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    assert_int_equal(mcp_view_get(world->child.views, digest, NULL, BUDGET_MS, world->pool, &view, &err),
                     MCP_STATUS_REFUSED);
    assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    assert_int_equal(err.code, MCP_CODE_POLICY_UNAVAILABLE);
    assert_true(strlen(err.message) > 0); /* readable still */
    assert_true(strlen(err.log) > 0);
    assert_null(view);
}

/* --- views ------------------------------------------------------------------------------ */

static void chunks_become_one_list_sorted_by_name(void **state)
{
    world_t *world = *state;
    const char *a = chunk(world, TOOL("b__x") "," TOOL("b__y"));
    const char *b = chunk(world, TOOL("a__z") "," TOOL("b__Y") "," TOOL("c__a"));
    const mcp_view_t *view = get(world, manifest(world, a, b), world->pool);
    static const char *const wanted[] = {"a__z", "b__Y", "b__x", "b__y", "c__a"};
    int i;

    assert_int_equal(view->count, 5);
    assert_string_equal(view->flat.joined, DEF("a__z") "," DEF("b__Y") "," DEF("b__x") "," DEF("b__y") "," DEF(
                                          "c__a") ",");
    assert_string_equal(view->flat.old_joined,
                        DEF_OLD("a__z") "," DEF_OLD("b__Y") "," DEF_OLD("b__x") "," DEF_OLD(
                            "b__y") "," DEF_OLD("c__a") ",");
    for (i = 0; i < 5; i++) {
        const char *slice = apr_pstrmemdup(world->pool, view->flat.joined + view->flat.offsets[i],
                                           view->flat.offsets[i + 1] - view->flat.offsets[i] - 1);
        json_t *tool = json_loads(slice, 0, NULL);

        assert_non_null(tool);
        assert_string_equal(mcp_json_str(tool, "name"), wanted[i]);
        assert_non_null(mcp_json_str(tool, "title"));
        json_decref(tool);
        slice = apr_pstrmemdup(world->pool, view->flat.old_joined + view->flat.old_offsets[i],
                               view->flat.old_offsets[i + 1] - view->flat.old_offsets[i] - 1);
        tool = json_loads(slice, 0, NULL);
        assert_non_null(tool);
        assert_null(json_object_get(tool, "title"));
        json_decref(tool);
    }
}

static void titles_inside_a_schema_stay(void **state)
{
    world_t *world = *state;
    const mcp_view_t *view = get(
        world,
        manifest(world,
                 chunk(world, "{\"name\":\"a__b\",\"def\":{\"name\":\"a__b\",\"title\":\"T\",\"inputSchema\":{"
                              "\"properties\":{\"title\":{\"title\":\"In\"}}}}}"),
                 NULL),
        world->pool);

    assert_string_equal(view->flat.old_joined, "{\"name\":\"a__b\",\"inputSchema\":{\"properties\":{\"title\":{"
                                          "\"title\":\"In\"}}}},");
}

static void what_is_there_is_not_asked_for_again(void **state)
{
    world_t *world = *state;
    const char *a = chunk(world, TOOL("a__x"));
    const char *b = chunk(world, TOOL("b__x"));
    const char *first = manifest(world, a, b);
    const char *second = manifest(world, a, NULL);
    apr_pool_t *request;
    const mcp_view_t *view;

    assert_int_equal(apr_pool_create(&request, world->pool), APR_SUCCESS);
    view = get(world, first, request);
    assert_int_equal(blobs_asked(world), 3);
    assert_ptr_equal(get(world, first, request), view);
    assert_int_equal(blobs_asked(world), 3);
    assert_int_equal(get(world, second, request)->count, 1); /* shares a chunk: the manifest alone is new */
    assert_int_equal(blobs_asked(world), 4);
    apr_pool_clear(request);
    assert_ptr_equal(get(world, first, request), view); /* kept between requests */
    assert_int_equal(blobs_asked(world), 4);
}

static void an_empty_view_is_one(void **state)
{
    world_t *world = *state;
    const mcp_view_t *view =
        get(world, have(world, "{\"v\":1,\"control_prefix\":\"e\",\"chunks\":[]}"), world->pool);

    assert_int_equal(view->count, 0);
    assert_string_equal(view->flat.joined, "");
}

static void a_view_larger_than_one_part_comes_whole(void **state)
{
    world_t *world = *state;
    char *filler = apr_palloc(world->pool, MCP_MAX_BLOB_PART + 1);
    const mcp_view_t *view;

    memset(filler, 'f', MCP_MAX_BLOB_PART);
    filler[MCP_MAX_BLOB_PART] = '\0';
    view = get(world,
               manifest(world,
                        chunk(world, apr_pstrcat(world->pool,
                                                 "{\"name\":\"a__b\",\"def\":{\"name\":\"a__b\",\"description\":"
                                                 "\"",
                                                 filler, "\"}}", NULL)),
                        NULL),
               world->pool);
    assert_int_equal(blobs_asked(world), 3); /* the chunk came in two parts */
    assert_true(strlen(view->flat.joined) > MCP_MAX_BLOB_PART);
}

static void what_is_not_sound_is_no_view_and_is_not_kept(void **state)
{
    world_t *world = *state;
    const char *good = chunk(world, TOOL("a__x"));
    const char *const bad_chunks[] = {
        have(world, "{\"tool\":[]}"), have(world, "{\"tools\":{}}"), have(world, "[]"),
        have(world, "garbage"), chunk(world, "{\"def\":{}}"), chunk(world, "{\"name\":\"a__x\"}"),
        chunk(world, "{\"name\":\"a__x\",\"def\":[]}"), chunk(world, "{\"name\":1,\"def\":{}}"),
        chunk(world, "1"), chunk(world, "{\"name\":\"a__x\",\"def\":{}}"),
        chunk(world, "{\"name\":\"a__x\",\"def\":{\"name\":\"a__y\"}}"),
        chunk(world, "{\"name\":\"a__x\",\"def\":{\"name\":7}}"), "0000000000000000000000000000000000000000000000000000000000000000"};
    const char *const bad_manifests[] = {have(world, "{}"), have(world, "{\"chunks\":{}}"),
                                         have(world, "{\"chunks\":[1]}"),
                                         have(world, "{\"chunks\":[{\"digest\":1}]}"),
                                         have(world, "{\"chunks\":[],\"chunks\":[]}"), have(world, "x"),
                                         "0000000000000000000000000000000000000000000000000000000000000001"};
    const char *late;
    size_t i;
    int before;

    for (i = 0; i < COUNT(bad_manifests); i++) {
        expect_refused(world, bad_manifests[i]);
    }
    for (i = 0; i < COUNT(bad_chunks); i++) {
        const char *digest = manifest(world, good, bad_chunks[i]);

        expect_refused(world, digest);
        before = blobs_asked(world);
        expect_refused(world, digest); /* asked for again: no half view was kept */
        assert_true(blobs_asked(world) > before);
    }
    /* a blob that policyd did not have yet is there the next time */
    late = "{\"v\":1,\"chunks\":[]}";
    {
        char digest[MCP_DIGEST_HEX + 1];

        mcp_digest_hex(late, strlen(late), digest);
        expect_refused(world, digest);
        (void)have(world, late);
        assert_int_equal(get(world, digest, world->pool)->count, 0);
    }
}

static void a_blob_with_another_hash_is_none(void **state)
{
    world_t *world = *state;
    const char *good = chunk(world, TOOL("a__x"));
    const char *digest = manifest(world, good, NULL);

    world->store.is_wrong[0] = 1;
    expect_refused(world, digest);
    world->store.is_wrong[0] = 0;
    assert_int_equal(get(world, digest, world->pool)->count, 1);
}

/* --- selections --------------------------------------------------------------------------- */

/* A chunk of `count` tools, NAME00, NAME01, …; its digest. */
static const char *many(world_t *world, const char *account, int count)
{
    const char *tools = "";
    int i;

    for (i = 0; i < count; i++) {
        tools = apr_psprintf(world->pool,
                             "%s%s{\"name\":\"%s__%02d\",\"def\":{\"name\":\"%s__%02d\"},\"class\":\"write\",\"op\":"
                             "\"op%02d\"}",
                             tools, i > 0 ? "," : "", account, i, account, i, i);
    }
    return chunk(world, tools);
}

/* A manifest of one chunk with these further members. */
static const char *selecting(world_t *world, const char *digest, const char *members)
{
    return have(world, apr_psprintf(world->pool,
                                    "{\"v\":1,\"control_prefix\":\"elaichi\",\"chunks\":[{\"digest\":\"%s\"%s}]}",
                                    digest, members));
}

static const char *names_of(world_t *world, const mcp_view_t *view)
{
    const char *names = "";
    int i;

    for (i = 0; i < view->count; i++) {
        names = apr_pstrcat(world->pool, names, i > 0 ? " " : "", view->tools[i].name, NULL);
    }
    return names;
}

static void a_selection_takes_the_tools_of_its_bits(void **state)
{
    static const struct {
        int count;
        const char *members;
        const char *names;
    } cases[] = {
        {3, "", "a__00 a__01 a__02"},
        {3, ",\"select\":\"07\"", "a__00 a__01 a__02"},
        {3, ",\"select\":\"01\"", "a__00"},
        {3, ",\"select\":\"04\",\"tools\":1", "a__02"},
        {3, ",\"select\":\"00\",\"tools\":0", ""},
        {8, ",\"select\":\"81\",\"tools\":2", "a__00 a__07"},
        {9, ",\"select\":\"8001\"", "a__07 a__08"},
        {17, ",\"select\":\"000001\"", "a__16"},
        {17, ",\"select\":\"000000\"", ""},
        {20, ",\"select\":\"ff000f\"",
         "a__00 a__01 a__02 a__03 a__04 a__05 a__06 a__07 a__16 a__17 a__18 a__19"},
        {20, ",\"select\":\"001000\"", "a__12"},
        {0, ",\"select\":\"\"", ""}};
    world_t *world = *state;
    size_t i;

    for (i = 0; i < COUNT(cases); i++) {
        const mcp_view_t *view =
            get(world, selecting(world, many(world, "a", cases[i].count), cases[i].members), world->pool);

        assert_string_equal(names_of(world, view), cases[i].names);
        assert_int_equal(strlen(view->flat.joined), view->flat.offsets[view->count]);
    }
}

static void a_selection_that_does_not_fit_its_chunk_is_refused(void **state)
{
    static const struct {
        int count;
        const char *members;
    } cases[] = {{3, ",\"select\":\"\""},       {3, ",\"select\":\"0\""},     {3, ",\"select\":\"0700\""},
                 {3, ",\"select\":\"08\""},     {3, ",\"select\":\"87\""},    {8, ",\"select\":\"ff00\""},
                 {9, ",\"select\":\"ff\""},     {9, ",\"select\":\"ff02\""},  {3, ",\"select\":\"0G\""},
                 {12, ",\"select\":\"0F0f\""},  {3, ",\"select\":7"},         {3, ",\"select\":null"},
                 {3, ",\"select\":[]"},         {3, ",\"select\":\" 7\""},    {0, ",\"select\":\"00\""},
                 {3, ",\"select\":\"01\",\"tools\":2"}, {3, ",\"tools\":4"}, {3, ",\"tools\":\"3\""}};
    world_t *world = *state;
    size_t i;

    for (i = 0; i < COUNT(cases); i++) {
        expect_refused(world, selecting(world, many(world, "a", cases[i].count), cases[i].members));
    }
}

static void views_of_different_selections_share_a_chunk(void **state)
{
    world_t *world = *state;
    const char *digest = many(world, "a", 16);
    int before;
    int i;

    assert_int_equal(get(world, selecting(world, digest, ""), world->pool)->count, 16);
    before = blobs_asked(world);
    for (i = 0; i < 16; i++) {
        const mcp_view_t *view = get(
            world,
            selecting(world, digest,
                      apr_psprintf(world->pool, ",\"select\":\"%02x%02x\"", 1u << i & 0xff, 1u << i >> 8)),
            world->pool);

        assert_int_equal(view->count, 1);
        assert_string_equal(view->tools[0].op, apr_psprintf(world->pool, "op%02d", i));
        assert_true(strlen(view->flat.joined) < 32); /* nothing of the rest */
    }
    assert_int_equal(blobs_asked(world), before + 16); /* the manifests alone */
}

/* --- control-plane tools -------------------------------------------------------------------- */

#define CONTROL(name, more) "{\"name\":\"" name "\",\"def\":{" more "},\"class\":\"read\",\"op\":\"" name "\"}"

static const char *with_control(world_t *world, const char *chunks, const char *control, const char *members)
{
    return have(world, apr_psprintf(world->pool,
                                    "{\"v\":1,\"control_prefix\":\"elaichi\",\"chunks\":[%s],\"control\":{\"digest\":"
                                    "\"%s\"%s}}",
                                    chunks, control, members));
}

static void control_plane_tools_get_prefix_and_name_and_are_sorted_among_the_others(void **state)
{
    world_t *world = *state;
    const char *connected = apr_psprintf(world->pool, "{\"digest\":\"%s\"}",
                                         chunk(world, TOOL("a__z") "," TOOL("zoo__get")));
    const char *control = chunk(
        world, CONTROL("members__list", "\"title\":\"M\",\"description\":\"d\"") "," CONTROL("whoami__get", ""));
    const char *digest = with_control(world, connected, control, ",\"tools\":2");
    const mcp_view_t *view = get(world, digest, world->pool);
    const mcp_view_t *other = NULL;
    const mcp_view_tool_t *tool;

    assert_string_equal(names_of(world, view), "a__z elaichi__members__list elaichi__whoami__get zoo__get");
    assert_string_equal(view->flat.joined,
                        DEF("a__z") ",{\"name\":\"elaichi__members__list\",\"title\":\"M\",\"description\":\"d\"},"
                                    "{\"name\":\"elaichi__whoami__get\"}," DEF("zoo__get") ",");
    assert_string_equal(view->flat.old_joined,
                        DEF_OLD("a__z") ",{\"name\":\"elaichi__members__list\",\"description\":\"d\"},"
                                        "{\"name\":\"elaichi__whoami__get\"}," DEF_OLD("zoo__get") ",");
    assert_non_null(strstr(view->flat.whole, "{\"name\":\"elaichi__whoami__get\"}"));
    tool = mcp_view_find(view, "elaichi__members__list");
    assert_non_null(tool);
    assert_int_equal(tool->is_control, 1);
    assert_int_equal(tool->klass, MCP_CLASS_READ);
    assert_string_equal(tool->op, "members__list");
    tool = mcp_view_find(view, "zoo__get");
    assert_non_null(tool);
    assert_int_equal(tool->is_control, 0);
    assert_null(mcp_view_find(view, "members__list"));
    assert_null(mcp_view_find(view, "zoo"));
    assert_null(mcp_view_find(view, ""));
    /* the same digest under another endpoint's prefix, which moves them in the order */
    assert_int_equal(mcp_view_get(world->child.views, digest, "a", BUDGET_MS, world->pool, &other, NULL),
                     APR_SUCCESS);
    assert_string_equal(names_of(world, other), "a__members__list a__whoami__get a__z zoo__get");
    assert_string_not_equal(other->key, view->key);
    assert_ptr_equal(get(world, digest, world->pool), view);
    assert_non_null(strstr(other->flat.joined, "{\"name\":\"a__whoami__get\"}"));
    assert_null(strstr(other->flat.joined, "elaichi"));
}

static void a_selection_of_control_plane_tools_is_one_too(void **state)
{
    world_t *world = *state;
    const char *control = chunk(world, CONTROL("a__get", "") "," CONTROL("b__get", "") "," CONTROL("c__get", ""));

    assert_string_equal(names_of(world, get(world, with_control(world, "", control, ",\"select\":\"05\""),
                                            world->pool)),
                        "elaichi__a__get elaichi__c__get");
    assert_int_equal(get(world, with_control(world, "", control, ",\"select\":\"00\""), world->pool)->count, 0);
    expect_refused(world, with_control(world, "", control, ",\"select\":\"08\""));
}

static void control_plane_tools_that_could_break_the_list_are_refused(void **state)
{
    world_t *world = *state;
    const char *const controls[] = {
        chunk(world, TOOL("whoami__get")), /* a name of its own: it would stand there twice */
        chunk(world, CONTROL("a\\\"b", "")),
        chunk(world, CONTROL("", "") "," CONTROL("a b", "")),
        chunk(world, CONTROL("a_name_that_is_longer_than_any_tool_may_have_with_its_prefix_before", ""))};
    const char *good = chunk(world, CONTROL("whoami__get", ""));
    const mcp_view_t *view = NULL;
    size_t i;

    for (i = 0; i < COUNT(controls); i++) {
        expect_refused(world, with_control(world, "", controls[i], ""));
    }
    expect_refused(world, have(world, apr_psprintf(world->pool, "{\"chunks\":[],\"control\":{\"digest\":\"%s\"}}",
                                                   good)));
    expect_refused(world, have(world, apr_psprintf(world->pool,
                                                   "{\"control_prefix\":\"no label\",\"chunks\":[],\"control\":{"
                                                   "\"digest\":\"%s\"}}",
                                                   good)));
    expect_refused(world, have(world, "{\"control_prefix\":\"e\",\"chunks\":[],\"control\":{}}"));
    expect_refused(world, have(world, "{\"control_prefix\":\"e\",\"chunks\":[],\"control\":7}"));
    /* an endpoint's own prefix needs none of the manifest */
    assert_int_equal(mcp_view_get(world->child.views,
                                  have(world, apr_psprintf(world->pool,
                                                           "{\"v\":2,\"chunks\":[],\"control\":{\"digest\":\"%s\"}}",
                                                           good)),
                                  "gate", BUDGET_MS, world->pool, &view, NULL),
                     APR_SUCCESS);
    assert_string_equal(names_of(world, view), "gate__whoami__get");
}

static void pins_are_kept(void **state)
{
    world_t *world = *state;
    const mcp_view_t *view = get(
        world, manifest(world, chunk(world, TOOL("a__x") ",{\"name\":\"a__y\",\"def\":{\"name\":\"a__y\"},\"pin\":true}"),
                        NULL),
        world->pool);

    assert_int_equal(mcp_view_find(view, "a__x")->is_pinned, 0);
    assert_int_equal(mcp_view_find(view, "a__y")->is_pinned, 1);
}

/* --- time ------------------------------------------------------------------------------------- */

static peer_question_t late;
static int idle_rounds;

/* Answers the question it keeps, if any, when nothing came for a while. */
static void serve_when_idle(peer_t *peer)
{
    if (late.body != NULL && ++idle_rounds >= 40) {
        serve(peer, &late);
        json_decref(late.body);
        late.body = NULL;
        idle_rounds = 0;
    }
}

static void serve_late(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind != MCP_KIND_BLOB_GET || late.body != NULL) {
        serve(peer, question);
        return;
    }
    late = *question;
    (void)json_incref(late.body);
}

/* Each comes in time for itself, but not all of them for the request. */
static void many_chunks_share_one_budget(void **state)
{
    world_t *world = *state;
    const mcp_view_t *view = NULL;
    const char *entries = "";
    int64_t from;
    int i;

    for (i = 0; i < 12; i++) {
        const char *digest =
            chunk(world, apr_psprintf(world->pool, "{\"name\":\"c%d__x\",\"def\":{\"name\":\"c%d__x\"}}", i, i));

        entries = apr_pstrcat(world->pool, entries, i > 0 ? "," : "", "{\"digest\":\"", digest, "\"}",
                              NULL);
    }
    world->view = have(world, apr_pstrcat(world->pool, "{\"chunks\":[", entries, "]}", NULL));
    (void)pthread_mutex_lock(&world->peer->mutex);
    world->peer->handler = serve_late;
    world->peer->on_idle = serve_when_idle;
    (void)pthread_mutex_unlock(&world->peer->mutex);
    from = peer_now_ms();
    assert_int_equal(mcp_view_get(world->child.views, world->view, NULL, 500, world->pool, &view, NULL),
                     MCP_STATUS_REFUSED);
    assert_in_range(peer_now_ms() - from, 0, 500 + 3000);
    assert_null(view);
    (void)pthread_mutex_lock(&world->peer->mutex);
    world->peer->on_idle = NULL;
    world->peer->handler = serve;
    (void)pthread_mutex_unlock(&world->peer->mutex);
    assert_int_equal(get(world, world->view, world->pool)->count, 12);
    peer_close(&world->peer); /* its thread looks at it */
    json_decref(late.body);
    late.body = NULL;
}

/* --- pages -------------------------------------------------------------------------------- */

static mcp_turn_t *turn_of(world_t *world)
{
    mcp_turn_t *turn = apr_pcalloc(world->pool, sizeof(*turn));

    turn->pool = world->pool;
    turn->child = &world->child;
    turn->terms = &world->terms;
    memset(turn->who.token_hash, 'a', MCP_DIGEST_HEX);
    turn->who.surface = "mcp";
    turn->who.resource = "https://mcp.example.com/mcp";
    assert_int_equal(mcp_turn_resolve(turn, NULL), APR_SUCCESS);
    return turn;
}

static json_t *list(world_t *world, const mcp_era_t *era, const json_t *cursor, mcp_err_t *err)
{
    mcp_rpc_message_t message;
    const char *text = NULL;
    size_t bytes = 0;
    json_t *result = NULL;

    memset(err, 0, sizeof(*err));
    memset(&message, 0, sizeof(message));
    message.params = json_object();
    if (cursor != NULL) {
        json_object_set_new(message.params, "cursor", json_deep_copy(cursor));
    }
    if (mcp_tools_list(turn_of(world), era, &message, &text, &bytes, err) == APR_SUCCESS) {
        assert_int_equal(bytes, strlen(text));
        result = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        if (result == NULL) {
            fail_msg("not JSON: %.300s", text);
        }
    }
    json_decref(message.params);
    return result;
}

static const char *nine_tools(world_t *world)
{
    return manifest(world,
                    chunk(world, TOOL("a__1") "," TOOL("a__2") "," TOOL("a__3") "," TOOL("a__4")),
                    chunk(world, TOOL("b__1") "," TOOL("b__2") "," TOOL("b__3") "," TOOL("b__4") "," TOOL(
                                     "b__5")));
}

static mcp_era_t era_of(mcp_revision_t revision)
{
    mcp_era_t era;

    memset(&era, 0, sizeof(era));
    era.is_modern = revision == MCP_REV_2026_07_28;
    era.revision = revision;
    return era;
}

static void pages_are_slices_that_make_the_whole(void **state)
{
    static const mcp_revision_t revisions[] = {MCP_REV_2025_03_26, MCP_REV_2025_06_18,
                                               MCP_REV_2025_11_25, MCP_REV_2026_07_28};
    world_t *world = *state;
    size_t i;
    int page;

    world->view = nine_tools(world);
    for (i = 0; i < COUNT(revisions); i++) {
        mcp_era_t era = era_of(revisions[i]);
        mcp_err_t err;
        json_t *whole;

        world->terms.list_page = 1000;
        whole = list(world, &era, NULL, &err);
        assert_int_equal(json_array_size(json_object_get(whole, "tools")), 9);
        assert_null(json_object_get(whole, "nextCursor"));
        assert_int_equal(json_object_get(whole, "ttlMs") != NULL, era.is_modern);
        assert_int_equal(json_object_get(json_array_get(json_object_get(whole, "tools"), 0), "title") !=
                             NULL,
                         revisions[i] != MCP_REV_2025_03_26);
        for (page = 1; page <= 10; page++) {
            json_t *joined = json_array();
            json_t *cursor = NULL;
            int pages = 0;

            world->terms.list_page = page;
            do {
                json_t *part = list(world, &era, cursor, &err);

                assert_non_null(part);
                json_decref(cursor);
                assert_in_range(json_array_size(json_object_get(part, "tools")), 1, page);
                assert_int_equal(json_array_extend(joined, json_object_get(part, "tools")), 0);
                cursor = json_incref(json_object_get(part, "nextCursor"));
                json_decref(part);
                pages++;
            } while (cursor != NULL);
            assert_int_equal(pages, (9 + page - 1) / page);
            assert_true(json_equal(joined, json_object_get(whole, "tools")));
            json_decref(joined);
        }
        json_decref(whole);
    }
}

static void an_empty_list_is_a_list(void **state)
{
    world_t *world = *state;
    mcp_era_t era = era_of(MCP_REV_2025_11_25);
    mcp_err_t err;
    json_t *result;

    world->view = have(world, "{\"v\":1,\"chunks\":[]}");
    result = list(world, &era, NULL, &err);
    assert_true(json_is_array(json_object_get(result, "tools")));
    assert_int_equal(json_object_size(result), 1);
    json_decref(result);
}

static void a_cursor_is_of_one_view_and_one_grant(void **state)
{
    world_t *world = *state;
    mcp_era_t era = era_of(MCP_REV_2025_11_25);
    mcp_err_t err;
    json_t *first;
    json_t *cursor;
    json_t *foreign = json_string("not ours");
    json_t *number = json_integer(3);

    world->view = nine_tools(world);
    world->terms.list_page = 2;
    first = list(world, &era, NULL, &err);
    cursor = json_incref(json_object_get(first, "nextCursor"));
    assert_null(list(world, &era, foreign, &err));
    assert_int_equal(err.fail, MCP_FAIL_PARAMS);
    assert_null(list(world, &era, number, &err));
    assert_int_equal(err.fail, MCP_FAIL_PARAMS);
    world->terms.control_prefix = "other"; /* an endpoint whose list may have another order */
    assert_null(list(world, &era, cursor, &err));
    assert_int_equal(err.fail, MCP_FAIL_PARAMS);
    world->terms.control_prefix = NULL;
    world->view = manifest(world, chunk(world, TOOL("z__1") "," TOOL("z__2") "," TOOL("z__3")), NULL);
    assert_null(list(world, &era, cursor, &err)); /* the list has changed: start again */
    assert_int_equal(err.fail, MCP_FAIL_PARAMS);
    json_decref(first);
    json_decref(cursor);
    json_decref(foreign);
    json_decref(number);
}

/* --- operations, guards, grants -------------------------------------------------------------- */

#define OPERATION                                                                                  \
    "{\"connector\":\"shop\",\"id\":\"get\",\"method\":\"GET\",\"path\":\"/items/{id}\",\"parameters\":[]," \
    "\"schema\":{\"type\":\"object\",\"required\":[\"id\"]}}"

static void an_operation_is_compiled_once(void **state)
{
    world_t *world = *state;
    const char *digest = have(world, OPERATION);
    const mcp_operation_t *operation = NULL;
    const mcp_operation_t *again = NULL;
    json_t *good = json_pack("{s:s}", "id", "x");
    json_t *bad = json_object();

    assert_int_equal(mcp_view_operation(world->child.views, digest, BUDGET_MS, world->pool, &operation,
                                        NULL),
                     APR_SUCCESS);
    assert_string_equal(operation->id, "get");
    assert_string_equal(operation->method, "GET");
    assert_string_equal(mcp_json_str(operation->definition, "path"), "/items/{id}");
    assert_int_equal(mcp_schema_validate(operation->compiled, good, NULL), MCP_OK);
    assert_int_not_equal(mcp_schema_validate(operation->compiled, bad, NULL), MCP_OK);
    assert_int_equal(mcp_view_operation(world->child.views, digest, BUDGET_MS, world->pool, &again, NULL),
                     APR_SUCCESS);
    assert_ptr_equal(again, operation);
    assert_int_equal(blobs_asked(world), 1);
    json_decref(good);
    json_decref(bad);
}

static void a_part_of_a_plan_that_is_not_sound_is_none(void **state)
{
    static const char *const operations[] = {
        "{}",
        "{\"id\":\"x\",\"schema\":{}}",
        "{\"method\":\"GET\",\"schema\":{}}",
        "{\"id\":\"x\",\"method\":\"GET\"}",
        "{\"id\":\"x\",\"method\":\"GET\",\"schema\":{\"type\":\"no such type\"}}",
        "{\"id\":\"x\",\"method\":\"GET\",\"schema\":{\"$ref\":\"https://elsewhere.example/s\"}}"};
    static const char *const guards[] = {
        "{}", "{\"operations\":1}",
        "{\"connector\":\"c\",\"operations\":[{\"id\":\"x\"}]}",
        "{\"connector\":\"c\",\"operations\":[{\"id\":\"x\",\"method\":\"GET\",\"path\":7,\"query\":[]}]}"};
    static const char *const schemas[] = {"{}", "{\"schema\":7}", "{\"schema\":{\"type\":\"no such type\"}}",
                                          "{\"schema\":{\"$ref\":\"https://elsewhere.example/s\"}}", "[]"};
    static const char *const verdicts[] = {"aab ", "aA", "allow", "\xc3\xa4", "a\n"};
    world_t *world = *state;
    const mcp_operation_t *operation = NULL;
    const mcp_guard_t *guard = NULL;
    const mcp_advertised_t *schema = NULL;
    const char *verdict = NULL;
    mcp_err_t err;
    size_t i;

    for (i = 0; i < COUNT(operations); i++) {
        memset(&err, 0, sizeof(err));
        assert_int_equal(mcp_view_operation(world->child.views, have(world, operations[i]), BUDGET_MS,
                                            world->pool, &operation, &err),
                         MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    }
    for (i = 0; i < COUNT(guards); i++) {
        memset(&err, 0, sizeof(err));
        if (mcp_view_guard(world->child.views, have(world, guards[i]), BUDGET_MS, world->pool, &guard,
                           &err) == APR_SUCCESS) {
            fail_msg("taken for a guard: %s", guards[i]);
        }
        assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    }
    for (i = 0; i < COUNT(schemas); i++) {
        memset(&err, 0, sizeof(err));
        assert_int_equal(mcp_view_schema(world->child.views, have(world, schemas[i]), BUDGET_MS, world->pool,
                                         &schema, &err),
                         MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    }
    for (i = 0; i < COUNT(verdicts); i++) {
        memset(&err, 0, sizeof(err));
        assert_int_equal(mcp_view_verdicts(world->child.views, have(world, verdicts[i]), BUDGET_MS,
                                           world->pool, &verdict, &err),
                         MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, MCP_FAIL_UNAVAILABLE);
    }
    assert_null(operation);
    assert_null(guard);
    assert_null(schema);
    assert_null(verdict);
}

static apr_status_t judge(world_t *world, const mcp_guard_t *guard, const char *verdicts, const char *url)
{
    return mcp_urlguard_check(guard, verdicts, "https://a.example", "GET", "get", url, world->pool, NULL);
}

static void one_guard_judges_for_callers_of_different_verdicts(void **state)
{
    world_t *world = *state;
    const mcp_guard_t *guard = NULL;
    const char *restricted = NULL;
    const char *free_hand = NULL;
    const char *foreign = NULL;
    const char *digest =
        have(world, "{\"connector\":\"c\",\"operations\":[{\"id\":\"get\",\"method\":\"GET\",\"path\":\"/items/"
                    "{id}\",\"query\":[]},{\"id\":\"admin\",\"method\":\"GET\",\"path\":"
                    "\"/items/admin\",\"query\":[]}]}");

    assert_int_equal(mcp_view_guard(world->child.views, digest, BUDGET_MS, world->pool, &guard, NULL),
                     APR_SUCCESS);
    assert_int_equal(mcp_view_verdicts(world->child.views, have(world, "ad"), BUDGET_MS, world->pool,
                                       &restricted, NULL),
                     APR_SUCCESS);
    assert_int_equal(mcp_view_verdicts(world->child.views, have(world, "aa"), BUDGET_MS, world->pool,
                                       &free_hand, NULL),
                     APR_SUCCESS);
    assert_int_equal(mcp_view_verdicts(world->child.views, have(world, "aaa"), BUDGET_MS, world->pool,
                                       &foreign, NULL),
                     APR_SUCCESS);
    assert_string_equal(restricted, "ad");
    assert_int_equal(judge(world, guard, restricted, "https://a.example/items/7"), APR_SUCCESS);
    assert_int_not_equal(judge(world, guard, restricted, "https://a.example/items/admin"), APR_SUCCESS);
    assert_int_equal(judge(world, guard, free_hand, "https://a.example/items/admin"), APR_SUCCESS);
    assert_int_not_equal(judge(world, guard, foreign, "https://a.example/items/7"), APR_SUCCESS);
}

static void verdicts_and_schemas_are_fetched_once(void **state)
{
    world_t *world = *state;
    const char *digest = have(world, "adbadb");
    const char *advertised =
        have(world, "{\"schema\":{\"type\":\"object\",\"required\":[\"id\"],\"additionalProperties\":false,"
                    "\"properties\":{\"id\":{}}}}");
    const mcp_advertised_t *schema = NULL;
    const mcp_advertised_t *again = NULL;
    const char *first = NULL;
    const char *second = NULL;
    json_t *good = json_pack("{s:s}", "id", "x");
    json_t *bad = json_pack("{s:s,s:s}", "id", "x", "more", "y");

    assert_int_equal(mcp_view_verdicts(world->child.views, digest, BUDGET_MS, world->pool, &first, NULL),
                     APR_SUCCESS);
    assert_int_equal(mcp_view_verdicts(world->child.views, digest, BUDGET_MS, world->pool, &second, NULL),
                     APR_SUCCESS);
    assert_ptr_equal(first, second);
    assert_int_equal(blobs_asked(world), 1);
    assert_int_equal(mcp_view_schema(world->child.views, advertised, BUDGET_MS, world->pool, &schema, NULL),
                     APR_SUCCESS);
    assert_int_equal(mcp_view_schema(world->child.views, advertised, BUDGET_MS, world->pool, &again, NULL),
                     APR_SUCCESS);
    assert_ptr_equal(schema, again);
    assert_int_equal(blobs_asked(world), 2);
    assert_non_null(json_object_get(schema->schema, "properties"));
    assert_int_equal(mcp_schema_validate(schema->compiled, good, NULL), MCP_OK);
    assert_int_not_equal(mcp_schema_validate(schema->compiled, bad, NULL), MCP_OK);
    json_decref(good);
    json_decref(bad);
}

static void a_grant_is_remembered_by_the_whole_hash(void **state)
{
    world_t *world = *state;
    mcp_views_t *views = world->child.views;
    char hash[MCP_DIGEST_HEX + 1];
    char near[MCP_DIGEST_HEX + 1];
    int i;

    memset(hash, 'a', MCP_DIGEST_HEX);
    hash[MCP_DIGEST_HEX] = '\0';
    memcpy(near, hash, sizeof(near));
    near[MCP_DIGEST_HEX - 1] = 'b'; /* the same place in the table */
    assert_null(mcp_view_grant(views, hash, world->pool));
    mcp_view_remember(views, hash, "grt_1");
    assert_string_equal(mcp_view_grant(views, hash, world->pool), "grt_1");
    assert_null(mcp_view_grant(views, near, world->pool));
    mcp_view_remember(views, near, "grt_2");
    assert_string_equal(mcp_view_grant(views, near, world->pool), "grt_2");
    assert_null(mcp_view_grant(views, hash, world->pool)); /* gave way: it is asked for again */
    for (i = 0; i < 3000; i++) { /* bounded whatever comes */
        mcp_digest_hex(&i, sizeof(i), hash);
        mcp_view_remember(views, hash, "grt_3");
    }
    assert_string_equal(mcp_view_grant(views, hash, world->pool), "grt_3");
    assert_null(mcp_view_grant(views, "", world->pool));
}

/* --- threads ------------------------------------------------------------------------------------ */

typedef struct reader {
    pthread_t thread;
    world_t *world;
    const char *digests[4];
    int failed;
} reader_t;

static void *read_views(void *baton)
{
    reader_t *reader = baton;
    apr_pool_t *pool;
    int i;

    if (apr_pool_create_unmanaged_ex(&pool, NULL, NULL) != APR_SUCCESS) {
        reader->failed = 1;
        return NULL;
    }
    for (i = 0; i < 60; i++) {
        const mcp_view_t *view = NULL;

        apr_pool_clear(pool);
        if (mcp_view_get(reader->world->child.views, reader->digests[i % 4], i % 3 == 0 ? "other" : NULL, 60000, pool,
                         &view, NULL) !=
                APR_SUCCESS ||
            view->count != 9 || strlen(view->flat.joined) != view->flat.offsets[9]) {
            reader->failed++;
        }
    }
    apr_pool_destroy(pool);
    return NULL;
}

static void threads_read_views_that_push_each_other_out(void **state)
{
    world_t *world = *state;
    const char *digests[4];
    reader_t readers[6];
    int i;

    mcp_view_free(&world->child.views);
    assert_int_equal(mcp_view_create(world->child.ask, 4096, &world->child.views), APR_SUCCESS);
    for (i = 0; i < 4; i++) {
        char name[16];
        const char *tools = TOOL("a__1") "," TOOL("a__2") "," TOOL("a__3") "," TOOL("a__4");

        (void)snprintf(name, sizeof(name), "b%d", i);
        digests[i] = manifest(world, chunk(world, tools),
                              chunk(world, apr_pstrcat(world->pool, TOOL("b__1") "," TOOL("b__2") "," TOOL(
                                                                        "b__3") "," TOOL("b__4")
                                                                        ",{\"name\":\"",
                                                       name, "\",\"def\":{\"name\":\"", name, "\"}}",
                                                       NULL)));
    }
    memset(readers, 0, sizeof(readers));
    for (i = 0; i < 6; i++) {
        readers[i].world = world;
        memcpy(readers[i].digests, digests, sizeof(digests));
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_views, &readers[i]), 0);
    }
    for (i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
        assert_int_equal(readers[i].failed, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(chunks_become_one_list_sorted_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(titles_inside_a_schema_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_there_is_not_asked_for_again, setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_view_is_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_view_larger_than_one_part_comes_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_sound_is_no_view_and_is_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_blob_with_another_hash_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(a_selection_takes_the_tools_of_its_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(a_selection_that_does_not_fit_its_chunk_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(views_of_different_selections_share_a_chunk, setup, teardown),
        cmocka_unit_test_setup_teardown(
            control_plane_tools_get_prefix_and_name_and_are_sorted_among_the_others, setup, teardown),
        cmocka_unit_test_setup_teardown(a_selection_of_control_plane_tools_is_one_too, setup, teardown),
        cmocka_unit_test_setup_teardown(control_plane_tools_that_could_break_the_list_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(pins_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(many_chunks_share_one_budget, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_are_slices_that_make_the_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_list_is_a_list, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cursor_is_of_one_view_and_one_grant, setup, teardown),
        cmocka_unit_test_setup_teardown(an_operation_is_compiled_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_of_a_plan_that_is_not_sound_is_none, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_guard_judges_for_callers_of_different_verdicts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(verdicts_and_schemas_are_fetched_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_grant_is_remembered_by_the_whole_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_read_views_that_push_each_other_out, setup, teardown)};

    return cmocka_run_group_tests(tests, peer_setup, peer_teardown);
}
