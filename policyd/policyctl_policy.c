/* policyctl export, policyctl apply: policy as files. See policyctl.h.
 *
 * Applying is done twice: a dry run whose plan and impact are shown, and the real one, which is bound to that plan by its digest. */
#include "policyctl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../proto/mcp_body.h"

#define MAX_ANSWER 64 /* bytes of what is typed at a question */

/* --- commands and their words ---------------------------------------------- */

typedef struct options {
    const char *file; /* -o, -f */
    const char *sections;
    int is_pruning, is_dry_run, is_sure, is_blind;
} options_t;

typedef struct flag {
    const char *command;
    const char *name;
    const char *other;  /* another spelling, or NULL */
    size_t text, truth; /* offset + 1 in options_t of what it sets; 0: not that */
    const char *value;
    const char *help;
} flag_t;

#define TEXT(member) offsetof(options_t, member) + 1, 0
#define TRUTH(member) 0, offsetof(options_t, member) + 1

static const flag_t flags[] = {
    {"export", "-o", "--output", TEXT(file), "FILE|DIR",
     "where to; a directory gets one file a section and connector. Standard output if not given"},
    {"export", "--sections", NULL, TEXT(sections), "A,B,...",
     "only these: roles, connectors, connections, settings, recipes, toolboxes, restrictions"},
    {"apply", "-f", "--file", TEXT(file), "FILE|DIR|-",
     "the document; of a directory all *.json, joined"},
    {"apply", "--prune", NULL, TRUTH(is_pruning), NULL,
     "delete what a section of the document does not list"},
    {"apply", "--dry-run", NULL, TRUTH(is_dry_run), NULL,
     "show the changes, and who gains or loses which tools; change nothing"},
    {"apply", "--yes", NULL, TRUTH(is_sure), NULL, "don't ask"},
    {"apply", "--no-plan", NULL, TRUTH(is_blind), NULL,
     "apply without the dry run before; implies --yes"},
};

#define FLAGS (sizeof flags / sizeof flags[0])

static const struct {
    const char *command;
    const char *text;
} commands[] = {
    {"export",
     "policyctl export - the policy as a document\n\n"
     "Writes roles, connectors, shared connections, settings, recipes, toolboxes and\n"
     "restrictions, each by its name, as a document that apply takes: what to keep under\n"
     "version control. It holds no members, grants and credentials; toolboxes show their\n"
     "frozen values, so files are readable for you alone.\n"},
    {"apply", "policyctl apply - make the policy be what a document says\n\n"
              "Sections that the document has are made to be what it lists, in one transaction;\n"
              "the others are left alone. Shows the plan first, and asks if standard input is a\n"
              "terminal. Applying again changes nothing.\n"},
};

int ctl_policy_is_command(const char *word)
{
    return strcmp(word, "export") == 0 || strcmp(word, "apply") == 0;
}

void ctl_policy_help(FILE *to, const char *command)
{
    size_t i;

    for (i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].command, command) == 0) {
            (void)fputs(commands[i].text, to);
        }
    }
    (void)fputs("\nArguments:\n", to);
    for (i = 0; i < FLAGS; i++) {
        if (strcmp(flags[i].command, command) == 0) {
            (void)fprintf(to, "  %s%s%s\n      %s\n", flags[i].name,
                          flags[i].value == NULL ? "" : " ",
                          flags[i].value == NULL ? "" : flags[i].value, flags[i].help);
        }
    }
}

void ctl_policy_words(FILE *to, const char *command)
{
    size_t i;

    for (i = 0; i < FLAGS; i++) {
        if (strcmp(flags[i].command, command) == 0) {
            (void)fprintf(to, "%s\n", flags[i].name);
        }
    }
    (void)fputs("--socket\n--help\n", to);
}

static int is_spelled(const char *word, const char *name)
{
    return name != NULL && strcmp(word, name) == 0;
}

/* Words to options; -1 with why set. */
static int read_words(const char *command, int count, char *const *words, options_t *options,
                      char *why, size_t size)
{
    int i;

    for (i = 0; i < count; i++) {
        size_t k;

        for (k = 0; k < FLAGS; k++) {
            if (strcmp(flags[k].command, command) == 0 &&
                (is_spelled(words[i], flags[k].name) || is_spelled(words[i], flags[k].other))) {
                break;
            }
        }
        if (k == FLAGS) {
            (void)snprintf(why, size, "%.60s is no argument of %s%s", words[i], command,
                           words[i][0] != '-' || words[i][1] == '\0'
                               ? "; a file or directory is named with its flag"
                               : "");
            return -1;
        }
        if (flags[k].truth > 0) {
            *(int *)(void *)((char *)options + flags[k].truth - 1) = 1;
        } else if (++i < count) {
            *(const char **)(void *)((char *)options + flags[k].text - 1) = words[i];
        } else {
            (void)snprintf(why, size, "%s needs a value", flags[k].name);
            return -1;
        }
    }
    return 0;
}

