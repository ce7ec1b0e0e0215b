/* Who asks, found out at most once a POST; sessions that are sealed for one grant; trace ids. */
#include "link_peer.h"

#include <apr_time.h>

#include "../../mod_mcp/mcp_turn.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct world {
    apr_pool_t *pool;
    peer_t *peer;
    mcp_child_t child;
    mcp_terms_t terms;
} world_t;

static int setup(void **state)
{
    world_t *world = calloc(1, sizeof(*world));

    if (world == NULL || apr_pool_create(&world->pool, NULL) != APR_SUCCESS) {
        free(world);
        return -1;
    }
    world->peer = peer_open(NULL, peer_honest);
    world->child.link = peer_link(world->peer, 4, world->pool);
    world->child.ask = peer_ask(world->child.link, world->pool);
    if (mcp_view_create(world->child.ask, 1024 * 1024, &world->child.views) != APR_SUCCESS) {
        return -1;
    }
    world->terms.policy_ms = 5000;
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    world_t *world = *state;

    mcp_view_free(&world->child.views);
    mcp_ask_free(&world->child.ask);
    mcp_link_close(world->child.link);
    peer_close(&world->peer);
    apr_pool_destroy(world->pool);
    free(world);
    return 0;
}

static mcp_turn_t *turn_of(world_t *world, char token)
{
    mcp_turn_t *turn = apr_pcalloc(world->pool, sizeof(*turn));

    turn->pool = world->pool;
    turn->child = &world->child;
    turn->terms = &world->terms;
    memset(turn->who.token_hash, token, MCP_DIGEST_HEX);
    turn->who.surface = "mcp";
    turn->who.resource = "https://mcp.example.com/mcp";
    return turn;
}

/* --- traces ------------------------------------------------------------------------- */

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static void a_trace_id_is_taken_from_a_sound_header_alone(void **state)
{
    static const struct {
        const char *header;
        int is_sound;
    } cases[] = {
        {"00-" TRACE "-" PARENT "-01", 1},
        {"00-" TRACE "-" PARENT "-00", 1},
        {"00-" TRACE "-" PARENT "-ff", 1},
        {"00-00000000000000000000000000000001-0000000000000001-00", 1},
        {"cc-" TRACE "-" PARENT "-01", 1}, /* a later version */
        {"cc-" TRACE "-" PARENT "-01-what-comes-then", 1},
        {NULL, 0},
        {"", 0},
        {"00", 0},
        {"00-" TRACE, 0},
        {"00-" TRACE "-" PARENT, 0},
        {"00-" TRACE "-" PARENT "-", 0},
        {"00-" TRACE "-" PARENT "-1", 0},
        {"00-" TRACE "-" PARENT "-0g", 0},
        {"00-" TRACE "-" PARENT "-01-more", 0}, /* 00 has no more */
        {"00-" TRACE "-" PARENT "-011", 0},
        {"cc-" TRACE "-" PARENT "-01more", 0},
        {"ff-" TRACE "-" PARENT "-01", 0},
        {"0-" TRACE "-" PARENT "-01x", 0},
        {"000-" TRACE "-" PARENT "-01", 0},
        {" 00-" TRACE "-" PARENT "-01", 0},
        {"00 " TRACE "-" PARENT "-01", 0},
        {"00-" TRACE " " PARENT "-01", 0},
        {"00-" TRACE "-" PARENT " 01", 0},
        {"00-00000000000000000000000000000000-" PARENT "-01", 0},
        {"00-" TRACE "-0000000000000000-01", 0},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01", 0},
        {"00-4bf92f3577b34da6a3ce929d0e0e473-" PARENT "0-01", 0},
        {"00-4bf92f3577b34da6a3ce929d0e0e4736a-" PARENT "-01", 0},
        {"00-4bf92f3577b34da6a3ce929d0e0e47'6-" PARENT "-01", 0},
        {"00-" TRACE "-00f067aa0ba902bg-01", 0}};
    world_t *world = *state;
    size_t i;

    for (i = 0; i < COUNT(cases); i++) {
        mcp_turn_t *turn = turn_of(world, 'a');
        char *exact = cases[i].header != NULL ? strdup(cases[i].header) : NULL;

        mcp_turn_trace(turn, exact);
        free(exact); /* what was taken is a copy */
        if ((turn->trace_id != NULL) != cases[i].is_sound) {
            fail_msg("%s was%s taken", cases[i].header, turn->trace_id != NULL ? "" : " not");
        }
        if (turn->trace_id != NULL) {
            assert_int_equal(strlen(turn->trace_id), 32);
            assert_int_equal(strncmp(turn->trace_id, cases[i].header + 3, 32), 0);
        }
    }
}

/* --- who ------------------------------------------------------------------------------ */

static void policyd_is_asked_once_a_turn(void **state)
{
    world_t *world = *state;
    mcp_turn_t *turn = turn_of(world, 'a');
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    assert_int_equal(mcp_turn_resolve(turn, &err), APR_SUCCESS);
    assert_int_equal(mcp_turn_resolve(turn, &err), APR_SUCCESS);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 1);
    assert_string_equal(turn->resolved.grant, "grt_1");
    /* and anew in the next: grants are never cached */
    assert_int_equal(mcp_turn_resolve(turn_of(world, 'a'), &err), APR_SUCCESS);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 2);
}

