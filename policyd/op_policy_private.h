/* Policy as a document: what export (op_policy.c), apply (op_policy_apply.c) and the sections
 * (op_policy_sections.c) share.  All of it runs inside one unit, on
 * the thread of its lane. */
#ifndef PD_OP_POLICY_PRIVATE_H
#define PD_OP_POLICY_PRIVATE_H

#include <apr_hash.h>

#include "pd_ops.h"

/* One reading or writing of a document. */
typedef struct pd_paper {
    pd_op_call_t *call;
    apr_hash_t *slugs;   /* connector id -> slug; NULL until asked for */
    apr_hash_t *members; /* member id -> email in lower case, or the id of one who has none; filled as asked for */
    apr_hash_t *sights;  /* what the actor sees of connectors (op_reach.h); NULL until asked for */
    apr_hash_t *labels;  /* connection id -> label of a shared connection, or the id of another; filled as asked for */
} pd_paper_t;

/* An object of a section, as it is stored. */
typedef struct pd_holding {
    const pd_object_t *object;
    const char *identity; /* what makes it this one among the section's */
    const char *name;     /* for people */
    json_t *file;         /* canonical form; NULL: is made when it is compared (large ones) */
    int is_wanted;        /* the document names it */
} pd_holding_t;

/* Begins the identity of an object that has no name, and may stand several times. No name begins so. */
#define PD_PAPER_NAMELESS "\n"

typedef struct pd_section {
    const char *name;     /* of the document's member */
    const char *kind;     /* of the objects that are listed */
    const char *create, *update, *remove; /* operations */
    const char *read[2];  /* permissions that export asks for: one of them is enough */
    int is_large;         /* files are made one at a time, and let go */
    /* Members that an update can't take away: an object that is to be without one of them is made anew. NULL-terminated, or NULL */
    const char *const *lasting;
    /* A member that an update can't change, or NULL: the object is made anew; or, where making it anew would lose what no document holds
     * (a credential), that is refused. */
    const char *fixed;
    int is_fixed_refused;
    /* *ret is 1 when the object belongs into a document. NULL: all do */
    pd_status_t (*takes)(pd_paper_t *paper, const pd_object_t *object, int *ret);
    /* Canonical form of a stored object: *ret new reference */
    pd_status_t (*to_file)(pd_paper_t *paper, const pd_object_t *object, json_t **ret);
    /* Brings what a document gives, which the schema of `create` has passed, into canonical form: defaults left out, references as
     * to_file() writes them, sets sorted. *ret new reference; PD_E_INVALID with the call's fault */
    pd_status_t (*canonical)(pd_paper_t *paper, const json_t *given, json_t **ret);
    /* What makes it this one, and how it is called, from canonical form or (large ones) the listed document; in the call's pool */
    const char *(*identity)(pd_paper_t *paper, const json_t *file);
    const char *(*title)(pd_paper_t *paper, const json_t *file);
    /* NULL: json_equal() */
    int (*is_same)(const json_t *wanted, const json_t *held);
    /* Arguments of `update` and `remove`; new references. NULL: out of memory */
    json_t *(*update_args)(pd_paper_t *paper, const pd_holding_t *held, const json_t *wanted);
    json_t *(*remove_args)(const pd_holding_t *held);
} pd_section_t;

/* In the order in which they are written; `name` NULL ends them. */
extern const pd_section_t pd_sections[];

/* --- op_policy.c: what there is --------------------------------------------------- */

/* The section's objects as an array of pd_holding_t, in the order of documents. */
pd_status_t pd_paper_list(pd_paper_t *paper, const pd_section_t *section,
                          apr_array_header_t **ret);
/* The file of a held object; new reference. */
pd_status_t pd_paper_file(pd_paper_t *paper, const pd_section_t *section, const pd_holding_t *held,
                          json_t **ret);
/* PD_OK when the file names no member, or the actor may read members; else fault PERMISSION_DENIED. */
pd_status_t pd_paper_may_name(pd_op_call_t *call, const pd_section_t *section, const json_t *file);
/* PD_OK when the actor holds the permission (NULL: none is needed), else fault PERMISSION_DENIED naming it and the section. */
pd_status_t pd_paper_permission(pd_op_call_t *call, const char *permission, const char *section);

/* --- op_policy_forms.c: what several sections are made of ------------------------ */

/* A copy with the members of all objects in it sorted; new reference, NULL: out of memory. */
json_t *pd_paper_sorted(const json_t *value);
/* Sets a member where there is a value; stolen. 0, or -1 out of memory. NULL: nothing to set, 0. */
int pd_paper_put(json_t *object, const char *name, json_t *value);
/* An array of texts as a set: sorted bytewise, each once; new reference. NULL or no array: empty. */
json_t *pd_paper_set(const json_t *texts);
/* References as a document writes them: by name where there is such an object, else as they are. In the call's pool. */
pd_status_t pd_paper_slug(pd_paper_t *paper, const char *connector, const char **ret);
pd_status_t pd_paper_member(pd_paper_t *paper, const char *member, const char **ret);
pd_status_t pd_paper_label(pd_paper_t *paper, const char *connection, const char **ret);
/* 1 for a member that is not removed. */
pd_status_t pd_paper_is_alive(pd_paper_t *paper, const char *member_id, int *ret);

/* --- op_policy_rules.c, op_policy_toolboxes.c ------------------------------------ */

pd_status_t pd_paper_rule_to_file(pd_paper_t *paper, const pd_object_t *object, json_t **ret);
pd_status_t pd_paper_rule_canonical(pd_paper_t *paper, const json_t *given, json_t **ret);
pd_status_t pd_paper_rule_takes(pd_paper_t *paper, const pd_object_t *object, int *ret);
int pd_paper_rule_is_same(const json_t *wanted, const json_t *held);
const char *pd_paper_rule_identity(pd_paper_t *paper, const json_t *file);
const char *pd_paper_rule_title(pd_paper_t *paper, const json_t *file);

json_t *pd_paper_rule_update(pd_paper_t *paper, const pd_holding_t *held, const json_t *wanted);

pd_status_t pd_paper_toolbox_to_file(pd_paper_t *paper, const pd_object_t *object, json_t **ret);
pd_status_t pd_paper_toolbox_canonical(pd_paper_t *paper, const json_t *given, json_t **ret);
json_t *pd_paper_toolbox_update(pd_paper_t *paper, const pd_holding_t *held, const json_t *wanted);

#endif
