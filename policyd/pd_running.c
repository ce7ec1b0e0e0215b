/* The table of running attempts, and the handlers of call.end and child.beat: see pd_running.h. */
#include "pd_running.h"

#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../proto/mcp_body.h"
#include "../proto/mcp_kind_text.h"
#include "pd_log.h"
#include "pd_policy.h"

#define GRACE_MS   2000   /* an end on its way at the deadline still counts */
#define KEEP_MS    60000  /* an interrupted attempt waits so long for its late end */
#define CHILD_MS   3600000 /* a silent child is remembered so long; then it has to say hello again */
#define MAX_INTERRUPTED 20000 /* that wait; the oldest are forgotten first */
#define ENDED_SLOTS 32768 /* an ended attempt is remembered for so many records of the trail, for ends that are resent */
#define MAX_OPEN   100000 /* attempts that run at once */
#define MAX_CHILDREN 20000 /* known at once; the calls of others count as missed early, and their ends supersede that */

typedef enum run_state {
    RUN_OPEN,
    RUN_ENDING,      /* an end is on its way to the disk */
    RUN_INTERRUPTED, /* ended by us; a late end supersedes it */
    RUN_ENDED
} run_state_t;

/* One attempt, in one block of memory with its texts. */
typedef struct run {
    int64_t seq; /* key */
    run_state_t state;
    pd_boot_t since;
    pd_boot_t deadline;
    pd_boot_t forget; /* when interrupted: kept until then */
    struct run *later; /* when interrupted: the next one */
    pd_running_place_t place; /* while open */
    pd_record_t begin;
    char texts[];
} run_t;

typedef struct child {
    char id[MCP_MAX_ID + 1];
    pd_boot_t seen;
    int has_greeted; /* caps is what it said */
    pd_running_caps_t caps;
} child_t;

/* How many calls run under one name: a server, or a connection of a server. */
typedef struct count {
    int open;
    char name[];
} count_t;

/* An attempt whose end is on record: enough to tell its own child so again. Of constant size, so that what a busy hour has seen
 * is no memory. */
typedef struct ended_slot {
    int64_t seq; /* 0: none */
    unsigned child; /* hash of its id */
} ended_slot_t;

struct pd_running {
    apr_pool_t *pool;
    ended_slot_t *ended; /* at seq % ENDED_SLOTS; a later one takes the place of an earlier one */
    apr_hash_t *runs;     /* seq -> run_t, malloc'd */
    apr_hash_t *children; /* id -> child_t, malloc'd */
    apr_hash_t *counts;   /* name -> count_t, malloc'd; of servers that let policyd count */
    run_t *first_interrupted, *last_interrupted;
    int interrupted;
    int open;
};

/* The text members of a record that an end repeats. */
static const size_t text_members[] = {
    offsetof(pd_record_t, member_id),  offsetof(pd_record_t, role),
    offsetof(pd_record_t, grant_id),   offsetof(pd_record_t, client),
    offsetof(pd_record_t, actor),      offsetof(pd_record_t, surface),
    offsetof(pd_record_t, operation),  offsetof(pd_record_t, tool),
    offsetof(pd_record_t, via),        offsetof(pd_record_t, connector),
    offsetof(pd_record_t, connection), offsetof(pd_record_t, connection_id),
    offsetof(pd_record_t, classification), offsetof(pd_record_t, approved),
    offsetof(pd_record_t, arg_names),  offsetof(pd_record_t, child),
    offsetof(pd_record_t, trace_id),   offsetof(pd_record_t, detail)};

#define TEXT_MEMBERS (sizeof(text_members) / sizeof(text_members[0]))

static const char **text_member(pd_record_t *record, size_t i)
{
    return (const char **)(void *)((char *)record + text_members[i]);
}