static void refuse_resolve(peer_t *peer, const peer_question_t *question)
{
    if (question->frame.kind == MCP_KIND_RESOLVE) {
        peer_refuse(peer, question, "grant_revoked");
    } else {
        peer_honest(peer, question);
    }
}

static void a_refused_turn_stays_unresolved(void **state)
{
    world_t *world = *state;
    mcp_turn_t *turn = turn_of(world, 'a');
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    peer_set(world->peer, refuse_resolve);
    assert_int_equal(mcp_turn_resolve(turn, &err), MCP_STATUS_REFUSED);
    assert_int_equal(err.fail, MCP_FAIL_UNAUTHORIZED);
    assert_int_equal(err.code, MCP_CODE_GRANT_REVOKED);
    assert_int_equal(turn->is_resolved, 0);
    assert_null(mcp_view_grant(world->child.views, turn->who.token_hash, world->pool));
}

/* --- sessions --------------------------------------------------------------------------- */

static const char *session_for(world_t *world, const char *grant, int64_t expires_us)
{
    mcp_session_t session;
    mcp_ring_t ring;

    memset(&session, 0, sizeof(session));
    session.revision = MCP_REV_2025_06_18;
    session.grant = grant;
    session.client_name = "legacy";
    session.client_version = "9";
    session.capabilities = "{}";
    session.expires_us = expires_us;
    assert_int_equal(mcp_ask_ring(world->child.ask, 5000, world->pool, &ring, NULL), APR_SUCCESS);
    return mcp_seal_session(&ring, &session, world->pool);
}

static void a_session_is_opened_for_its_own_grant(void **state)
{
    world_t *world = *state;
    const char *id = session_for(world, "grt_1", apr_time_now() + 60000000);
    mcp_turn_t *turn = turn_of(world, 'a');
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    assert_int_equal(mcp_turn_session(turn, id, &err), APR_SUCCESS);
    assert_int_equal(turn->has_session, 1);
    assert_int_equal(turn->session.revision, MCP_REV_2025_06_18);
    assert_string_equal(turn->who.client_name, "legacy");
    assert_string_equal(turn->who.client_version, "9");
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 1);
    /* the next request of this token needs no question to open it */
    assert_int_equal(mcp_turn_session(turn_of(world, 'a'), id, &err), APR_SUCCESS);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 1);
}

static void any_other_session_is_gone(void **state)
{
    world_t *world = *state;
    int64_t later = apr_time_now() + 60000000;
    const char *good = session_for(world, "grt_1", later);
    const char *const bad[] = {session_for(world, "grt_2", later),
                               session_for(world, "grt_1", apr_time_now() - 1),
                               apr_pstrcat(world->pool, good, "A", NULL),
                               apr_pstrmemdup(world->pool, good, strlen(good) - 2),
                               "k1.",
                               "",
                               "not one of ours"};
    size_t i;

    for (i = 0; i < COUNT(bad); i++) {
        mcp_turn_t *turn = turn_of(world, 'a');
        mcp_err_t err;

        memset(&err, 0, sizeof(err));
        assert_int_equal(mcp_turn_session(turn, bad[i], &err), MCP_STATUS_REFUSED);
        assert_int_equal(err.fail, MCP_FAIL_SESSION);
        assert_int_equal(turn->has_session, 0);
        assert_null(turn->who.client_name);
    }
}

static void no_session_is_no_failure(void **state)
{
    world_t *world = *state;
    mcp_turn_t *turn = turn_of(world, 'a');

    assert_int_equal(mcp_turn_session(turn, NULL, NULL), APR_SUCCESS);
    assert_int_equal(turn->has_session, 0);
    assert_int_equal(peer_asked(world->peer, MCP_KIND_RESOLVE), 0);
}

static void a_refused_token_opens_no_session(void **state)
{
    world_t *world = *state;
    const char *id = session_for(world, "grt_1", apr_time_now() + 60000000);
    mcp_turn_t *turn = turn_of(world, 'a');
    mcp_err_t err;

    memset(&err, 0, sizeof(err));
    peer_set(world->peer, refuse_resolve);
    assert_int_equal(mcp_turn_session(turn, id, &err), MCP_STATUS_REFUSED);
    assert_int_equal(err.fail, MCP_FAIL_UNAUTHORIZED); /* 401 before 404 */
    assert_int_equal(turn->has_session, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_trace_id_is_taken_from_a_sound_header_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(policyd_is_asked_once_a_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refused_turn_stays_unresolved, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_is_opened_for_its_own_grant, setup, teardown),
        cmocka_unit_test_setup_teardown(any_other_session_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(no_session_is_no_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refused_token_opens_no_session, setup, teardown)};

    return cmocka_run_group_tests(tests, peer_setup, peer_teardown);
}
