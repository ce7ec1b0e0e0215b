/* The connection to policyd's admin socket: see policyctl.h. */
#include "policyctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "../proto/mcp_body.h"

#define MAX_ANSWER (64u * 1024 * 1024)
#define WAIT_S     330 /* policyd gives an operation 300 */

struct ctl_link {
    int fd;
    json_int_t last_id;
    char *in; /* answer under way */
    size_t count, room;
};

ctl_link_t *ctl_link_open(const char *path, char *why, size_t size)
{
    static const struct timeval patience = {WAIT_S, 0};
    struct sockaddr_un address;
    ctl_link_t *link;

    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address.sun_path) {
        (void)snprintf(why, size, "%s is too long for a socket", path);
        return NULL;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    link = calloc(1, sizeof *link);
    if (link == NULL) {
        (void)snprintf(why, size, "out of memory");
        return NULL;
    }
    link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->fd < 0 || setsockopt(link->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        setsockopt(link->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
        connect(link->fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        (void)snprintf(why, size, "policyd can't be reached at %s: %s", path, strerror(errno));
        ctl_link_close(link);
        return NULL;
    }
    return link;
}

void ctl_link_close(ctl_link_t *link)
{
    if (link == NULL) {
        return;
    }
    if (link->fd >= 0) {
        (void)close(link->fd); /* every answer has been read */
    }
    free(link->in);
    free(link);
}

/* Sends everything; a peer that has hung up may have said why, so that is no failure yet. */
static int send_all(ctl_link_t *link, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(link->fd, text, bytes, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
            return 0;
        }
        if (sent < 0) {
            return -1;
        }
        text += sent;
        bytes -= (size_t)sent;
    }
    return 0;
}

static int more_room(ctl_link_t *link)
{
    size_t room = link->room == 0 ? 65536 : link->room * 2;
    char *in;

    if (link->count < link->room) {
        return 0;
    }
    if (link->room >= MAX_ANSWER) {
        errno = EMSGSIZE;
        return -1;
    }
    in = realloc(link->in, room);
    if (in == NULL) {
        return -1;
    }
    link->in = in;
    link->room = room;
    return 0;
}

/* Reads up to a newline; the length of the line, or -1 with errno (0: the peer has hung up). */
static ssize_t read_line(ctl_link_t *link)
{
    link->count = 0;
    for (;;) {
        ssize_t got;

        if (more_room(link) != 0) {
            return -1;
        }
        got = recv(link->fd, link->in + link->count, link->room - link->count, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            errno = got == 0 ? 0 : errno;
            return -1;
        }
        link->count += (size_t)got;
        if (link->in[link->count - 1] == '\n') { /* one question, one line: nothing follows it */
            return (ssize_t)link->count - 1;
        }
    }
}

static char *question(ctl_link_t *link, const char *method, const json_t *params)
{
    json_t *message = json_object();
    char *text;

    link->last_id++;
    /* an insert that fails leaves a question that policyd refuses */
    (void)json_object_set_new(message, "jsonrpc", json_string("2.0"));
    (void)json_object_set_new(message, "id", json_integer(link->last_id));
    (void)json_object_set_new(message, "method", json_string(method));
    if (params != NULL) {
        (void)json_object_set_new(message, "params", json_deep_copy(params));
    }
    text = mcp_json_text(message, NULL);
    json_decref(message);
    return text;
}

/* The error object, whose `data` is ours; a bare JSON-RPC error is made into one. */
static json_t *error_of(const json_t *error)
{
    json_t *data = json_object_get(error, "data");
    const char *text = mcp_json_str(error, "message");

    if (mcp_json_str(data, "code") != NULL && mcp_json_str(data, "message") != NULL) {
        return json_incref(data);
    }
    return json_pack("{s:s, s:s}", "code", "internal", "message", text == NULL ? "no reason given" : text);
}

static int read_answer(ctl_link_t *link, json_t **ret_result, json_t **ret_error, char *why, size_t size)
{
    json_t *answer = NULL;
    json_t *error;
    ssize_t bytes = read_line(link);

    if (bytes < 0) {
        (void)snprintf(why, size, "policyd did not answer: %s",
                       errno == 0 ? "it closed the connection" : strerror(errno));
        return -1;
    }
    if (mcp_json_parse(link->in, (size_t)bytes, 512, &answer, NULL) != MCP_OK ||
        !json_is_object(answer)) {
        json_decref(answer);
        (void)snprintf(why, size, "what answers at the socket is not policyd");
        return -1;
    }
    error = json_object_get(answer, "error");
    if (json_is_object(error)) {
        *ret_error = error_of(error);
    } else if (json_object_get(answer, "result") == NULL ||
               mcp_json_int(answer, "id", -1) != link->last_id) {
        json_decref(answer);
        (void)snprintf(why, size, "what answers at the socket is not policyd");
        return -1;
    } else {
        *ret_result = json_incref(json_object_get(answer, "result"));
    }
    json_decref(answer);
    return 0;
}

int ctl_link_call(ctl_link_t *link, const char *method, const json_t *params, json_t **ret_result,
                  json_t **ret_error, char *why, size_t size)
{
    char *text = question(link, method, params);
    int status;

    *ret_result = NULL;
    *ret_error = NULL;
    if (text == NULL) {
        (void)snprintf(why, size, "out of memory");
        return -1;
    }
    status = send_all(link, text, strlen(text));
    if (status == 0) {
        status = send_all(link, "\n", 1);
    }
    free(text);
    if (status != 0) {
        (void)snprintf(why, size, "policyd does not take the question: %s", strerror(errno));
        return -1;
    }
    return read_answer(link, ret_result, ret_error, why, size);
}
