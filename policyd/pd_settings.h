/* The settings that exist: one row each with type, range, default and where it may be narrowed.
 * Stored as objects of kind "setting" {"key","value","client"?,"grant"?}, key
 * "key:KEY[:client:C|:grant:G]"; where none is stored the row's default holds. The narrower wins:
 * grant, then client, then organisation. Thread-safe. */
#ifndef PD_SETTINGS_H
#define PD_SETTINGS_H

#include "pd_store.h"

#define PD_MAX_OWN 50 /* connections.max_own where it is not set */

typedef enum pd_setting_type {
    PD_SETTING_INT,
    PD_SETTING_BOOL,
    PD_SETTING_WORD, /* one of `words` */
    PD_SETTING_URL   /* absolute http(s) URL without userinfo, query and fragment */
} pd_setting_type_t;

typedef struct pd_setting {
    const char *key;
    pd_setting_type_t type;
    int64_t min, max;         /* INT */
    int64_t number;           /* default of INT and BOOL */
    const char *text;         /* default of WORD; URL: NULL is unset */
    const char *const *words; /* WORD: NULL-terminated */
    int may_narrow;           /* may be set for a client name or a grant */
    const char *description;
} pd_setting_t;

/* i-th row in order of keys, NULL after the last. */
const pd_setting_t *pd_settings_row(int i);
/* Row of a key, or NULL. */
const pd_setting_t *pd_settings_find(const char *key);
/* "integer", "boolean", "word" or "url". */
const char *pd_settings_type_text(pd_setting_type_t type);

/* Judges a value; PD_E_INVALID with fault INVALID_REQUEST saying what is allowed, never the value.
 */
pd_status_t pd_settings_check(const pd_setting_t *row, const json_t *value, pd_fault_t *fault);
/* The default as JSON (null: unset); new reference. */
json_t *pd_settings_default(const pd_setting_t *row);

/* Alternative key in the store; client and grant NULL: the organisation's. */
const char *pd_settings_key(const char *key, const char *client, const char *grant,
                            apr_pool_t *pool);

/* The value that holds for a grant and a client name (either may be NULL). *ret lives with the
 * unit, NULL when the default holds; *ret_source (may be NULL): "grant", "client", "organisation"
 * or "default". */
pd_status_t pd_settings_read(pd_tx_t *tx, const pd_setting_t *row, const char *client,
                             const char *grant, const json_t **ret, const char **ret_source);

/* 1 for an absolute http(s) URL of at most 512 bytes without userinfo, query, fragment, blanks and
 * control bytes: what names an endpoint. */
int pd_settings_is_url(const char *text);

#endif
