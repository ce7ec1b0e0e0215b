/* Whether a caller's connected tools are listed one by one or found by search: the decision, from numbers alone.  Compiled by both
 * programs. Pure. */
#ifndef MCP_VIEW_COLLAPSE_H
#define MCP_VIEW_COLLAPSE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "mcp_proto.h"

#define MCP_COLLAPSE_THRESHOLD 30
#define MCP_COLLAPSE_CONTEXT   200000

typedef enum mcp_collapse_mode { MCP_COLLAPSE_AUTO = 0, MCP_COLLAPSE_ALWAYS, MCP_COLLAPSE_NEVER } mcp_collapse_mode_t;

/* The settings as they hold for one caller: of his grant, else of his client's name, else of the organisation. */
typedef struct mcp_collapse_rule {
    mcp_collapse_mode_t mode;
    int64_t threshold;      /* collapse above it */
    int64_t budget_tokens;  /* 0: off */
    int64_t budget_percent; /* of context_tokens; 0: off */
    int64_t context_tokens;
} mcp_collapse_rule_t;

/* What a caller sees; withheld tools are in none of it. */
typedef struct mcp_collapse_counts {
    int64_t control;    /* operations of the control plane */
    int64_t connected;  /* connected tools, the pinned ones among them */
    int64_t pinned;     /* always visible */
    int64_t characters; /* of all their definitions, serialised as they are listed flat */
} mcp_collapse_counts_t;

/* Why a list is as it is; the words of footprint. */
typedef enum mcp_collapse_why {
    MCP_COLLAPSE_WHY_FEW = 0,     /* flat: below threshold and budgets */
    MCP_COLLAPSE_WHY_NOTHING,     /* flat: no connected tool that could be hidden */
    MCP_COLLAPSE_WHY_MODE,        /* either: the mode says so */
    MCP_COLLAPSE_WHY_THRESHOLD,   /* collapsed */
    MCP_COLLAPSE_WHY_TOKENS,      /* collapsed: budget_tokens */
    MCP_COLLAPSE_WHY_PERCENT      /* collapsed: budget_percent */
} mcp_collapse_why_t;

/* The rule where nothing is set. */
mcp_collapse_rule_t mcp_collapse_default(void);

/* 1: collapsed, 0: flat. why may be NULL. The two meta-tools count nowhere. */
int mcp_collapse_decide(const mcp_collapse_counts_t *counts, const mcp_collapse_rule_t *rule,
                        mcp_collapse_why_t *why);

/* "few", "nothing_to_hide", "mode", "threshold", "budget_tokens", "budget_percent". */
const char *mcp_collapse_why_text(mcp_collapse_why_t why);

/* "auto", "always", "never"; AUTO for anything else. */
mcp_collapse_mode_t mcp_collapse_mode_from_text(const char *text);
const char *mcp_collapse_mode_text(mcp_collapse_mode_t mode);

/* The rule from an object of members "mode", "threshold", "budget_tokens", "budget_percent", "context_tokens", each of which may be missing: the
 * default. NULL: the default. Numbers out of range are taken as their nearest bound. */
mcp_collapse_rule_t mcp_collapse_rule_of(const json_t *object);
/* The object of a rule, of the members that differ from the default alone; NULL when none does, or without memory. New reference. */
json_t *mcp_collapse_rule_object(const mcp_collapse_rule_t *rule);

#endif
