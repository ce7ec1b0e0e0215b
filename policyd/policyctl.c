/* policyctl: the admin client.  Words of the command line become one request to policyd, the answer goes to
 * standard output, a refusal with its reason and remedy to standard error.  See policyctl.h. */
#include "policyctl.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/mcp_body.h"
#include "policyctl_import.h"

#ifndef POLICYD_VERSION
#define POLICYD_VERSION "0.1.0"
#endif
#define DEFAULT_SOCKET "/run/policyd/admin.sock"
#define MAX_PAGES      10000 /* of --all */

typedef struct ctl {
    const char *socket;
    const char *json;
    const char *svg; /* of footprint: where its chart goes */
    ctl_format_t format;
    int wants_all, wants_help, wants_version;
    char **words; /* what is left: resource, operation, arguments */
    int count;
    ctl_link_t *link;
    json_t *operations;
    char why[CTL_WHY];
} ctl_t;

/* --- options --------------------------------------------------------------- */

/* Value of an option that stands in this word (`--socket=PATH`) or the next; NULL: it is another option. */
static const char *value_of(const char *name, int argc, char **argv, int *i, int *ret_is_missing)
{
    size_t bytes = strlen(name);

    if (strncmp(argv[*i], name, bytes) != 0) {
        return NULL;
    }
    if (argv[*i][bytes] == '=' && bytes > 2) {
        return argv[*i] + bytes + 1;
    }
    if (argv[*i][bytes] != '\0') {
        return NULL;
    }
    if (*i + 1 >= argc) {
        *ret_is_missing = 1;
        return NULL;
    }
    (*i)++;
    return argv[*i];
}

/* 1 if the word at *i was an option of ours (and *i stands on its last word), 0 if not, -1 on misuse. */
static int take_option(ctl_t *ctl, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    const char *value;
    int is_missing = 0;

    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
        ctl->wants_help = 1;
        return 1;
    }
    if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0) {
        ctl->wants_version = 1;
        return 1;
    }
    if (strcmp(word, "--all") == 0) {
        ctl->wants_all = 1;
        return 1;
    }
    value = value_of("--socket", argc, argv, i, &is_missing);
    if (value != NULL) {
        ctl->socket = value;
        return 1;
    }
    value = is_missing ? NULL : value_of("--json", argc, argv, i, &is_missing);
    if (value != NULL) {
        ctl->json = value;
        return 1;
    }
    if (!is_missing && ctl->count > 0 && strcmp(ctl->words[0], "export") == 0) {
        return 0; /* its -o names a file */
    }
    value = is_missing ? NULL : value_of("-o", argc, argv, i, &is_missing);
    if (value == NULL && !is_missing) {
        value = value_of("--output", argc, argv, i, &is_missing);
    }
    if (value != NULL && ctl_print_format(value, &ctl->format) == 0) {
        return 1;
    }
    if (value != NULL) {
        (void)snprintf(ctl->why, sizeof ctl->why, "-o takes table, json, jsonl or csv");
        return -1;
    }
    if (is_missing) {
        (void)snprintf(ctl->why, sizeof ctl->why, "%.60s needs a value", word);
        return -1;
    }
    return 0;
}

static int read_options(ctl_t *ctl, int argc, char **argv)
{
    const char *socket = getenv("POLICYD_SOCKET");
    int is_ours = 1;
    int i;

    ctl->socket = socket != NULL && *socket != '\0' ? socket : DEFAULT_SOCKET;
    ctl->words = calloc((size_t)argc + 1, sizeof *ctl->words);
    if (ctl->words == NULL) {
        (void)snprintf(ctl->why, sizeof ctl->why, "out of memory");
        return -1;
    }
    for (i = 1; i < argc; i++) {
        int taken = 0;

        if (is_ours && strcmp(argv[i], "--") == 0) {
            is_ours = 0;
            continue;
        }
        if (is_ours) {
            taken = take_option(ctl, argc, argv, &i);
        }
        if (taken < 0) {
            return -1;
        }
        if (taken == 0) {
            ctl->words[ctl->count++] = argv[i];
        }
    }
    return 0;
}

/* --- operations ------------------------------------------------------------ */

