/* Results that need more than a table: see policyctl.h.
 *
 * Explain is told in sentences; rules and toolbox entries get columns that say whom and what they are for; who gains
 * and loses tools stands in blocks, since the names are what a reader looks for.  Everything else is a table as ever. */
#include "policyctl.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/mcp_body.h"

#define ITEM_CHARS 60 /* of the items of a rule in a list */

/* --- parts ----------------------------------------------------------------- */

static const char *text_in(const json_t *object, const char *name)
{
    const char *text = mcp_json_str(object, name);

    return text == NULL ? "" : text;
}

static void put(FILE *to, const char *before, const char *text, const char *after)
{
    (void)fputs(before, to);
    ctl_print_text(to, text);
    (void)fputs(after, to);
}

/* Texts of a list with commas; true when there is one. */
static int put_list(FILE *to, const json_t *list, const char *before, const char *after)
{
    size_t i;

    for (i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));

        put(to, i == 0 ? before : ", ", text == NULL ? "?" : text, "");
    }
    (void)fputs(i > 0 ? after : "", to);
    return i > 0;
}

/* Moves a member from one object to another under a name of its own, if it is there. */
static void move(json_t *to, const char *as, json_t *from, const char *name)
{
    json_t *value = json_object_get(from, name);

    if (value != NULL && !json_is_null(value)) {
        (void)json_object_set_new(to, as, json_incref(value)); /* a table, no more */
        (void)json_object_del(from, name);
    }
}

/* Everything that is left. */
static void move_rest(json_t *to, json_t *from)
{
    (void)json_object_update_missing(to, from); /* a table, no more */
}

/* --- restrictions ---------------------------------------------------------- */

/* "role Sales", or who the member is; new reference. */
static json_t *whom(const json_t *target)
{
    const char *role = mcp_json_str(target, "role");
    const char *email = mcp_json_str(target, "email");

    if (role != NULL) {
        return json_sprintf("role %s", role);
    }
    return json_string(email != NULL ? email : text_in(target, "member"));
}

/* "crm", "crm/get_customer" or a tool's name. */
static void add_item(ctl_text_t *to, const json_t *item)
{
    const char *tool = mcp_json_str(item, "tool");
    const char *slug = mcp_json_str(item, "slug");
    const char *operation = mcp_json_str(item, "operation");

    if (tool != NULL) {
        ctl_text_add(to, tool, strlen(tool));
        return;
    }
    slug = slug == NULL ? text_in(item, "connector") : slug;
    ctl_text_add(to, slug, strlen(slug));
    if (operation != NULL) {
        ctl_text_add(to, "/", 1);
        ctl_text_add(to, operation, strlen(operation));
    }
}

/* The first items of a rule in one text, and how many there are; new reference. */
static json_t *items_text(const json_t *rule)
{
    const json_t *items = json_object_get(rule, "items");
    json_int_t count = mcp_json_int(rule, "items_count", (json_int_t)json_array_size(items));
    ctl_text_t text = {NULL, 0, 0};
    json_t *shown;
    size_t i;

    for (i = 0; i < json_array_size(items); i++) {
        ctl_text_t item = {NULL, 0, 0};

        add_item(&item, json_array_get(items, i));
        if (i > 0 && text.count + item.count + 2 > ITEM_CHARS) {
            free(item.bytes);
            break;
        }
        if (i > 0) {
            ctl_text_add(&text, ", ", 2);
        }
        ctl_text_add(&text, ctl_text_of(&item), item.count);
        free(item.bytes);
    }
    shown = (json_int_t)i < count
                ? json_sprintf("%s and %lld more", ctl_text_of(&text), (long long)count - (long long)i)
                : json_string(count == 0 ? "(nothing)" : ctl_text_of(&text));
    free(text.bytes);
    return shown;
}

/* A rule of a list as a row: what it does first, its id and dates last; new reference. */
static json_t *rule_row(json_t *rule)
{
    json_t *row = json_object();
    json_t *target = json_object_get(rule, "target");

    move(row, "name", rule, "name");
    move(row, "effect", rule, "effect");
    (void)json_object_set_new(row, "for", whom(target));        /* a table, no more */
    (void)json_object_set_new(row, "items", items_text(rule)); /* as above */
    (void)json_object_del(rule, "items");
    (void)json_object_del(rule, "items_count");
    (void)json_object_del(rule, "target");
    (void)json_object_del(rule, "created_at");
    move_rest(row, rule);
    return row;
}

/* --- toolboxes ------------------------------------------------------------- */

static json_t *entry_row(json_t *entry)
{
    json_t *row = json_object();
    json_t *is_visible = json_object_get(entry, "always_visible");

    move(row, "tool", entry, "tool");
    move(row, "connector", entry, "connector_slug");
    move(row, "operation", entry, "operation");
    move(row, "connections", entry, "connections");
    move(row, "frozen", entry, "frozen");
    move(row, "defaults", entry, "defaults");
    if (!json_is_true(is_visible)) {
        (void)json_object_del(entry, "always_visible"); /* absent is fine */
    }
    (void)json_object_del(entry, "name"); /* the tool's says it */
    move_rest(row, entry);
    return row;
}

