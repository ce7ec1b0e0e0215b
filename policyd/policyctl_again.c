/* What `get` showed as the arguments of `update`: see policyctl.h.
 *
 * A document that was read, edited and sent back holds more than an update takes: ids of other things, dates, counts.
 * Such a key is left out where it still says what the object has, and refused where it was edited: that it is ignored would be found
 * out late. Its revision becomes if_revision, so that nobody's change in between is overwritten. */
#include "policyctl.h"

#include <string.h>

#include "../proto/mcp_body.h"

/* 1 for an update of something that can be read by the one argument that names it; *ret_get: how, *ret_key: that argument. */
static int can_compare(const json_t *operations, const json_t *operation, const json_t *args,
                       const json_t **ret_get, const char **ret_key)
{
    const char *resource = mcp_json_str(operation, "resource");
    const char *verb = mcp_json_str(operation, "verb");
    int is_file = 0;

    if (resource == NULL || verb == NULL || strcmp(verb, "update") != 0) {
        return 0;
    }
    *ret_get = ctl_find(operations, resource, "get");
    *ret_key = *ret_get == NULL ? NULL
                                : ctl_args_positional(json_object_get(*ret_get, "schema"), &is_file);
    return *ret_key != NULL && json_is_string(json_object_get(args, *ret_key));
}

/* The names of args that the operation does not take; new reference. */
static json_t *find_unknown(const json_t *operation, json_t *args)
{
    const json_t *properties = json_object_get(json_object_get(operation, "schema"), "properties");
    json_t *unknown = json_array();
    const char *name;
    json_t *value;

    json_object_foreach(args, name, value)
    {
        if (json_object_get(properties, name) == NULL) {
            (void)json_array_append_new(unknown, json_string(name)); /* else policyd refuses it */
        }
    }
    return unknown;
}

/* Its revision is what may be changed, unless the caller says otherwise. */
static void take_revision(const json_t *operation, json_t *args)
{
    json_t *revision = json_object_get(args, "revision");
    const json_t *properties = json_object_get(json_object_get(operation, "schema"), "properties");

    if (!json_is_integer(revision) || json_object_get(properties, "if_revision") == NULL) {
        return;
    }
    if (json_object_get(args, "if_revision") == NULL) {
        (void)json_object_set_new(args, "if_revision", json_incref(revision)); /* else sent as it is */
    }
    (void)json_object_del(args, "revision"); /* it is there */
}

/* Leaves out what says what the object has. An object that was changed meanwhile is not compared: policyd refuses the
 * revision. */
static int leave_out(const json_t *unknown, json_t *args, const json_t *shown, char *why, size_t size)
{
    json_int_t expected = mcp_json_int(args, "if_revision", 0);
    int is_old = expected != 0 && expected != mcp_json_int(shown, "revision", expected);
    size_t i;

    for (i = 0; i < json_array_size(unknown); i++) {
        const char *name = json_string_value(json_array_get(unknown, i));
        const json_t *now = json_object_get(shown, name);

        if (now == NULL) {
            continue; /* not of that document: policyd names it */
        }
        if (!is_old && !json_equal(now, json_object_get(args, name))) {
            (void)snprintf(why, size, "update doesn't change %.60s; leave it out, or as get shows it",
                           name);
            return -1;
        }
        (void)json_object_del(args, name); /* it is there */
    }
    return 0;
}

int ctl_again(ctl_link_t *link, const json_t *operations, const json_t *operation, json_t *args,
              char *why, size_t size)
{
    const json_t *get = NULL;
    const char *key = NULL;
    json_t *unknown, *wanted, *shown = NULL, *error = NULL;
    int status = CTL_DONE;

    if (!can_compare(operations, operation, args, &get, &key)) {
        return CTL_DONE;
    }
    take_revision(operation, args);
    unknown = find_unknown(operation, args);
    if (json_array_size(unknown) == 0 ||
        !json_is_false(json_object_get(json_object_get(operation, "schema"), "additionalProperties"))) {
        json_decref(unknown);
        return CTL_DONE;
    }
    wanted = json_pack("{s:O}", key, json_object_get(args, key));
    if (ctl_link_call(link, mcp_json_str(get, "name"), wanted, &shown, &error, why, size) != 0) {
        status = ctl_fail(why);
    } else if (error != NULL) {
        status = ctl_fail_refused(error);
    } else if (leave_out(unknown, args, shown, why, size) != 0) {
        status = ctl_fail_usage_of(operation, why);
    }
    json_decref(shown);
    json_decref(wanted);
    json_decref(unknown);
    return status;
}