const json_t *ctl_find(const json_t *operations, const char *resource, const char *verb)
{
    const json_t *only = NULL;
    int count = 0;
    size_t i;
    json_t *row;

    json_array_foreach(operations, i, row)
    {
        const char *its_resource = mcp_json_str(row, "resource");
        const char *its_verb = mcp_json_str(row, "verb");

        if (its_resource == NULL || its_verb == NULL || !ctl_args_same(its_resource, resource)) {
            continue;
        }
        if (verb != NULL && ctl_args_same(its_verb, verb)) {
            return row;
        }
        count++;
        only = strcmp(its_verb, "get") == 0 ? row : only;
    }
    return verb == NULL && count == 1 ? only : NULL;
}

/* Connects and learns the operations. */
static int meet(ctl_t *ctl)
{
    json_t *error = NULL;

    ctl->link = ctl_link_open(ctl->socket, ctl->why, sizeof ctl->why);
    if (ctl->link == NULL) {
        (void)ctl_fail(ctl->why);
        (void)fputs("hint: is policyd running, and are you in its admin_group? --socket names another "
                    "socket\n",
                    stderr);
        return CTL_FAILED;
    }
    if (ctl_link_call(ctl->link, "rpc.describe", NULL, &ctl->operations, &error, ctl->why,
                      sizeof ctl->why) != 0) {
        return ctl_fail(ctl->why);
    }
    if (error != NULL) {
        return ctl_fail_refused(error);
    }
    return json_is_array(ctl->operations) ? CTL_DONE : ctl_fail("what answers at the socket is not policyd");
}

/* Appends the page's items to `all` and tells where to go on: a new cursor, or NULL. */
static const char *take_page(json_t *all, const json_t *page, const char *cursor)
{
    json_t *items = json_object_get(page, "items");
    const char *next = mcp_json_str(page, "next_cursor");

    if (!json_is_array(items) || json_array_extend(json_object_get(all, "items"), items) != 0) {
        return NULL;
    }
    /* a cursor that stands still would never end */
    return next == NULL || (cursor != NULL && strcmp(next, cursor) == 0) ? NULL : next;
}

/* Follows next_cursor to the end. *result becomes the whole list. */
static int fetch_rest(ctl_t *ctl, const char *name, json_t *args, json_t **result)
{
    json_t *page = *result;
    int pages, status = CTL_DONE;

    for (pages = 0; pages < MAX_PAGES && status == CTL_DONE; pages++) {
        const char *cursor = pages == 0 ? mcp_json_str(page, "next_cursor")
                                        : take_page(*result, page, mcp_json_str(args, "cursor"));
        json_t *error = NULL;

        if (cursor == NULL ||
            json_object_set_new(args, "cursor", json_string(cursor)) != 0) {
            break;
        }
        if (page != *result) {
            json_decref(page);
        }
        page = NULL;
        if (ctl_link_call(ctl->link, name, args, &page, &error, ctl->why, sizeof ctl->why) != 0) {
            status = ctl_fail(ctl->why);
        } else if (error != NULL) {
            status = ctl_fail_refused(error);
        }
    }
    if (page != *result) {
        json_decref(page);
    }
    if (pages == MAX_PAGES && status == CTL_DONE) {
        status = ctl_fail("the list has too many pages; narrow it");
    }
    (void)json_object_del(*result, "next_cursor"); /* absent: nothing to drop */
    return status;
}

static void tell_of_more(const json_t *result)
{
    const char *cursor = mcp_json_str(result, "next_cursor");

    if (cursor != NULL) {
        (void)fputs("more follows: --all fetches it, or --cursor ", stderr);
        ctl_print_text(stderr, cursor);
        (void)fputc('\n', stderr);
    }
}

