/* Handlers of the recipes resource: prompts that the organisation writes for its people, by role.
 *
 * Kind "recipe", id "rcp_…", key "name:NAME": {"name","title"?,"description"?,
 * "arguments"?:[{"name","description"?,"required"?}],"text","roles"?:[NAME]}.  In the text `{{` begins a placeholder and has to go on as
 * `NAME}}` with the name of an argument.  Without roles a recipe is for everybody who may read recipes; whoever may not write them
 * sees those for one of his roles, and the others are as what never was. */
#ifndef PD_OP_RECIPES_H
#define PD_OP_RECIPES_H

#include "pd_ops.h"

/* {"query"?: part of name, title or description, "limit"?, "cursor"?} -> items without their text. */
pd_status_t pd_op_recipes_list(pd_op_call_t *call);
/* {"recipe": id or name} -> the whole recipe. */
pd_status_t pd_op_recipes_get(pd_op_call_t *call);
/* A recipe -> as a list shows it. */
pd_status_t pd_op_recipes_create(pd_op_call_t *call);
/* {"recipe", "if_revision"?} and what is to be replaced, an empty array to take arguments or roles away -> as a list shows it. */
pd_status_t pd_op_recipes_update(pd_op_call_t *call);
/* {"recipe","if_revision"?} -> {"recipe","deleted":true}. */
pd_status_t pd_op_recipes_delete(pd_op_call_t *call);
/* {"recipe","arguments"?:{NAME: text}} -> {"recipe","name","title"?,"text"}: the placeholders filled in, an optional argument that is not given
 * by nothing. What is filled in is not read for placeholders again. */
pd_status_t pd_op_recipes_render(pd_op_call_t *call);

#endif
