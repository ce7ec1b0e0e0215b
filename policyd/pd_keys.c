/* The key ring: see pd_keys.h. */
#include "pd_keys.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"
#include "pd_log.h"

#define RING       2 /* current and previous */
#define PURPOSE    "policyd-ring-v1"
#define DEADLINE_MS 10000

typedef struct ring_key {
    char id[MCP_MAX_ID];
    int64_t created_us;
    unsigned char key[MCP_KEY_BYTES];
} ring_key_t;

struct pd_keys {
    int count;
    int is_rotating;        /* a write is under way */
    pd_status_t loaded;     /* how the last loading ended */
    ring_key_t keys[RING];  /* newest first */
    const unsigned char *master;
};

/* Reads the newest keys; ids sort by creation, so the last two objects are the ring. */
static pd_status_t load_unit(pd_tx_t *tx, void *baton)
{
    pd_keys_t *keys = baton;
    apr_array_header_t *page = NULL;
    pd_status_t status = pd_tx_list(tx, "key", NULL, NULL, 1000, &page);
    int i;

    keys->count = 0;
    for (i = status == PD_OK ? page->nelts - 1 : -1; i >= 0 && keys->count < RING; i--) {
        const pd_object_t *object = APR_ARRAY_IDX(page, i, pd_object_t *);
        ring_key_t *to = &keys->keys[keys->count];
        const void *sealed = NULL;
        size_t bytes = 0;

        if (pd_tx_secret_get(tx, "key", object->id, &sealed, &bytes) != PD_OK ||
            mcp_unseal_bytes(keys->master, PURPOSE, object->id, strlen(object->id), sealed, bytes,
                             to->key, sizeof(to->key)) != MCP_OK) {
            pd_log(PD_LOG_WARNING, 110, "ring key %s does not open under the master key: left out",
                   object->id);
            continue;
        }
        (void)apr_cpystrn(to->id, object->id, sizeof(to->id));
        to->created_us = object->created.us;
        keys->count++;
    }
    return status;
}

static void load_done(pd_status_t status, int64_t revision, void *baton)
{
    (void)revision;
    ((pd_keys_t *)baton)->loaded = status;
}

typedef struct rotation {
    pd_core_t *core;
    pd_keys_t *keys;
} rotation_t;

static pd_status_t reload(pd_core_t *core, pd_keys_t *keys);

static pd_status_t rotate_unit(pd_tx_t *tx, void *baton)
{
    const rotation_t *rotation = baton;
    unsigned char key[MCP_KEY_BYTES];
    unsigned char sealed[MCP_KEY_BYTES + MCP_SEAL_EXTRA];
    const char *id = pd_store_new_id("key", pd_tx_pool(tx));
    apr_array_header_t *page = NULL;
    json_t *doc = json_object();
    pd_status_t status;
    int i;

    mcp_random(key, sizeof(key));
    status = mcp_seal_bytes(rotation->keys->master, PURPOSE, id, strlen(id), key, sizeof(key), sealed,
                            sizeof(sealed)) == MCP_OK
                 ? PD_OK
                 : PD_E_CRYPTO;
    mcp_wipe(key, sizeof(key));
    if (status == PD_OK) {
        status = pd_tx_insert(tx, "key", id, NULL, doc, NULL);
    }
    json_decref(doc);
    if (status == PD_OK) {
        status = pd_tx_secret_put(tx, "key", id, sealed, sizeof(sealed));
    }
    if (status == PD_OK) {
        status = pd_tx_list(tx, "key", NULL, NULL, 1000, &page);
    }
    for (i = 0; status == PD_OK && i < page->nelts - RING; i++) {
        status = pd_tx_delete(tx, "key", APR_ARRAY_IDX(page, i, pd_object_t *)->id, 0);
    }
    return status;
}

