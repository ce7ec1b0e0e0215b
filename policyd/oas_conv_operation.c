/* One operation: see oas_conv.h. */
#include "oas_conv.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"

#define MAX_PATH 1024
#define MAX_TAGS 15

/* --- paths ---------------------------------------------------------------------------------------- */

static int is_pchar(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("-._~!$&'()*+,;=:@", c) != NULL);
}

/* 1 when a placeholder is in the path already. */
static int stands(const char *path, size_t count, const char *place, size_t bytes)
{
    size_t i;

    for (i = 0; i + bytes <= count; i++) {
        if (strncmp(path + i, place, bytes) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The path as a file takes it, or NULL with *why; the literals of its query stay, a fragment goes. */
static const char *clean_path(oas_conv_t *conv, const oas_found_t *found, const char *prefix, const char **why)
{
    const char *from = found->path;
    const char *hash = strchr(from, '#');
    char *path = apr_pcalloc(conv->pool, strlen(prefix) + 6 * strlen(from) + 32);
    size_t count = strlen(prefix);
    int in_query = 0;

    memcpy(path, prefix, count);
    if (from[0] != '/') {
        path[count++] = '/';
    }
    for (; *from != '\0' && from != hash; from++) {
        if (*from == '{' && !in_query) {
            const char *close = strchr(from, '}');

            if (close == NULL || close == from + 1 || (count > 0 && path[count - 1] == '}')) {
                *why = "two placeholders stand together, or one does not end";
                return NULL;
            }
            if (stands(path, count, from, (size_t)(close - from) + 1)) {
                int number = 2;
                const char *name;

                do { /* a placeholder stands once: the second gets a number */
                    name = apr_psprintf(conv->pool, "{%.*s_%d}", (int)(close - from) - 1, from + 1, number++);
                } while (stands(path, count, name, strlen(name)));
                memcpy(path + count, name, strlen(name));
                count += strlen(name);
            } else {
                memcpy(path + count, from, (size_t)(close - from) + 1);
                count += (size_t)(close - from) + 1;
            }
            from = close;
        } else if (*from == '/' && !in_query) {
            if (count == 0 || path[count - 1] != '/') {
                path[count++] = '/';
            }
        } else if (*from == '?' && !in_query) {
            in_query = 1;
            path[count++] = '?';
        } else if (*from == '%' && isxdigit((unsigned char)from[1]) && isxdigit((unsigned char)from[2])) {
            path[count++] = *from;
        } else if (is_pchar(*from) || (in_query && strchr("/?", *from) != NULL)) {
            path[count++] = *from;
        } else {
            static const char digits[] = "0123456789ABCDEF";

            path[count++] = '%';
            path[count++] = digits[(unsigned char)*from >> 4];
            path[count++] = digits[(unsigned char)*from & 15];
        }
    }
    path[count] = '\0';
    if (count > MAX_PATH || strpbrk(in_query ? strchr(path, '?') : "", "{}") != NULL) {
        *why = "its path is too long, or has placeholders in its query";
        return NULL;
    }
    if (hash != NULL) {
        oas_note(conv, conv->changed, oas_where(conv, found), "its path", "what stands behind # is not sent and is left out");
    }
    return path;
}

/* --- class, tags, texts ------------------------------------------------------------------------------ */

static const char *class_by_options(const oas_conv_t *conv, const oas_found_t *found)
{
    const apr_array_header_t *list = conv->options->classify;
    const char *klass = NULL;
    int i;

    for (i = 0; list != NULL && i < list->nelts; i++) {
        const oas_classify_t *row = &APR_ARRAY_IDX(list, i, oas_classify_t);

        if (oas_fits(row->glob, found->id) || oas_fits(row->glob, oas_where(conv, found))) {
            klass = row->klass;
        }
    }
    return klass;
}

/* 1 when a word stands in a name at a border: other than letters, or a change of case. */
static int has_word(const char *text, const char *word)
{
    size_t bytes = strlen(word);
    const char *at;

    for (at = text; at != NULL && *at != '\0'; at++) {
        int begins = at == text || !isalpha((unsigned char)at[-1]) || (isupper((unsigned char)*at) && islower((unsigned char)at[-1]));

        if (begins && strncasecmp(at, word, bytes) == 0 && !islower((unsigned char)at[bytes])) {
            return 1;
        }
    }
    return 0;
}

static int sends(const oas_found_t *found)
{
    static const char *const words[] = {"send", "sends", "publish", "broadcast", "notify", "invite", "email", "sms", "tweet", "postMessage", "post_message"};
    const char *summary = mcp_json_str(found->operation.value, "summary");
    size_t i;

    if (strcmp(found->method, "GET") == 0 || strcmp(found->method, "HEAD") == 0 || strcmp(found->method, "DELETE") == 0) {
        return 0;
    }
    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (has_word(found->id, words[i]) || (i < 4 && has_word(summary, words[i]))) {
            return 1;
        }
    }
    return 0;
}

static json_t *tags_of(oas_conv_t *conv, const oas_found_t *found)
{
    json_t *tags = json_array();
    json_t *tag;
    size_t i;
    size_t k;

    json_array_foreach(json_object_get(found->operation.value, "tags"), i, tag)
    {
        const char *text = json_is_string(tag) ? oas_text(json_string_value(tag), 60, conv->pool, NULL) : "";
        int is_new = text[0] != '\0' && json_array_size(tags) < MAX_TAGS;

        for (k = 0; k < json_array_size(tags); k++) {
            is_new = is_new && strcmp(json_string_value(json_array_get(tags, k)), text) != 0;
        }
        if (is_new) {
            (void)json_array_append_new(tags, json_string(text));
        }
    }
    if (sends(found)) {
        int is_there = 0;

        for (k = 0; k < json_array_size(tags); k++) {
            is_there |= strcmp(json_string_value(json_array_get(tags, k)), "sends") == 0;
        }
        if (!is_there) {
            (void)json_array_append_new(tags, json_string("sends"));
        }
    }
    return tags;
}

/* What a model reads: the summary and what the description says beyond it. */
static const char *description_of(oas_conv_t *conv, const oas_found_t *found)
{
    size_t limit = conv->options->max_description != 0 ? conv->options->max_description : 600;
    const char *summary = oas_describe(conv, found->operation.value, "summary", 300);
    const char *text = oas_describe(conv, found->operation.value, "description", limit);
    const char *old = json_is_true(json_object_get(found->operation.value, "deprecated")) ? "Deprecated. " : "";

    if (text == NULL || text[0] == '\0') {
        text = summary;
    } else if (summary != NULL && summary[0] != '\0' && strncasecmp(text, summary, strlen(summary)) != 0 && strlen(text) + strlen(summary) < limit) {
        text = apr_pstrcat(conv->pool, summary, strchr(".!?", summary[strlen(summary) - 1]) != NULL ? " " : ". ", text, (char *)NULL);
    }
    if (text == NULL || text[0] == '\0') {
        text = apr_psprintf(conv->pool, "%s %.300s", found->method, found->path);
    }
    return apr_pstrcat(conv->pool, old, text, (char *)NULL);
}

json_t *oas_operation(oas_conv_t *conv, const oas_found_t *found, const char *prefix)
{
    apr_array_header_t *form = apr_array_make(conv->pool, 4, sizeof(oas_at_t));
    const char *why = NULL;
    const char *path = clean_path(conv, found, prefix, &why);
    const char *klass = class_by_options(conv, found);
    const char *summary;
    oas_at_t body_at;
    json_t *made;
    json_t *params;
    json_t *body;
    json_t *tags;

    if (path == NULL) {
        oas_note(conv, conv->left_out, oas_where(conv, found), "the operation", why);
        return NULL;
    }
    params = oas_params(conv, found, path, &body_at, form);
    body = oas_body(conv, found, body_at, form, json_array_size(params));
    tags = tags_of(conv, found);
    summary = oas_describe(conv, found->operation.value, "summary", 200);
    made = json_pack("{s:s,s:s,s:s,s:s}", "id", found->id, "method", found->method, "path", path, "description",
                     description_of(conv, found));
    if (summary != NULL && summary[0] != '\0') {
        (void)json_object_set_new(made, "summary", json_string(summary));
    }
    if (klass != NULL) {
        (void)json_object_set_new(made, "classification", json_string(klass));
    }
    if (json_array_size(tags) > 0) {
        (void)json_object_set_new(made, "tags", json_incref(tags));
    }
    json_decref(tags);
    if (json_array_size(params) > 0) {
        (void)json_object_set_new(made, "parameters", json_incref(params));
    }
    json_decref(params);
    if (body != NULL) {
        (void)json_object_set_new(made, "body", body);
    }
    return made;
}
