/* What the handlers of several resources share: finding what an argument names, paging through a
 * kind, and the life of JSON made on the way. Runs inside a unit, on the thread of its lane. */
#ifndef PD_OP_FIND_H
#define PD_OP_FIND_H

#include "pd_ops.h"

#define PD_OP_PAGE 100      /* items of a list where `limit` is not given */
#define PD_OP_PAGE_MAX 1000 /* and at most */

/* Gives the reference to the call's pool; answers value (NULL stays NULL). */
json_t *pd_op_keep(const pd_op_call_t *call, json_t *value);
/* A deep copy of a document that may be changed; kept. NULL: out of memory. */
json_t *pd_op_copy(const pd_op_call_t *call, const json_t *doc);
/* A string argument, or NULL. */
const char *pd_op_text(const pd_op_call_t *call, const char *name);
/* The argument `if_revision`, 0 when it is not given. */
int64_t pd_op_if_revision(const pd_op_call_t *call);
/* Who acts, as documents keep it: member id, else the label of the admin peer. */
const char *pd_op_actor(const pd_op_call_t *call);
/* Lower-case copy (ASCII). */
const char *pd_op_lower(const pd_op_call_t *call, const char *text);
/* detail of the audit row: ids and revisions only. */
void pd_op_detail(pd_op_call_t *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds "revision", "created_at", "updated_at" of the object; 0, or -1 out of memory. */
int pd_op_stamp(json_t *shown, const pd_object_t *object);
/* Sets call->result: `shown` stolen; NULL gives PD_E_NOMEM. */
pd_status_t pd_op_answer(pd_op_call_t *call, json_t *shown);
/* The object again as it is after a write, shown by `show`. */
typedef json_t *pd_op_show_fn(const pd_op_call_t *call, const pd_object_t *object);
pd_status_t pd_op_answer_again(pd_op_call_t *call, const char *kind, const char *id,
                               pd_op_show_fn *show);

/* Says in the log that a stored object is left out of what is asked about, since it can't be read. */
void pd_op_log_damaged(const char *kind, const char *id);

/* A member by id or email, a custom role by id or name, a connector by id or slug. PD_E_INVALID
 * with fault NOT_FOUND when there is none. A removed member is found by id. */
pd_status_t pd_op_member(pd_op_call_t *call, const char *named, pd_object_t **ret);
pd_status_t pd_op_role(pd_op_call_t *call, const char *named, pd_object_t **ret);
pd_status_t pd_op_connector(pd_op_call_t *call, const char *named, pd_object_t **ret);

/* A walk over objects of a kind. */
typedef int pd_op_pick_fn(const pd_op_call_t *call, const pd_object_t *object, const void *baton);
typedef struct pd_op_list {
    const char *kind;
    const char *prefix;  /* of its ids, "mem_": form of a cursor */
    const char *owner;   /* only this member's; NULL: all */
    pd_op_pick_fn *pick; /* NULL: every one */
    const void *baton;   /* of pick */
    pd_op_show_fn *show;
} pd_op_list_t;

/* Adds objects after the id `after` (NULL: from the start) to the array items until it holds
 * `limit`; one that can't be shown is left out and logged. *ret_next, in: the cursor that stands for "from the start" where items is full already
 * (NULL: none); out: cursor of the next page in the call's pool, or NULL when this was the last. */
pd_status_t pd_op_list_more(pd_op_call_t *call, const pd_op_list_t *list, const char *after,
                            size_t limit, json_t *items, const char **ret_next);
/* The argument `limit` or its default. */
size_t pd_op_limit(const pd_op_call_t *call);
/* The whole answer of a list operation, from the arguments `limit` and `cursor`. */
pd_status_t pd_op_list_answer(pd_op_call_t *call, const pd_op_list_t *list);
/* {"items","next_cursor"?} as result; items stolen. */
pd_status_t pd_op_items(pd_op_call_t *call, json_t *items, const char *next);
/* The fault of a cursor that is none of ours. */
pd_status_t pd_op_bad_cursor(pd_op_call_t *call);

#endif