static int call_and_print(ctl_t *ctl, const json_t *operation, json_t *args)
{
    const char *name = mcp_json_str(operation, "name");
    json_t *result = NULL, *error = NULL;
    int status = CTL_DONE;

    if (name == NULL) {
        return ctl_fail("policyd describes an operation without a name");
    }
    if (ctl_link_call(ctl->link, name, args, &result, &error, ctl->why, sizeof ctl->why) != 0) {
        return ctl_fail(ctl->why);
    }
    if (error != NULL) {
        return ctl_fail_refused(error);
    }
    if (ctl->wants_all && json_is_array(json_object_get(result, "items"))) {
        status = fetch_rest(ctl, name, args, &result);
    }
    if (ctl->svg != NULL && ctl_footprint_svg(result, ctl->svg, ctl->why, sizeof ctl->why) != 0) {
        status = ctl_fail(ctl->why);
    } else if (ctl->svg != NULL && strcmp(ctl->svg, "-") == 0) {
        json_decref(result);
        return status;
    }
    if (status == CTL_DONE) {
        if (ctl->format == CTL_TABLE) {
            ctl_view(stdout, name, result);
            tell_of_more(result);
        } else {
            ctl_print(stdout, result, ctl->format);
        }
        if (fflush(stdout) != 0 || ferror(stdout)) {
            status = ctl_fail("standard output can't be written");
        }
    }
    json_decref(result);
    return status;
}

static int run_operation(ctl_t *ctl, const json_t *operation, int count, char **words)
{
    const char *name = mcp_json_str(operation, "name");
    json_t *base = NULL, *args;
    int status;

    if (ctl->wants_help) {
        ctl_help_operation(stdout, operation);
        return CTL_DONE;
    }
    if (name != NULL && strcmp(name, CTL_FOOTPRINT) == 0 &&
        ctl_footprint_take(words, &count, &ctl->svg, ctl->why, sizeof ctl->why) != 0) {
        return ctl_fail_usage_of(operation, ctl->why);
    }
    if (ctl->json != NULL) {
        base = ctl_args_file(ctl->json, ctl->why, sizeof ctl->why);
        if (base == NULL) {
            return ctl_fail_usage_of(operation, ctl->why);
        }
    }
    args = ctl_args_read(json_object_get(operation, "schema"), base, count, words, ctl->why,
                         sizeof ctl->why);
    json_decref(base);
    if (args == NULL) {
        return ctl_fail_usage_of(operation, ctl->why);
    }
    status = ctl->json == NULL ? CTL_DONE
                               : ctl_again(ctl->link, ctl->operations, operation, args, ctl->why,
                                           sizeof ctl->why);
    if (status == CTL_DONE) {
        status = call_and_print(ctl, operation, args);
    }
    json_decref(args);
    return status;
}

/* --- commands -------------------------------------------------------------- */

/* The command, and the operation beneath it where there is one of that name. */
static void put_import_help(const ctl_t *ctl, const char *verb)
{
    const json_t *operation = ctl_find(ctl->operations, "connectors", verb);

    ctl_import_help(stdout, verb);
    if (operation != NULL) {
        (void)puts("\nThe operation beneath, with --json FILE:\n");
        ctl_help_operation(stdout, operation);
    }
}

static int run_help(ctl_t *ctl, int count, char *const *words)
{
    const json_t *operation;

    if (count == 0) {
        ctl_help_all(stdout, ctl->operations);
        return CTL_DONE;
    }
    if (count == 2 && ctl_import_is_command(words[0], words[1])) {
        put_import_help(ctl, words[1]);
        return CTL_DONE;
    }
    if (count == 1 && ctl_policy_is_command(words[0])) {
        ctl_policy_help(stdout, words[0]);
        return CTL_DONE;
    }
    operation = ctl_find(ctl->operations, words[0], count > 1 ? words[1] : NULL);
    if (operation != NULL) {
        ctl_help_operation(stdout, operation);
        return CTL_DONE;
    }
    return count == 1 && ctl_help_resource(stdout, ctl->operations, words[0])
               ? CTL_DONE
               : ctl_fail_usage("there is no such resource or operation");
}

static int is_resource(const json_t *operations, const char *word)
{
    size_t i;
    json_t *row;

    json_array_foreach(operations, i, row)
    {
        const char *resource = mcp_json_str(row, "resource");

        if (resource != NULL && ctl_args_same(resource, word)) {
            return 1;
        }
    }
    return 0;
}

