/* The message table: what is run, refused, dropped, and in which order the checks decide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../policyd/pd_dispatch.h"
#include "../../proto/mcp_kind_text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define GENERATION   77u

/* Stand-ins: the table is judged here, not run. */
#define HANDLER(name)                                                                              \
    void name(pd_ask_t *ask)                                                                       \
    {                                                                                              \
        (void)ask;                                                                                 \
        fail_msg("judging runs no handler");                                                       \
    }
HANDLER(pd_on_hello)
HANDLER(pd_on_child_beat)
HANDLER(pd_on_blob_get)
HANDLER(pd_on_resolve)
HANDLER(pd_on_call_begin)
HANDLER(pd_on_call_end)
HANDLER(pd_on_call_note)
HANDLER(pd_on_op_invoke)

static const char beat[] = "{\"child\":\"c\",\"running\":[]}";
static const char invoke[] = "{\"token_hash\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
                             "\"surface\":\"mcp\",\"resource\":\"https://x/mcp\",\"op\":\"whoami__get\",\"args\":{}}";

static mcp_frame_t question(uint16_t kind, size_t bytes)
{
    mcp_frame_t frame = {MCP_VERSION, kind, 0, 42, 1000, (uint32_t)bytes, 0};

    return frame;
}

static pd_verdict_t judge(const mcp_frame_t *frame, const char *body, size_t bytes, unsigned state,
                          pd_inbound_t *ret)
{
    unsigned char header[MCP_HEADER_BYTES];

    assert_int_equal(mcp_frame_encode(frame, header, sizeof header), MCP_OK);
    return pd_dispatch_judge(header, sizeof header, body, bytes, GENERATION, state, ret);
}

