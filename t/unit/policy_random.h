/* Random policies for tests over policy_world.h: a small organisation, and operations of every sort on it, most of which work. */
#ifndef POLICY_RANDOM_H
#define POLICY_RANDOM_H

#include "policy_world.h"

#define RANDOM_MEMBERS    12
#define RANDOM_CONNECTORS 3
#define RANDOM_OPERATIONS 6

static uint64_t random_state = 1;

static unsigned random_below(unsigned bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 11) % bound);
}

static const char *random_text(const char *const *texts, unsigned count)
{
    return texts[random_below(count)];
}

#define RANDOM_OF(texts) random_text(texts, (unsigned)(sizeof(texts) / sizeof((texts)[0])))

static const char *const random_roles[] = {"Member", "Admin", "Guest", "Auditor", "Ops", "Desk", "Idle"};
static const char *const random_custom[] = {"Ops", "Desk", "Idle"};
static const char *const random_slugs[] = {"shop", "desk", "mail"};
static const char *const random_labels[] = {"shop", "shop-eu", "desk", "mail", "mail-b", "aux"};
static const char *const random_boxes[] = {"kit", "tools-x", "daily"};
static const char *const random_rules[] = {"no-deletes", "only reads", "pilot"};
static const char *const random_recipes[] = {"greet", "report"};

static const char *random_email(void)
{
    return apr_psprintf(world.scratch, "m%u@example.com", random_below(RANDOM_MEMBERS));
}

static const char *random_operation(void)
{
    return apr_psprintf(world.scratch, "op%u", random_below(RANDOM_OPERATIONS));
}

/* A connector file; some operations of it are classified anew each time. */
static json_t *random_connector(const char *slug)
{
    static const char *const classes[] = {"read", "write", "destructive", "forbidden"};
    static const char *const methods[] = {"GET", "POST", "DELETE"};
    json_t *operations = json_array();
    unsigned count = 2 + random_below(RANDOM_OPERATIONS - 1);
    unsigned i;

    for (i = 0; i < count; i++) {
        const char *id = apr_psprintf(world.scratch, "op%u", i);
        json_t *operation = json_pack(
            "{s:s,s:s,s:s,s:s,s:[{s:s,s:s,s:{s:s}}]}", "id", id, "method",
            RANDOM_OF(methods), "path", apr_psprintf(world.scratch, "/%s", id), "description",
            "Does it.", "parameters", "name", "q", "in", "query", "schema", "type", "string");

        if (random_below(3) == 0) {
            json_object_set_new(operation, "classification", json_string(RANDOM_OF(classes)));
        }
        json_array_append_new(operations, operation);
    }
    return json_pack("{s:s,s:s,s:s,s:{s:s},s:o}", "slug", slug, "label",
                     apr_pstrcat(world.scratch, "The ", slug, (char *)NULL), "base_url",
                     "https://api.example.com", "auth", "type", "none", "operations", operations);
}

static json_t *random_names(const char *const *texts, unsigned count)
{
    json_t *names = json_array();
    unsigned i;

    for (i = 0; i < count; i++) {
        if (random_below(3) == 0) {
            json_array_append_new(names, json_string(texts[i]));
        }
    }
    return names;
}

#define RANDOM_SOME(texts) random_names(texts, (unsigned)(sizeof(texts) / sizeof((texts)[0])))

static json_t *random_target(void)
{
    return random_below(3) == 0 ? json_pack("{s:s}", "member", random_email())
                                : json_pack("{s:s}", "role", RANDOM_OF(random_roles));
}

