/* Builds the index of a view: see view_index.h. Two walks over the tools' text: one finds the
 * words, one per field fills the postings, so that every table is allocated once and as large as it
 * has to be. What is needed meanwhile is on malloc. */
#include "view_index.h"

#include "view_index.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "view_index_build.h"

#define NONE UINT32_MAX

static uint64_t hash_bytes(uint64_t hash, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    }
    return hash;
}

static uint64_t hash_of(const char *text, size_t bytes)
{
    uint64_t hash = hash_bytes(0xcbf29ce484222325u, text, bytes);

    return hash ^ hash >> 29;
}

/* Makes room for one more element; 0: no memory, or more than an index may hold. */
static int has_room(void **rows, size_t count, size_t *room, size_t size)
{
    size_t more = *room == 0 ? 1024 : *room * 2;
    void *moved;

    if (count < *room) {
        return 1;
    }
    if (more > UINT32_MAX / 2 / size) {
        return 0;
    }
    moved = realloc(*rows, more * size);
    if (moved == NULL) {
        return 0;
    }
    *rows = moved;
    *room = more;
    return 1;
}

/* --- words ------------------------------------------------------------------- */

static int grow_slots(index_build_t *b)
{
    size_t count = b->slot_count == 0 ? 4096 : b->slot_count * 2;
    uint32_t *slots = calloc(count, sizeof(*slots));

    if (slots == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < b->seen_count; i++) {
        size_t at = b->seen[i].hash & (count - 1);

        while (slots[at] != 0) {
            at = (at + 1) & (count - 1);
        }
        slots[at] = i + 1;
    }
    free(b->slots);
    b->slots = slots;
    b->slot_count = count;
    return 1;
}

static int keep_text(index_build_t *b, const char *text, size_t bytes)
{
    while (b->text_bytes + bytes + 1 > b->text_room) {
        void *rows = b->texts;

        if (!has_room(&rows, b->text_room, &b->text_room, 1)) {
            return 0;
        }
        b->texts = rows;
    }
    memcpy(b->texts + b->text_bytes, text, bytes);
    b->texts[b->text_bytes + bytes] = '\0';
    b->text_bytes += bytes + 1;
    return 1;
}

/* The number of the word, which is new if need be; NONE: no memory. */
static uint32_t see(index_build_t *b, const char *text, size_t bytes, uint8_t form)
{
    uint64_t hash = hash_of(text, bytes);
    void *rows = b->seen;
    size_t at, room = b->seen_room;
    index_seen_t *made;

    if ((size_t)b->seen_count * 2 >= b->slot_count && !grow_slots(b)) {
        return NONE;
    }
    for (at = hash & (b->slot_count - 1); b->slots[at] != 0; at = (at + 1) & (b->slot_count - 1)) {
        const index_seen_t *seen = &b->seen[b->slots[at] - 1];

        if (seen->hash == hash && seen->bytes == bytes &&
            memcmp(b->texts + seen->text, text, bytes) == 0) {
            return b->slots[at] - 1;
        }
    }
    if (!has_room(&rows, b->seen_count, &room, sizeof(*b->seen))) {
        return NONE;
    }
    b->seen = rows;
    b->seen_room = (uint32_t)room;
    made = &b->seen[b->seen_count];
    memset(made, 0, sizeof(*made));
    made->hash = hash;
    made->text = (uint32_t)b->text_bytes;
    made->bytes = (uint32_t)bytes;
    made->form = form;
    made->word = made->stem = NONE;
    if (!keep_text(b, text, bytes)) {
        return NONE;
    }
    b->slots[at] = ++b->seen_count;
    return b->seen_count - 1;
}

static int take_word(const mcp_view_word_t *word, void *ctx)
{
    index_build_t *b = ctx;
    index_pairs_t *pairs = &b->pairs[b->field];
    void *rows;
    uint32_t number;

    if (b->field == FIELD_TEXT && mcp_view_words_is_silent(word->text)) {
        return 0;
    }
    number = see(b, word->text, word->bytes,
                 word->form == MCP_VIEW_FORM_PAIR || word->form == MCP_VIEW_FORM_SINGLE);
    if (number != NONE && b->seen[number].last[b->field] == b->tool + 1) {
        return 0;
    }
    rows = pairs->rows;
    if (number == NONE || !has_room(&rows, pairs->count, &pairs->room, sizeof(*pairs->rows))) {
        b->is_out = 1;
        return 1;
    }
    pairs->rows = rows;
    b->seen[number].last[b->field] = b->tool + 1;
    pairs->rows[pairs->count++] = (index_pair_t){.word = number, .tool = b->tool};
    return 0;
}

/* --- a tool's text ------------------------------------------------------------ */

static void read_field(index_build_t *b, index_field_t field, const char *text, size_t bytes)
{
    if (text != NULL && !b->is_out) {
        b->field = field;
        mcp_view_words(text, bytes, take_word, b);
    }
}

