/* A small scripted HTTP server for the outbound tests: a child process that forks for each
 * connection, so that each byte of an answer is the test's own. What it saw is in shared memory. */
#ifndef EGRESS_SERVER_H
#define EGRESS_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEEN_MAX 65536

typedef struct seen {
    atomic_int connections;
    atomic_int requests;
    atomic_int ended; /* connections that are over, from the server's side */
    atomic_int marks; /* counted by an answer function: server_mark */
    atomic_size_t bytes;
    char last[SEEN_MAX]; /* the last request, as it came */
} seen_t;

/* Answers one request (NUL-terminated) on fd; connection and request count from 1. 1: go on, 0:
 * close. */
typedef int (*answer_t)(int fd, int connection, int request, const char *text);

typedef struct server {
    pid_t pid;
    int port;
    seen_t *seen;
} server_t;

static seen_t *server_own_seen; /* in the server's processes */

/* Tells the test that an answer function got somewhere. */
static inline void server_mark(void)
{
    atomic_fetch_add(&server_own_seen->marks, 1);
}

static inline int64_t test_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void server_write(int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = send(fd, data, bytes, MSG_NOSIGNAL);
        if (done <= 0)
            return; /* the client is gone, which some tests want */
        data += done;
        bytes -= (size_t)done;
    }
}

static inline void server_say(int fd, const char *text)
{
    server_write(fd, text, strlen(text));
}

/* Reads one request with its body; 0 at the end of the connection. */
static inline size_t server_read(int fd, char *buffer, size_t room)
{
    size_t bytes = 0;
    size_t need = 0;
    while (need == 0 || bytes < need) {
        ssize_t got = recv(fd, buffer + bytes, need == 0 ? 1 : need - bytes, 0);
        if (got <= 0 || bytes + (size_t)got + 1 >= room)
            return 0;
        bytes += (size_t)got;
        buffer[bytes] = '\0';
        if (need == 0 && bytes >= 4 && memcmp(buffer + bytes - 4, "\r\n\r\n", 4) == 0) {
            const char *length = strstr(buffer, "\r\nContent-Length: ");
            need = bytes + (length != NULL ? strtoul(length + 18, NULL, 10) : 0);
        }
    }
    return bytes;
}

static inline void server_talk(int fd, int connection, seen_t *seen, answer_t answer)
{
    static char buffer[SEEN_MAX];
    for (int request = 1;; request++) {
        size_t bytes = server_read(fd, buffer, sizeof buffer);
        if (bytes == 0)
            break;
        memcpy(seen->last, buffer, bytes + 1);
        atomic_store(&seen->bytes, bytes);
        atomic_fetch_add(&seen->requests, 1);
        if (!answer(fd, connection, request, buffer))
            break;
    }
    (void)shutdown(fd, SHUT_RDWR); /* the accepting process may still hold a copy */
    (void)close(fd);
    atomic_fetch_add(&seen->ended, 1);
}

/* A listening socket on a free loopback port. */
static inline int server_listen(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 128) != 0 || getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
        perror("listen");
        _exit(99);
    }
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static inline void server_loop(int listener, seen_t *seen, answer_t answer)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGCHLD, SIG_IGN);
    server_own_seen = seen;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            _exit(98);
        int connection = atomic_fetch_add(&seen->connections, 1) + 1;
        if (fork() == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)close(listener);
            server_talk(fd, connection, seen, answer);
            _exit(0);
        }
        (void)close(fd);
    }
}

static inline server_t server_start(answer_t answer)
{
    server_t server = {0, 0, NULL};
    int listener = server_listen(&server.port);
    void *shared =
        mmap(NULL, sizeof(seen_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        _exit(97);
    server.seen = shared;
    server.pid = fork();
    if (server.pid == 0)
        server_loop(listener, server.seen, answer);
    (void)close(listener);
    return server;
}

/* The processes of the connections die with their parent. */
static inline void server_stop(server_t *server)
{
    (void)kill(server->pid, SIGKILL);
    (void)waitpid(server->pid, NULL, 0);
    (void)munmap(server->seen, sizeof(seen_t));
}

/* Waits until the counter is there; 0 if the watchdog bites. */
static inline int server_wait(atomic_int *counter, int value)
{
    int64_t end_ms = test_now_ms() + 20000;
    while (atomic_load(counter) < value) {
        if (test_now_ms() > end_ms)
            return 0;
        (void)sched_yield();
    }
    return 1;
}

/* Whether somebody knocked at a listener that nobody serves. Over loopback a connect is complete
 * when it returns, so there is nothing to wait for. */
static inline int server_was_dialled(int listener)
{
    struct pollfd entry = {.fd = listener, .events = POLLIN};
    return poll(&entry, 1, 0) != 0;
}

#endif