static json_t *random_items(int is_allow)
{
    json_t *items = json_array();
    unsigned count = random_below(4);
    unsigned i;

    for (i = 0; i < count; i++) {
        json_t *item;

        switch (random_below(is_allow ? 3 : 4)) {
        case 0:
            item = json_pack("{s:s}", "connector", RANDOM_OF(random_slugs));
            break;
        case 3:
            item = json_pack("{s:s}", "tool",
                             apr_psprintf(world.scratch, "%s__%s",
                                          random_below(2) ? RANDOM_OF(random_labels)
                                                          : RANDOM_OF(random_boxes),
                                          random_operation()));
            break;
        default:
            item = json_pack("{s:s,s:s}", "connector", RANDOM_OF(random_slugs), "operation",
                             random_operation());
            break;
        }
        json_array_append_new(items, item);
    }
    return items;
}

static json_t *random_entries(void)
{
    json_t *entries = json_array();
    unsigned count = random_below(4);
    unsigned i;

    for (i = 0; i < count; i++) {
        json_t *entry = json_pack(
            "{s:s,s:s,s:[s]}", "connector", RANDOM_OF(random_slugs), "operation",
            random_operation(), "connections",
            random_below(3) == 0 ? "@own" : RANDOM_OF(random_labels));

        if (random_below(2)) {
            json_object_set_new(entry, "name",
                                json_string(apr_psprintf(world.scratch, "e%u", i)));
        }
        if (random_below(3) == 0) {
            json_object_set_new(entry, "frozen", json_pack("{s:s}", "q", "secret"));
        }
        if (random_below(3) == 0) {
            json_object_set_new(entry, "defaults", json_pack("{s:s}", "q", "usual"));
        }
        if (random_below(4) == 0) {
            json_object_set_new(entry, "always_visible", json_boolean(random_below(2)));
        }
        json_array_append_new(entries, entry);
    }
    return entries;
}

static json_t *random_permissions(void)
{
    static const char *const some[] = {"tool:execute", "connector:read", "connection:read",
                                       "connection:write", "toolbox:read"};

    return RANDOM_SOME(some);
}

