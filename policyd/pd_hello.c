/* The handler of hello: who policyd is, the key ring, and where the route table is. */
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "pd_core.h"
#include "pd_keys.h"
#include "pd_lexicon.h"
#include "pd_log.h"
#include "pd_policy.h"
#include "pd_routes.h"
#include "pd_running.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

void pd_on_hello(pd_ask_t *ask)
{
    pd_policy_t *policy = ask->core->policy;
    json_int_t min = mcp_json_int(ask->body, "version_min", 0);
    json_int_t max = mcp_json_int(ask->body, "version_max", 0);
    const char *resource =
        json_string_value(json_array_get(json_object_get(ask->body, "resources"), 0));
    const char *server = mcp_json_str(ask->body, "server");
    pd_running_caps_t caps;
    char software[64];
    json_t *keys;

    if (min > (json_int_t)MCP_VERSION || max < (json_int_t)MCP_VERSION_MIN || min > max) {
        pd_ask_refuse(ask, MCP_CODE_UNSUPPORTED, "no common protocol version",
                      "run mod_mcp and policyd of neighbouring releases", NULL);
        return;
    }
    keys = pd_keys_json(policy->keys);
    if (keys == NULL) {
        pd_ask_refuse(ask, MCP_CODE_POLICY_UNAVAILABLE, "policyd is still making its keys", NULL, NULL);
        return;
    }
    memset(&caps, 0, sizeof(caps));
    if (server != NULL) {
        (void)apr_cpystrn(caps.server, server, sizeof(caps.server));
        caps.server_calls = mcp_json_int(ask->body, "server_calls", 0);
        caps.connection_calls = mcp_json_int(ask->body, "connection_calls", 0);
    }
    pd_running_child(policy->running, mcp_json_str(ask->body, "child"), &caps);
    if (resource != NULL &&
        (policy->first_resource == NULL || strcmp(policy->first_resource, resource) != 0)) {
        free(policy->first_resource); /* the newest hello knows best: httpd may have been reconfigured */
        policy->first_resource = strdup(resource);
    }
    pd_log(PD_LOG_INFO, 130, "child %s said hello: %s", mcp_json_str(ask->body, "child"),
           pd_log_quote(mcp_json_str(ask->body, "software"), software, sizeof(software)));
    pd_ask_reply(ask, json_pack("{s:i,s:s,s:o,s:i,s:o,s:s,s:s*,s:s*,s:s*}", "version",
                                max < (json_int_t)MCP_VERSION ? (int)max : (int)MCP_VERSION, "software",
                                "policyd/" PACKAGE_VERSION, "generation",
                                json_sprintf("%llu", (unsigned long long)ask->core->generation),
                                "beat_ms", MCP_BEAT_MS, "keys", keys, "control_prefix",
                                ask->core->config->control_prefix, "routes", pd_routes_table_digest(),
                                "openapi", pd_routes_openapi_digest(), "lexicon", pd_lexicon_digest()));
}
