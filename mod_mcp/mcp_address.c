/* Which addresses may be dialled without an exception: the special-purpose registries of IANA as
 * tables, and the IPv4 addresses that IPv6 forms carry inside. Pure.
 *
 * A row that says "refused" may well be reachable on some network; the question here is whether
 * a stranger on the internet could reach it too. What no row knows is refused. */
#include "mcp_egress.h"

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

typedef struct range4 {
    unsigned char net[4];
    unsigned bits;
} range4_t;

/* IANA IPv4 special-purpose registry, without the rows that are globally reachable and meant for
 * anybody. */
static const range4_t refused4[] = {
    {{0, 0, 0, 0}, 8},        /* this network; Linux dials itself */
    {{10, 0, 0, 0}, 8},       /* private */
    {{100, 64, 0, 0}, 10},    /* carrier NAT; metadata service of one cloud */
    {{127, 0, 0, 0}, 8},      /* loopback */
    {{168, 63, 129, 16}, 32}, /* a cloud's host agent, seen from its guests only */
    {{169, 254, 0, 0}, 16},   /* link-local; metadata services */
    {{172, 16, 0, 0}, 12},    /* private */
    {{192, 0, 0, 0}, 24},     /* IETF assignments; metadata service of one cloud */
    {{192, 0, 2, 0}, 24},     /* documentation */
    {{192, 88, 99, 0}, 24},   /* 6to4 relay anycast, deprecated */
    {{192, 168, 0, 0}, 16},   /* private */
    {{198, 18, 0, 0}, 15},    /* benchmarking */
    {{198, 51, 100, 0}, 24},  /* documentation */
    {{203, 0, 113, 0}, 24},   /* documentation */
    {{224, 0, 0, 0}, 4},      /* multicast */
    {{240, 0, 0, 0}, 4},      /* reserved, and broadcast */
};

typedef enum verdict6 {
    V6_REFUSED,
    V6_PUBLIC,
    V6_EMBEDDED, /* as the IPv4 address at `offset` */
    V6_TEREDO    /* server and client, the client's bits turned over */
} verdict6_t;

typedef struct range6 {
    unsigned char net[16];
    unsigned bits;
    verdict6_t verdict;
    unsigned offset;
} range6_t;

/* The first row that fits decides; beyond the last row an address is refused: only 2000::/3 is
 * allotted to global unicast, so loopback, unique local, link-local, site-local, multicast,
 * discard, SRv6 and IPv4-compatible addresses need no row. */
static const range6_t ranges6[] = {
    /* IPv4-mapped: a dual-stack socket dials the IPv4 address */
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, V6_EMBEDDED, 12},
    /* NAT64, RFC 6052. The local-use prefix 64:ff9b:1::/48 (RFC 8215) is not global and gets no
     * row. */
    {{0x00, 0x64, 0xff, 0x9b}, 96, V6_EMBEDDED, 12},
    {{0x20, 0x01, 0x00, 0x00}, 32, V6_TEREDO, 0},
    {{0x20, 0x01, 0x00, 0x00},
     23,
     V6_REFUSED,
     0}, /* IETF assignments: benchmarking, ORCHID and so on */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, V6_REFUSED, 0}, /* documentation */
    {{0x20, 0x02}, 16, V6_EMBEDDED, 2},            /* 6to4 */
    {{0x3f, 0xff}, 20, V6_REFUSED, 0},             /* documentation */
    {{0x20}, 3, V6_PUBLIC, 0},
};

static int is_in_net(const unsigned char *address, const unsigned char *net, unsigned bits)
{
    size_t whole = bits / 8;
    unsigned rest = bits % 8;
    if (memcmp(address, net, whole) != 0)
        return 0;
    if (rest == 0)
        return 1;
    return (unsigned)(address[whole] ^ net[whole]) >> (8 - rest) == 0;
}

static int is_public4(const unsigned char *address)
{
    for (size_t i = 0; i < sizeof refused4 / sizeof refused4[0]; i++) {
        if (is_in_net(address, refused4[i].net, refused4[i].bits))
            return 0;
    }
    return 1;
}

static int is_public_teredo(const unsigned char *address)
{
    unsigned char client[4];
    for (size_t i = 0; i < sizeof client; i++)
        client[i] = (unsigned char)(address[12 + i] ^ 0xff);
    return is_public4(address + 4) && is_public4(client);
}

/* RFC 5214: a host on an IPv4 network behind any prefix, named by its interface identifier. */
static int is_isatap(const unsigned char *address)
{
    return (address[8] & 0xfd) == 0 && address[9] == 0 && address[10] == 0x5e &&
           address[11] == 0xfe;
}

static int is_public6(const unsigned char *address)
{
    for (size_t i = 0; i < sizeof ranges6 / sizeof ranges6[0]; i++) {
        const range6_t *row = &ranges6[i];
        if (!is_in_net(address, row->net, row->bits))
            continue;
        switch (row->verdict) {
        case V6_PUBLIC:
            return !is_isatap(address) || is_public4(address + 12);
        case V6_EMBEDDED:
            return is_public4(address + row->offset);
        case V6_TEREDO:
            return is_public_teredo(address);
        case V6_REFUSED:
            return 0;
        }
    }
    return 0;
}

int mcp_egress_is_public(int family, const unsigned char *address)
{
    if (family == AF_INET)
        return is_public4(address);
    if (family == AF_INET6)
        return is_public6(address);
    return 0;
}