/* Of the description or an argument, as far as a tool's text goes. */
static void read_text(index_build_t *b, const char *text, size_t bytes)
{
    bytes = bytes < b->text_left ? bytes : b->text_left;
    b->text_left -= bytes;
    read_field(b, FIELD_TEXT, text, bytes);
}

/* Names and descriptions of arguments; recursion ends at MCP_VIEW_INDEX_DEPTH. */
static void read_arguments(index_build_t *b, const json_t *schema, int depth)
{
    const json_t *properties = json_object_get(schema, "properties");
    const char *key;
    json_t *value;
    void *at = json_object_iter((json_t *)(uintptr_t)properties);

    while (at != NULL && b->text_left > 0) {
        const json_t *text;

        key = json_object_iter_key(at);
        value = json_object_iter_value(at);
        text = json_object_get(value, "description");
        read_text(b, key, strlen(key));
        read_text(b, json_string_value(text), json_string_length(text));
        if (depth < MCP_VIEW_INDEX_DEPTH) {
            read_arguments(b, value, depth + 1);
        }
        at = json_object_iter_next((json_t *)(uintptr_t)properties, at);
    }
    if (depth < MCP_VIEW_INDEX_DEPTH && json_is_object(json_object_get(schema, "items"))) {
        read_arguments(b, json_object_get(schema, "items"), depth + 1);
    }
}

const char *mcp_view_bare_name(const char *name)
{
    const char *mark = strstr(name, "__");

    return mark != NULL && mark != name && mark[2] != '\0' ? mark + 2 : name;
}

typedef struct whole {
    char *buf;
    size_t bytes;
    int is_too_long;
} whole_t;

static int take_whole(const mcp_view_word_t *word, void *ctx)
{
    whole_t *whole = ctx;

    if (word->form == MCP_VIEW_FORM_JOINED || word->form == MCP_VIEW_FORM_SINGLE) {
        return 0;
    }
    if (whole->bytes + word->bytes >= MCP_VIEW_WHOLE_BYTES) {
        whole->is_too_long = 1;
        return 1;
    }
    memcpy(whole->buf + whole->bytes, word->text, word->bytes);
    whole->bytes += word->bytes;
    return 0;
}

uint64_t mcp_view_whole_hash(const char *text, size_t bytes, char buf[MCP_VIEW_WHOLE_BYTES],
                             size_t *ret_bytes)
{
    whole_t whole = {.buf = buf};

    *ret_bytes = 0;
    mcp_view_words(text, bytes, take_whole, &whole);
    if (whole.is_too_long) {
        return 0;
    }
    *ret_bytes = whole.bytes;
    return hash_of(buf, whole.bytes);
}

/* --- groups ------------------------------------------------------------------- */

static const char *kept(apr_pool_t *pool, const char *text)
{
    return text == NULL || *text == '\0' ? "" : apr_pstrdup(pool, text);
}

static int is_group(const mcp_view_group_t *group, const mcp_view_entry_t *tool)
{
    return strcmp(group->account, tool->account != NULL ? tool->account : "") == 0 &&
           strcmp(group->connector, tool->connector != NULL ? tool->connector : "") == 0 &&
           strcmp(group->label, tool->label != NULL ? tool->label : "") == 0;
}

/* The number of the tool's group; NONE: no memory. At most as many as tools, whose count the tables
 * are made for. */
static uint32_t group_of(index_build_t *b, mcp_view_index_t *index, const mcp_view_entry_t *tool)
{
    const char *const parts[3] = {tool->account, tool->connector, tool->label};
    uint64_t hash = 0xcbf29ce484222325u;
    mcp_view_group_t *group;
    size_t at;

    for (size_t i = 0; i < 3; i++) {
        if (parts[i] != NULL) {
            hash = hash_bytes(hash, parts[i], strlen(parts[i]));
        }
        hash = hash_bytes(hash, "", 1);
    }
    for (at = hash & (b->group_slot_count - 1); b->group_slots[at] != 0;
         at = (at + 1) & (b->group_slot_count - 1)) {
        if (is_group(&b->groups[b->group_slots[at] - 1], tool)) {
            return b->group_slots[at] - 1;
        }
    }
    group = &b->groups[index->group_count];
    group->account = kept(index->pool, tool->account);
    group->connector = kept(index->pool, tool->connector);
    group->label = kept(index->pool, tool->label);
    if (group->account == NULL || group->connector == NULL || group->label == NULL) {
        return NONE;
    }
    b->group_slots[at] = ++index->group_count;
    return index->group_count - 1;
}

/* --- the whole ------------------------------------------------------------------ */

static void add_whole(index_build_t *b, mcp_view_index_t *index, const char *name, uint32_t tool)
{
    char buf[MCP_VIEW_WHOLE_BYTES];
    size_t bytes;
    uint64_t hash = mcp_view_whole_hash(name, strlen(name), buf, &bytes);

    if (bytes > 0) {
        b->wholes[index->whole_count++] = (mcp_view_whole_t){.hash = hash, .tool = tool};
    }
}

