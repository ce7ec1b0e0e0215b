/* The binary header: vectors, limits, hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mcp_frame.h"
#include "mcp_kind_text.h"

/* A call.begin question written down by hand, as PROTOCOL.md lays it out. */
static const unsigned char golden[MCP_HEADER_BYTES] = {
    'M', 'C', 'P', 'D', 0, 1, 0, 10, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6,
    7,   8,   0,   0,   7, 208, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0, 9};

static mcp_frame_t sample(void)
{
    mcp_frame_t frame;

    memset(&frame, 0, sizeof(frame));
    frame.version = MCP_VERSION;
    frame.kind = MCP_KIND_CALL_BEGIN;
    frame.request_id = 0x0102030405060708u;
    frame.budget_ms = 2000;
    frame.body_bytes = 42;
    frame.generation = 9;
    return frame;
}

static void a_header_is_written_as_the_protocol_lays_it_out(void **state)
{
    mcp_frame_t frame = sample();
    unsigned char buf[MCP_HEADER_BYTES];

    (void)state;
    assert_int_equal(mcp_frame_encode(&frame, buf, sizeof(buf)), MCP_OK);
    assert_memory_equal(buf, golden, sizeof(golden));
    assert_int_equal(mcp_frame_encode(&frame, buf, sizeof(buf) - 1), MCP_E_SPACE);
}

static void what_was_written_is_read_back(void **state)
{
    mcp_frame_t frame;

    (void)state;
    assert_int_equal(mcp_frame_decode(golden, sizeof(golden), 42, MCP_TO_POLICYD, &frame), MCP_OK);
    assert_int_equal(frame.kind, MCP_KIND_CALL_BEGIN);
    assert_true(frame.request_id == 0x0102030405060708u);
    assert_int_equal(frame.budget_ms, 2000);
    assert_int_equal(frame.body_bytes, 42);
    assert_true(frame.generation == 9);
}

static void every_prefix_and_every_longer_text_is_refused(void **state)
{
    mcp_frame_t frame;
    size_t size;

    (void)state;
    for (size = 0; size < MCP_HEADER_BYTES; size++) {
        unsigned char *own = malloc(size > 0 ? size : 1);

        assert_non_null(own);
        memcpy(own, golden, size);
        assert_int_equal(mcp_frame_decode(own, size, 42, MCP_TO_POLICYD, &frame), MCP_E_INCOMPLETE);
        free(own);
    }
    assert_int_equal(mcp_frame_decode(golden, MCP_HEADER_BYTES + 1, 42, MCP_TO_POLICYD, &frame),
                     MCP_E_TRAILING);
}

static void each_broken_field_has_its_own_status(void **state)
{
    static const struct {
        int at;
        unsigned char value;
        mcp_direction_t direction;
        size_t body;
        mcp_wire_status_t expected;
    } rows[] = {
        {0, 'X', MCP_TO_POLICYD, 42, MCP_E_MAGIC},
        {5, 0, MCP_TO_POLICYD, 42, MCP_E_VERSION},
        {5, 2, MCP_TO_POLICYD, 42, MCP_E_VERSION},
        {7, 11, MCP_TO_POLICYD, 42, MCP_E_KIND},   /* a reply to policyd */
        {7, 10, MCP_FROM_POLICYD, 42, MCP_E_KIND}, /* a question from policyd */
        {7, 250, MCP_TO_POLICYD, 42, MCP_E_KIND},  /* off the list */
        {7, 20, MCP_TO_POLICYD, 42, MCP_OK},       /* reserved: known to the frame, refused by dispatch */
        {11, 1, MCP_TO_POLICYD, 42, MCP_E_FLAGS},  /* questions have no flags */
        {8, 128, MCP_TO_POLICYD, 42, MCP_E_FLAGS},
        {7, 10, MCP_TO_POLICYD, 43, MCP_E_SIZE},
        {7, 10, MCP_TO_POLICYD, 0, MCP_E_SIZE}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned char buf[MCP_HEADER_BYTES];
        mcp_frame_t frame;

        memcpy(buf, golden, sizeof(buf));
        buf[rows[i].at] = rows[i].value;
        assert_int_equal(
            mcp_frame_decode(buf, sizeof(buf), rows[i].body, rows[i].direction, &frame),
            rows[i].expected);
        if (rows[i].expected != MCP_OK && rows[i].expected != MCP_E_MAGIC) {
            assert_true(frame.request_id == 0x0102030405060708u); /* an error reply can echo it */
        }
    }
}

