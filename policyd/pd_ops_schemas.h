/* JSON Schemas of the operations' arguments, as text, for the rows of pd_ops.c alone. The
 * preprocessor quotes them: J() makes text of JSON as it stands. */
#ifndef PD_OPS_SCHEMAS_H
#define PD_OPS_SCHEMAS_H

/* clang-format off */

#define J(...) #__VA_ARGS__
/* An object with these required names and members, and no other. */
#define OBJECT(required, members)                                                                  \
    "{\"type\":\"object\",\"properties\":{" members "},\"required\":[" required "],"               \
    "\"additionalProperties\":false}"
/* The same, open: what else it may hold is judged by the handler. */
#define OPEN_OBJECT(required, members)                                                             \
    "{\"type\":\"object\",\"properties\":{" members "},\"required\":[" required "]}"

/* --- members of several schemas -------------------------------------------------- */

#define TEXT(name, max, what)                                                                      \
    "\"" name "\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":" max                         \
    ",\"description\":\"" what "\"}"
#define FLAG(name, what) "\"" name "\":{\"type\":\"boolean\",\"description\":\"" what "\"}"

#define MEMBER     TEXT("member", "254", "Id or email")
#define ROLE       TEXT("role", "64", "Name or id")
#define GRANT      TEXT("grant", "48", "Grant id")
#define CONNECTOR  TEXT("connector", "48", "Id or slug")
#define CONNECTION TEXT("connection", "48", "Id or label")
#define KEY        TEXT("key", "64", "For example collapse.threshold")
#define EMAIL      TEXT("email", "254", "How the member signs in")
#define QUERY(of)  TEXT("query", "128", "Part of " of)
#define CURSOR     TEXT("cursor", "64", "A page's next_cursor")
#define LABEL      TEXT("label", "32", "a-z, 0-9 and inner dashes")
#define ROLE_TEXT  J("description": {"type": "string", "maxLength": 512})

#define IF_REVISION                                                                                \
    J("if_revision": {"type": "integer", "minimum": 1,                                             \
                      "description": "Change only this revision"})
#define DRY_RUN                                                                                    \
    FLAG("dry_run", "Only tell who would gain or lose which tools")
