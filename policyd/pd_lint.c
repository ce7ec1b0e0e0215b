/* Advice on connector files: see pd_lint.h. */
#include "pd_lint.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct linting {
    const char *slug;
    apr_pool_t *pool;
    json_t *findings;
    apr_hash_t *texts; /* description -> the first id that has it */
    apr_hash_t *names; /* bare name -> the first id that has it */
} linting_t;

static void find(const linting_t *lint, const char *operation, const char *rule, const char *message)
{
    (void)json_array_append_new(lint->findings, json_pack("{s:s*,s:s,s:s,s:s}", "connector", lint->slug,
                                                          "operation", operation, "rule", rule,
                                                          "message", message)); /* advice: may be lost */
}

static size_t characters(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++) {
        count += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return count;
}

static void lint_text(const linting_t *lint, const char *id, const json_t *operation)
{
    const char *text = mcp_json_str(operation, "description");
    const char *other;

    if (text == NULL || text[0] == '\0') {
        find(lint, id, "no-description", "has no description: a model can't know when to use it");
        return;
    }
    if (characters(text) < PD_LINT_SHORT) {
        find(lint, id, "short-description",
             apr_psprintf(lint->pool, "its description has %lu characters: say verb, thing and what comes back",
                          (unsigned long)characters(text)));
    }
    other = apr_hash_get(lint->texts, text, APR_HASH_KEY_STRING);
    if (other != NULL) {
        find(lint, id, "same-description",
             apr_psprintf(lint->pool, "has the same description as %.200s: a model can't choose between them", other));
        return;
    }
    apr_hash_set(lint->texts, text, APR_HASH_KEY_STRING, id);
}

/* The name without what eyes and models pass over: case, separators, a plural's s. */
static const char *bare_name(const char *id, apr_pool_t *pool)
{
    char *bare = apr_pcalloc(pool, strlen(id) + 1);
    size_t count = 0;

    for (; *id != '\0'; id++) {
        if (strchr("_-./ ", *id) == NULL) {
            bare[count++] = (char)(*id >= 'A' && *id <= 'Z' ? *id + 32 : *id);
        }
    }
    if (count > 3 && bare[count - 1] == 's') {
        bare[count - 1] = '\0';
    }
    return bare;
}

static void lint_name(const linting_t *lint, const char *id)
{
    const char *bare = bare_name(id, lint->pool);
    const char *other = apr_hash_get(lint->names, bare, APR_HASH_KEY_STRING);

    if (other == NULL) {
        apr_hash_set(lint->names, bare, APR_HASH_KEY_STRING, id);
    } else {
        find(lint, id, "look-alike",
             apr_psprintf(lint->pool, "looks like %.200s but for case, separators or a plural", other));
    }
}

/* 1 when a schema says something of the value's form. */
static int is_typed(const json_t *schema)
{
    static const char *const words[] = {"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "properties", "items"};
    size_t i;

    for (i = 0; i < COUNT(words); i++) {
        if (json_object_get(schema, words[i]) != NULL) {
            return 1;
        }
    }
    return 0;
}

static void lint_arguments(const linting_t *lint, const char *id, const json_t *operation)
{
    const json_t *body = json_object_get(json_object_get(operation, "body"), "schema");
    const json_t *parameters = json_object_get(operation, "parameters");
    size_t bytes = json_dumpb(parameters, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    json_t *parameter;
    size_t i;

    json_array_foreach(parameters, i, parameter)
    {
        if (json_object_get(parameter, "fixed") == NULL && !is_typed(json_object_get(parameter, "schema"))) {
            find(lint, id, "untyped-argument",
                 apr_psprintf(lint->pool, "the argument %.100s has no type: anything is sent as it comes",
                              mcp_json_str(parameter, "name") != NULL ? mcp_json_str(parameter, "name") : "?"));
        }
    }
    bytes += body != NULL ? json_dumpb(body, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) : 0;
    if (bytes > PD_LINT_SCHEMA) {
        find(lint, id, "large-schema",
             apr_psprintf(lint->pool, "its arguments take %lu bytes of a prompt: freeze or leave out what people don't need",
                          (unsigned long)bytes));
    }
}

/* 1 when a word stands in a text between borders: other than letters, or a change of case. */
static int has_word(const char *text, const char *word)
{
    size_t bytes = strlen(word);
    const char *at;

    for (at = text; *at != '\0'; at++) {
        int begins = at == text || !((at[-1] | 32) >= 'a' && (at[-1] | 32) <= 'z') ||
                     (*at >= 'A' && *at <= 'Z' && at[-1] >= 'a');

        if (begins && strncasecmp(at, word, bytes) == 0 && !(at[bytes] >= 'a' && at[bytes] <= 'z')) {
            return 1;
        }
    }
    return 0;
}

static int has_tag(const json_t *operation, const char *tag)
{
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(operation, "tags"), i, row)
    {
        if (json_is_string(row) && strcmp(json_string_value(row), tag) == 0) {
            return 1;
        }
    }
    return 0;
}

static void lint_sending(const linting_t *lint, const char *id, const json_t *operation)
{
    static const char *const words[] = {"send", "publish", "broadcast", "notify", "invite", "tweet", "email", "sms"};
    const char *method = mcp_json_str(operation, "method");
    size_t i;

    if (method == NULL || strcasecmp(method, "GET") == 0 || strcasecmp(method, "DELETE") == 0 ||
        has_tag(operation, "sends")) {
        return;
    }
    for (i = 0; i < COUNT(words); i++) {
        if (has_word(id, words[i])) {
            find(lint, id, "sends-untagged",
                 "reaches people outside: the tag `sends` lets an approval rule hold it");
            return;
        }
    }
}

void pd_lint(const json_t *file, apr_pool_t *pool, json_t *findings)
{
    linting_t lint = {mcp_json_str(file, "slug"), pool, findings, apr_hash_make(pool), apr_hash_make(pool)};
    json_t *operation;
    size_t i;

    json_array_foreach(json_object_get(file, "operations"), i, operation)
    {
        const char *id = mcp_json_str(operation, "id");

        if (id == NULL) {
            continue;
        }
        lint_text(&lint, id, operation);
        lint_name(&lint, id);
        lint_arguments(&lint, id, operation);
        lint_sending(&lint, id, operation);
    }
}
