/* Collects an answer as it arrives (see the header). */
#include "mcp_egress_answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <apr_strings.h>

/* Copies the value if the line is the named field and its value is plain text. */
static void read_field(const mcp_egress_answer_t *answer, const char *line, size_t bytes,
                       const char *name, const char **ret)
{
    size_t name_bytes = strlen(name);
    if (bytes <= name_bytes || line[name_bytes] != ':' || strncasecmp(line, name, name_bytes) != 0)
        return;
    size_t from = name_bytes + 1;
    while (from < bytes && (line[from] == ' ' || line[from] == '\t'))
        from++;
    while (bytes > from && (unsigned char)line[bytes - 1] <= ' ')
        bytes--;
    for (size_t i = from; i < bytes; i++) {
        if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
            return;
    }
    *ret = apr_pstrmemdup(answer->pool, line + from, bytes - from);
}

/* "HTTP/1.1 200 OK": a new answer, the ones before were interim. */
static void read_status(mcp_egress_answer_t *answer, const char *line, size_t bytes)
{
    const char *space = memchr(line, ' ', bytes);
    size_t at = space != NULL ? (size_t)(space - line) + 1 : bytes;
    answer->status = 0;
    for (size_t i = at; i < bytes && i < at + 3 && line[i] >= '0' && line[i] <= '9'; i++)
        answer->status = answer->status * 10 + (line[i] - '0');
    answer->content_type = NULL;
    answer->content_coding = NULL;
    answer->retry_after = NULL;
    answer->location = NULL;
    answer->locations = 0;
}

mcp_egress_cause_t mcp_egress_answer_header(mcp_egress_answer_t *answer, const char *line,
                                            size_t bytes)
{
    if (bytes > MCP_EGRESS_HEADER_MAX - answer->header_bytes)
        return MCP_EGRESS_LARGE_HEADER;
    answer->header_bytes += bytes;
    if (answer->is_header_done)
        return MCP_EGRESS_OK;
    if (bytes == 0 || line[0] == '\r' || line[0] == '\n') {
        answer->is_header_done = answer->status >= 200;
    } else if (bytes >= 5 && strncmp(line, "HTTP/", 5) == 0) {
        read_status(answer, line, bytes);
    } else {
        const char *location = NULL;
        read_field(answer, line, bytes, "content-type", &answer->content_type);
        read_field(answer, line, bytes, "content-encoding", &answer->content_coding);
        read_field(answer, line, bytes, "retry-after", &answer->retry_after);
        read_field(answer, line, bytes, "location", &location);
        if (location != NULL) {
            answer->location = location;
            answer->locations++;
        }
    }
    return MCP_EGRESS_OK;
}

mcp_egress_cause_t mcp_egress_answer_body(mcp_egress_answer_t *answer, const char *data,
                                          size_t bytes)
{
    if (bytes > answer->max_bytes - answer->body_bytes)
        return MCP_EGRESS_LARGE_BODY;
    if (bytes >= answer->body_room - answer->body_bytes) {
        size_t room = answer->body_room * 2;
        if (room < answer->body_bytes + bytes + 1)
            room = answer->body_bytes + bytes + 1;
        char *grown = realloc(answer->body, room);
        if (grown == NULL)
            return MCP_EGRESS_MEMORY;
        answer->body = grown;
        answer->body_room = room;
    }
    memcpy(answer->body + answer->body_bytes, data, bytes);
    answer->body_bytes += bytes;
    return MCP_EGRESS_OK;
}

mcp_egress_cause_t mcp_egress_answer_judge(const mcp_egress_answer_t *answer)
{
    const char *coding = answer->content_coding;
    if (answer->status < 200 || answer->status > 599)
        return MCP_EGRESS_STATUS;
    if (!answer->is_header_done) /* the library takes a header that broke off for a whole answer */
        return MCP_EGRESS_CUT;
    if (answer->body_bytes > 0 && coding != NULL && coding[0] != '\0' &&
        strcasecmp(coding, "identity") != 0)
        return MCP_EGRESS_CODING;
    return MCP_EGRESS_OK;
}

int mcp_egress_answer_is_redirect(const mcp_egress_answer_t *answer)
{
    static const int statuses[] = {301, 302, 303, 307, 308};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (answer->status == statuses[i])
            return answer->locations == 1;
    }
    return 0;
}

static apr_status_t free_body(void *data)
{
    free(data);
    return APR_SUCCESS;
}

void mcp_egress_answer_give(mcp_egress_answer_t *answer, mcp_response_t *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->status = answer->status;
    ret->content_type = answer->content_type != NULL ? answer->content_type : "";
    ret->retry_after = answer->retry_after;
    ret->location = answer->status >= 300 && answer->status < 400 ? answer->location : NULL;
    ret->body = "";
    if (answer->body == NULL)
        return;
    answer->body[answer->body_bytes] = '\0';
    char *body = realloc(answer->body, answer->body_bytes + 1); /* smaller: gives slack back */
    if (body == NULL)
        body = answer->body;
    apr_pool_cleanup_register(answer->pool, body, free_body, apr_pool_cleanup_null);
    ret->body = body;
    ret->body_bytes = answer->body_bytes;
    answer->body = NULL;
}
