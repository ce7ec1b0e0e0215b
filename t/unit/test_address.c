/* Which addresses may be dialled: case tables against mcp_address.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "mcp_egress.h"

typedef struct address_case {
    const char *text;
    int is_public;
} address_case_t;

static const address_case_t cases4[] = {
    {"0.0.0.0", 0},         {"0.255.255.255", 0},   {"1.0.0.0", 1},         {"1.1.1.1", 1},
    {"9.255.255.255", 1},   {"10.0.0.0", 0},        {"10.255.255.255", 0},  {"11.0.0.0", 1},
    {"100.63.255.255", 1},  {"100.64.0.0", 0},      {"100.100.100.200", 0}, {"100.127.255.255", 0},
    {"100.128.0.0", 1},     {"126.255.255.255", 1}, {"127.0.0.1", 0},       {"127.255.255.255", 0},
    {"128.0.0.1", 1},       {"168.63.129.15", 1},   {"168.63.129.16", 0},   {"168.63.129.17", 1},
    {"169.253.255.255", 1}, {"169.254.169.254", 0}, {"169.255.0.0", 1},     {"172.15.255.255", 1},
    {"172.16.0.0", 0},      {"172.31.255.255", 0},  {"172.32.0.0", 1},      {"192.0.0.192", 0},
    {"192.0.1.0", 1},       {"192.0.2.1", 0},       {"192.0.3.0", 1},       {"192.88.99.1", 0},
    {"192.167.255.255", 1}, {"192.168.0.1", 0},     {"192.169.0.0", 1},     {"198.17.255.255", 1},
    {"198.18.0.0", 0},      {"198.19.255.255", 0},  {"198.20.0.0", 1},      {"198.51.100.7", 0},
    {"203.0.113.7", 0},     {"203.0.114.0", 1},     {"223.255.255.255", 1}, {"224.0.0.1", 0},
    {"239.255.255.255", 0}, {"240.0.0.1", 0},       {"255.255.255.255", 0}, {"8.8.8.8", 1},
};

static const address_case_t cases6[] = {
    {"::", 0},
    {"::1", 0},
    {"::8.8.8.8", 0}, /* IPv4-compatible, deprecated */
    {"::ffff:8.8.8.8", 1},
    {"::ffff:127.0.0.1", 0},
    {"::ffff:10.1.2.3", 0},
    {"::ffff:0:8.8.8.8", 0}, /* SIIT */
    {"64:ff9b::8.8.8.8", 1},
    {"64:ff9b::127.0.0.1", 0},
    {"64:ff9b::169.254.169.254", 0},
    {"64:ff9b:1::8.8.8.8", 0},
    {"64:ff9b:1::10.0.0.1", 0},
    {"64:ff9b:0:0:0:1:808:808", 0}, /* beyond the /96 */
    {"100::1", 0},
    {"2000::1", 1},
    {"2001:0:808:808::f7f7:f7f7", 1}, /* Teredo: server 8.8.8.8, client 8.8.8.8 */
    {"2001:0:808:808::80ff:fffe", 0}, /* client 127.0.0.1 */
    {"2001:0:7f00:1::f7f7:f7f7", 0},  /* server 127.0.0.1 */
    {"2001:1::1", 0},
    {"2001:2::1", 0},
    {"2001:10::1", 0},
    {"2001:20::1", 0},
    {"2001:1ff:ffff::1", 0},
    {"2001:200::1", 1},
    {"2001:db8::1", 0},
    {"2001:db9::1", 1},
    {"2001:4860:4860::8888", 1},
    {"2002:808:808::1", 1},
    {"2002:7f00:1::1", 0},
    {"2002:a9fe:a9fe::1", 0},
    {"2002:c0a8:1::1", 0},
    {"2606:4700::1111", 1},
    {"2606:4700::5efe:10.0.0.1", 0}, /* ISATAP */
    {"2606:4700::200:5efe:127.0.0.1", 0},
    {"2606:4700::5efe:8.8.8.8", 1},
    {"3ffe::1", 1},
    {"3fff::1", 0},
    {"3fff:fff:ffff::1", 0},
    {"3fff:1000::1", 1},
    {"4000::1", 0},
    {"5f00::1", 0},
    {"fc00::1", 0},
    {"fd00:ec2::254", 0},
    {"fe80::1", 0},
    {"fec0::1", 0},
    {"ff02::1", 0},
    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 0},
};

/* The bytes sit in a block of exactly their size, so that a checker sees a read beyond. */
static int ask(int family, const char *text)
{
    size_t bytes = family == AF_INET ? 4 : 16;
    unsigned char *address = malloc(bytes);
    assert_non_null(address);
    assert_int_equal(inet_pton(family, text, address), 1);
    int is_public = mcp_egress_is_public(family, address);
    free(address);
    return is_public;
}

static void check(int family, const address_case_t *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ask(family, cases[i].text) != cases[i].is_public)
            fail_msg("%s should be %s", cases[i].text, cases[i].is_public ? "public" : "refused");
    }
}

static void special_ipv4_ranges_end_where_the_registry_says(void **state)
{
    (void)state;
    check(AF_INET, cases4, sizeof cases4 / sizeof cases4[0]);
}

static void ipv6_is_refused_but_for_global_unicast_and_public_ipv4_inside(void **state)
{
    (void)state;
    check(AF_INET6, cases6, sizeof cases6 / sizeof cases6[0]);
}

static void ipv4_is_judged_alike_plain_mapped_translated_and_tunnelled(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases4 / sizeof cases4[0]; i++) {
        unsigned char v4[4];
        assert_int_equal(inet_pton(AF_INET, cases4[i].text, v4), 1);
        unsigned char mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
        unsigned char nat64[16] = {0, 0x64, 0xff, 0x9b};
        unsigned char sixtofour[16] = {0x20, 0x02};
        memcpy(mapped + 12, v4, 4);
        memcpy(nat64 + 12, v4, 4);
        memcpy(sixtofour + 2, v4, 4);
        assert_int_equal(mcp_egress_is_public(AF_INET6, mapped), cases4[i].is_public);
        assert_int_equal(mcp_egress_is_public(AF_INET6, nat64), cases4[i].is_public);
        assert_int_equal(mcp_egress_is_public(AF_INET6, sixtofour), cases4[i].is_public);
    }
}

static void another_family_is_refused(void **state)
{
    static const unsigned char bytes[16] = {8, 8, 8, 8};
    (void)state;
    assert_int_equal(mcp_egress_is_public(AF_UNIX, bytes), 0);
    assert_int_equal(mcp_egress_is_public(AF_UNSPEC, bytes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_ipv4_ranges_end_where_the_registry_says),
        cmocka_unit_test(ipv6_is_refused_but_for_global_unicast_and_public_ipv4_inside),
        cmocka_unit_test(ipv4_is_judged_alike_plain_mapped_translated_and_tunnelled),
        cmocka_unit_test(another_family_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
