/* The table of settings, and reading one through its layers. */
#include "pd_settings.h"

#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"

#define MAX_URL 512

static const char *const mode_words[] = {"auto", "always", "never", NULL};
static const char *const unknown_words[] = {"count", "ordinary", "ignore", NULL};

static const pd_setting_t rows[] = {
    {.key = "advertise.step_up",
     .type = PD_SETTING_BOOL,
     .description = "Lists tools that only lack a scope of the grant; off, they are not shown."},
    {.key = "collapse.budget_percent",
     .type = PD_SETTING_INT,
     .min = 0,
     .max = 100,
     .may_narrow = 1,
     .description =
         "Collapses when definitions exceed this share of collapse.context_tokens; 0 is off."},
    {.key = "collapse.budget_tokens",
     .type = PD_SETTING_INT,
     .min = 0,
     .max = 10000000,
     .may_narrow = 1,
     .description = "Collapses when definitions exceed this estimate of tokens; 0 is off."},
    {.key = "collapse.context_tokens",
     .type = PD_SETTING_INT,
     .min = 1000,
     .max = 100000000,
     .number = 200000,
     .may_narrow = 1,
     .description = "Size of the model's context that collapse.budget_percent speaks of."},
    {.key = "collapse.mode",
     .type = PD_SETTING_WORD,
     .text = "auto",
     .words = mode_words,
     .may_narrow = 1,
     .description = "auto: collapse above the threshold or a budget; always; never."},
    {.key = "collapse.threshold",
     .type = PD_SETTING_INT,
     .min = 0,
     .max = 100000,
     .number = 30,
     .may_narrow = 1,
     .description = "More visible operations and tools than this collapse behind search."},
    {.key = "connections.max_own",
     .type = PD_SETTING_INT,
     .min = 0,
     .max = 1000,
     .number = PD_MAX_OWN,
     .description = "Most connections that a member can have of their own."},
    {.key = "endpoint.resource",
     .type = PD_SETTING_URL,
     .description =
         "URL that clients type for the endpoint; audience of new grants. Unset: the first "
         "endpoint's own origin and path."},
    {.key = "execution.max_bytes",
     .type = PD_SETTING_INT,
     .min = 1024,
     .max = 1073741824,
     .number = 10485760,
     .description = "Largest answer of an application, in bytes."},
    {.key = "execution.timeout_ms",
     .type = PD_SETTING_INT,
     .min = 100,
     .max = 3600000,
     .number = 30000,
     .description = "Time for one request to an application, in milliseconds."},
    {.key = "search.closest",
     .type = PD_SETTING_INT,
     .min = 0,
     .max = 3,
     .description = "Names below the relevance floor that an empty search result may add."},
    {.key = "search.unknown_words",
     .type = PD_SETTING_WORD,
     .text = "ordinary",
     .words = unknown_words,
     .description = "Weight of query words that no visible tool has: count all; all but ordinary "
                    "English; ignore them."},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

const pd_setting_t *pd_settings_row(int i)
{
    return i >= 0 && (size_t)i < ROWS ? &rows[i] : NULL;
}

const pd_setting_t *pd_settings_find(const char *key)
{
    size_t i;

    for (i = 0; key != NULL && i < ROWS; i++) {
        if (strcmp(rows[i].key, key) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

const char *pd_settings_type_text(pd_setting_type_t type)
{
    switch (type) {
    case PD_SETTING_INT:
        return "integer";
    case PD_SETTING_BOOL:
        return "boolean";
    case PD_SETTING_WORD:
        return "word";
    case PD_SETTING_URL:
        return "url";
    }
    return "unknown";
}

int pd_settings_is_url(const char *text)
{
    const char *host;
    const char *at;
    size_t host_bytes;

    if (text == NULL || strlen(text) > MAX_URL) {
        return 0;
    }
    if (strncmp(text, "https://", 8) == 0) {
        host = text + 8;
    } else if (strncmp(text, "http://", 7) == 0) {
        host = text + 7;
    } else {
        return 0;
    }
    host_bytes = strcspn(host, "/");
    if (host_bytes == 0 || memchr(host, '@', host_bytes) != NULL || host[0] == ':') {
        return 0;
    }
    for (at = host; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f ||
            strchr("?#\\\"<>{}|^`", *at) != NULL) {
            return 0;
        }
    }
    return 1;
}

static int is_word(const char *const *words, const char *text)
{
    for (; text != NULL && *words != NULL; words++) {
        if (strcmp(*words, text) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The words of a list as "a, b or c" into buf. */
static void list_words(const char *const *words, char *buf, size_t size)
{
    size_t used = 0;
    size_t i;

    buf[0] = '\0';
    for (i = 0; words[i] != NULL && used < size; i++) {
        const char *between = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";

        apr_snprintf(buf + used, size - used, "%s%s", between, words[i]);
        used += strlen(buf + used);
    }
}

pd_status_t pd_settings_check(const pd_setting_t *row, const json_t *value, pd_fault_t *fault)
{
    char words[128];

    switch (row->type) {
    case PD_SETTING_INT:
        if (json_is_integer(value) && json_integer_value(value) >= row->min &&
            json_integer_value(value) <= row->max) {
            return PD_OK;
        }
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, NULL,
                        "%s takes an integer from %lld to %lld.", row->key, (long long)row->min,
                        (long long)row->max);
    case PD_SETTING_BOOL:
        if (json_is_boolean(value)) {
            return PD_OK;
        }
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, NULL, "%s takes true or false.", row->key);
    case PD_SETTING_WORD:
        if (is_word(row->words, json_string_value(value))) {
            return PD_OK;
        }
        list_words(row->words, words, sizeof(words));
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, NULL, "%s takes %s.", row->key, words);
    case PD_SETTING_URL:
        if (pd_settings_is_url(json_string_value(value))) {
            return PD_OK;
        }
        return pd_fault(
            fault, MCP_CODE_INVALID_REQUEST, "For example https://mcp.example.com/mcp",
            "%s takes an absolute http or https URL without userinfo, query and fragment.",
            row->key);
    }
    return pd_fault(fault, MCP_CODE_INTERNAL, NULL, "%s has a type that is not built.", row->key);
}

json_t *pd_settings_default(const pd_setting_t *row)
{
    switch (row->type) {
    case PD_SETTING_INT:
        return json_integer((json_int_t)row->number);
    case PD_SETTING_BOOL:
        return json_boolean(row->number != 0);
    case PD_SETTING_WORD:
    case PD_SETTING_URL:
        return row->text != NULL ? json_string(row->text) : json_null();
    }
    return json_null();
}

const char *pd_settings_key(const char *key, const char *client, const char *grant,
                            apr_pool_t *pool)
{
    if (grant != NULL) {
        return apr_pstrcat(pool, "key:", key, ":grant:", grant, (char *)NULL);
    }
    if (client != NULL) {
        return apr_pstrcat(pool, "key:", key, ":client:", client, (char *)NULL);
    }
    return apr_pstrcat(pool, "key:", key, (char *)NULL);
}

pd_status_t pd_settings_read(pd_tx_t *tx, const pd_setting_t *row, const char *client,
                             const char *grant, const json_t **ret, const char **ret_source)
{
    const struct {
        const char *client, *grant, *source;
        int is_asked;
    } layers[] = {
        {NULL, grant, "grant", row->may_narrow && grant != NULL},
        {client, NULL, "client", row->may_narrow && client != NULL},
        {NULL, NULL, "organisation", 1},
    };
    const char *source = "default";
    const json_t *value = NULL;
    size_t i;

    for (i = 0; value == NULL && i < sizeof(layers) / sizeof(layers[0]); i++) {
        pd_object_t *object = NULL;
        pd_status_t status;

        if (!layers[i].is_asked) {
            continue;
        }
        status = pd_tx_find(
            tx, "setting",
            pd_settings_key(row->key, layers[i].client, layers[i].grant, pd_tx_pool(tx)), &object);
        if (status == PD_OK) {
            value = json_object_get(object->doc, "value");
            source = value != NULL ? layers[i].source : source;
        } else if (status != PD_E_NOT_FOUND) {
            return status;
        }
    }
    *ret = value;
    if (ret_source != NULL) {
        *ret_source = source;
    }
    return PD_OK;
}
