/* Failures as people see them: see policyctl.h. */
#include "policyctl.h"

#include "../proto/mcp_body.h"

static int fail_usage(const char *why, const char *resource, const char *verb)
{
    (void)fputs("policyctl: ", stderr);
    ctl_print_text(stderr, why);
    (void)fprintf(stderr, "\nTry `policyctl help%s%s%s%s`.\n", resource == NULL ? "" : " ",
                  resource == NULL ? "" : resource, verb == NULL ? "" : " ",
                  verb == NULL ? "" : verb);
    return CTL_USAGE;
}

int ctl_fail_usage(const char *why)
{
    return fail_usage(why, NULL, NULL);
}

int ctl_fail_usage_of(const json_t *operation, const char *why)
{
    return fail_usage(why, mcp_json_str(operation, "resource"), mcp_json_str(operation, "verb"));
}

int ctl_fail_usage_at(const char *command, const char *why)
{
    return fail_usage(why, command, NULL);
}

int ctl_fail(const char *why)
{
    (void)fputs("policyctl: ", stderr);
    ctl_print_text(stderr, why);
    (void)fputc('\n', stderr);
    return CTL_FAILED;
}

static void put_field(const char *before, const json_t *error, const char *name)
{
    const char *text = mcp_json_str(error, name);

    if (text != NULL && *text != '\0') {
        (void)fputs(before, stderr);
        ctl_print_text(stderr, text);
        (void)fputc('\n', stderr);
    }
}

int ctl_fail_refused(json_t *error)
{
    const char *code = mcp_json_str(error, "code");

    (void)fputs("policyctl: ", stderr);
    ctl_print_text(stderr, code == NULL ? "internal" : code);
    put_field(": ", error, "message");
    put_field("hint: ", error, "hint");
    put_field("audit: ", error, "audit");
    json_decref(error);
    return CTL_FAILED;
}
