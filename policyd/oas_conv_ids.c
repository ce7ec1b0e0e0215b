/* Names of operations: see oas_conv.h. A name that a vendor gave stays, one that is missing or given twice is made of method and path. */
#include "oas_conv.h"

#include <ctype.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_hash.h"

#define MAX_ID 200

/* The name as a file takes it: what is no printable ASCII becomes '_'. NULL: nothing is left. */
static const char *clean(const char *name, apr_pool_t *pool)
{
    char *to = apr_pstrndup(pool, name, MAX_ID);
    size_t i;
    int has_letter = 0;

    for (i = 0; to[i] != '\0'; i++) {
        if (to[i] <= ' ' || to[i] > '~') {
            to[i] = '_';
        }
        has_letter |= isalnum((unsigned char)to[i]) != 0;
    }
    return has_letter ? to : NULL;
}

/* get_users_by_id for GET /users/{id} */
static const char *derive(const oas_found_t *found, apr_pool_t *pool)
{
    char *id = apr_pcalloc(pool, strlen(found->method) + 4 * strlen(found->path) + 2);
    size_t count = 0;
    const char *at;

    for (at = found->method; *at != '\0'; at++) {
        id[count++] = (char)tolower((unsigned char)*at);
    }
    for (at = found->path; *at != '\0'; at++) {
        if (*at == '{') {
            memcpy(id + count, id[count - 1] == '_' ? "by_" : "_by_", id[count - 1] == '_' ? 3 : 4);
            count += id[count - 1] == '_' ? 3 : 4;
        } else if (isalnum((unsigned char)*at) && (unsigned char)*at < 128) {
            id[count++] = *at;
        } else if (id[count - 1] != '_') {
            id[count++] = '_';
        }
    }
    while (count > 0 && id[count - 1] == '_') {
        count--;
    }
    id[count > MAX_ID - 10 ? MAX_ID - 10 : count] = '\0';
    return id;
}

/* With what tells two apart whose letters are the same. */
static const char *with_hash(const char *id, const oas_found_t *found, apr_pool_t *pool)
{
    const char *whole = apr_pstrcat(pool, found->method, " ", found->path, (char *)NULL);
    char hash[MCP_DIGEST_HEX + 1];

    mcp_digest_hex(whole, strlen(whole), hash);
    return apr_psprintf(pool, "%.*s_%.8s", MAX_ID - 10, id, hash);
}

static void count_one(apr_hash_t *counts, const char *id, apr_pool_t *pool)
{
    int *count = apr_hash_get(counts, id, APR_HASH_KEY_STRING);

    if (count == NULL) {
        count = apr_pcalloc(pool, sizeof(*count));
        apr_hash_set(counts, id, APR_HASH_KEY_STRING, count);
    }
    (*count)++;
}

static int count_of(apr_hash_t *counts, const char *id)
{
    const int *count = apr_hash_get(counts, id, APR_HASH_KEY_STRING);

    return count != NULL ? *count : 0;
}

void oas_ids_give(oas_conv_t *conv)
{
    apr_hash_t *given = apr_hash_make(conv->pool);
    apr_hash_t *all = apr_hash_make(conv->pool);
    apr_hash_t *seen = apr_hash_make(conv->pool);
    int i;

    for (i = 0; i < conv->found->nelts; i++) {
        oas_found_t *found = &APR_ARRAY_IDX(conv->found, i, oas_found_t);
        const char *name = mcp_json_str(found->operation.value, "operationId");

        found->id = name != NULL && name[0] != '\0' ? clean(name, conv->pool) : NULL;
        if (found->id == NULL) {
            conv->ids_missing++;
        } else {
            count_one(given, found->id, conv->pool);
        }
    }
    for (i = 0; i < conv->found->nelts; i++) {
        oas_found_t *found = &APR_ARRAY_IDX(conv->found, i, oas_found_t);

        if (found->id != NULL && count_of(given, found->id) > 1) {
            if (apr_hash_get(seen, found->id, APR_HASH_KEY_STRING) != NULL) {
                conv->ids_duplicate++;
            }
            apr_hash_set(seen, found->id, APR_HASH_KEY_STRING, found->id);
            found->id = NULL;
        }
        if (found->id == NULL) {
            found->id = derive(found, conv->pool);
            oas_note(conv, conv->changed, oas_where(conv, found), apr_pstrcat(conv->pool, "is called ", found->id, (char *)NULL),
                     "it has no operationId of its own");
        }
        count_one(all, found->id, conv->pool);
    }
    for (i = 0; i < conv->found->nelts; i++) {
        oas_found_t *found = &APR_ARRAY_IDX(conv->found, i, oas_found_t);
        const char *name = mcp_json_str(found->operation.value, "operationId");
        int is_given = name != NULL && clean(name, conv->pool) != NULL && strcmp(clean(name, conv->pool), found->id) == 0;

        if (!is_given && count_of(all, found->id) > 1) {
            found->id = with_hash(found->id, found, conv->pool);
        }
    }
}