static run_t *run_new(int64_t seq, const pd_record_t *begin)
{
    pd_record_t source = *begin;
    size_t bytes = 0;
    char *to;
    run_t *run;
    size_t i;

    for (i = 0; i < TEXT_MEMBERS; i++) {
        const char *text = *text_member(&source, i);

        bytes += text != NULL ? strlen(text) + 1 : 0;
    }
    run = calloc(1, sizeof(*run) + bytes);
    if (run == NULL) {
        return NULL;
    }
    run->begin = source;
    run->begin.note_id = NULL;
    run->begin.outcome = NULL;
    run->begin.error_code = NULL;
    to = run->texts;
    for (i = 0; i < TEXT_MEMBERS; i++) {
        const char *text = *text_member(&source, i);

        if (text != NULL) {
            size_t length = strlen(text) + 1;

            memcpy(to, text, length);
            *text_member(&run->begin, i) = to;
            to += length;
        }
    }
    run->seq = seq;
    run->since = pd_boot_now();
    run->deadline = pd_boot_in(begin->deadline_ms + GRACE_MS);
    return run;
}

static unsigned child_tag(const char *id)
{
    apr_ssize_t length = APR_HASH_KEY_STRING;

    return apr_hashfunc_default(id, &length);
}

static void ended_put(pd_running_t *running, int64_t seq, const char *child)
{
    ended_slot_t *slot = &running->ended[seq % ENDED_SLOTS];

    if (child != NULL && seq > slot->seq) {
        slot->seq = seq;
        slot->child = child_tag(child);
    }
}

static int ended_has(const pd_running_t *running, int64_t seq, const char *child)
{
    const ended_slot_t *slot = &running->ended[seq % ENDED_SLOTS];

    return seq > 0 && slot->seq == seq && slot->child == child_tag(child);
}

static void ended_before(int64_t begin_seq, const pd_record_t *record, void *baton)
{
    if (mcp_outcome_from_text(record->outcome) != MCP_OUTCOME_INTERRUPTED) {
        ended_put(baton, begin_seq, record->child);
    }
}

static void reopen(int64_t seq, const pd_record_t *record, void *baton)
{
    pd_running_t *running = baton;

    /* control-plane changes have no child: whether they happened stands in the policy store (recover) */
    if (pd_running_add(running, seq, record, NULL) == PD_OK && record->child != NULL) {
        pd_running_seen(running, record->child); /* it has three beats from now on */
    }
}

pd_status_t pd_running_new(pd_core_t *core, pd_running_t **ret)
{
    pd_running_t *running = calloc(1, sizeof(*running));
    pd_status_t status;

    if (running != NULL) {
        running->ended = calloc(ENDED_SLOTS, sizeof(*running->ended));
    }
    if (running == NULL || running->ended == NULL ||
        apr_pool_create(&running->pool, NULL) != APR_SUCCESS) {
        if (running != NULL) {
            free(running->ended);
        }
        free(running);
        return PD_E_NOMEM;
    }
    running->runs = apr_hash_make(running->pool);
    running->children = apr_hash_make(running->pool);
    running->counts = apr_hash_make(running->pool);
    status = pd_trail_open_attempts(core->trail, reopen, running);
    if (status == PD_OK) { /* whose answer was lost with the last policyd asks again */
        status = pd_trail_recent_ends(core->trail, ENDED_SLOTS, ended_before, running);
    }
    if (status != PD_OK) {
        pd_running_free(&running);
        return status;
    }
    if (running->open > 0) {
        pd_log(PD_LOG_NOTICE, 120, "%d attempts were open when policyd stopped", running->open);
    }
    *ret = running;
    return PD_OK;
}

static void free_all(apr_hash_t *table)
{
    apr_hash_index_t *i;

    for (i = apr_hash_first(NULL, table); i != NULL; i = apr_hash_next(i)) {
        free(apr_hash_this_val(i));
    }
}

void pd_running_free(pd_running_t **running)
{
    if (*running == NULL) {
        return;
    }
    free_all((*running)->runs);
    free_all((*running)->children);
    free_all((*running)->counts);
    apr_pool_destroy((*running)->pool);
    free((*running)->ended);
    free(*running);
    *running = NULL;
}

/* Name of a count: the server, and the connection there when it is given. */
static void count_name(const child_t *child, const char *connection_id, char *buf, size_t size)
{
    (void)apr_snprintf(buf, size, "%s %s", child->caps.server, connection_id != NULL ? connection_id : "");
}

/* The count of that name, made where there is none; NULL when out of memory. One that somebody holds a place in stays (its open is
 * above 0). */