static int run_resource(ctl_t *ctl)
{
    const char *verb = ctl->count > 1 ? ctl->words[1] : NULL;
    const json_t *operation = verb == NULL ? NULL : ctl_find(ctl->operations, ctl->words[0], verb);

    if (operation != NULL) {
        return run_operation(ctl, operation, ctl->count - 2, ctl->words + 2);
    }
    operation = ctl_find(ctl->operations, ctl->words[0], NULL);
    if (operation != NULL) {
        return run_operation(ctl, operation, ctl->count - 1, ctl->words + 1);
    }
    if (verb == NULL && ctl_help_resource(stdout, ctl->operations, ctl->words[0])) {
        return CTL_DONE;
    }
    (void)snprintf(ctl->why, sizeof ctl->why, "there is no operation %.60s %.60s", ctl->words[0],
                   verb == NULL ? "" : verb);
    return is_resource(ctl->operations, ctl->words[0])
               ? ctl_fail_usage_at(ctl->words[0], ctl->why)
               : ctl_fail_usage(ctl->why);
}

static int run_policy(ctl_t *ctl)
{
    char *const *words = ctl->words + 1;

    if (ctl->json != NULL) {
        return ctl_fail_usage("--json is for operations; name the document itself");
    }
    return strcmp(ctl->words[0], "export") == 0
               ? ctl_policy_export(ctl->link, ctl->count - 1, words)
               : ctl_policy_apply(ctl->link, ctl->format, ctl->count - 1, words);
}

/* With --json the words are the operation's own, as policyd describes it. */
static int is_import(const ctl_t *ctl)
{
    return ctl->json == NULL && ctl->count > 1 && ctl_import_is_command(ctl->words[0], ctl->words[1]);
}

static int run_import(ctl_t *ctl)
{
    return ctl_import_run(ctl->link, ctl->format, ctl->words[1], ctl->count - 2, ctl->words + 2);
}

static int run(ctl_t *ctl)
{
    int is_completion, status;

    if (ctl->wants_version) {
        (void)puts("policyctl " POLICYD_VERSION);
        return CTL_DONE;
    }
    if (ctl->count == 0) {
        ctl_help_usage(ctl->wants_help ? stdout : stderr);
        return ctl->wants_help ? CTL_DONE : CTL_USAGE;
    }
    is_completion = strcmp(ctl->words[0], "completion") == 0;
    if (is_completion && ctl->count == 2 && strcmp(ctl->words[1], "bash") == 0) {
        ctl_help_bash(stdout);
        return CTL_DONE;
    }
    if (is_completion && (ctl->count < 2 || strcmp(ctl->words[1], "words") != 0)) {
        return ctl_fail_usage("completion takes the name of a shell: bash");
    }
    if (ctl->wants_help && ctl_policy_is_command(ctl->words[0])) {
        ctl_policy_help(stdout, ctl->words[0]);
        return CTL_DONE;
    }
    if (is_import(ctl) && ctl->wants_help) {
        status = strcmp(ctl->words[1], "import") == 0 ? meet(ctl) : CTL_DONE;
        put_import_help(ctl, ctl->words[1]);
        return status;
    }
    if (is_import(ctl) && !ctl_import_needs_link(ctl->words[1])) {
        return run_import(ctl);
    }
    status = meet(ctl);
    if (status != CTL_DONE) {
        return status;
    }
    if (ctl_policy_is_command(ctl->words[0])) {
        return run_policy(ctl);
    }
    if (is_import(ctl)) {
        return run_import(ctl);
    }
    if (is_completion) {
        ctl_help_words(stdout, ctl->operations, ctl->count - 2, ctl->words + 2);
        return CTL_DONE;
    }
    if (strcmp(ctl->words[0], "help") == 0) {
        return run_help(ctl, ctl->count - 1, ctl->words + 1);
    }
    return run_resource(ctl);
}

int main(int argc, char **argv)
{
    ctl_t ctl;
    int status;

    memset(&ctl, 0, sizeof ctl);
    json_object_seed(0); /* keys come from elsewhere */
    if (read_options(&ctl, argc, argv) != 0) {
        status = ctl_fail_usage(ctl.why);
    } else {
        status = run(&ctl);
    }
    json_decref(ctl.operations);
    ctl_link_close(ctl.link);
    free(ctl.words);
    return status;
}