/* --- rows ------------------------------------------------------------------ */

/* Which list of which answers is shown by rows made for it. */
static const struct {
    const char *resource, *list;
    json_t *(*row)(json_t *);
} shapes[] = {{"restrictions__list", "items", rule_row}, {"toolboxes__", "entries", entry_row}};

static void shape(const char *operation, json_t *result)
{
    size_t i, k;

    for (i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        json_t *rows = json_object_get(result, shapes[i].list);

        if (strncmp(operation, shapes[i].resource, strlen(shapes[i].resource)) != 0) {
            continue;
        }
        for (k = 0; k < json_array_size(rows); k++) {
            json_t *row = json_array_get(rows, k);

            if (json_is_object(row)) {
                (void)json_array_set_new(rows, k, shapes[i].row(row)); /* as it was, then */
            }
        }
    }
}

/* --- impact ---------------------------------------------------------------- */

static void put_tools(FILE *to, const json_t *group, const char *list, const char *count,
                      const char *sign)
{
    const json_t *tools = json_object_get(group, list);
    json_int_t more = mcp_json_int(group, count, 0) - (json_int_t)json_array_size(tools);
    size_t i;

    for (i = 0; i < json_array_size(tools); i++) {
        const char *text = json_string_value(json_array_get(tools, i));

        put(to, sign, text == NULL ? "?" : text, "\n");
    }
    if (more > 0) {
        (void)fprintf(to, "%s%s%lld more\n", sign, i > 0 ? "and " : "", (long long)more);
    }
}

static void put_group(FILE *to, const json_t *group)
{
    const json_t *members = json_object_get(group, "members");
    json_int_t count = mcp_json_int(group, "member_count", 0);
    json_int_t unnamed = count - (json_int_t)json_array_size(members);

    (void)fprintf(to, "\n%lld member%s", (long long)count, count == 1 ? "" : "s");
    (void)put_list(to, json_object_get(group, "roles"), " of ", "");
    if (put_list(to, members, ": ", "") && unnamed > 0) {
        (void)fprintf(to, " and %lld more", (long long)unnamed);
    }
    (void)fputc('\n', to);
    put_tools(to, group, "gains", "gain_count", "  + ");
    put_tools(to, group, "loses", "lose_count", "  - ");
}

void ctl_view_impact(FILE *to, const json_t *impact)
{
    const json_t *groups = json_object_get(impact, "groups");
    json_int_t members = mcp_json_int(impact, "members", 0);
    size_t i;

    if (impact == NULL) {
        return;
    }
    if (mcp_json_bool(impact, "only_you")) {
        (void)fputs("\nThis is about you alone: what others gain or lose is told with member:read.\n",
                    to);
    }
    if (members == 0) {
        (void)fputs(mcp_json_bool(impact, "only_you") ? "You gain and lose no tool.\n"
                                                      : "\nNobody gains or loses a tool.\n",
                    to);
        return;
    }
    (void)fprintf(to, "\nMembers touched: %lld; %lld gain tools, %lld lose tools%s\n",
                  (long long)members, (long long)mcp_json_int(impact, "gains", 0),
                  (long long)mcp_json_int(impact, "loses", 0),
                  mcp_json_bool(impact, "is_cut") ? " (the largest groups)" : "");
    for (i = 0; i < json_array_size(groups); i++) {
        put_group(to, json_array_get(groups, i));
    }
}

void ctl_view_warnings(FILE *to, const json_t *result)
{
    const json_t *warnings = json_object_get(result, "warnings");
    size_t i;

    for (i = 0; i < json_array_size(warnings); i++) {
        const char *text = json_string_value(json_array_get(warnings, i));

        put(to, i == 0 ? "\nwarning: " : "warning: ", text == NULL ? "?" : text, "\n");
    }
}

/* --- explain --------------------------------------------------------------- */

/* "allow rule sales-read for role sales", with the kind of item that decided. */
static void put_rule(FILE *to, const json_t *rule)
{
    const char *name = mcp_json_str(rule, "name");
    const char *role = mcp_json_str(rule, "role");
    const char *item = mcp_json_str(rule, "item");

    put(to, "", text_in(rule, "effect"), " rule ");
    put(to, "", name != NULL ? name : text_in(rule, "restriction"), " for ");
    put(to, role != NULL ? "role " : "", role != NULL ? role : "the member", "");
    if (item != NULL) {
        put(to, ", by its ", item, "");
    }
}