static count_t *count_get(pd_running_t *running, const child_t *child, const char *connection_id)
{
    char name[2 * MCP_MAX_ID + 4];
    count_t *count;
    size_t length;

    count_name(child, connection_id, name, sizeof(name));
    count = apr_hash_get(running->counts, name, APR_HASH_KEY_STRING);
    if (count != NULL) {
        return count;
    }
    length = strlen(name) + 1;
    count = calloc(1, sizeof(*count) + length);
    if (count != NULL) {
        memcpy(count->name, name, length);
        apr_hash_set(running->counts, count->name, APR_HASH_KEY_STRING, count);
    }
    return count;
}

/* The child if its server lets policyd count its calls, else NULL. */
static const child_t *counted_child(const pd_running_t *running, const char *id)
{
    const child_t *child = id != NULL ? apr_hash_get(running->children, id, APR_HASH_KEY_STRING) : NULL;

    return child != NULL && child->caps.server[0] != '\0' ? child : NULL;
}

mcp_code_t pd_running_enter(pd_running_t *running, const char *child_id, const char *connection_id,
                            pd_running_place_t *ret)
{
    const child_t *child = counted_child(running, child_id);
    count_t *server;
    count_t *connection;

    memset(ret, 0, sizeof(*ret));
    if (running->open >= MAX_OPEN) {
        return MCP_CODE_OVERLOADED;
    }
    if (child == NULL) {
        return MCP_CODE_NONE;
    }
    server = count_get(running, child, NULL);
    connection = count_get(running, child, connection_id);
    if (server == NULL || connection == NULL ||
        (child->caps.server_calls > 0 && server->open >= child->caps.server_calls)) {
        return MCP_CODE_OVERLOADED;
    }
    if (child->caps.connection_calls > 0 && connection->open >= child->caps.connection_calls) {
        return MCP_CODE_RATE_LIMITED;
    }
    server->open++;
    connection->open++;
    ret->counts[0] = &server->open;
    ret->counts[1] = &connection->open;
    return MCP_CODE_NONE;
}

void pd_running_leave(pd_running_place_t *place)
{
    int i;

    for (i = 0; i < 2; i++) {
        if (place->counts[i] != NULL) {
            --*place->counts[i];
            place->counts[i] = NULL;
        }
    }
}

pd_status_t pd_running_add(pd_running_t *running, int64_t seq, const pd_record_t *begin,
                           pd_running_place_t *place)
{
    run_t *run = run_new(seq, begin);

    if (run == NULL) {
        return PD_E_NOMEM;
    }
    apr_hash_set(running->runs, &run->seq, sizeof(run->seq), run);
    running->open++;
    if (place != NULL) {
        run->place = *place;
        memset(place, 0, sizeof(*place));
    }
    return PD_OK;
}

static void forget(pd_running_t *running, run_t *run)
{
    apr_hash_set(running->runs, &run->seq, sizeof(run->seq), NULL);
    free(run);
}

/* Forgets the attempt that was interrupted first. */
static void forget_first(pd_running_t *running)
{
    run_t *run = running->first_interrupted;

    running->first_interrupted = run->later;
    if (running->first_interrupted == NULL) {
        running->last_interrupted = NULL;
    }
    running->interrupted--;
    forget(running, run);
}

/* An interrupted attempt is kept as it is, since a late end repeats its begin, in the order of interruption. */
static void await_late_end(pd_running_t *running, run_t *run)
{
    run->forget = pd_boot_in(KEEP_MS);
    run->later = NULL;
    if (running->last_interrupted != NULL) {
        running->last_interrupted->later = run;
    } else {
        running->first_interrupted = run;
    }
    running->last_interrupted = run;
    running->interrupted++;
}

/* An end is on record, `before` what it ended. */
static void ended(pd_running_t *running, run_t *run, run_state_t before)
{
    if (run->state == RUN_ENDED) {
        ended_put(running, run->seq, run->begin.child);
    }
    if (before != RUN_OPEN) {
        return; /* it has waited for this, and is in the list that forgets it */
    }
    running->open--;
    pd_running_leave(&run->place);
    if (run->state == RUN_ENDED) {
        forget(running, run);
    } else {
        await_late_end(running, run);
    }
}

int pd_running_count(const pd_running_t *running)
{
    return running->open;
}

