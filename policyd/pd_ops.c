/* The registry: one row per control-plane operation, and what is derived from the rows (names,
 * compiled schemas, the description for policyctl and the reference). */
#include "pd_ops.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "../proto/mcp_schema.h"
#include "op_audit.h"
#include "op_connections.h"
#include "op_connectors.h"
#include "op_footprint.h"
#include "op_grants.h"
#include "op_import.h"
#include "op_lint.h"
#include "op_members.h"
#include "op_policy.h"
#include "op_recipes.h"
#include "op_restrictions.h"
#include "op_roles.h"
#include "op_search.h"
#include "op_settings.h"
#include "op_toolboxes.h"
#include "op_tools.h"
#include "op_whoami.h"
#include "pd_ops_schemas.h"
#include "pd_roles.h"

#define MAX_ROWS 128
#define MAX_NAME 64
/* Of a connector file; over the link MCP_MAX_BODY_BYTES comes first. */
#define CATALOG_BYTES (16u * 1024 * 1024)
#define SMALL_BYTES (64u * 1024)
#define RULE_BYTES (4u * 1024 * 1024)
#define RECIPE_BYTES (512u * 1024)

/* --- the rows -------------------------------------------------------------------- */

/* clang-format off */
static const pd_op_t rows[] = {
    /* whoami */
    {.resource = "whoami", .verb = "get", .title = "Who am I",
     .description = "Who you are; your roles, permissions, grant and scopes.",
     .permission = NULL, .klass = MCP_CLASS_READ, .lane = PD_LANE_LOOP,
     .rest_method = "GET", .rest_path = "/whoami", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_NOTHING, .handler = pd_op_whoami_get},

    /* members */
    {.resource = "members", .verb = "list", .title = "List members",
     .description = "Members with their roles and state; removed ones only with state `removed`.",
     .permission = "member:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/members", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_MEMBERS_LIST, .handler = pd_op_members_list},
    {.resource = "members", .verb = "get", .title = "Show a member",
     .description = "One member.",
     .permission = "member:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_LOOP,
     .rest_method = "GET", .rest_path = "/members/{member}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_MEMBER, .handler = pd_op_members_get},
    {.resource = "members", .verb = "create", .title = "Add a member",
     .description = "Adds a member; roles default to Member. You can give only what you hold "
                    "yourself.",
     .permission = "member:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE, .is_policy = 1,
     .rest_method = "POST", .rest_path = "/members", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_MEMBERS_CREATE, .handler = pd_op_members_create,
     .after = pd_op_members_after},
    {.resource = "members", .verb = "update", .title = "Change a member",
     .description = "Changes email, name or roles. The last active Owner stays one.",
     .permission = "member:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE, .is_policy = 1,
     .rest_method = "PATCH", .rest_path = "/members/{member}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_MEMBERS_UPDATE, .handler = pd_op_members_update,
     .after = pd_op_members_after},
    {.resource = "members", .verb = "suspend", .title = "Suspend a member",
     .description = "Denies the member's grants from the next call on, until reinstated.",
     .permission = "member:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE, .is_policy = 1,
     .rest_method = "POST", .rest_path = "/members/{member}/suspend", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_MEMBER_CHANGE, .handler = pd_op_members_suspend},
    {.resource = "members", .verb = "reinstate", .title = "Reinstate a member",
     .description = "Ends a suspension.",
     .permission = "member:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE, .is_policy = 1,
     .rest_method = "POST", .rest_path = "/members/{member}/reinstate", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_MEMBER_CHANGE, .handler = pd_op_members_reinstate},
    {.resource = "members", .verb = "remove", .title = "Remove a member",
     .description = "Ends the member for good and deletes their own connections. A returning "
                    "email is a new member.",
     .permission = "member:write", .klass = MCP_CLASS_DESTRUCTIVE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "DELETE", .rest_path = "/members/{member}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_MEMBERS_REMOVE, .handler = pd_op_members_remove,
     .after = pd_op_members_after},

    /* roles */
    {.resource = "roles", .verb = "list", .title = "List roles",
     .description = "Built-in and custom roles with their permissions.",
     .permission = "role:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/roles", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_PAGE, .handler = pd_op_roles_list},
    {.resource = "roles", .verb = "get", .title = "Show a role",
     .description = "One role; Owner lists all permissions that exist.",
     .permission = "role:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_LOOP,
     .rest_method = "GET", .rest_path = "/roles/{role}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_ROLE, .handler = pd_op_roles_get},
    {.resource = "roles", .verb = "create", .title = "Add a role",
     .description = "Adds a custom role. You can give only permissions you hold yourself.",
     .permission = "role:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE, .is_policy = 1,
     .rest_method = "POST", .rest_path = "/roles", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_ROLES_CREATE, .handler = pd_op_roles_create},
    {.resource = "roles", .verb = "update", .title = "Change a role",
     .description = "Replaces permissions or description of a custom role.",
     .permission = "role:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE, .is_policy = 1,
     .rest_method = "PATCH", .rest_path = "/roles/{role}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_ROLES_UPDATE, .handler = pd_op_roles_update},
    {.resource = "roles", .verb = "delete", .title = "Delete a role",
     .description = "Deletes a custom role that no member holds.",
     .permission = "role:write", .klass = MCP_CLASS_DESTRUCTIVE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "DELETE", .rest_path = "/roles/{role}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_ROLES_DELETE, .handler = pd_op_roles_delete},

    /* grants */
    {.resource = "grants", .verb = "list", .title = "List grants",
     .description = "Your grants; everybody's with grant:read_all.",
     .permission = "grant:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/grants", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_GRANTS_LIST, .handler = pd_op_grants_list},
    {.resource = "grants", .verb = "get", .title = "Show a grant",
     .description = "One grant; never its token.",
     .permission = "grant:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_LOOP,
     .rest_method = "GET", .rest_path = "/grants/{grant}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_GRANT, .handler = pd_op_grants_get},
    {.resource = "grants", .verb = "create", .title = "Create a grant",
     .description = "Makes a token for a member and shows it this once. Scopes default to "
                    "mcp:read and mcp:tools, the life to 90 days, the resource to the setting "
                    "endpoint.resource.",
     .permission = "grant:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .secret = PD_SECRET_ALWAYS,
     .rest_method = "POST", .rest_path = "/grants", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_GRANTS_CREATE, .handler = pd_op_grants_create},
    {.resource = "grants", .verb = "revoke", .title = "Revoke a grant",
     .description = "Ends a grant: its token is refused from the next call on.",
     .permission = "grant:write", .klass = MCP_CLASS_DESTRUCTIVE, .lane = PD_LANE_WRITE,
     .rest_method = "DELETE", .rest_path = "/grants/{grant}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_GRANTS_REVOKE, .handler = pd_op_grants_revoke},

    /* connectors */
    {.resource = "connectors", .verb = "list", .title = "List connectors",
     .description = "Applications that can be connected.",
     .permission = "connector:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/connectors", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_CONNECTORS_LIST, .handler = pd_op_connectors_list},
    {.resource = "connectors", .verb = "get", .title = "Show a connector",
     .description = "One connector; with its operations.",
     .permission = "connector:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/connectors/{connector}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_CONNECTOR, .handler = pd_op_connectors_get},
    {.resource = "connectors", .verb = "create", .title = "Add a connector",
     .description = "Adds an application to the catalog from a connector file.",
     .permission = "connector:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "POST", .rest_path = "/connectors", .max_bytes = CATALOG_BYTES,
     .schema = SCHEMA_CONNECTORS_CREATE, .handler = pd_op_connectors_create},
    {.resource = "connectors", .verb = "update", .title = "Replace a connector",
     .description = "Replaces a connector by a new file; the slug stays. Another origin or auth "
                    "drops the credentials of its connections.",
     .permission = "connector:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "PUT", .rest_path = "/connectors/{connector}", .max_bytes = CATALOG_BYTES,
     .schema = SCHEMA_CONNECTORS_UPDATE, .handler = pd_op_connectors_update},
    {.resource = "connectors", .verb = "delete", .title = "Delete a connector",
     .description = "Deletes a connector that no connection uses.",
     .permission = "connector:write", .klass = MCP_CLASS_DESTRUCTIVE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "DELETE", .rest_path = "/connectors/{connector}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_CONNECTORS_DELETE, .handler = pd_op_connectors_delete},
    {.resource = "connectors", .verb = "import", .title = "Import connectors",
     .description = "Adds connector files or compares them with what is there. What widens or destroys "
                    "is held back until accepted.",
     .permission = "connector:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "POST", .rest_path = "/connectors/import", .max_bytes = CATALOG_BYTES,
     .schema = SCHEMA_CONNECTORS_IMPORT, .handler = pd_op_connectors_import},
    {.resource = "connectors", .verb = "review", .title = "Show what an import holds back",
     .description = "What the last import changes, and what of it waits to be accepted.",
     .permission = "connector:write", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/connectors/{connector}/pending", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_CONNECTOR, .handler = pd_op_connectors_review},
    {.resource = "connectors", .verb = "accept", .title = "Accept what is held back",
     .description = "Puts into force what connectors review shows as held, all of it or some.",
     .permission = "connector:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "POST", .rest_path = "/connectors/{connector}/pending/accept",
     .max_bytes = SMALL_BYTES, .schema = SCHEMA_CONNECTORS_ACCEPT,
     .handler = pd_op_connectors_accept},
    {.resource = "connectors", .verb = "dismiss", .title = "Dismiss what is held back",
     .description = "Forgets what an import holds back; what is in force stays.",
     .permission = "connector:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "DELETE", .rest_path = "/connectors/{connector}/pending",
     .max_bytes = SMALL_BYTES, .schema = SCHEMA_CONNECTORS_DISMISS,
     .handler = pd_op_connectors_dismiss},

    /* connections */
    {.resource = "connections", .verb = "list", .title = "List connections",
     .description = "Your own and shared connections; all with connection:read_all.",
     .permission = "connection:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/connections", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_CONNECTIONS_LIST, .handler = pd_op_connections_list},
    {.resource = "connections", .verb = "get", .title = "Show a connection",
     .description = "One connection; never its credential.",
     .permission = "connection:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_LOOP,
     .rest_method = "GET", .rest_path = "/connections/{connection}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_CONNECTION, .handler = pd_op_connections_get},
    {.resource = "connections", .verb = "create", .title = "Add a connection",
     .description = "Connects an account; its label begins its tools' names. Shared or another's "
                    "takes connection:admin.",
     .permission = "connection:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .secret = PD_SECRET_WITH_CREDENTIAL,
     .rest_method = "POST", .rest_path = "/connections", .max_bytes = 256u * 1024,
     .schema = SCHEMA_CONNECTIONS_CREATE, .handler = pd_op_connections_create},
    {.resource = "connections", .verb = "update", .title = "Change a connection",
     .description = "Changes label, variables or credential. Another origin drops the credential "
                    "if none is given.",
     .permission = "connection:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .secret = PD_SECRET_WITH_CREDENTIAL,
     .rest_method = "PATCH", .rest_path = "/connections/{connection}", .max_bytes = 256u * 1024,
     .schema = SCHEMA_CONNECTIONS_UPDATE, .handler = pd_op_connections_update},
    {.resource = "connections", .verb = "delete", .title = "Delete a connection",
     .description = "Deletes a connection; its credential too.",
     .permission = "connection:write", .klass = MCP_CLASS_DESTRUCTIVE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "DELETE", .rest_path = "/connections/{connection}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_CONNECTIONS_DELETE, .handler = pd_op_connections_delete},

    /* tools */
    {.resource = "tools", .verb = "list", .title = "List tools",
     .description = "Your connected tools; or those that a member can have.",
     .permission = "tool:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/tools", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_TOOLS_LIST, .handler = pd_op_tools_list},
    {.resource = "tools", .verb = "search", .title = "Search tools",
     .description = "What search_tools finds for you or a member; explain adds why.",
     .permission = "search:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/tools/search", .max_bytes = 128u * 1024,
     .schema = SCHEMA_TOOLS_SEARCH, .handler = pd_op_tools_search},
    {.resource = "tools", .verb = "lint", .title = "Check tool descriptions",
     .description = "What a model would stumble over in the catalog: descriptions, names, types.",
     .permission = "connector:write", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/tools/lint", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_TOOLS_LINT, .handler = pd_op_tools_lint},
    {.resource = "tools", .verb = "get", .title = "Show tools",
     .description = "Complete definitions by name; of tools and operations.",
     .permission = "tool:execute", .klass = MCP_CLASS_READ, .lane = PD_LANE_LOOP,
     .rest_method = "GET", .rest_path = "/tools/definitions", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_TOOLS_GET, .handler = pd_op_tools_get},

    /* footprint */
    {.resource = "footprint", .verb = "get", .title = "Weigh the tool list",
     .description = "Size of a tool list in a prompt; yours, or a member's.",
     .permission = "footprint:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/footprint", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_FOOTPRINT, .handler = pd_op_footprint_get},

    /* recipes */
    {.resource = "recipes", .verb = "list", .title = "List recipes",
     .description = "Prompts that your organisation wrote; those for your roles.",
     .permission = "recipe:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/recipes", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_RECIPES_LIST, .handler = pd_op_recipes_list},
    {.resource = "recipes", .verb = "get", .title = "Show a recipe",
     .description = "One recipe; with its text.",
     .permission = "recipe:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_LOOP,
     .rest_method = "GET", .rest_path = "/recipes/{recipe}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_RECIPE, .handler = pd_op_recipes_get},
    {.resource = "recipes", .verb = "render", .title = "Fill in a recipe",
     .description = "A recipe's text; its arguments are filled in.",
     .permission = "recipe:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "POST", .rest_path = "/recipes/{recipe}/render", .max_bytes = RECIPE_BYTES,
     .schema = SCHEMA_RECIPES_RENDER, .handler = pd_op_recipes_render},
    {.resource = "recipes", .verb = "create", .title = "Add a recipe",
     .description = "Adds a prompt for people of some roles, or for all. {{name}} in its text stands "
                    "for an argument.",
     .permission = "recipe:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .rest_method = "POST", .rest_path = "/recipes", .max_bytes = RECIPE_BYTES,
     .schema = SCHEMA_RECIPES_CREATE, .handler = pd_op_recipes_create},
    {.resource = "recipes", .verb = "update", .title = "Change a recipe",
     .description = "Replaces what is given; an empty list takes arguments or roles away.",
     .permission = "recipe:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .rest_method = "PATCH", .rest_path = "/recipes/{recipe}", .max_bytes = RECIPE_BYTES,
     .schema = SCHEMA_RECIPES_UPDATE, .handler = pd_op_recipes_update},
    {.resource = "recipes", .verb = "delete", .title = "Delete a recipe",
     .description = "Deletes a recipe.",
     .permission = "recipe:write", .klass = MCP_CLASS_DESTRUCTIVE, .lane = PD_LANE_WRITE,
     .rest_method = "DELETE", .rest_path = "/recipes/{recipe}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_RECIPES_DELETE, .handler = pd_op_recipes_delete},

    /* restrictions */
    {.resource = "restrictions", .verb = "list", .title = "List restrictions",
     .description = "Rules that allow or block connectors and operations for roles and members; at "
                    "most 50 items of each.",
     .permission = "restriction:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/restrictions", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_RESTRICTIONS_LIST, .handler = pd_op_restrictions_list},
    {.resource = "restrictions", .verb = "get", .title = "Show a restriction",
     .description = "One rule with all its items; `empty` when nothing that it names exists.",
     .permission = "restriction:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/restrictions/{restriction}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_RESTRICTION, .handler = pd_op_restrictions_get},
    {.resource = "restrictions", .verb = "create", .title = "Add a restriction",
     .description = "Allows or blocks for a role or a member. Any allow rule denies what no allow "
                    "names; blocks beat allows; a member's own rules replace those of the roles.",
     .permission = "restriction:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "POST", .rest_path = "/restrictions", .max_bytes = RULE_BYTES,
     .schema = SCHEMA_RESTRICTIONS_CREATE, .handler = pd_op_restrictions_create},
    {.resource = "restrictions", .verb = "update", .title = "Change a restriction",
     .description = "Replaces effect, items, name or note; whom it is for stays.",
     .permission = "restriction:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "PATCH", .rest_path = "/restrictions/{restriction}", .max_bytes = RULE_BYTES,
     .schema = SCHEMA_RESTRICTIONS_UPDATE, .handler = pd_op_restrictions_update},
    {.resource = "restrictions", .verb = "delete", .title = "Delete a restriction",
     .description = "Deletes a rule. The last allow rule of its target ends the allowlist.",
     .permission = "restriction:write", .klass = MCP_CLASS_DESTRUCTIVE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "DELETE", .rest_path = "/restrictions/{restriction}",
     .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_RESTRICTIONS_DELETE, .handler = pd_op_restrictions_delete},
    {.resource = "restrictions", .verb = "explain", .title = "Explain who can have a tool",
     .description = "Whether a member can have a tool, which rule decided, and what browse, "
                    "connect, advertise, execute and the URL check say.",
     .permission = "restriction:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/restrictions/explain", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_RESTRICTIONS_EXPLAIN, .handler = pd_op_restrictions_explain},

    /* toolboxes */
    {.resource = "toolboxes", .verb = "list", .title = "List toolboxes",
     .description = "Your toolboxes; all with toolbox:read_all.",
     .permission = "toolbox:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/toolboxes", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_TOOLBOXES_LIST, .handler = pd_op_toolboxes_list},
    {.resource = "toolboxes", .verb = "get", .title = "Show a toolbox",
     .description = "One toolbox; its entries, and their frozen values if you may change it.",
     .permission = "toolbox:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/toolboxes/{toolbox}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_TOOLBOX, .handler = pd_op_toolboxes_get},
    {.resource = "toolboxes", .verb = "create", .title = "Add a toolbox",
     .description = "Gives roles and members tools under names of their own, over shared "
                    "connections or the caller's own, with defaults and frozen values.",
     .permission = "toolbox:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "POST", .rest_path = "/toolboxes", .max_bytes = RULE_BYTES,
     .schema = SCHEMA_TOOLBOXES_CREATE, .handler = pd_op_toolboxes_create},
    {.resource = "toolboxes", .verb = "update", .title = "Change a toolbox",
     .description = "Replaces what is given; `entries` is the whole list, an entry with its id or "
                    "name goes on.",
     .permission = "toolbox:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "PATCH", .rest_path = "/toolboxes/{toolbox}", .max_bytes = RULE_BYTES,
     .schema = SCHEMA_TOOLBOXES_UPDATE, .handler = pd_op_toolboxes_update},
    {.resource = "toolboxes", .verb = "delete", .title = "Delete a toolbox",
     .description = "Deletes a toolbox and its tools.",
     .permission = "toolbox:write", .klass = MCP_CLASS_DESTRUCTIVE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "DELETE", .rest_path = "/toolboxes/{toolbox}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_TOOLBOXES_DELETE, .handler = pd_op_toolboxes_delete},

    /* settings */
    {.resource = "settings", .verb = "list", .title = "List settings",
     .description = "Every setting with its value, then the values set for clients and grants.",
     .permission = "setting:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/settings", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_PAGE, .handler = pd_op_settings_list},
    {.resource = "settings", .verb = "get", .title = "Show a setting",
     .description = "The value that holds, and where it is from.",
     .permission = "setting:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_LOOP,
     .rest_method = "GET", .rest_path = "/settings/{key}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_SETTING, .handler = pd_op_settings_get},
    {.resource = "settings", .verb = "set", .title = "Set a setting",
     .description = "Sets a value for the organisation, a client name or a grant; the narrower "
                    "wins.",
     .permission = "setting:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .rest_method = "PUT", .rest_path = "/settings/{key}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_SETTINGS_SET, .handler = pd_op_settings_set},
    {.resource = "settings", .verb = "unset", .title = "Unset a setting",
     .description = "Takes a value back: the wider one, or the default, holds again.",
     .permission = "setting:write", .klass = MCP_CLASS_WRITE, .lane = PD_LANE_WRITE,
     .rest_method = "DELETE", .rest_path = "/settings/{key}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_SETTINGS_UNSET, .handler = pd_op_settings_unset},

    /* policy */
    {.resource = "policy", .verb = "export", .title = "Export the policy",
     .description = "Roles, connectors, shared connections, settings, recipes, toolboxes and "
                    "restrictions as one document that policy apply takes. Each section needs the "
                    "permission to read all of it. No members, grants and credentials.",
     .permission = "policy:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB, .needs_tx = 1,
     .rest_method = "GET", .rest_path = "/policy", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_POLICY_EXPORT, .handler = pd_op_policy_export},
    {.resource = "policy", .verb = "apply", .title = "Apply a policy document",
     .description = "Makes the sections of the document be what it says, all or nothing; with prune "
                    "what they don't list is deleted. Each change needs its own operation's "
                    "permission. Applying again changes nothing.",
     .permission = "policy:write", .klass = MCP_CLASS_DESTRUCTIVE, .lane = PD_LANE_WRITE,
     .is_policy = 1,
     .rest_method = "POST", .rest_path = "/policy/apply", .max_bytes = CATALOG_BYTES,
     .schema = SCHEMA_POLICY_APPLY, .handler = pd_op_policy_apply},

    /* audit */
    {.resource = "audit", .verb = "list", .title = "Query the audit trail",
     .description = "Attempts, newest first. since and until take RFC 3339 or a span like 1h. "
                    "`after`, an audit id, gives what came later, oldest first.",
     .permission = "audit:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB,
     .rest_method = "GET", .rest_path = "/audit", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_AUDIT_LIST, .handler = pd_op_audit_list},
    {.resource = "audit", .verb = "get", .title = "Show an attempt",
     .description = "One row of the audit trail.",
     .permission = "audit:read", .klass = MCP_CLASS_READ, .lane = PD_LANE_JOB,
     .rest_method = "GET", .rest_path = "/audit/{audit}", .max_bytes = SMALL_BYTES,
     .schema = SCHEMA_AUDIT_GET, .handler = pd_op_audit_get},
};
/* clang-format on */

#define ROWS (sizeof(rows) / sizeof(rows[0]))

_Static_assert(sizeof(rows) / sizeof(rows[0]) <= MAX_ROWS, "raise MAX_ROWS");

/* Made by pd_ops_init before threads, read only afterwards. */
static mcp_schema_t *compiled[MAX_ROWS];
static json_t *parsed[MAX_ROWS];

/* --- reading --------------------------------------------------------------------- */

const pd_op_t *pd_ops_row(int i)
{
    return i >= 0 && (size_t)i < ROWS ? &rows[i] : NULL;
}

void pd_ops_name(const pd_op_t *op, char *buf)
{
    apr_snprintf(buf, MAX_NAME, "%s__%s", op->resource, op->verb);
}

const pd_op_t *pd_ops_find(const char *name)
{
    char own[MAX_NAME];
    size_t i;

    for (i = 0; name != NULL && i < ROWS; i++) {
        pd_ops_name(&rows[i], own);
        if (strcmp(own, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Index of a row of the table; ROWS for a row that is not ours. */
static size_t index_of(const pd_op_t *op)
{
    size_t i;

    for (i = 0; i < ROWS && &rows[i] != op; i++) {
    }
    return i;
}

int pd_ops_knows(const pd_op_t *op, const char *name)
{
    size_t i = index_of(op);

    return i < ROWS && json_object_get(json_object_get(parsed[i], "properties"), name) != NULL;
}

pd_status_t pd_ops_check(const pd_op_t *op, const json_t *args, pd_fault_t *fault)
{
    size_t i = index_of(op);
    mcp_schema_error_t err;
    mcp_wire_status_t status;

    if (i >= ROWS || compiled[i] == NULL) {
        return pd_fault(fault, MCP_CODE_INTERNAL, NULL, "The operation's schema is not there.");
    }
    memset(&err, 0, sizeof(err));
    status = mcp_schema_validate(compiled[i], args, &err);
    if (status == MCP_OK) {
        return PD_OK;
    }
    if (status == MCP_E_SIZE) {
        return pd_fault(fault, MCP_CODE_INVALID_REQUEST, "Send fewer or simpler arguments.",
                        "The arguments can't be checked within the limits.");
    }
    return pd_fault(fault, MCP_CODE_INVALID_REQUEST, NULL, "%s%s%s (%s).",
                    err.path[0] != '\0' ? err.path : "Arguments", ": ", err.message, err.rule);
}

/* --- soundness ------------------------------------------------------------------- */

static const char *lane_text(pd_lane_t lane)
{
    switch (lane) {
    case PD_LANE_LOOP:
        return "loop";
    case PD_LANE_WRITE:
        return "write";
    case PD_LANE_JOB:
        return "job";
    }
    return "unknown";
}

static const char *secret_text(pd_secret_t secret)
{
    switch (secret) {
    case PD_SECRET_NO:
        return "no";
    case PD_SECRET_ALWAYS:
        return "always";
    case PD_SECRET_WITH_CREDENTIAL:
        return "with_credential";
    }
    return "unknown";
}

static int is_word(const char *text)
{
    return text != NULL && text[0] != '\0' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz_") == strlen(text);
}

/* "resource:verb". */
static int is_permission(const char *text)
{
    const char *colon = strchr(text, ':');

    return colon != NULL && colon != text && colon[1] != '\0' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz_:") == strlen(text) &&
           strchr(colon + 1, ':') == NULL;
}

/* Every {word} of the path is an argument. */
static int path_is_sound(const char *path, const json_t *properties, apr_pool_t *pool)
{
    const char *open = strchr(path, '{');

    while (open != NULL) {
        const char *close = strchr(open, '}');

        if (close == NULL ||
            json_object_get(properties, apr_pstrmemdup(pool, open + 1,
                                                       (apr_size_t)(close - open - 1))) == NULL) {
            return 0;
        }
        open = strchr(close, '{');
    }
    return path[0] == '/';
}

/* What is wrong with a row, or NULL. `seen` holds names and REST doors of the rows before. */
static const char *judge_row(const pd_op_t *op, const json_t *schema, apr_hash_t *seen,
                             apr_pool_t *pool)
{
    const char *door;
    const char *name;

    if (!is_word(op->resource) || !is_word(op->verb) ||
        strlen(op->resource) + strlen(op->verb) + 2 >= MAX_NAME) {
        return "its name has no form";
    }
    if (op->title == NULL || op->description == NULL || op->handler == NULL ||
        op->rest_method == NULL || op->rest_path == NULL) {
        return "a member is not set";
    }
    if (op->permission != NULL &&
        (!is_permission(op->permission) || !pd_roles_is_permission(op->permission))) {
        return "its permission has no form or there are too many";
    }
    if (op->klass != MCP_CLASS_READ && op->klass != MCP_CLASS_WRITE &&
        op->klass != MCP_CLASS_DESTRUCTIVE) {
        return "its class is none of read, write, destructive";
    }
    if ((op->klass == MCP_CLASS_READ) == (op->lane == PD_LANE_WRITE) ||
        (op->after != NULL && op->lane != PD_LANE_WRITE)) {
        return "its class and its lane contradict each other";
    }
    if ((op->is_policy && op->lane != PD_LANE_WRITE) ||
        (op->is_policy != 0) !=
            (json_object_get(json_object_get(schema, "properties"), "dry_run") != NULL)) {
        return "dry_run is for writes of policy, and for all of them";
    }
    if (!path_is_sound(op->rest_path, json_object_get(schema, "properties"), pool)) {
        return "its REST path names what is no argument";
    }
    name = apr_pstrcat(pool, op->resource, "__", op->verb, (char *)NULL);
    door = apr_pstrcat(pool, op->rest_method, " ", op->rest_path, (char *)NULL);
    if (apr_hash_get(seen, name, APR_HASH_KEY_STRING) != NULL ||
        apr_hash_get(seen, door, APR_HASH_KEY_STRING) != NULL) {
        return "its name or its REST door is taken";
    }
    apr_hash_set(seen, name, APR_HASH_KEY_STRING, op);
    apr_hash_set(seen, door, APR_HASH_KEY_STRING, op);
    return NULL;
}

static apr_status_t forget(void *unused)
{
    size_t i;

    (void)unused;
    for (i = 0; i < ROWS; i++) {
        json_decref(parsed[i]);
        parsed[i] = NULL;
        compiled[i] = NULL; /* freed with the pool */
    }
    return APR_SUCCESS;
}

static const char *make_row(size_t i, apr_hash_t *seen, apr_pool_t *pool)
{
    const pd_op_t *op = &rows[i];
    mcp_schema_error_t err;
    const char *wrong;

    if (op->schema == NULL ||
        mcp_json_parse(op->schema, strlen(op->schema), MCP_MAX_DEPTH, &parsed[i], NULL) != MCP_OK) {
        return "its schema is not JSON";
    }
    wrong = judge_row(op, parsed[i], seen, pool);
    if (wrong != NULL) {
        return wrong;
    }
    memset(&err, 0, sizeof(err));
    if (mcp_schema_compile(parsed[i], pool, &compiled[i], &err) != MCP_OK) {
        return apr_psprintf(pool, "its schema is refused: %s", err.message);
    }
    return NULL;
}

pd_status_t pd_ops_init(apr_pool_t *pool, char *why, size_t size)
{
    apr_hash_t *seen = apr_hash_make(pool);
    size_t i;

    (void)forget(NULL); /* a second init replaces the first */
    apr_pool_cleanup_register(pool, NULL, forget, apr_pool_cleanup_null);
    for (i = 0; i < ROWS; i++) {
        const char *wrong = make_row(i, seen, pool);

        if (wrong != NULL) {
            apr_snprintf(why, size, "the operation %s__%s is not sound: %s",
                         rows[i].resource != NULL ? rows[i].resource : "?",
                         rows[i].verb != NULL ? rows[i].verb : "?", wrong);
            return PD_E_INVALID;
        }
    }
    return PD_OK;
}

/* --- description ----------------------------------------------------------------- */

static json_t *describe(size_t i)
{
    const pd_op_t *op = &rows[i];
    char name[MAX_NAME];
    json_t *schema = parsed[i] != NULL ? json_deep_copy(parsed[i])
                                       : json_loads(op->schema, JSON_REJECT_DUPLICATES, NULL);

    pd_ops_name(op, name);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s?, s:s, s:s, s:s, s:{s:s, s:s}, s:I, s:o}", "name", name,
        "resource", op->resource, "verb", op->verb, "title", op->title, "description",
        op->description, "permission", op->permission, "classification", mcp_class_text(op->klass),
        "lane", lane_text(op->lane), "secret", secret_text(op->secret), "rest", "method",
        op->rest_method, "path", op->rest_path, "max_bytes",
        (json_int_t)(op->max_bytes != 0 ? op->max_bytes : 1024u * 1024), "schema", schema);
}

json_t *pd_ops_describe(void)
{
    json_t *all = json_array();
    size_t i;

    for (i = 0; all != NULL && i < ROWS; i++) {
        if (json_array_append_new(all, describe(i)) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}
