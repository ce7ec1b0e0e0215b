/* Policy as one document: what IT keeps under version control.
 *
 *   {"version":1,"roles":[],"connectors":[],"connections":[],"settings":[],"recipes":[],"toolboxes":[],
 *    "restrictions":[]}
 *
 * Each section holds objects in the shape that their create operation takes, in canonical form and
 * order: no ids, revisions and times where a name identifies, references by name (slug, label, email),
 * defaults left out, sets sorted. Built-in roles, members, grants, credentials and what members own are
 * not in it. Sections are rows of op_policy_sections.c. */
#ifndef PD_OP_POLICY_H
#define PD_OP_POLICY_H

#include "pd_ops.h"

/* {"sections"?: names, all if not given} -> the document. Each section asks for the permission that reads all of it
 * (op_policy_sections.c), and for member:read where it names a member; a connector of which the actor does not see all refuses: an export is
 * whole or none. */
pd_status_t pd_op_policy_export(pd_op_call_t *call);

/* {"policy": a document, "prune"?, "plan"?: what a dry run answered} -> {"changes":[{"op","name"}],
 * "created","updated","deleted","unchanged","warnings","plan","is_cut"?}. Sections that are absent are
 * left alone; the others are made to be: what lacks is created, what differs is updated, and with
 * `prune` what is not listed is deleted. Each change is the operation of that name, with its
 * permission, schema and rules. Where nothing differs nothing is written. */
pd_status_t pd_op_policy_apply(pd_op_call_t *call);

#endif