static void rotate_done(pd_status_t status, int64_t revision, void *baton)
{
    rotation_t *rotation = baton;

    (void)revision;
    rotation->keys->is_rotating = 0;
    if (status != PD_OK) {
        pd_log(PD_LOG_ERR, 111, "a new ring key can't be stored: %s", pd_status_text(status));
    } else {
        (void)reload(rotation->core, rotation->keys); /* tried again at the next tick */
    }
    free(rotation);
}

static pd_status_t reload(pd_core_t *core, pd_keys_t *keys)
{
    pd_status_t status;

    keys->loaded = PD_OK; /* a backend that answers later leaves the ring empty until then */
    status = pd_store_submit(core->store, PD_LANE_LOOP, pd_boot_in(DEADLINE_MS), load_unit, load_done,
                             keys);
    return status != PD_OK ? status : keys->loaded;
}

void pd_keys_tick(pd_core_t *core, pd_keys_t *keys)
{
    int64_t age_us = keys->count > 0 ? pd_wall_now().us - keys->keys[0].created_us : INT64_MAX;
    rotation_t *rotation;

    if (keys->is_rotating || age_us < (int64_t)PD_KEY_DAYS * 86400 * 1000000) {
        return;
    }
    rotation = malloc(sizeof(*rotation));
    if (rotation == NULL) {
        return;
    }
    rotation->core = core;
    rotation->keys = keys;
    keys->is_rotating = 1;
    if (pd_store_submit(core->store, PD_LANE_WRITE, pd_boot_in(DEADLINE_MS), rotate_unit, rotate_done,
                        rotation) != PD_OK) {
        keys->is_rotating = 0;
        free(rotation);
    }
}

pd_status_t pd_keys_new(pd_core_t *core, pd_keys_t **ret)
{
    pd_keys_t *keys = calloc(1, sizeof(*keys));
    pd_status_t status;

    if (keys == NULL) {
        return PD_E_NOMEM;
    }
    keys->master = core->master_key;
    status = reload(core, keys);
    if (status != PD_OK) {
        free(keys);
        return status;
    }
    pd_keys_tick(core, keys);
    *ret = keys;
    return PD_OK;
}

void pd_keys_free(pd_keys_t **keys)
{
    if (*keys != NULL) {
        mcp_wipe(*keys, sizeof(**keys));
        free(*keys);
        *keys = NULL;
    }
}

/* The newest that has been handed out for long enough; a lone one has nothing to wait for. */
static int current_of(const pd_keys_t *keys)
{
    int64_t age_us = pd_wall_now().us - keys->keys[0].created_us;

    return keys->count > 1 && age_us < (int64_t)PD_KEY_STAGE_S * 1000000 ? 1 : 0;
}

json_t *pd_keys_json(const pd_keys_t *keys)
{
    json_t *array;
    int i;

    if (keys->count == 0) {
        return NULL;
    }
    array = json_array();
    for (i = 0; i < keys->count; i++) {
        char text[4 * (MCP_KEY_BYTES + 2) / 3 + 1];
        char digest[MCP_DIGEST_HEX + 1];

        /* the id that travels in sealed values is short and says nothing about the store */
        mcp_digest_hex(keys->keys[i].id, strlen(keys->keys[i].id), digest);
        digest[8] = '\0';
        mcp_b64url(keys->keys[i].key, MCP_KEY_BYTES, text);
        json_array_append_new(array, json_pack("{s:s,s:s,s:b}", "id", digest, "key", text, "current",
                                               i == current_of(keys)));
        mcp_wipe(text, sizeof(text));
    }
    return array;
}

void pd_keys_tag(const pd_keys_t *keys, const char *text, char out[17])
{
    static const unsigned char none[MCP_KEY_BYTES];
    unsigned char hash[MCP_HASH_BYTES];

    mcp_keyed_hash(keys->count > 0 ? keys->keys[0].key : none, "policyd-name-tag", text, strlen(text),
                   hash);
    mcp_hex(hash, 8, out);
}