static mcp_wire_status_t read_tool(index_build_t *b, mcp_view_index_t *index,
                                   const mcp_view_entry_t *tool, const char **names,
                                   uint32_t *groups)
{
    const char *bare;

    if (tool->name == NULL || *tool->name == '\0') {
        return MCP_E_FIELD;
    }
    if (strlen(tool->name) > MCP_VIEW_INDEX_NAME) {
        return MCP_E_SIZE;
    }
    names[b->tool] = apr_pstrdup(index->pool, tool->name);
    groups[b->tool] = group_of(b, index, tool);
    if (names[b->tool] == NULL || groups[b->tool] == NONE) {
        return MCP_E_NOMEM;
    }
    index->size.bytes += strlen(tool->name) + 1;
    bare = mcp_view_bare_name(tool->name);
    add_whole(b, index, tool->name, b->tool);
    if (bare != tool->name) {
        add_whole(b, index, bare, b->tool);
    }
    b->text_left = MCP_VIEW_INDEX_TEXT;
    read_field(b, FIELD_NAME, bare, strlen(bare));
    if (tool->account != NULL) {
        read_field(b, FIELD_LABEL, tool->account, strlen(tool->account));
    }
    if (tool->connector != NULL) {
        read_field(b, FIELD_LABEL, tool->connector, strlen(tool->connector));
    }
    if (tool->label != NULL) {
        read_field(b, FIELD_LABEL, tool->label, strlen(tool->label));
    }
    if (tool->description != NULL) {
        read_text(b, tool->description, strlen(tool->description));
    }
    read_arguments(b, tool->schema, 0);
    return b->is_out ? MCP_E_NOMEM : MCP_OK;
}

static int make_room(index_build_t *b, size_t count)
{
    b->group_slot_count = 16;
    while (b->group_slot_count < 2 * count) {
        b->group_slot_count *= 2;
    }
    b->group_slots = calloc(b->group_slot_count, sizeof(*b->group_slots));
    b->groups = malloc((count + 1) * sizeof(*b->groups));
    b->order = malloc((count + 1) * sizeof(*b->order));
    b->wholes = malloc((2 * count + 1) * sizeof(*b->wholes));
    return b->group_slots != NULL && b->groups != NULL && b->order != NULL && b->wholes != NULL;
}

static mcp_wire_status_t fill(index_build_t *b, mcp_view_index_t *index,
                              const mcp_view_entry_t *tools)
{
    const char **names = mcp_index_take(b, index, index->count, sizeof(*names));
    uint32_t *groups = mcp_index_take(b, index, index->count, sizeof(*groups));
    mcp_wire_status_t status = b->is_out || !make_room(b, index->count) ? MCP_E_NOMEM : MCP_OK;

    for (b->tool = 0; status == MCP_OK && b->tool < index->count; b->tool++) {
        status = read_tool(b, index, &tools[b->tool], names, groups);
    }
    if (status != MCP_OK) {
        return status;
    }
    index->names = names;
    index->group_of = groups;
    mcp_index_tables(b, index);
    if (!b->is_out) {
        mcp_index_postings(b, index, &b->pairs[FIELD_NAME], 0, index->words.count, &index->name);
        mcp_index_postings(b, index, &b->pairs[FIELD_NAME], 1, index->stems.count, &index->part);
        mcp_index_postings(b, index, &b->pairs[FIELD_LABEL], 1, index->stems.count, &index->label);
        mcp_index_postings(b, index, &b->pairs[FIELD_TEXT], 1, index->stems.count, &index->text);
        mcp_index_orders(b, index);
    }
    index->size.tools = index->count;
    index->size.words = b->seen_count;
    return b->is_out ? MCP_E_NOMEM : MCP_OK;
}

static void release(index_build_t *b)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        free(b->pairs[i].rows);
    }
    free(b->seen);
    free(b->slots);
    free(b->texts);
    free(b->wholes);
    free(b->groups);
    free(b->group_slots);
    free(b->order);
}

mcp_wire_status_t mcp_view_index_build(const mcp_view_entry_t *tools, size_t count,
                                       const mcp_view_lexicon_t *lexicon, apr_pool_t *pool,
                                       mcp_view_index_t **ret)
{
    index_build_t build = {0};
    apr_pool_t *own = NULL;
    mcp_view_index_t *index;
    mcp_wire_status_t status = MCP_E_NOMEM;

    if (count > MCP_VIEW_INDEX_TOOLS) {
        return MCP_E_SIZE;
    }
    if (apr_pool_create(&own, pool) != APR_SUCCESS) {
        return MCP_E_NOMEM;
    }
    index = apr_pcalloc(own, sizeof(*index));
    if (index != NULL) {
        index->pool = own;
        index->lexicon = lexicon;
        index->count = (uint32_t)count;
        status = fill(&build, index, tools);
    }
    release(&build);
    if (status != MCP_OK) {
        apr_pool_destroy(own);
        return status;
    }
    *ret = index;
    return MCP_OK;
}
