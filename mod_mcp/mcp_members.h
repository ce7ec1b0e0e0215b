/* Every member of the configuration, once: struct, unset value and merge rule come from these lists.
 * X(type, name, unset, directive).  A member is merged by "inner if set, else outer"; members that don't fit stand in
 * mcp_config.h with their own rule. Defaults live in the getters. */
#ifndef MCP_MEMBERS_H
#define MCP_MEMBERS_H

/* Of a server (virtual host): what the child's objects are made from. Read from the main server alone where marked. */
#define MCP_SERVER_MEMBERS(X)                                                       \
    X(apr_array_header_t *, policy_endpoints, NULL, "MCPPolicyEndpoint") /* main */ \
    X(mcp_link_keys_t *, policy_key, NULL, "MCPPolicyKey")               /* main */ \
    X(apr_interval_time_t, policy_timeout, -1, "MCPPolicyTimeout")       /* main */ \
    X(apr_array_header_t *, egress_allow, NULL, "MCPEgressAllow")                   \
    X(const char *, egress_ca, NULL, "MCPEgressCAFile")                  /* main */ \
    X(int, max_calls, -1, "MCPMaxCalls")                                 /* main */ \
    X(apr_int64_t, cache_bytes, -1, "MCPViewCache")                      /* main */

/* Of a location: one endpoint, or the REST API. */
#define MCP_DIR_MEMBERS(X)                                              \
    X(int, is_endpoint, -1, "MCPEndpoint")                              \
    X(const char *, path, NULL, "MCPEndpoint")                          \
    X(int, is_api, -1, "MCPApi")                                        \
    X(const char *, api_path, NULL, "MCPApi")                           \
    X(const char *, resource, NULL, "MCPResource")                      \
    X(apr_array_header_t *, issuers, NULL, "MCPIssuer")                 \
    X(apr_array_header_t *, origins, NULL, "MCPAllowOrigin")            \
    X(apr_int64_t, max_body, -1, "MCPMaxBody")                          \
    X(apr_int64_t, max_result, -1, "MCPMaxResult")                      \
    X(apr_interval_time_t, call_timeout, -1, "MCPCallTimeout")          \
    X(int, list_page, -1, "MCPListPage")                                \
    X(const char *, control_prefix, NULL, "MCPControlPrefix")           \
    X(apr_interval_time_t, session_lifetime, -1, "MCPSessionLifetime")  \
    X(int, serves_legacy, -1, "MCPLegacy")

#endif