void pd_running_seen(pd_running_t *running, const char *id)
{
    child_t *child = apr_hash_get(running->children, id, APR_HASH_KEY_STRING);

    if (child == NULL) {
        child = apr_hash_count(running->children) < MAX_CHILDREN ? calloc(1, sizeof(*child)) : NULL;
        if (child == NULL) {
            return; /* its calls count as missed early; their ends supersede that */
        }
        (void)apr_cpystrn(child->id, id, sizeof(child->id));
        apr_hash_set(running->children, child->id, APR_HASH_KEY_STRING, child);
    }
    child->seen = pd_boot_now();
}

void pd_running_child(pd_running_t *running, const char *id, const pd_running_caps_t *caps)
{
    child_t *child;

    pd_running_seen(running, id);
    child = apr_hash_get(running->children, id, APR_HASH_KEY_STRING);
    if (child != NULL) {
        child->caps = *caps;
        child->has_greeted = 1;
    }
}

int pd_running_knows(const pd_running_t *running, const char *id)
{
    const child_t *child = apr_hash_get(running->children, id, APR_HASH_KEY_STRING);

    return child != NULL && child->has_greeted;
}

/* --- ends -------------------------------------------------------------------- */

/* An end on its way. Both the table and the asker may be gone when it is durable, so nothing of either is kept by pointer but
 * the ask, which waits for its answer. */
typedef struct ending {
    pd_core_t *core;
    int64_t seq;
    run_state_t then;
    run_state_t before;
    pd_ask_t *ask; /* NULL: interrupted by us */
} ending_t;

static void end_done(pd_status_t status, int64_t seq, void *baton)
{
    ending_t *ending = baton;
    pd_running_t *running = ending->core->policy->running;
    run_t *run = apr_hash_get(running->runs, &ending->seq, sizeof(ending->seq));

    (void)seq;
    if (run != NULL && run->state == RUN_ENDING) {
        run->state = status == PD_OK ? ending->then : ending->before;
        if (status == PD_OK) {
            ended(running, run, ending->before); /* it may be gone now */
        }
    }
    if (status == PD_OK) {
        pd_audit_poke(ending->core->audit);
    }
    if (ending->ask != NULL && status == PD_OK) {
        pd_ask_reply(ending->ask, json_pack("{s:b}", "recorded", 1));
    } else if (ending->ask != NULL) {
        pd_ask_refuse(ending->ask, MCP_CODE_POLICY_UNAVAILABLE, "the outcome can't be recorded", NULL,
                      NULL);
    }
    free(ending);
}

/* Appends the end of a run; `end` holds what differs from its begin. */
static pd_status_t append_end(pd_core_t *core, run_t *run, const pd_record_t *end, run_state_t then,
                              pd_ask_t *ask)
{
    pd_record_t record = run->begin;
    ending_t *ending = malloc(sizeof(*ending));
    pd_status_t status;

    if (ending == NULL) {
        return PD_E_NOMEM;
    }
    record.kind = PD_RECORD_END;
    record.seq = 0;
    record.begin_seq = run->seq;
    record.outcome = end->outcome;
    record.error_code = end->error_code;
    record.upstream_status = end->upstream_status;
    record.duration_us = end->duration_us;
    record.request_bytes = end->request_bytes != 0 ? end->request_bytes : record.request_bytes;
    record.response_bytes = end->response_bytes;
    record.redactions = end->redactions;
    ending->core = core;
    ending->seq = run->seq;
    ending->then = then;
    ending->before = run->state;
    ending->ask = ask;
    run->state = RUN_ENDING;
    status = pd_trail_append(core->trail, &record, end_done, ending);
    if (status != PD_OK) {
        run->state = ending->before;
        free(ending);
    }
    return status;
}

static int outcome_may_end(mcp_outcome_t outcome)
{
    return outcome == MCP_OUTCOME_OK || outcome == MCP_OUTCOME_ERROR ||
           outcome == MCP_OUTCOME_DENIED || outcome == MCP_OUTCOME_INPUT_REQUIRED;
}

