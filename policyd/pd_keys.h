/* The ring of keys for values that clients carry: kept sealed in the store, so that every policyd on it hands out
 * the same ones. A new key is made after PD_KEY_DAYS and is accepted at once, but becomes the current one only PD_KEY_STAGE_S later, when
 * every child has asked for the ring again (mcp_ask_ring() does each hour): nobody seals with what another does not know yet. The previous
 * one stays accepted. Loop's thread only. */
#ifndef PD_KEYS_H
#define PD_KEYS_H

#include "pd_core.h"

#define PD_KEY_DAYS    7
#define PD_KEY_STAGE_S 7200

typedef struct pd_keys pd_keys_t;

/* Loads the ring and makes a first key when there is none; ready when pd_keys_json() answers. */
pd_status_t pd_keys_new(pd_core_t *core, pd_keys_t **ret);
void pd_keys_free(pd_keys_t **keys);
/* Rotates when it is time. */
void pd_keys_tick(pd_core_t *core, pd_keys_t *keys);
/* `keys` of hello's answer, new reference; NULL while the first key is not stored yet. */
json_t *pd_keys_json(const pd_keys_t *keys);
/* Keyed hash of a text under the current key as 16 hex digits, for names that are not recorded as they came. */
void pd_keys_tag(const pd_keys_t *keys, const char *text, char out[17]);

#endif