static void must_refuse(const mcp_frame_t *frame, const char *body, size_t bytes, unsigned state,
                        mcp_code_t code, const char *text)
{
    pd_inbound_t inbound;

    assert_int_equal(judge(frame, body, bytes, state, &inbound), PD_VERDICT_REFUSE);
    assert_string_equal(mcp_code_text(inbound.fault.code), mcp_code_text(code));
    assert_int_equal(inbound.frame.request_id, 42);
    assert_null(inbound.body);
    if (strstr(inbound.fault.message, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", inbound.fault.message, text);
    }
}

static void a_sound_question_is_run(void **state)
{
    mcp_frame_t frame = question(MCP_KIND_CHILD_BEAT, sizeof beat - 1);
    pd_inbound_t inbound;

    (void)state;
    assert_int_equal(judge(&frame, beat, sizeof beat - 1, PD_STATE_READY, &inbound), PD_VERDICT_RUN);
    assert_ptr_equal(inbound.row, pd_dispatch_row(MCP_KIND_CHILD_BEAT));
    assert_true(json_is_object(inbound.body));
    assert_int_equal(inbound.frame.budget_ms, 1000);
    json_decref(inbound.body);
    frame.generation = GENERATION;
    frame.budget_ms = UINT32_MAX;
    assert_int_equal(judge(&frame, beat, sizeof beat - 1, PD_STATE_READY, &inbound), PD_VERDICT_RUN);
    assert_int_equal(inbound.frame.budget_ms, PD_MAX_BUDGET_MS);
    json_decref(inbound.body);
}

static void every_built_kind_has_a_row_and_no_other(void **state)
{
    uint16_t kind;

    (void)state;
    for (kind = 0; kind < 256; kind++) {
        int has_row = pd_dispatch_row(kind) != NULL;

        assert_int_equal(has_row, (kind & 1) == 0 && mcp_kind_is_built(kind) == 1);
    }
}

static void a_header_that_cannot_be_read_is_dropped(void **state)
{
    mcp_frame_t frame = question(MCP_KIND_CHILD_BEAT, sizeof beat - 1);
    unsigned char header[MCP_HEADER_BYTES + 1];
    pd_inbound_t inbound;
    size_t bytes;

    (void)state;
    assert_int_equal(mcp_frame_encode(&frame, header, sizeof header), MCP_OK);
    for (bytes = 0; bytes < MCP_HEADER_BYTES; bytes++) {
        assert_int_equal(pd_dispatch_judge(header, bytes, beat, sizeof beat - 1, GENERATION,
                                           PD_STATE_READY, &inbound),
                         PD_VERDICT_DROP);
    }
    assert_int_equal(pd_dispatch_judge(header, sizeof header, beat, sizeof beat - 1, GENERATION,
                                       PD_STATE_READY, &inbound),
                     PD_VERDICT_DROP);
    header[0] ^= 1;
    assert_int_equal(pd_dispatch_judge(header, MCP_HEADER_BYTES, beat, sizeof beat - 1, GENERATION,
                                       PD_STATE_READY, &inbound),
                     PD_VERDICT_DROP);
}

static void header_faults_are_answered(void **state)
{
    mcp_frame_t frame = question(MCP_KIND_CHILD_BEAT, sizeof beat - 1);

    (void)state;
    frame.version = MCP_VERSION + 1;
    must_refuse(&frame, beat, sizeof beat - 1, PD_STATE_READY, MCP_CODE_UNSUPPORTED, "versions 1 to 1");
    frame = question(MCP_KIND_CHILD_BEAT + 1, sizeof beat - 1);
    must_refuse(&frame, beat, sizeof beat - 1, PD_STATE_READY, MCP_CODE_MALFORMED, "is a reply");
    frame = question(500, sizeof beat - 1);
    must_refuse(&frame, beat, sizeof beat - 1, PD_STATE_READY, MCP_CODE_UNSUPPORTED, "500");
    frame = question(MCP_KIND_CRED_LEASE, sizeof beat - 1);
    must_refuse(&frame, beat, sizeof beat - 1, PD_STATE_READY, MCP_CODE_UNSUPPORTED, "cred.lease");
    frame = question(MCP_KIND_CHILD_BEAT, sizeof beat - 1);
    frame.flags = MCP_FLAG_ERROR;
    must_refuse(&frame, beat, sizeof beat - 1, PD_STATE_READY, MCP_CODE_MALFORMED, "flags");
    frame = question(MCP_KIND_CHILD_BEAT, sizeof beat);
    must_refuse(&frame, beat, sizeof beat - 1, PD_STATE_READY, MCP_CODE_MALFORMED, "the header says");
    frame = question(MCP_KIND_CHILD_BEAT, sizeof beat - 1);
    frame.budget_ms = 0;
    must_refuse(&frame, beat, sizeof beat - 1, PD_STATE_READY, MCP_CODE_POLICY_UNAVAILABLE, "budget");
}

static void another_generation_must_say_hello_first(void **state)
{
    static const char hello[] =
        "{\"version_min\":1,\"version_max\":1,\"software\":\"s\",\"child\":\"c\"}";
    mcp_frame_t frame = question(MCP_KIND_CHILD_BEAT, sizeof beat - 1);
    pd_inbound_t inbound;

    (void)state;
    frame.generation = GENERATION + 1;
    must_refuse(&frame, beat, sizeof beat - 1, PD_STATE_READY, MCP_CODE_HELLO_REQUIRED, "another policyd");
    frame = question(MCP_KIND_HELLO, sizeof hello - 1);
    frame.generation = GENERATION + 1;
    assert_int_equal(judge(&frame, hello, sizeof hello - 1, PD_STATE_READY, &inbound), PD_VERDICT_RUN);
    json_decref(inbound.body);
}

static void while_draining_nothing_begins_and_everything_else_is_served(void **state)
{
    static const struct {
        uint16_t kind;
        int is_served;
    } cases[] = {{MCP_KIND_HELLO, 1},      {MCP_KIND_RESOLVE, 1},   {MCP_KIND_BLOB_GET, 1},
                 {MCP_KIND_CALL_BEGIN, 0}, {MCP_KIND_CALL_END, 1},  {MCP_KIND_CALL_NOTE, 1},
                 {MCP_KIND_OP_INVOKE, 0},  {MCP_KIND_CHILD_BEAT, 1}};
    mcp_frame_t frame = question(MCP_KIND_OP_INVOKE, sizeof invoke - 1);
    pd_inbound_t inbound;
    size_t i;

    (void)state;
    must_refuse(&frame, invoke, sizeof invoke - 1, PD_STATE_DRAINING, MCP_CODE_POLICY_UNAVAILABLE,
                "shutting down");
    assert_int_equal(judge(&frame, invoke, sizeof invoke - 1, PD_STATE_READY, &inbound), PD_VERDICT_RUN);
    json_decref(inbound.body);
    for (i = 0; i < COUNT(cases); i++) {
        assert_int_equal((pd_dispatch_row(cases[i].kind)->states & PD_STATE_DRAINING) != 0,
                         cases[i].is_served);
    }
}

static void a_body_is_judged_at_its_kinds_limit(void **state)
{
    static const uint16_t kinds[] = {MCP_KIND_HELLO, MCP_KIND_BLOB_GET, MCP_KIND_CALL_END,
                                     MCP_KIND_OP_INVOKE};
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(kinds); i++) {
        size_t limit = pd_dispatch_row(kinds[i])->max_bytes;
        char *body = malloc(limit + 1);
        mcp_frame_t frame = question(kinds[i], limit);

        assert_non_null(body);
        memset(body, ' ', limit + 1);
        must_refuse(&frame, body, limit, PD_STATE_READY, MCP_CODE_MALFORMED, "not one JSON object");
        frame = question(kinds[i], limit + 1);
        must_refuse(&frame, body, limit + 1, PD_STATE_READY, MCP_CODE_TOO_LARGE, "at most");
        free(body);
    }
}

static void a_bad_body_is_refused_by_the_field(void **state)
{
    static const struct {
        const char *body, *text;
    } cases[] = {
        {"", "not one JSON object"},
        {"[]", "not one JSON object"},
        {"{\"child\":\"c\",\"running\":[]} x", "not one JSON object"},
        {"{\"child\":\"c\",\"child\":\"c\",\"running\":[]}", "not one JSON object"},
        {"{\"running\":[]}", "field child of child.beat"},
        {"{\"child\":7,\"running\":[]}", "field child of child.beat"},
        {"{\"child\":\"c\",\"running\":[1]}", "field running of child.beat"},
        {"{\"child\":\"c\",\"running\":[],\"more\":1}", "a field that the protocol does not know"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(cases); i++) {
        size_t bytes = strlen(cases[i].body);
        mcp_frame_t frame = question(MCP_KIND_CHILD_BEAT, bytes);

        must_refuse(&frame, cases[i].body, bytes, PD_STATE_READY, MCP_CODE_MALFORMED, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_question_is_run),
        cmocka_unit_test(every_built_kind_has_a_row_and_no_other),
        cmocka_unit_test(a_header_that_cannot_be_read_is_dropped),
        cmocka_unit_test(header_faults_are_answered),
        cmocka_unit_test(another_generation_must_say_hello_first),
        cmocka_unit_test(while_draining_nothing_begins_and_everything_else_is_served),
        cmocka_unit_test(a_body_is_judged_at_its_kinds_limit),
        cmocka_unit_test(a_bad_body_is_refused_by_the_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