void pd_on_call_end(pd_ask_t *ask)
{
    pd_core_t *core = ask->core;
    int64_t seq = pd_trail_seq(core->trail, mcp_json_str(ask->body, "audit"));
    const char *child = mcp_json_str(ask->body, "child");
    mcp_outcome_t outcome = mcp_outcome_from_text(mcp_json_str(ask->body, "outcome"));
    mcp_code_t code = mcp_code_from_text(mcp_json_str(ask->body, "code"));
    run_t *run = apr_hash_get(core->policy->running->runs, &seq, sizeof(seq));
    pd_record_t end;

    memset(&end, 0, sizeof(end));
    if (ended_has(core->policy->running, seq, child)) { /* resent: it is on record already */
        pd_ask_reply(ask, json_pack("{s:b}", "recorded", 1));
        return;
    }
    if (seq == 0 || run == NULL || run->begin.child == NULL ||
        strcmp(run->begin.child, child) != 0) {
        pd_ask_refuse(ask, MCP_CODE_NOT_FOUND, "no such attempt of this child", NULL, NULL);
        return;
    }
    if (!outcome_may_end(outcome) ||
        (json_object_get(ask->body, "code") != NULL && code == MCP_CODE_NONE)) {
        pd_ask_refuse(ask, MCP_CODE_MALFORMED, "an outcome or code off the list", NULL, NULL);
        return;
    }
    if (run->state == RUN_ENDED) { /* late, and resent so long after that it has lost its slot */
        pd_ask_reply(ask, json_pack("{s:b}", "recorded", 1));
        return;
    }
    if (run->state == RUN_ENDING) {
        pd_ask_refuse(ask, MCP_CODE_OVERLOADED, "the end of this attempt is being recorded",
                      "ask again", NULL);
        return;
    }
    pd_running_seen(core->policy->running, child);
    end.outcome = mcp_outcome_text(outcome);
    end.error_code = code != MCP_CODE_NONE ? mcp_code_text(code) : NULL;
    end.upstream_status = mcp_json_int(ask->body, "upstream_status", 0);
    end.duration_us = mcp_json_int(ask->body, "duration_us", 0);
    end.request_bytes = mcp_json_int(ask->body, "request_bytes", 0);
    end.response_bytes = mcp_json_int(ask->body, "response_bytes", 0);
    end.redactions = mcp_json_int(ask->body, "redactions", 0);
    if (append_end(core, run, &end, RUN_ENDED, ask) != PD_OK) {
        pd_ask_refuse(ask, MCP_CODE_POLICY_UNAVAILABLE, "the outcome can't be recorded now", NULL,
                      NULL);
    }
}

static void interrupt(pd_core_t *core, run_t *run)
{
    pd_record_t end;

    memset(&end, 0, sizeof(end));
    end.outcome = mcp_outcome_text(MCP_OUTCOME_INTERRUPTED);
    end.duration_us = pd_boot_now().us - run->since.us;
    if (append_end(core, run, &end, RUN_INTERRUPTED, NULL) == PD_OK) {
        pd_log(PD_LOG_WARNING, 121, "attempt %ld of child %s did not end: recorded as interrupted",
               (long)run->seq, run->begin.child != NULL ? run->begin.child : "-");
    }
}

void pd_on_child_beat(pd_ask_t *ask)
{
    pd_core_t *core = ask->core;
    pd_running_t *running = core->policy->running;
    const char *child = mcp_json_str(ask->body, "child");
    const json_t *ids = json_object_get(ask->body, "running");
    apr_hash_t *alive = apr_hash_make(ask->pool);
    int64_t old_us = pd_boot_now().us - (int64_t)MCP_BEAT_MS * MCP_BEATS_MISSED * 1000;
    apr_hash_index_t *i;
    const json_t *id;
    size_t k;

    pd_running_seen(running, child);
    json_array_foreach(ids, k, id)
    {
        int64_t *seq = apr_palloc(ask->pool, sizeof(*seq));

        *seq = pd_trail_seq(core->trail, json_string_value(id));
        apr_hash_set(alive, seq, sizeof(*seq), seq);
    }
    /* a call that its own child does not know (its plan never arrived) will not end */
    for (i = apr_hash_first(ask->pool, running->runs); i != NULL; i = apr_hash_next(i)) {
        run_t *run = apr_hash_this_val(i);

        if (run->state == RUN_OPEN && run->since.us < old_us && run->begin.child != NULL &&
            strcmp(run->begin.child, child) == 0 &&
            apr_hash_get(alive, &run->seq, sizeof(run->seq)) == NULL) {
            interrupt(core, run);
        }
    }
    pd_ask_reply(ask, json_pack("{s:o}", "generation",
                                json_sprintf("%llu", (unsigned long long)core->generation)));
}