static void put_governed(FILE *to, const json_t *explained)
{
    static const struct {
        const char *governed, *text;
    } texts[] = {{"none", "none for the member or their roles: everything is allowed"},
                 {"roles", "those of the member's roles govern:"},
                 {"user", "the member's own govern; those of roles don't count:"},
                 {"unreadable", "they could not be read: everything is denied"}};
    const char *governed = text_in(explained, "governed");
    const json_t *rules = json_object_get(explained, "rules");
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0] && strcmp(texts[i].governed, governed) != 0; i++) {
    }
    put(to, "Rules: ", i < sizeof texts / sizeof texts[0] ? texts[i].text : governed, "\n");
    for (i = 0; i < json_array_size(rules); i++) {
        (void)fputs("  ", to);
        put_rule(to, json_array_get(rules, i));
        (void)fputc('\n', to);
    }
}

static void put_points(FILE *to, const json_t *explained)
{
    static const char *const points[] = {"browse", "connect", "advertise", "execute"};
    const json_t *url = json_object_get(explained, "url");
    size_t i;

    for (i = 0; i < sizeof points / sizeof points[0]; i++) {
        const json_t *point = json_object_get(json_object_get(explained, "points"), points[i]);
        const json_t *decided = json_object_get(point, "decided_by");

        if (point == NULL) {
            continue;
        }
        (void)fprintf(to, "  %-10s ", points[i]);
        put(to, "", text_in(point, "answer"), "");
        if (json_is_object(decided)) {
            (void)fputs(": ", to);
            put_rule(to, decided);
        }
        (void)fputc('\n', to);
    }
    if (json_is_object(url)) {
        (void)fprintf(to, "  %-10s ", "URL check");
        put(to, "", text_in(url, "verdict"), "");
        put(to, ": ", text_in(url, "template"), "");
        put(to, " over ", text_in(url, "connection"), "\n");
    }
}

/* Values that lead to other operations, which are withheld. */
static void put_claims(FILE *to, const json_t *explained)
{
    const json_t *claims = json_object_get(json_object_get(explained, "url"), "claimed_by");

    if (json_array_size(claims) > 0) {
        (void)fputs("Values that make the URL one of these are refused all the same:\n", to);
        ctl_print_rows(to, claims, "  ");
    }
}

/* The member's own words for a tool that is asked for by its operation. */
static void put_what(FILE *to, const json_t *explained)
{
    const char *tool = mcp_json_str(explained, "tool");
    const char *operation = mcp_json_str(explained, "operation");

    if (tool != NULL) {
        ctl_print_text(to, tool);
    }
    if (operation != NULL) {
        put(to, tool != NULL ? " (" : "", text_in(explained, "connector_slug"), "/");
        put(to, "", operation, tool != NULL ? ")" : "");
    }
}

static void put_explained(FILE *to, const json_t *explained)
{
    const char *answer = text_in(explained, "answer");
    const char *email = mcp_json_str(explained, "email");
    const char *state = text_in(explained, "state");
    const json_t *paths = json_object_get(explained, "paths");
    int is_ok = strcmp(answer, "ok") == 0;

    ctl_print_text(to, email != NULL ? email : text_in(explained, "member"));
    (void)fputs(is_ok ? " can have " : " can't have ", to);
    put_what(to, explained);
    if (!is_ok) {
        put(to, ": ", answer, "");
        (void)fputs(strcmp(answer, "unknown") != 0             ? ""
                    : mcp_json_str(explained, "operation") == NULL ? "; there is no tool of this name"
                                                               : "; no account leads to it",
                    to);
    }
    (void)fputc('\n', to);
    if (strcmp(state, "active") != 0) {
        put(to, "The member is ", state, ": every call is refused before this.\n");
    }
    (void)put_list(to, json_object_get(explained, "roles"), "Roles: ", "\n");
    put_governed(to, explained);
    (void)fputs("Answers:\n", to);
    put_points(to, explained);
    put_claims(to, explained);
    if (json_array_size(paths) > 0) {
        (void)fputs("All names of the operation:\n", to);
        ctl_print_rows(to, paths, "  ");
    }
    if (mcp_json_int(explained, "more_paths", 0) > 0) {
        (void)fprintf(to, "  and %lld more\n", (long long)mcp_json_int(explained, "more_paths", 0));
    }
}

/* --- all ------------------------------------------------------------------- */

void ctl_view(FILE *to, const char *operation, json_t *result)
{
    json_t *aside = json_object();

    if (strcmp(operation, "restrictions__explain") == 0) {
        put_explained(to, result);
        json_decref(aside);
        return;
    }
    if (strcmp(operation, CTL_FOOTPRINT) == 0) {
        ctl_footprint_view(to, result);
        json_decref(aside);
        return;
    }
    move(aside, "impact", result, "impact");
    move(aside, "warnings", result, "warnings");
    move(aside, "dry_run", result, "dry_run");
    if (json_object_get(aside, "dry_run") != NULL) {
        (void)fputs("Dry run, nothing is changed. It would be:\n", to);
    }
    shape(operation, result);
    ctl_print(to, result, CTL_TABLE);
    ctl_view_warnings(to, aside);
    ctl_view_impact(to, json_object_get(aside, "impact"));
    json_decref(aside);
}