/* One operation with random arguments: *ret_name, and new arguments. With `is_policy` only those that take dry_run. */
static json_t *random_call(int is_policy, const char **ret_name)
{
    unsigned which = random_below(is_policy ? 20 : 24);
    int is_allow = (int)random_below(2);

    switch (which) {
    case 0:
        *ret_name = "members__create";
        return json_pack("{s:s,s:o}", "email", random_email(), "roles", RANDOM_SOME(random_roles));
    case 1:
    case 2:
        *ret_name = "members__update";
        return json_pack("{s:s,s:o}", "member", random_email(), "roles", RANDOM_SOME(random_roles));
    case 3:
        *ret_name = random_below(2) ? "members__suspend" : "members__reinstate";
        return json_pack("{s:s}", "member", random_email());
    case 4:
        *ret_name = "roles__update";
        return json_pack("{s:s,s:o}", "role", RANDOM_OF(random_custom), "permissions",
                         random_permissions());
    case 5:
        *ret_name = "connectors__create";
        return random_connector(RANDOM_OF(random_slugs));
    case 6: {
        const char *slug = RANDOM_OF(random_slugs);
        json_t *file = random_connector(slug);

        json_object_set_new(file, "connector", json_string(slug));
        *ret_name = "connectors__update";
        return file;
    }
    case 7:
    case 8:
        *ret_name = "connections__create";
        return random_below(3) == 0
                   ? json_pack("{s:s,s:s,s:s}", "connector", RANDOM_OF(random_slugs), "label",
                               RANDOM_OF(random_labels), "owner", random_email())
                   : json_pack("{s:s,s:s,s:b,s:b}", "connector", RANDOM_OF(random_slugs), "label",
                               RANDOM_OF(random_labels), "shared", 1, "toolbox_only",
                               random_below(4) == 0);
    case 9:
        *ret_name = "connections__update";
        return json_pack("{s:s,s:s,s:b}", "connection", RANDOM_OF(random_labels), "label",
                         RANDOM_OF(random_labels), "toolbox_only", random_below(3) == 0);
    case 10:
        *ret_name = "connections__delete";
        return json_pack("{s:s}", "connection", RANDOM_OF(random_labels));
    case 11:
    case 12:
    case 13:
        *ret_name = "restrictions__create";
        return json_pack("{s:s,s:o,s:o,s:s*}", "effect", is_allow ? "allow" : "block", "target",
                         random_target(), "items", random_items(is_allow), "name",
                         random_below(2) ? RANDOM_OF(random_rules) : NULL);
    case 14:
        *ret_name = "restrictions__update";
        return json_pack("{s:s,s:o}", "restriction", RANDOM_OF(random_rules), "items",
                         random_items(1));
    case 15:
        *ret_name = "restrictions__delete";
        return json_pack("{s:s}", "restriction", RANDOM_OF(random_rules));
    case 16:
    case 17:
        *ret_name = "toolboxes__create";
        return json_pack("{s:s,s:o,s:[s],s:o}", "name", RANDOM_OF(random_boxes), "roles",
                         RANDOM_SOME(random_roles), "members", random_email(), "entries",
                         random_entries());
    case 18:
        *ret_name = "toolboxes__update";
        return json_pack("{s:s,s:o,s:o}", "toolbox", RANDOM_OF(random_boxes), "roles",
                         RANDOM_SOME(random_roles), "entries", random_entries());
    case 19:
        *ret_name = random_below(2) ? "toolboxes__delete" : "connectors__delete";
        return json_pack("{s:s}", (*ret_name)[0] == 't' ? "toolbox" : "connector",
                         (*ret_name)[0] == 't' ? RANDOM_OF(random_boxes) : RANDOM_OF(random_slugs));
    case 20:
        *ret_name = "settings__set";
        return json_pack("{s:s,s:i,s:s*}", "key", "collapse.threshold", "value",
                         (int)random_below(100), "client", random_below(2) ? "laptop" : NULL);
    case 21:
        *ret_name = "settings__set";
        return json_pack("{s:s,s:b}", "key", "advertise.step_up", "value", (int)random_below(2));
    case 22:
        *ret_name = "recipes__create";
        return json_pack("{s:s,s:s,s:s*,s:[{s:s,s:b}],s:o}", "name", RANDOM_OF(random_recipes),
                         "text", "Say {{what}}.", "title", random_below(2) ? "A title" : NULL,
                         "arguments", "name", "what", "required", (int)random_below(2), "roles",
                         RANDOM_SOME(random_roles));
    default:
        *ret_name = random_below(2) ? "settings__unset" : "recipes__delete";
        return json_pack("{s:s}", (*ret_name)[0] == 's' ? "key" : "recipe",
                         (*ret_name)[0] == 's' ? "advertise.step_up" : RANDOM_OF(random_recipes));
    }
}

/* Custom roles, an Owner, and somebody for each email. */
static void random_people(void)
{
    unsigned i;

    for (i = 0; i < sizeof(random_custom) / sizeof(random_custom[0]); i++) {
        world_done("roles__create", json_pack("{s:s,s:o}", "name", random_custom[i], "permissions",
                                              random_permissions()));
    }
    (void)world_member("owner@example.com", "Owner");
    for (i = 0; i < RANDOM_MEMBERS; i++) {
        world_done("members__create",
                   json_pack("{s:s,s:o}", "email",
                             apr_psprintf(world.scratch, "m%u@example.com", i), "roles",
                             RANDOM_SOME(random_roles)));
    }
}

/* An organisation after `steps` random operations. */
static UNUSED void random_policy(uint64_t seed, int steps)
{
    unsigned i;
    int k;

    random_state = seed * 2654435761u + 1;
    random_people();
    for (i = 0; i < RANDOM_CONNECTORS; i++) {
        world_done("connectors__create", random_connector(random_slugs[i]));
    }
    for (k = 0; k < steps; k++) {
        const char *name;
        json_t *args = random_call(0, &name);
        json_t *result = world_try(name, args);

        if (result == NULL && world.code == MCP_CODE_INTERNAL) {
            fail_msg("%s: %s", name, world.message);
        }
        json_decref(result);
    }
}

#endif