/* A control-plane change whose policyd stopped between its commit and its end: the policy store holds the audit id
 * beside the revision when it happened. */
typedef struct recovery {
    pd_core_t *core;
    int64_t seq;
    int happened;
} recovery_t;

static pd_status_t recovery_unit(pd_tx_t *tx, void *baton)
{
    recovery_t *recovery = baton;
    char audit_id[MCP_MAX_ID];
    int64_t revision = 0;
    pd_status_t status;

    pd_trail_id(recovery->core->trail, recovery->seq, audit_id);
    status = pd_tx_audit_find(tx, audit_id, &revision);
    recovery->happened = status == PD_OK;
    return status == PD_E_NOT_FOUND ? PD_OK : status;
}

static void recovery_done(pd_status_t status, int64_t revision, void *baton)
{
    recovery_t *recovery = baton;
    pd_running_t *running = recovery->core->policy->running;
    run_t *run = apr_hash_get(running->runs, &recovery->seq, sizeof(recovery->seq));
    pd_record_t end;

    (void)revision;
    memset(&end, 0, sizeof(end));
    end.outcome = mcp_outcome_text(recovery->happened ? MCP_OUTCOME_OK : MCP_OUTCOME_INTERRUPTED);
    if (status == PD_OK && run != NULL && run->state == RUN_OPEN &&
        append_end(recovery->core, run, &end, RUN_ENDED, NULL) == PD_OK) {
        pd_log(PD_LOG_NOTICE, 122, "control-plane change %ld of before the restart recorded as %s",
               (long)recovery->seq, end.outcome);
    }
    free(recovery);
}

static void recover(pd_core_t *core, const run_t *run)
{
    recovery_t *recovery = calloc(1, sizeof(*recovery));

    if (recovery == NULL) {
        return; /* tried again at the next tick */
    }
    recovery->core = core;
    recovery->seq = run->seq;
    if (pd_store_submit(core->store, PD_LANE_LOOP, pd_boot_in(GRACE_MS), recovery_unit, recovery_done,
                        recovery) != PD_OK) {
        free(recovery);
    }
}

static int child_is_dead(const pd_running_t *running, const char *id, int64_t now_us)
{
    const child_t *child = apr_hash_get(running->children, id, APR_HASH_KEY_STRING);

    return child == NULL ||
           child->seen.us < now_us - (int64_t)MCP_BEAT_MS * MCP_BEATS_MISSED * 1000;
}

void pd_running_tick(pd_core_t *core, pd_running_t *running)
{
    int64_t now_us = pd_boot_now().us;
    apr_hash_index_t *i;

    for (i = apr_hash_first(NULL, running->runs); i != NULL; i = apr_hash_next(i)) {
        run_t *run = apr_hash_this_val(i);

        if (run->state == RUN_OPEN && run->begin.child == NULL) {
            recover(core, run); /* those of this policyd's own life are not in the table */
        } else if (run->state == RUN_OPEN && (run->deadline.us < now_us ||
                                              child_is_dead(running, run->begin.child, now_us))) {
            interrupt(core, run);
        }
    }
    /* one whose late end is on its way stays first until that is on record */
    while (running->first_interrupted != NULL && running->first_interrupted->state != RUN_ENDING &&
           (running->first_interrupted->forget.us < now_us ||
            running->interrupted > MAX_INTERRUPTED)) {
        forget_first(running);
    }
    for (i = apr_hash_first(NULL, running->counts); i != NULL; i = apr_hash_next(i)) {
        count_t *count = apr_hash_this_val(i);

        if (count->open <= 0) {
            apr_hash_set(running->counts, count->name, APR_HASH_KEY_STRING, NULL);
            free(count);
        }
    }
    for (i = apr_hash_first(NULL, running->children); i != NULL; i = apr_hash_next(i)) {
        child_t *child = apr_hash_this_val(i);

        if (child->seen.us < now_us - (int64_t)CHILD_MS * 1000) {
            apr_hash_set(running->children, child->id, APR_HASH_KEY_STRING, NULL);
            free(child);
        }
    }
}