/* --- asking ---------------------------------------------------------------- */

/* The result of an operation, or NULL with *status set and the failure told. */
static json_t *ask(ctl_link_t *link, const char *operation, const json_t *args, int *status)
{
    char why[CTL_WHY] = "";
    json_t *result = NULL, *error = NULL;

    if (ctl_link_call(link, operation, args, &result, &error, why, sizeof why) != 0) {
        *status = ctl_fail(why);
        return NULL;
    }
    if (error != NULL) {
        *status = ctl_fail_refused(error);
        return NULL;
    }
    *status = CTL_DONE;
    return result;
}

static int flush(void)
{
    return fflush(stdout) != 0 || ferror(stdout) ? ctl_fail("standard output can't be written")
                                                 : CTL_DONE;
}

/* --- export ---------------------------------------------------------------- */

/* Arguments of policy export; new reference. */
static json_t *export_args(const char *sections)
{
    json_t *args = json_object();
    json_t *list = sections == NULL ? NULL : json_array();

    while (sections != NULL && *sections != '\0') {
        size_t bytes = strcspn(sections, ",");

        (void)json_array_append_new(list, json_stringn(sections, bytes)); /* no text: is refused */
        sections += bytes + (sections[bytes] == ',');
    }
    if (list != NULL && json_object_set_new(args, "sections", list) != 0) {
        json_decref(args);
        return NULL;
    }
    return args;
}