#define PAGE                                                                                       \
    J("limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}) "," CURSOR
#define SMALL_PAGE                                                                                 \
    J("limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}) "," CURSOR
#define ROLES                                                                                      \
    J("roles": {"type": "array", "maxItems": 32, "uniqueItems": true,                              \
                "items": {"type": "string", "minLength": 1, "maxLength": 64},                      \
                "description": "Role names"})
#define PERMISSIONS                                                                                \
    J("permissions": {"type": "array", "maxItems": 256, "uniqueItems": true,                       \
                      "items": {"type": "string", "minLength": 1, "maxLength": 64},                \
                      "description": "For example member:read"})
#define TOOLBOX_ONLY FLAG("toolbox_only", "For toolboxes only")
#define VARIABLES                                                                                  \
    J("variables": {"type": "object", "maxProperties": 32,                                         \
                    "additionalProperties": {"type": "string", "maxLength": 512},                  \
                    "description": "For the base URL"})
#define CREDENTIAL                                                                                 \
    J("credential": {"type": "object", "maxProperties": 8,                                         \
                     "additionalProperties": {"type": "string", "maxLength": 16384},               \
                     "description": "As its auth asks: {value}, {username, password} or {token}"})
#define LAYER TEXT("client", "128", "For this client name only") ","                               \
              TEXT("grant", "48", "For this grant only")

#define CONNECTOR_FILE                                                                             \
    TEXT("slug", "32", "Short name, a-z 0-9 and inner dashes") ","                                 \
    TEXT("label", "128", "Name as people know it") ","                                             \
    TEXT("base_url", "2048", "May hold {variables}") ","                                           \
    J("description": {"type": "string"}, "variables": {"type": "object"},                          \
      "auth": {"type": "object",                                                                   \
               "description": "type none, api_key, basic or bearer, and its details"},             \
      "operations": {"type": "array", "maxItems": 5000,                                           \
                     "items": {"type": "object"},                                                  \
                     "description": "id, method, path, description, parameters, body"})
#define CONNECTOR_NEEDS J("slug", "label", "base_url", "auth", "operations")

/* --- one an operation ------------------------------------------------------------ */

#define SCHEMA_NOTHING OBJECT("", "")
#define SCHEMA_PAGE    OBJECT("", PAGE)

#define SCHEMA_MEMBERS_LIST                                                                        \
    OBJECT("", QUERY("email or name") "," ROLE ","                                                 \
           J("state": {"enum": ["active", "suspended", "removed"]}) "," PAGE)
#define SCHEMA_MEMBER OBJECT(J("member"), MEMBER)
#define SCHEMA_MEMBERS_CREATE                                                                      \
    OBJECT(J("email"), EMAIL "," TEXT("name", "128", "Display name") "," ROLES "," DRY_RUN)
#define SCHEMA_MEMBERS_UPDATE                                                                      \
    OBJECT(J("member"), MEMBER "," EMAIL "," TEXT("name", "128", "Display name") "," ROLES ","     \
           IF_REVISION "," DRY_RUN)
#define SCHEMA_MEMBER_CHANGE OBJECT(J("member"), MEMBER "," IF_REVISION "," DRY_RUN)
#define SCHEMA_MEMBERS_REMOVE                                                                      \
    OBJECT(J("member"), MEMBER "," IF_REVISION ","                                                 \
           FLAG("erase", "Forget email and name too, in the audit copy as well") "," DRY_RUN)

#define SCHEMA_ROLE OBJECT(J("role"), ROLE)
#define SCHEMA_ROLES_CREATE                                                                        \
    OBJECT(J("name", "permissions"),                                                               \
           TEXT("name", "64", "Name of the role") "," ROLE_TEXT "," PERMISSIONS "," DRY_RUN)
#define SCHEMA_ROLES_UPDATE                                                                        \
    OBJECT(J("role"), ROLE "," ROLE_TEXT "," PERMISSIONS "," IF_REVISION "," DRY_RUN)
#define SCHEMA_ROLES_DELETE OBJECT(J("role"), ROLE "," IF_REVISION "," DRY_RUN)

#define SCHEMA_GRANTS_LIST                                                                         \
    OBJECT("", MEMBER "," TEXT("client", "128", "Client name") ","                                 \
           J("state": {"enum": ["active", "expired", "revoked"]}) "," PAGE)
#define SCHEMA_GRANT OBJECT(J("grant"), GRANT)
#define SCHEMA_GRANTS_CREATE                                                                       \
    OBJECT(J("member", "client"), MEMBER "," TEXT("client", "128", "Who will use it") ","          \
           J("scopes": {"type": "array", "minItems": 1, "maxItems": 8, "uniqueItems": true,        \
                        "items": {"type": "string", "maxLength": 32},                              \
                        "description": "Of mcp:read, mcp:write, mcp:destructive, mcp:tools"}) ","  \
           TEXT("resource", "512", "URL of the endpoint it is for") ","                            \
           J("expires_in": {"type": ["integer", "string"], "minimum": 1, "minLength": 1,           \
                            "maxLength": 16, "description": "Seconds, or like 12h, 90d"}))
#define SCHEMA_GRANTS_REVOKE OBJECT(J("grant"), GRANT "," IF_REVISION)

#define SCHEMA_CONNECTORS_LIST OBJECT("", QUERY("slug, label or description") "," SMALL_PAGE)
#define SCHEMA_CONNECTOR OBJECT(J("connector"), CONNECTOR)
#define SCHEMA_CONNECTORS_CREATE OPEN_OBJECT(CONNECTOR_NEEDS, CONNECTOR_FILE "," DRY_RUN)
#define SCHEMA_CONNECTORS_UPDATE                                                                   \
    OPEN_OBJECT(J("connector") "," CONNECTOR_NEEDS,                                                \
                CONNECTOR "," IF_REVISION "," CONNECTOR_FILE "," DRY_RUN)
#define SCHEMA_CONNECTORS_DELETE OBJECT(J("connector"), CONNECTOR "," IF_REVISION "," DRY_RUN)

#define ACCEPTED(name)                                                                             \
    J(name: {"type": "array", "minItems": 1, "maxItems": 5000, "uniqueItems": true,                \
             "items": {"type": "string", "minLength": 1, "maxLength": 200},                        \
             "description": "Ids, @base_url or @auth"})
#define SCHEMA_CONNECTORS_IMPORT                                                                   \
    OBJECT(J("connectors"),                                                                        \
           J("connectors": {"type": "array", "minItems": 1, "maxItems": 16,                        \
                            "items": {"type": "object"}, "description": "Connector files"}) ","    \
           J("accept": {"anyOf": [{"const": "all"},                                                \
                                  {"type": "array", "minItems": 1, "maxItems": 5000,               \
                                   "items": {"type": "string", "minLength": 1,                     \
                                             "maxLength": 200}}],                                  \
                        "description": "Held changes to take at once: operation ids, @base_url, @auth or all"}) "," \
           J("source": {"type": "object", "maxProperties": 4, "additionalProperties": false,       \
                        "properties": {"title": {"type": "string", "maxLength": 200},              \
                                       "version": {"type": "string", "maxLength": 100},            \
                                       "sha256": {"type": "string", "maxLength": 64},              \
                                       "address": {"type": "string", "maxLength": 500}},           \
                        "description": "Of the description they were made of"}) "," DRY_RUN)
#define SCHEMA_CONNECTORS_ACCEPT                                                                   \
    OBJECT(J("connector"), CONNECTOR "," ACCEPTED("operations") "," IF_REVISION "," DRY_RUN)
#define SCHEMA_CONNECTORS_DISMISS OBJECT(J("connector"), CONNECTOR "," DRY_RUN)
#define SCHEMA_TOOLS_LINT OBJECT("", CONNECTOR "," SMALL_PAGE)

#define SCHEMA_CONNECTIONS_LIST                                                                    \
    OBJECT("", QUERY("label or connector slug") "," CONNECTOR ","                                  \
           TEXT("owner", "254", "Member id or email") ","                                          \
           FLAG("shared", "Only shared ones, or only owned ones") "," PAGE)
#define SCHEMA_CONNECTION OBJECT(J("connection"), CONNECTION)
#define SCHEMA_CONNECTIONS_CREATE                                                                  \
    OBJECT(J("connector", "label"), CONNECTOR "," LABEL ","                                        \
           TEXT("owner", "254", "Member id or email; default you") ","                        \
           FLAG("shared", "For the whole organisation") "," TOOLBOX_ONLY "," VARIABLES ","         \
           CREDENTIAL "," DRY_RUN)
#define SCHEMA_CONNECTIONS_UPDATE                                                                  \
    OBJECT(J("connection"), CONNECTION "," LABEL "," TOOLBOX_ONLY "," VARIABLES "," CREDENTIAL "," \
           IF_REVISION "," DRY_RUN)
#define SCHEMA_CONNECTIONS_DELETE OBJECT(J("connection"), CONNECTION "," IF_REVISION "," DRY_RUN)

#define SCHEMA_TOOLS_LIST                                                                          \
    OBJECT("", MEMBER "," QUERY("name or connector") ","                                           \
           TEXT("account", "48", "Account, toolbox or connector slug") "," PAGE)
#define SCHEMA_TOOLS_SEARCH                                                                        \
    OBJECT(J("query"),                                                                             \
           MEMBER ","                                                                              \
           J("query": {"type": "string", "maxLength": 65536,                                       \
                       "description": "Two to four keywords: product, verb, thing"}) ","           \
           TEXT("account", "48", "Account, toolbox or connector slug") ","                         \
           J("limit": {"type": "integer", "minimum": 1, "maximum": 20,                             \
                       "description": "Tools at most, 5 if not given"}) ","                        \
           FLAG("explain", "Adds scores by word and what the floor dropped"))
#define SCHEMA_TOOLS_GET                                                                           \
    OBJECT(J("names"),                                                                             \
           J("names": {"type": "array", "minItems": 1, "maxItems": 5, "uniqueItems": true,         \
                       "items": {"type": "string", "minLength": 1, "maxLength": 256},              \
                       "description": "One to five"}))

#define SCHEMA_FOOTPRINT OBJECT("", MEMBER "," TEXT("client", "128", "Client name"))

#define RECIPE TEXT("recipe", "64", "Id or name")
#define RECIPE_FIELDS                                                                              \
    J("name": {"type": "string", "minLength": 1, "maxLength": 64,                                  \
               "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",                                       \
               "description": "a-z, 0-9 and inner dashes"}) ","                                    \
    TEXT("title", "128", "One short line") ","                                                     \
    TEXT("description", "1024", "What it is for") ","                                              \
    J("arguments": {"type": "array", "maxItems": 64,                                               \
                    "items": {"type": "object", "required": ["name"],                              \
                              "additionalProperties": false,                                       \
                              "properties": {                                                      \
                                  "name": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},  \
                                  "description": {"type": "string", "maxLength": 512},             \
                                  "required": {"type": "boolean"}}},                               \
                    "description": "name, description, required"},                                 \
      "text": {"type": "string", "minLength": 1, "maxLength": 65536,                               \
               "description": "The prompt"}) "," ROLES
#define SCHEMA_RECIPES_LIST   OBJECT("", QUERY("name, title or description") "," PAGE)
#define SCHEMA_RECIPE         OBJECT(J("recipe"), RECIPE)
#define SCHEMA_RECIPES_CREATE OBJECT(J("name", "text"), RECIPE_FIELDS)
#define SCHEMA_RECIPES_UPDATE OBJECT(J("recipe"), RECIPE "," RECIPE_FIELDS "," IF_REVISION)
#define SCHEMA_RECIPES_DELETE OBJECT(J("recipe"), RECIPE "," IF_REVISION)
#define SCHEMA_RECIPES_RENDER                                                                      \
    OBJECT(J("recipe"), RECIPE ","                                                                 \
           J("arguments": {"type": "object", "maxProperties": 64,                                  \
                           "additionalProperties": {"type": "string", "maxLength": 65536},         \
                           "description": "Text by argument name"}))

#define RESTRICTION TEXT("restriction", "64", "Id or name")
#define EFFECT      J("effect": {"enum": ["allow", "block"]})
#define RULE_PIN                                                                                   \
    J({"type": "object", "required": ["connector", "operation"],                                   \
       "properties": {"connector": {"type": "string", "minLength": 1, "maxLength": 48},            \
                      "slug": {"type": "string", "maxLength": 48, "readOnly": true},               \
                      "operation": {"type": "string", "minLength": 1, "maxLength": 200}},          \
       "additionalProperties": false})
/* slug, label, missing: as get shows them, not read. */
#define RULE_ITEMS                                                                                 \
    "\"items\":{\"type\":\"array\",\"maxItems\":20000,\"description\":"                             \
    "\"Each a connector, with or without one operation, or a tool\",\"items\":{\"type\":\"object\","      \
    "\"properties\":{"                                                                             \
    J("connector": {"type": "string", "minLength": 1, "maxLength": 48},                            \
      "operation": {"type": "string", "minLength": 1, "maxLength": 200},                           \
      "tool": {"type": "string", "minLength": 1, "maxLength": 256,                                 \
               "description": "Name as advertised; in a block only"},                              \
      "slug": {"type": "string", "maxLength": 48, "readOnly": true},                               \
      "label": {"type": "string", "maxLength": 200, "readOnly": true},                             \
      "missing": {"type": "boolean", "readOnly": true}) ","                                        \
    "\"pins\":{\"type\":\"array\",\"maxItems\":20000,\"items\":" RULE_PIN "}},"                      \
    "\"additionalProperties\":false}}"
#define NULLABLE(name, max, what)                                                                  \
    "\"" name "\":{\"type\":[\"string\",\"null\"],\"minLength\":1,\"maxLength\":" max                \
    ",\"description\":\"" what "\"}"
#define SCHEMA_RESTRICTIONS_LIST OBJECT("", ROLE "," MEMBER "," EFFECT "," CONNECTOR "," PAGE)
#define SCHEMA_RESTRICTION       OBJECT(J("restriction"), RESTRICTION)
#define SCHEMA_RESTRICTIONS_CREATE                                                                 \
    OBJECT(J("effect", "target", "items"),                                                         \
           EFFECT ","                                                                              \
           "\"target\":{\"type\":\"object\",\"minProperties\":1,\"maxProperties\":1,\"properties\":{"    \
           ROLE "," MEMBER "},\"additionalProperties\":false,"                                     \
           "\"description\":\"A role or a member\"}," RULE_ITEMS ","                               \
           TEXT("name", "64", "Name of the restriction") "," TEXT("note", "512", "Why") ","        \
           DRY_RUN)
#define SCHEMA_RESTRICTIONS_UPDATE                                                                 \
    OBJECT(J("restriction"), RESTRICTION "," EFFECT "," RULE_ITEMS ","                             \
           NULLABLE("name", "64", "null takes it away") ","                                        \
           NULLABLE("note", "512", "null takes it away") "," IF_REVISION "," DRY_RUN)
#define SCHEMA_RESTRICTIONS_DELETE                                                                 \
    OBJECT(J("restriction"), RESTRICTION "," IF_REVISION "," DRY_RUN)
#define SCHEMA_RESTRICTIONS_EXPLAIN                                                                \
    OBJECT(J("member"), MEMBER "," TEXT("tool", "256", "Tool name as advertised") ","              \
           CONNECTOR "," TEXT("operation", "200", "With connector, instead of tool"))

#define TOOLBOX      TEXT("toolbox", "64", "Id or name")
#define TOOLBOX_NAME TEXT("name", "32", "Begins its tools' names: a-z, 0-9 and inner dashes")
#define TOOLBOX_MEMBERS                                                                            \
    J("members": {"type": "array", "maxItems": 10000, "uniqueItems": true,                         \
                  "items": {"type": "string", "minLength": 1, "maxLength": 254},                   \
                  "description": "Member ids or emails"})
/* tool, connector_slug, missing, operation_missing, withheld: as get shows them, not read. */
#define TOOLBOX_ENTRIES                                                                            \
    "\"entries\":{\"type\":\"array\",\"maxItems\":500,\"items\":{\"type\":\"object\","                 \
    "\"required\":[" J("connector", "operation", "connections") "],\"properties\":{"               \
    CONNECTOR "," TEXT("operation", "200", "Operation id") ","                                     \
    J("connections": {"type": "array", "minItems": 1, "maxItems": 64, "uniqueItems": true,         \
                      "items": {"type": "string", "minLength": 1, "maxLength": 48},                \
                      "description": "Labels of shared connections, or @own alone"}) ","           \
    TEXT("name", "64", "The tool is TOOLBOX__NAME; default the operation id") ","                 \
    TEXT("title", "128", "Title of the tool") ","                                                  \
    TEXT("description", "4096", "Replaces the operation's own") ","                                \
    J("defaults": {"type": "object", "maxProperties": 64,                                          \
                   "description": "Values unless the caller gives others"},                        \
      "frozen": {"type": "object", "maxProperties": 64,                                            \
                 "description": "Values that the caller neither sees nor changes"}) ","            \
    FLAG("always_visible", "Listed when other tools collapse") ","                                 \
    TEXT("entry", "48", "At an update: id of the entry that goes on") ","                         \
    J("tool": {"type": "string", "maxLength": 64, "readOnly": true},                               \
      "connector_slug": {"type": "string", "maxLength": 48, "readOnly": true},                     \
      "missing": {"type": "array", "maxItems": 64, "readOnly": true},                              \
      "operation_missing": {"type": "boolean", "readOnly": true},                                  \
      "withheld": {"type": "boolean", "readOnly": true})                                           \
    "},\"additionalProperties\":false}}"
#define SCHEMA_TOOLBOXES_LIST                                                                      \
    OBJECT("", QUERY("name or description") "," CONNECTOR "," ROLE "," MEMBER "," PAGE)
#define SCHEMA_TOOLBOX        OBJECT(J("toolbox"), TOOLBOX)
#define SCHEMA_TOOLBOXES_CREATE                                                                    \
    OBJECT(J("name", "entries"), TOOLBOX_NAME "," TEXT("description", "1024", "What it is for")    \
           "," ROLES "," TOOLBOX_MEMBERS "," TOOLBOX_ENTRIES "," DRY_RUN)
#define SCHEMA_TOOLBOXES_UPDATE                                                                    \
    OBJECT(J("toolbox"), TOOLBOX "," TOOLBOX_NAME ","                                              \
           NULLABLE("description", "1024", "null takes it away") "," ROLES "," TOOLBOX_MEMBERS "," \
           TOOLBOX_ENTRIES "," IF_REVISION "," DRY_RUN)
#define SCHEMA_TOOLBOXES_DELETE OBJECT(J("toolbox"), TOOLBOX "," IF_REVISION "," DRY_RUN)

#define SCHEMA_SETTING OBJECT(J("key"), KEY "," LAYER)
#define SCHEMA_SETTINGS_SET                                                                        \
    OBJECT(J("key", "value"), KEY ","                                                              \
           J("value": {"type": ["integer", "boolean", "string"], "maxLength": 512}) ","            \
           LAYER "," IF_REVISION)
#define SCHEMA_SETTINGS_UNSET OBJECT(J("key"), KEY "," LAYER "," IF_REVISION)

/* Names of the sections of a policy document are those of op_policy_sections.c; their items are judged by the schemas of the operations
 * that make them. */
#define POLICY_LIST(name)                                                                          \
    "\"" name "\":{\"type\":\"array\",\"maxItems\":20000,\"items\":{\"type\":\"object\"}}"
#define POLICY                                                                                     \
    "\"policy\":{\"type\":\"object\",\"required\":[\"version\"],\"additionalProperties\":false,"       \
    "\"description\":\"A policy document, as policy export shows it\","                             \
    "\"properties\":{\"version\":{\"const\":1}," POLICY_LIST("roles") ","                           \
    POLICY_LIST("connectors") "," POLICY_LIST("connections") "," POLICY_LIST("settings") ","       \
    POLICY_LIST("recipes") "," POLICY_LIST("toolboxes") "," POLICY_LIST("restrictions") "}}"
#define SCHEMA_POLICY_EXPORT                                                                       \
    OBJECT("", J("sections": {"type": "array", "minItems": 1, "uniqueItems": true,                 \
                              "items": {"enum": ["roles", "connectors", "connections", "settings", \
                                                 "recipes", "toolboxes", "restrictions"]},         \
                              "description": "Only these; all if not given"}))
#define SCHEMA_POLICY_APPLY                                                                        \
    OBJECT(J("policy"), POLICY ","                                                                 \
           FLAG("prune", "Delete what a section of the document does not list") ","                \
           TEXT("plan", "64", "Only if it still makes the changes of this dry run") "," DRY_RUN)

#define SCHEMA_AUDIT_LIST                                                                          \
    OBJECT("", MEMBER "," TEXT("tool", "256", "Tool or operation name as called") ","              \
           TEXT("connection", "48", "Label") ","                                                   \
           TEXT("operation", "256", "For example members__create") ","                             \
           J("outcome": {"enum": ["ok", "error", "denied", "input_required", "running",            \
                                  "interrupted"]},                                                 \
             "surface": {"enum": ["mcp", "rest", "admin", "oauth"]}) ","                           \
           TEXT("error_code", "64", "Of the closed list") "," GRANT ","                            \
           TEXT("since", "40", "Not before") "," TEXT("until", "40", "Not after") ","              \
           TEXT("after", "48", "Audit id") "," PAGE)
#define SCHEMA_AUDIT_GET OBJECT(J("audit"), TEXT("audit", "48", "Audit id"))

/* clang-format on */

#endif