static void bodies_are_taken_up_to_the_limit(void **state)
{
    static const struct {
        uint32_t flags;
        uint32_t bytes;
        mcp_wire_status_t expected;
    } rows[] = {{0, MCP_MAX_BODY_BYTES, MCP_OK},
                {0, MCP_MAX_BODY_BYTES + 1, MCP_E_SIZE},
                {MCP_FLAG_RAW, MCP_MAX_BLOB_PART, MCP_OK},
                {MCP_FLAG_RAW | MCP_FLAG_MORE, MCP_MAX_BLOB_PART, MCP_OK},
                {MCP_FLAG_RAW, MCP_MAX_BLOB_PART + 1, MCP_E_SIZE},
                {MCP_FLAG_MORE, 10, MCP_E_FLAGS},
                {MCP_FLAG_RAW | MCP_FLAG_ERROR, 10, MCP_E_FLAGS}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mcp_frame_t frame = sample();
        unsigned char buf[MCP_HEADER_BYTES];

        frame.kind = MCP_KIND_REPLY(MCP_KIND_BLOB_GET);
        frame.flags = rows[i].flags;
        frame.body_bytes = rows[i].bytes;
        assert_int_equal(mcp_frame_encode(&frame, buf, sizeof(buf)), MCP_OK);
        assert_int_equal(
            mcp_frame_decode(buf, sizeof(buf), rows[i].bytes, MCP_FROM_POLICYD, &frame),
            rows[i].expected);
    }
}

static void random_bytes_and_bit_flips_never_crash(void **state)
{
    unsigned seed = 20261130;
    int round;
    size_t bit;

    (void)state;
    for (bit = 0; bit < MCP_HEADER_BYTES * 8; bit++) {
        unsigned char buf[MCP_HEADER_BYTES];
        mcp_frame_t frame;

        memcpy(buf, golden, sizeof(buf));
        buf[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        (void)mcp_frame_decode(buf, sizeof(buf), 42, MCP_TO_POLICYD, &frame);
    }
    for (round = 0; round < 100000; round++) {
        unsigned char buf[MCP_HEADER_BYTES];
        mcp_frame_t frame;
        size_t i;

        for (i = 0; i < sizeof(buf); i++) {
            seed = seed * 1103515245u + 12345u;
            buf[i] = (unsigned char)(seed >> 16);
        }
        assert_int_not_equal(mcp_frame_decode(buf, sizeof(buf), 42, MCP_TO_POLICYD, &frame), MCP_OK);
    }
}

static void requests_are_even_and_replies_odd(void **state)
{
    static const uint16_t kinds[] = {
#define KIND(name, number, text, is_built) number,
        MCP_KIND_LIST(KIND)
#undef KIND
    };
    size_t i;
    size_t k;

    (void)state;
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        assert_int_equal(kinds[i] % 2, 0);
        assert_int_equal(MCP_KIND_REPLY(kinds[i]), kinds[i] + 1);
        assert_string_equal(mcp_kind_text(kinds[i]), mcp_kind_text(MCP_KIND_REPLY(kinds[i])));
        assert_int_equal(mcp_kind_is_built(MCP_KIND_REPLY(kinds[i])), -1);
        for (k = i + 1; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            assert_int_not_equal(kinds[i], kinds[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_written_as_the_protocol_lays_it_out),
        cmocka_unit_test(what_was_written_is_read_back),
        cmocka_unit_test(every_prefix_and_every_longer_text_is_refused),
        cmocka_unit_test(each_broken_field_has_its_own_status),
        cmocka_unit_test(bodies_are_taken_up_to_the_limit),
        cmocka_unit_test(random_bytes_and_bit_flips_never_crash),
        cmocka_unit_test(requests_are_even_and_replies_odd)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