int ctl_policy_export(ctl_link_t *link, int count, char *const *words)
{
    options_t options = {NULL, NULL, 0, 0, 0, 0};
    char why[CTL_WHY] = "";
    json_t *args, *document;
    char *text;
    int status;

    if (read_words("export", count, words, &options, why, sizeof why) != 0) {
        return ctl_fail_usage_at("export", why);
    }
    args = export_args(options.sections);
    document = ask(link, "policy__export", args, &status);
    json_decref(args);
    if (document == NULL) {
        return status;
    }
    if (options.file != NULL && strcmp(options.file, "-") != 0) {
        status = ctl_files_write(options.file, document, why, sizeof why) == 0 ? CTL_DONE
                                                                               : ctl_fail(why);
    } else {
        text = json_dumps(document, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
        (void)fprintf(stdout, "%s\n", text == NULL ? "" : text);
        free(text);
        status = flush();
    }
    json_decref(document);
    return status;
}

/* --- the plan, for eyes ---------------------------------------------------- */

/* "members__create" as {"change":"create","section":"members","name"}; new reference. */
static json_t *change_row(const json_t *change)
{
    const char *op = mcp_json_str(change, "op");
    const char *name = mcp_json_str(change, "name");
    const char *gap = op == NULL ? NULL : strstr(op, "__");
    char section[64];

    (void)snprintf(section, sizeof section, "%.*s", gap == NULL ? 0 : (int)(gap - op),
                   gap == NULL ? "" : op);
    return json_pack("{s:s, s:s, s:s}", "change", gap == NULL ? "?" : gap + 2, "section", section,
                     "name", name == NULL ? "?" : name);
}

/* A table of a list, each row made by `row`. */
static void put_rows(const json_t *list, json_t *(*row)(const json_t *))
{
    json_t *rows = json_array();
    json_t *table;
    size_t i;

    for (i = 0; i < json_array_size(list); i++) {
        (void)json_array_append_new(rows, row(json_array_get(list, i))); /* a table, no more */
    }
    table = json_pack("{s:o}", "items", rows);
    ctl_print(stdout, table, CTL_TABLE);
    json_decref(table);
}

static json_int_t changes_of(const json_t *result)
{
    return mcp_json_int(result, "created", 0) + mcp_json_int(result, "updated", 0) +
           mcp_json_int(result, "deleted", 0);
}

static void print_counts(const json_t *result, const char *of_create, const char *of_update,
                         const char *of_delete)
{
    (void)printf("%lld %s, %lld %s, %lld %s; %lld unchanged\n",
                 (long long)mcp_json_int(result, "created", 0), of_create,
                 (long long)mcp_json_int(result, "updated", 0), of_update,
                 (long long)mcp_json_int(result, "deleted", 0), of_delete,
                 (long long)mcp_json_int(result, "unchanged", 0));
}

static void print_plan(const json_t *plan)
{
    if (changes_of(plan) == 0) {
        (void)printf("Nothing to change; %lld unchanged\n",
                     (long long)mcp_json_int(plan, "unchanged", 0));
        return;
    }
    put_rows(json_object_get(plan, "changes"), change_row);
    (void)puts(mcp_json_bool(plan, "is_cut") ? "(the first ones)" : "");
    print_counts(plan, "to create", "to update", "to delete");
    ctl_view_warnings(stdout, plan);
    ctl_view_impact(stdout, json_object_get(plan, "impact"));
}

/* --- apply ----------------------------------------------------------------- */

static json_t *apply_args(json_t *document, const options_t *options, const char *plan,
                          int is_dry_run)
{
    return json_pack("{s:O, s:o*, s:o*, s:s*}", "policy", document, "prune",
                     options->is_pruning ? json_true() : NULL, "dry_run",
                     is_dry_run ? json_true() : NULL, "plan", plan);
}

static json_t *ask_apply(ctl_link_t *link, json_t *document, const options_t *options,
                         const char *plan, int is_dry_run, int *status)
{
    json_t *args = apply_args(document, options, plan, is_dry_run);
    json_t *result = ask(link, "policy__apply", args, status);

    json_decref(args);
    return result;
}

/* 1 when whoever is at the terminal agrees; where there is none, nobody is asked. */
static int agrees(const options_t *options)
{
    char answer[MAX_ANSWER] = "";

    if (options->is_sure || !isatty(STDIN_FILENO)) {
        return 1;
    }
    (void)fputs("\nApply this? [y/N] ", stderr);
    if (fgets(answer, sizeof answer, stdin) == NULL) {
        return 0;
    }
    answer[strcspn(answer, "\r\n")] = '\0';
    return strcmp(answer, "y") == 0 || strcmp(answer, "Y") == 0 || strcmp(answer, "yes") == 0;
}

/* The real run; plan NULL: not bound to any. */
static int apply(ctl_link_t *link, json_t *document, const options_t *options, const char *plan,
                 ctl_format_t format)
{
    int status = CTL_DONE;
    json_t *result = ask_apply(link, document, options, plan, 0, &status);

    if (result == NULL) {
        return status;
    }
    if (format == CTL_TABLE) {
        print_counts(result, "created", "updated", "deleted");
        if (plan == NULL) {
            ctl_view_warnings(stdout, result);
        }
    } else {
        ctl_print(stdout, result, format);
    }
    json_decref(result);
    return flush();
}

/* Shows the plan, and follows it where that is wanted. */
static int plan_and_apply(ctl_link_t *link, json_t *document, const options_t *options,
                          ctl_format_t format)
{
    int status = CTL_DONE;
    json_t *plan = ask_apply(link, document, options, NULL, 1, &status);
    int is_done;

    if (plan == NULL) {
        return status;
    }
    is_done = options->is_dry_run || changes_of(plan) == 0;
    if (format == CTL_TABLE) {
        print_plan(plan);
    } else if (is_done) {
        ctl_print(stdout, plan, format);
    }
    status = flush();
    if (status == CTL_DONE && !is_done) {
        status = agrees(options)
                     ? apply(link, document, options, mcp_json_str(plan, "plan"), format)
                     : ctl_fail("nothing was changed");
    }
    json_decref(plan);
    return status;
}

int ctl_policy_apply(ctl_link_t *link, ctl_format_t format, int count, char *const *words)
{
    options_t options = {NULL, NULL, 0, 0, 0, 0};
    char why[CTL_WHY] = "";
    json_t *document;
    int status;

    if (read_words("apply", count, words, &options, why, sizeof why) != 0) {
        return ctl_fail_usage_at("apply", why);
    }
    if (options.file == NULL) {
        return ctl_fail_usage_at("apply", "apply needs -f FILE, -f DIR or -f -");
    }
    if (options.is_blind && options.is_dry_run) {
        return ctl_fail_usage_at("apply", "--no-plan and --dry-run contradict each other");
    }
    document = ctl_files_read(options.file, why, sizeof why);
    if (document == NULL) {
        return ctl_fail_usage_at("apply", why);
    }
    status = options.is_blind ? apply(link, document, &options, NULL, format)
                              : plan_and_apply(link, document, &options, format);
    json_decref(document);
    return status;
}
