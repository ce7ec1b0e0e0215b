/* Somebody on policyd's query socket who is not mod_mcp: sends the frames that it is told, under the keys that it is told, and shows
 * what comes back. Used by t/60-link.t, which compiles it; no part of the programs.
 *
 *   rogue_peer ENDPOINT PATIENCE_MS plain               no security
 *   rogue_peer ENDPOINT PATIENCE_MS foreign SERVER_KEY  CURVE under a key pair made now
 *   rogue_peer ENDPOINT PATIENCE_MS keys FILE           CURVE under the keys of a httpd.key
 *
 * Standard input: a message a line, its frames in hex with a space between, "-" for an empty one. Standard output: for each the
 * frames of the reply in the same form, or "nothing" when none came within the patience. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#define KEY_BYTES 41

typedef struct keys {
    char server[KEY_BYTES];
    char public[KEY_BYTES];
    char secret[KEY_BYTES];
} keys_t;

static int fail(const char *what)
{
    (void)fprintf(stderr, "rogue_peer: %s: %s\n", what, zmq_strerror(errno));
    return 1;
}

/* "NAME = 40 characters" lines. */
static int read_keys(const char *path, keys_t *keys)
{
    char line[256], name[32], value[KEY_BYTES];
    FILE *in = fopen(path, "r");

    if (in == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), in) != NULL) {
        if (sscanf(line, "%31s = %40s", name, value) != 2) {
            continue;
        }
        if (strcmp(name, "server_public") == 0) {
            memcpy(keys->server, value, KEY_BYTES);
        } else if (strcmp(name, "client_public") == 0) {
            memcpy(keys->public, value, KEY_BYTES);
        } else if (strcmp(name, "client_secret") == 0) {
            memcpy(keys->secret, value, KEY_BYTES);
        }
    }
    (void)fclose(in);
    return keys->server[0] != '\0' && keys->public[0] != '\0' && keys->secret[0] != '\0';
}

static int set_keys(void *socket, const keys_t *keys)
{
    return zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, keys->server, KEY_BYTES) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys->public, KEY_BYTES) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->secret, KEY_BYTES) == 0;
}

static int secure(void *socket, int argc, char **argv)
{
    keys_t keys;

    memset(&keys, 0, sizeof(keys));
    if (argc == 4 && strcmp(argv[3], "plain") == 0) {
        return 1;
    }
    if (argc == 5 && strcmp(argv[3], "foreign") == 0 && strlen(argv[4]) == KEY_BYTES - 1) {
        memcpy(keys.server, argv[4], KEY_BYTES);
        return zmq_curve_keypair(keys.public, keys.secret) == 0 && set_keys(socket, &keys);
    }
    return argc == 5 && strcmp(argv[3], "keys") == 0 && read_keys(argv[4], &keys) &&
           set_keys(socket, &keys);
}

/* Bytes of a frame in place of its hex, which is longer. */
static size_t unhex(char *text)
{
    size_t bytes = 0;
    unsigned value;

    if (strcmp(text, "-") == 0) {
        return 0;
    }
    while (sscanf(text + 2 * bytes, "%2x", &value) == 1) {
        text[bytes] = (char)value;
        bytes++;
    }
    return bytes;
}

static int send_line(void *socket, char *line)
{
    char *next = line;

    while (next != NULL) {
        char *frame = next;
        size_t bytes;

        next = strchr(frame, ' ');
        if (next != NULL) {
            *next++ = '\0';
        }
        bytes = unhex(frame);
        if (zmq_send(socket, frame, bytes, next != NULL ? ZMQ_SNDMORE : 0) < 0) {
            return 0;
        }
    }
    return 1;
}

static void show_reply(void *socket)
{
    int more = 1;
    size_t size = sizeof(more);
    zmq_msg_t frame;
    int is_first = 1;

    while (more) {
        const unsigned char *bytes;
        size_t i;

        (void)zmq_msg_init(&frame);
        if (zmq_msg_recv(&frame, socket, 0) < 0) {
            (void)puts(is_first ? "nothing" : "");
            (void)zmq_msg_close(&frame);
            return;
        }
        bytes = zmq_msg_data(&frame);
        (void)fputs(is_first ? "" : " ", stdout);
        if (zmq_msg_size(&frame) == 0) {
            (void)fputs("-", stdout);
        }
        for (i = 0; i < zmq_msg_size(&frame); i++) {
            (void)printf("%02x", bytes[i]);
        }
        (void)zmq_msg_close(&frame);
        is_first = 0;
        (void)zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
    }
    (void)puts("");
}

int main(int argc, char **argv)
{
    void *context = zmq_ctx_new();
    void *socket = context != NULL ? zmq_socket(context, ZMQ_DEALER) : NULL;
    int patience = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    int linger = 0;
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    if (socket == NULL || argc < 4 || zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger)) != 0 ||
        zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
        zmq_setsockopt(socket, ZMQ_SNDTIMEO, &patience, sizeof(patience)) != 0 ||
        !secure(socket, argc, argv) || zmq_connect(socket, argv[1]) != 0) {
        return fail("setup");
    }
    for (;;) {
        length = getline(&line, &room, stdin);
        if (length <= 0) {
            break;
        }
        if (line[length - 1] == '\n') {
            line[length - 1] = '\0';
        }
        if (!send_line(socket, line)) {
            (void)puts("unsent");
        } else {
            show_reply(socket);
        }
        (void)fflush(stdout);
    }
    free(line);
    (void)zmq_close(socket);
    (void)zmq_ctx_term(context);
    return 0;
}
