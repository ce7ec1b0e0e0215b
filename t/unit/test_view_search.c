/* The search of a view: what is an answer, in which order, and what an empty one says. */
#include "view_shop.h"

/* A small office. */
static mcp_view_index_t *office(void)
{
    mcp_view_entry_t tools[] = {
        shop_tool("notion-legal__create_page", "notion-legal", "notion", "Notion",
                  "Creates a page below another."),
        shop_tool("notion-legal__search_pages", "notion-legal", "notion", "Notion",
                  "Finds pages by their title."),
        shop_tool("notion-marketing__create_page", "notion-marketing", "notion", "Notion",
                  "Creates a page below another."),
        shop_tool("notion-marketing__search_pages", "notion-marketing", "notion", "Notion",
                  "Finds pages by their title."),
        shop_tool("jira__create_issue", "jira", "jira", "Jira",
                  "Creates an issue or a bug in a project."),
        shop_tool("jira__transition_issue", "jira", "jira", "Jira",
                  "Moves an issue to another status."),
        shop_tool("jira__list_sprints", "jira", "jira", "Jira", "Lists the sprints of a board."),
        shop_tool("github__ListPullRequests", "github", "github", "GitHub",
                  "Lists pull requests of a repository."),
        shop_tool("github__CountStargazers", "github", "github", "GitHub",
                  "Counts who starred a repository."),
        shop_tool("calendar__create_event", "calendar", "google-calendar", "Google Calendar",
                  "Creates an event with attendees."),
        shop_tool("calendar__list_events", "calendar", "google-calendar", "Google Calendar",
                  "Lists events of a day."),
        shop_tool("support__reply", "support", "zendesk freshdesk", "Help desk",
                  "Replies to a ticket. Set `connection`: zendesk-eu, freshdesk. Some values are "
                  "frozen."),
        shop_tool("support__close_ticket", "support", "zendesk freshdesk", "Help desk",
                  "Closes a ticket. Set `connection`: zendesk-eu, freshdesk and 4 more."),
        shop_tool("files__convert", "files", "files", "Files",
                  "Converts a document into another format.")};

    return shop_index(tools, COUNT(tools));
}

/* --- order ------------------------------------------------------------------- */

static void a_name_outranks_its_beginning_its_label_and_its_description(void **state)
{
    const mcp_view_entry_t tools[] = {shop_tool("a__other", "a", "a", NULL, "It will archive."),
                                      shop_tool("archive__other", "archive", "a", NULL, NULL),
                                      shop_tool("b__archiver", "b", "b", NULL, NULL),
                                      shop_tool("c__archive", "c", "c", NULL, NULL),
                                      shop_tool("d__else", "d", "d", NULL, NULL)};
    const mcp_view_index_t *index = shop_index(tools, COUNT(tools));
    const mcp_view_found_t *found = shop_ask(index, "archive it");

    (void)state;
    assert_string_equal(shop_names(index, found), "c__archive b__archiver archive__other a__other");
    assert_int_equal(found->hits[0].score, 5 * found->hits[3].score);
    assert_int_equal(found->hits[1].score, 3 * found->hits[3].score);
    assert_int_equal(found->hits[2].score, 2 * found->hits[3].score);
}

static void fields_add_up_and_each_counts_once(void **state)
{
    const mcp_view_entry_t tools[] = {shop_tool("archive__archive", "archive", "archive", "Archive",
                                                "Archive, archives and archiving."),
                                      shop_tool("x__y", NULL, NULL, NULL, "archive")};
    const mcp_view_index_t *index = shop_index(tools, COUNT(tools));
    const mcp_view_found_t *found = shop_ask(index, "archive archives the archive");

    (void)state;
    assert_int_equal(found->hit_count, 2);
    assert_int_equal(found->hits[0].score, (5 + 2 + 1) * found->hits[1].score);
}

static void equal_scores_stand_in_the_order_of_the_names_bytes(void **state)
{
    static const char *const names[] = {"\xc3\xa4__run", "z__run",        "Z__run",   "a__run",
                                        "_a__run",       "\xc3\xb6__run", "a-b__run", "a0__run"};
    mcp_view_entry_t tools[COUNT(names)];
    mcp_view_query_t query = {.text = "run something", .bytes = 13, .limit = 20};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        tools[i] = shop_tool(names[i], NULL, NULL, NULL, NULL);
    }
    const mcp_view_index_t *index = shop_index(tools, COUNT(names));
    assert_string_equal(
        shop_names(index, shop_query(index, &query)),
        "Z__run _a__run a-b__run a0__run a__run z__run \xc3\xa4__run \xc3\xb6__run");
}

static void the_account_that_the_query_names_comes_first(void **state)
{
    const mcp_view_index_t *index = office();

    (void)state;
    assert_string_equal(shop_best(index, "legal create page"), "notion-legal__create_page");
    assert_string_equal(shop_best(index, "create page notion marketing"),
                        "notion-marketing__create_page");
    assert_string_equal(shop_best(index, "search notion pages of legal"),
                        "notion-legal__search_pages");
}

static void the_word_connection_favours_no_merged_tool(void **state)
{
    const mcp_view_index_t *index = office();
    const char *const queries[] = {"connection", "connections", "set connection",
                                   "frozen",     "more",        "set frozen connection"};
    const mcp_view_found_t *found = shop_ask(index, "connection create issue");

    (void)state;
    for (size_t i = 0; i < COUNT(queries); i++) {
        assert_int_equal(shop_ask(index, queries[i])->hit_count, 0);
    }
    assert_string_equal(mcp_view_index_name(index, found->hits[0].tool), "jira__create_issue");
    for (size_t i = 0; i < found->hit_count; i++) {
        assert_null(strstr(mcp_view_index_name(index, found->hits[i].tool), "support"));
    }
}

static void a_silent_word_matches_a_name(void **state)
{
    const mcp_view_entry_t tools[] = {
        shop_tool("net__list_connections", "net", "net", "Network", NULL),
        shop_tool("net__other", "net", "net", "Network", "connections, connection")};
    const mcp_view_index_t *index = shop_index(tools, COUNT(tools));

    (void)state;
    assert_string_equal(shop_names(index, shop_ask(index, "connections")), "net__list_connections");
}

static void arguments_belong_to_the_description(void **state)
{
    json_t *schema =
        json_pack("{s:s, s:{s:{s:s}, s:{s:s, s:{s:{s:s, s:s}}}}}", "type", "object", "properties",
                  "assignee", "description", "who does it", "filter", "type", "object",
                  "properties", "reviewer", "type", "string", "description", "a colleague");
    mcp_view_entry_t tools[] = {shop_tool("a__b", "a", "a", NULL, NULL),
                                shop_tool("c__d", "c", "c", NULL, NULL)};
    const mcp_view_index_t *index;

    (void)state;
    tools[0].schema = schema;
    index = shop_index(tools, COUNT(tools));
    json_decref(schema);
    assert_string_equal(shop_names(index, shop_ask(index, "assignee")), "a__b");
    assert_string_equal(shop_names(index, shop_ask(index, "reviewer colleague")), "a__b");
    assert_int_equal(shop_ask(index, "object string")->hit_count, 0);
}

/* --- whole names ---------------------------------------------------------------- */

static void a_whole_name_in_any_form_comes_first(void **state)
{
    static const char *const forms[][2] = {
        {"notion-legal__create_page", "notion-legal__create_page"},
        {"notion-legal create_page", "notion-legal__create_page"},
        {"notion legal create page", "notion-legal__create_page"},
        {"NOTION-LEGAL__CREATE_PAGE", "notion-legal__create_page"},
        {"create_page", "notion-legal__create_page"},
        {"create page", "notion-legal__create_page"},
        {"ListPullRequests", "github__ListPullRequests"},
        {"list pull requests", "github__ListPullRequests"},
        {"list_pull_requests", "github__ListPullRequests"},
        {"github__ListPullRequests", "github__ListPullRequests"},
        {"github list pull requests", "github__ListPullRequests"},
        {"  reply?", "support__reply"}};
    const mcp_view_index_t *index = office();

    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        const mcp_view_found_t *found = shop_ask(index, forms[i][0]);

        assert_true(found->hit_count > 0);
        assert_true(found->hits[0].is_whole_name);
        assert_string_equal(mcp_view_index_name(index, found->hits[0].tool), forms[i][1]);
    }
    assert_false(shop_ask(index, "create a page")->hits[0].is_whole_name);
}

static void a_whole_name_is_found_whatever_it_is_made_of(void **state)
{
    const mcp_view_entry_t tools[] = {shop_tool("x__get_the_tool", "x", "x", NULL, NULL),
                                      shop_tool("x__12345", "x", "x", NULL, NULL),
                                      shop_tool("x__import_from_salesforce", "x", "x", NULL, NULL),
                                      shop_tool("x__to", "x", "x", NULL, NULL),
                                      shop_tool("plain", "x", "x", NULL, NULL)};
    const mcp_view_index_t *index = shop_index(tools, COUNT(tools));

    (void)state;
    for (size_t i = 0; i < COUNT(tools); i++) {
        const char *bare = strstr(tools[i].name, "__");

        assert_string_equal(shop_best(index, tools[i].name), tools[i].name);
        assert_string_equal(shop_best(index, bare != NULL ? bare + 2 : tools[i].name),
                            tools[i].name);
    }
}

/* --- the floor -------------------------------------------------------------------- */

static void a_tool_below_half_of_the_mass_is_no_answer(void **state)
{
    const mcp_view_index_t *index = office();
    mcp_view_query_t query = {.text = "convert repository sprint attendees", .is_explained = 1};
    const mcp_view_found_t *found;

    (void)state;
    query.bytes = strlen(query.text);
    found = shop_query(index, &query);
    assert_int_equal(found->hit_count, 0);
    assert_int_equal(found->empty, MCP_VIEW_EMPTY_FLOOR);
    assert_true(found->below > 0 && found->dropped_count > 0);
    for (size_t i = 0; i < found->dropped_count; i++) {
        assert_true(2 * found->dropped[i].covered < found->mass);
        assert_true(found->dropped[i].match_count > 0);
    }
    query.is_floor_off = 1;
    assert_true(shop_query(index, &query)->hit_count > 0);
}

static void exactly_half_of_the_mass_is_enough(void **state)
{
    const mcp_view_entry_t tools[] = {shop_tool("x__alpha", NULL, NULL, NULL, NULL),
                                      shop_tool("x__beta", NULL, NULL, NULL, NULL)};
    const mcp_view_index_t *index = shop_index(tools, COUNT(tools));
    const mcp_view_found_t *found = shop_ask(index, "alpha beta");

    (void)state;
    assert_string_equal(shop_names(index, found), "x__alpha x__beta");
    assert_int_equal(2 * found->hits[0].covered, found->mass);
}

static void function_words_generic_words_and_numbers_have_no_mass(void **state)
{
    const mcp_view_index_t *index = office();
    mcp_view_query_t query = {.text = "please use the tool to list 25 sprints via the API",
                              .is_explained = 1};
    const mcp_view_found_t *found;

    (void)state;
    query.bytes = strlen(query.text);
    found = shop_query(index, &query);
    assert_string_equal(mcp_view_index_name(index, found->hits[0].tool), "jira__list_sprints");
    assert_int_equal(found->hits[0].covered, found->mass);
    for (size_t i = 0; i < found->term_count; i++) {
        const mcp_view_term_t *term = &found->terms[i];
        int is_content = strcmp(term->text, "list") == 0 || strcmp(term->text, "sprints") == 0;

        assert_int_equal(term->role == MCP_VIEW_ROLE_CONTENT, is_content);
        assert_int_equal(term->weight != 0, is_content);
    }
}

static void values_have_no_mass(void **state)
{
    static const char *const queries[] = {
        "create an issue named 'a wholly unrelated yodelling Kraken'",
        "create issue for jane.doe@acme.com",
        "create an issue with https://example.com/yodelling/walrus?x=y",
        "create issue ENG-123 on 2025-01-31",
        "create an issue \xe2\x80\x9cyodelling walrus\xe2\x80\x9d"};
    const mcp_view_index_t *index = office();

    (void)state;
    for (size_t i = 0; i < COUNT(queries); i++) {
        assert_string_equal(shop_best(index, queries[i]), "jira__create_issue");
    }
    /* all there is counts; and a quoted name is a name */
    assert_string_equal(shop_best(index, "'list sprints'"), "jira__list_sprints");
    assert_string_equal(shop_best(index, "\"legal\" create page"), "notion-legal__create_page");
    /* a quotation lifts what other words find */
    assert_string_equal(shop_best(index, "jira \"list sprints\""), "jira__list_sprints");
}

/* --- words that no tool has ---------------------------------------------------------- */

static void an_absent_application_has_no_neighbours(void **state)
{
    static const char *const queries[][2] = {
        {"cal.com create booking", "Cal.com"},
        {"Create an event in Cal.com", "Cal.com"},
        {"salesforce create issue", "Salesforce"},
        {"list events of my Outlook calendar", "Outlook Calendar"},
        {"trello create page", "Trello"},
        {"hub spot create event", "HubSpot"},
        {"HubSpot create event", "HubSpot"},
        {"google sheets create page", "Google Sheets"},
        {"example.com create page", "example.com"},
        {"gdrive search pages", "Google Drive"}};
    const mcp_view_index_t *index = office();

    (void)state;
    for (size_t i = 0; i < COUNT(queries); i++) {
        mcp_view_query_t query = {
            .text = queries[i][0], .bytes = strlen(queries[i][0]), .closest = 3, .is_explained = 1};
        const mcp_view_found_t *found = shop_query(index, &query);

        assert_string_equal(shop_names(index, found), "");
        assert_int_equal(found->empty, MCP_VIEW_EMPTY_APPLICATION);
        assert_null(found->suggest);
        assert_int_equal(found->closest_count, 0);
        assert_true(found->unmatched_count > 0);
        assert_string_equal(found->unmatched[0], queries[i][1]);
        assert_int_equal(found->terms[0].role, MCP_VIEW_ROLE_APPLICATION);
    }
}

static void a_connected_application_is_known_by_each_of_its_names(void **state)
{
    const mcp_view_entry_t tools[] = {
        shop_tool("work__send", "work", "microsoft-teams", "Microsoft Teams", "Sends a message."),
        shop_tool("cal__create_booking", "cal", "cal-com", "Cal.com", NULL),
        shop_tool("doc__create_document", "doc", "word", "Office Word", NULL),
        shop_tool("li__post_text", "li", "linkedin", "LinkedIn", NULL),
        shop_tool("hub__get_weibo_rank", "hub", "trends", "Trends", NULL)};
    const mcp_view_index_t *index = shop_index(tools, COUNT(tools));

    (void)state;
    assert_string_equal(shop_best(index, "microsoft teams send message"), "work__send");
    assert_string_equal(shop_best(index, "ms teams send message"), "work__send");
    assert_string_equal(shop_best(index, "cal.com create booking"), "cal__create_booking");
    assert_string_equal(shop_best(index, "microsoft word create document"), "doc__create_document");
    assert_string_equal(shop_best(index, "linkedin post"), "li__post_text");
    assert_string_equal(shop_best(index, "weibo rank"), "hub__get_weibo_rank");
    assert_string_equal(shop_best(index, "weibo post text"), "");
}

static void an_application_called_by_an_ordinary_word_is_not_recognised(void **state)
{
    const mcp_view_index_t *index = office();

    (void)state;
    assert_string_equal(shop_best(index, "box create issue"), "jira__create_issue");
    assert_string_equal(shop_best(index, "linear create issue"), "jira__create_issue");
    assert_int_equal(shop_ask(index, "slack create issue")->empty, MCP_VIEW_EMPTY_APPLICATION);
    assert_int_equal(shop_ask(index, "stripe create issue")->empty, MCP_VIEW_EMPTY_APPLICATION);
}

static void one_connected_application_of_two_is_enough(void **state)
{
    const mcp_view_index_t *index = office();
    const mcp_view_found_t *found = shop_ask(index, "jira create issue salesforce");

    (void)state;
    assert_string_equal(mcp_view_index_name(index, found->hits[0].tool), "jira__create_issue");
    assert_string_equal(shop_words(found->unmatched, found->unmatched_count), "Salesforce");
}

static void an_unusual_word_weighs_the_most_and_an_ordinary_one_nothing(void **state)
{
    const mcp_view_index_t *index = office();
    mcp_view_query_t query = {.text = "create issue quuxification flibberty", .is_explained = 1};
    const mcp_view_found_t *found;

    (void)state;
    query.bytes = strlen(query.text);
    found = shop_query(index, &query);
    assert_int_equal(found->hit_count, 0);
    assert_null(found->suggest);
    assert_string_equal(shop_words(found->unmatched, found->unmatched_count),
                        "quuxification|flibberty");
    assert_int_equal(found->terms[2].role, MCP_VIEW_ROLE_UNUSUAL);
    assert_true(found->terms[2].weight >= found->terms[1].weight);

    query.unknown_words = MCP_VIEW_UNKNOWN_IGNORE;
    assert_string_equal(mcp_view_index_name(index, shop_query(index, &query)->hits[0].tool),
                        "jira__create_issue");

    query = (mcp_view_query_t){.text = "create issue about weather and flowers", .is_explained = 1};
    query.bytes = strlen(query.text);
    found = shop_query(index, &query);
    assert_string_equal(mcp_view_index_name(index, found->hits[0].tool), "jira__create_issue");
    assert_string_equal(shop_words(found->unmatched, found->unmatched_count), "weather|flowers");
    query.unknown_words = MCP_VIEW_UNKNOWN_COUNT;
    found = shop_query(index, &query);
    assert_int_equal(found->hit_count, 0);
    assert_int_equal(found->empty, MCP_VIEW_EMPTY_FLOOR);
}

static void a_suggestion_is_of_the_best_tools_words_and_has_an_answer(void **state)
{
    const mcp_view_index_t *index = office();
    const mcp_view_found_t *found = shop_ask(
        index, "create an event or transition sprints or convert tickets for a repository");

    (void)state;
    assert_int_equal(found->hit_count, 0);
    assert_non_null(found->suggest);
    assert_true(shop_ask(index, found->suggest)->hit_count > 0);
    /* none beside an unusual word or an absent application, and none of one word */
    assert_null(
        shop_ask(index, "create an event or transition sprints or convert tickets for a flibberty")
            ->suggest);
    assert_null(
        shop_ask(index,
                 "salesforce event or transition sprints or convert tickets for a repository")
            ->suggest);
    assert_null(shop_ask(index, "create issue")->suggest);
}

static void the_closest_are_told_only_when_asked_for(void **state)
{
    const mcp_view_index_t *index = office();
    mcp_view_query_t query = {.text = "convert repository sprint attendees"};

    (void)state;
    query.bytes = strlen(query.text);
    for (size_t i = 0; i < 6; i++) {
        query.closest = i;
        const mcp_view_found_t *found = shop_query(index, &query);

        assert_int_equal(found->hit_count, 0);
        assert_int_equal(found->closest_count,
                         i < MCP_VIEW_SEARCH_CLOSEST ? i : MCP_VIEW_SEARCH_CLOSEST);
    }
    query = (mcp_view_query_t){.text = "create issue", .bytes = 12, .closest = 3};
    assert_int_equal(shop_query(index, &query)->closest_count, 0);
}

/* --- empty, narrow, short and long ------------------------------------------------------ */

static void a_query_without_words_has_an_empty_answer(void **state)
{
    static const char *const queries[] = {"", " ", "?!", "\xf0\x9f\x98\x80", "\xff\xfe"};
    const mcp_view_index_t *index = office();
    const mcp_view_query_t none = {.text = NULL, .bytes = 0}, wrong = {.text = NULL, .bytes = 1};
    mcp_view_found_t *found = NULL;

    (void)state;
    for (size_t i = 0; i < COUNT(queries); i++) {
        found = shop_ask(index, queries[i]);
        assert_int_equal(found->hit_count + found->unmatched_count + found->closest_count, 0);
        assert_int_equal(found->empty, MCP_VIEW_EMPTY_NO_WORDS);
        assert_null(found->suggest);
    }
    assert_int_equal(shop_query(index, &none)->empty, MCP_VIEW_EMPTY_NO_WORDS);
    assert_int_equal(mcp_view_search(index, &wrong, shop_pool, &found), MCP_E_FIELD);
    assert_int_equal(shop_ask(index, "flibberty")->empty, MCP_VIEW_EMPTY_NO_MATCH);
}

static void an_empty_view_has_an_empty_answer(void **state)
{
    const mcp_view_index_t *index = shop_index(NULL, 0);

    (void)state;
    assert_int_equal(mcp_view_index_count(index), 0);
    assert_null(mcp_view_index_name(index, 0));
    assert_int_equal(shop_ask(index, "create issue")->empty, MCP_VIEW_EMPTY_NO_MATCH);
    assert_int_equal(shop_ask(index, "slack message")->empty, MCP_VIEW_EMPTY_APPLICATION);
}

static void an_account_narrows_the_answer(void **state)
{
    static const char *const rows[][2] = {{"notion-legal", "notion-legal__create_page"},
                                          {"notion-marketing", "notion-marketing__create_page"},
                                          {"notion", "notion-legal__create_page"},
                                          {"Notion", "notion-legal__create_page"},
                                          {"jira", "jira__create_issue"},
                                          {"google calendar", "calendar__create_event"},
                                          {"zendesk", ""}};
    const mcp_view_index_t *index = office();
    mcp_view_query_t query = {.text = "create page", .bytes = 11};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        query.account = rows[i][0];
        const mcp_view_found_t *found = shop_query(index, &query);

        assert_string_equal(found->hit_count > 0 ? mcp_view_index_name(index, found->hits[0].tool)
                                                 : "",
                            rows[i][1]);
        assert_int_not_equal(found->empty, MCP_VIEW_EMPTY_ACCOUNT);
        for (size_t k = 0; i < 2 && k < found->hit_count; k++) {
            assert_int_equal(strncmp(mcp_view_index_name(index, found->hits[k].tool), rows[i][0],
                                     strlen(rows[i][0])),
                             0);
        }
    }
    query.account = "notion-le";
    assert_int_equal(shop_query(index, &query)->empty, MCP_VIEW_EMPTY_ACCOUNT);
    query = (mcp_view_query_t){.text = "close ticket", .bytes = 12, .account = "freshdesk"};
    assert_string_equal(shop_names(index, shop_query(index, &query)), "support__close_ticket");
}

static mcp_view_index_t *many(size_t count)
{
    mcp_view_entry_t *tools = apr_pcalloc(shop_pool, count * sizeof(*tools));

    for (size_t i = 0; i < count; i++) {
        tools[i] = shop_tool(
            apr_psprintf(shop_pool, "a%lu__run_job_%lu", (unsigned long)(i % 50), (unsigned long)i),
            apr_psprintf(shop_pool, "a%lu", (unsigned long)(i % 50)), "jobs", "Jobs",
            apr_psprintf(shop_pool, "Runs job word%lu.", (unsigned long)(i % 1000)));
    }
    return shop_index(tools, count);
}

static void the_limit_is_five_by_default_and_twenty_at_most(void **state)
{
    static const size_t rows[][2] = {{0, 5}, {1, 1}, {5, 5}, {20, 20}, {21, 20}, {SIZE_MAX, 20}};
    const mcp_view_index_t *index = many(100);
    mcp_view_query_t query = {.text = "run job", .bytes = 7};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        query.limit = rows[i][0];
        assert_int_equal(shop_query(index, &query)->hit_count, rows[i][1]);
        assert_int_equal(shop_query(index, &query)->above, 100);
    }
}

static void a_long_query_is_cut_and_says_so(void **state)
{
    const mcp_view_index_t *index = many(2000);
    size_t room = 200000, used = 0;
    char *text = malloc(room);
    mcp_view_query_t query = {.text = text};

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < 10000; i++) {
        used += (size_t)snprintf(text + used, room - used, "%sw%lx", i > 0 ? " " : "",
                                 (unsigned long)i * 7919);
    }
    query.bytes = used;
    assert_true(shop_query(index, &query)->is_cut);
    memset(text, 'r', room);
    query.bytes = MCP_VIEW_SEARCH_BYTES;
    assert_false(shop_query(index, &query)->is_cut && query.bytes < MCP_VIEW_SEARCH_BYTES);
    query.bytes = MCP_VIEW_SEARCH_BYTES + 1;
    assert_true(shop_query(index, &query)->is_cut);
    for (size_t i = 0; i < room; i++) {
        text[i] = "'\" `a.@:/-1\xe5"[i * 7 % 13];
    }
    query.bytes = MCP_VIEW_SEARCH_BYTES;
    shop_query(index, &query);
    memcpy(text, "run job", 7);
    query.bytes = 7;
    assert_false(shop_query(index, &query)->is_cut);
    assert_int_equal(shop_query(index, &query)->hit_count, 5);
    free(text);
}

static void as_many_different_words_are_read_as_the_limit_says(void **state)
{
    const mcp_view_index_t *index = many(10);
    char text[8192];
    size_t used = 0;

    (void)state;
    for (size_t i = 0; i < MCP_VIEW_SEARCH_WORDS; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%c%c%c%c ",
                                 'a' + (int)(i / 26 % 26), 'a' + (int)(i % 26), 'q', 'x');
    }
    assert_false(shop_ask(index, text)->is_cut);
    snprintf(text + used, sizeof(text) - used, "another");
    assert_false(shop_ask(index, text)->is_cut); /* a function word */
    snprintf(text + used, sizeof(text) - used, "onemore");
    assert_true(shop_ask(index, text)->is_cut);
}

static void limits_of_an_index_are_kept(void **state)
{
    mcp_view_entry_t one = shop_tool("", NULL, NULL, NULL, NULL);
    mcp_view_index_t *index = NULL;
    char name[MCP_VIEW_INDEX_NAME + 2];

    (void)state;
    assert_int_equal(mcp_view_index_build(&one, 1, NULL, shop_pool, &index), MCP_E_FIELD);
    one.name = NULL;
    assert_int_equal(mcp_view_index_build(&one, 1, NULL, shop_pool, &index), MCP_E_FIELD);
    memset(name, 'n', sizeof(name));
    name[MCP_VIEW_INDEX_NAME + 1] = '\0';
    one.name = name;
    assert_int_equal(mcp_view_index_build(&one, 1, NULL, shop_pool, &index), MCP_E_SIZE);
    name[MCP_VIEW_INDEX_NAME] = '\0';
    assert_int_equal(mcp_view_index_build(&one, 1, NULL, shop_pool, &index), MCP_OK);
    assert_int_equal(mcp_view_index_build(&one, MCP_VIEW_INDEX_TOOLS + 1, NULL, shop_pool, &index),
                     MCP_E_SIZE);
}

static void text_beyond_the_limit_of_a_tool_is_not_read(void **state)
{
    char *text = malloc(MCP_VIEW_INDEX_TEXT + 100);
    mcp_view_entry_t tools[2];
    const mcp_view_index_t *index;

    (void)state;
    assert_non_null(text);
    memset(text, ' ', MCP_VIEW_INDEX_TEXT + 100);
    text[MCP_VIEW_INDEX_TEXT + 99] = '\0';
    memcpy(text + MCP_VIEW_INDEX_TEXT - 8, "walrus yodelling", 16);
    tools[0] = shop_tool("a__b", NULL, NULL, NULL, text);
    tools[1] = shop_tool("c__d", NULL, NULL, NULL, NULL);
    index = shop_index(tools, 2);
    free(text);
    assert_string_equal(shop_best(index, "walrus"), "a__b");
    assert_string_equal(shop_best(index, "yodelling"), "");
}

/* --- scripts ------------------------------------------------------------------------------ */

static void scripts_without_spaces_are_found(void **state)
{
    const mcp_view_entry_t tools[] = {
        shop_tool("img__make", "img", "img", NULL,
                  "\xe5\x9b\xbe\xe7\x89\x87\xe7\x94\x9f\xe6\x88\x90\xe5"
                  "\xb7\xa5\xe5\x85\xb7"), /* 图片生成工具 */
        shop_tool("train__get", "train", "train", NULL,
                  "\xe6\x9f\xa5\xe8\xaf\xa2\xe7\x81\xab\xe8\xbd\xa6\xe7"
                  "\xa5\xa8"), /* 查询火车票 */
        shop_tool("x__y", "x", "x", NULL, "Something else.")};
    const mcp_view_index_t *index = shop_index(tools, COUNT(tools));

    (void)state;
    assert_string_equal(shop_best(index, "\xe5\x9b\xbe\xe7\x89\x87"), "img__make"); /* 图片 */
    assert_string_equal(shop_best(index, "\xe7\x81\xab\xe8\xbd\xa6\xe7\xa5\xa8"),
                        "train__get"); /* 火车票 */
    assert_string_equal(shop_best(index, "\xe7\x94\x9f\xe6\x88\x90\xe5\x9b\xbe\xe7\x89\x87"),
                        "img__make"); /* 生成图片: the seam is left out */
    assert_string_equal(shop_best(index, "\xe7\xa5\xa8"), "train__get"); /* 票 alone */
    assert_string_equal(shop_best(index, "\xe5\xa4\xa9\xe6\xb0\x94\xe9\xa2\x84\xe6\x8a\xa5"),
                        ""); /* 天气预报 */
}

static void a_name_that_borders_cut_is_found_whole_and_in_parts(void **state)
{
    const mcp_view_entry_t tools[] = {shop_tool("v__getYouTubeVideo", "v", "v", NULL, NULL),
                                      shop_tool("s__uploadToS3", "s", "s", NULL, NULL),
                                      shop_tool("g__list", "g", "g", "GitHub", NULL)};
    const mcp_view_index_t *index = shop_index(tools, COUNT(tools));

    (void)state;
    assert_string_equal(shop_best(index, "youtube video"), "v__getYouTubeVideo");
    assert_string_equal(shop_best(index, "YouTube"), "v__getYouTubeVideo");
    assert_string_equal(shop_best(index, "s3 upload"), "s__uploadToS3");
    assert_string_equal(shop_best(index, "github list"), "g__list");
    assert_string_equal(shop_best(index, "GitHub"), "g__list");
}

/* --- explanations ---------------------------------------------------------------------------- */

static void an_explanation_adds_up(void **state)
{
    const mcp_view_index_t *index = office();
    mcp_view_query_t query = {
        .text = "create a Notion page for \"legal\" or an issue", .is_explained = 1, .limit = 3};
    const mcp_view_found_t *found, *plain;

    (void)state;
    query.bytes = strlen(query.text);
    found = shop_query(index, &query);
    query.is_explained = 0;
    plain = shop_query(index, &query);
    assert_string_equal(shop_names(index, found), shop_names(index, plain));
    assert_int_equal(plain->term_count + plain->dropped_count, 0);
    assert_true(found->hit_count > 0 && found->term_count > 5);
    for (size_t i = 0; i < found->hit_count; i++) {
        const mcp_view_hit_t *hit = &found->hits[i];
        uint64_t points = 0, covered = 0;

        for (size_t k = 0; k < hit->match_count; k++) {
            const mcp_view_term_t *term = &found->terms[hit->matches[k].term];

            assert_true(hit->matches[k].fields != 0);
            assert_true(k == 0 || hit->matches[k].term > hit->matches[k - 1].term);
            points += hit->matches[k].points;
            covered += term->role == MCP_VIEW_ROLE_CONTENT ? term->weight : 0;
        }
        assert_int_equal(points, hit->score);
        assert_int_equal(covered, hit->covered);
    }
}

static void values_have_names(void **state)
{
    (void)state;
    assert_string_equal(mcp_view_unknown_text(MCP_VIEW_UNKNOWN_ORDINARY), "ordinary");
    assert_string_equal(mcp_view_unknown_text(MCP_VIEW_UNKNOWN_IGNORE), "ignore");
    assert_string_equal(mcp_view_role_text(MCP_VIEW_ROLE_LEFT_OUT), "left_out");
    assert_string_equal(mcp_view_empty_text(MCP_VIEW_EMPTY_FLOOR), "floor");
    assert_null(mcp_view_empty_text(MCP_VIEW_EMPTY_NOT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_outranks_its_beginning_its_label_and_its_description),
        cmocka_unit_test(fields_add_up_and_each_counts_once),
        cmocka_unit_test(equal_scores_stand_in_the_order_of_the_names_bytes),
        cmocka_unit_test(the_account_that_the_query_names_comes_first),
        cmocka_unit_test(the_word_connection_favours_no_merged_tool),
        cmocka_unit_test(a_silent_word_matches_a_name),
        cmocka_unit_test(arguments_belong_to_the_description),
        cmocka_unit_test(a_whole_name_in_any_form_comes_first),
        cmocka_unit_test(a_whole_name_is_found_whatever_it_is_made_of),
        cmocka_unit_test(a_tool_below_half_of_the_mass_is_no_answer),
        cmocka_unit_test(exactly_half_of_the_mass_is_enough),
        cmocka_unit_test(function_words_generic_words_and_numbers_have_no_mass),
        cmocka_unit_test(values_have_no_mass),
        cmocka_unit_test(an_absent_application_has_no_neighbours),
        cmocka_unit_test(a_connected_application_is_known_by_each_of_its_names),
        cmocka_unit_test(an_application_called_by_an_ordinary_word_is_not_recognised),
        cmocka_unit_test(one_connected_application_of_two_is_enough),
        cmocka_unit_test(an_unusual_word_weighs_the_most_and_an_ordinary_one_nothing),
        cmocka_unit_test(a_suggestion_is_of_the_best_tools_words_and_has_an_answer),
        cmocka_unit_test(the_closest_are_told_only_when_asked_for),
        cmocka_unit_test(a_query_without_words_has_an_empty_answer),
        cmocka_unit_test(an_empty_view_has_an_empty_answer),
        cmocka_unit_test(an_account_narrows_the_answer),
        cmocka_unit_test(the_limit_is_five_by_default_and_twenty_at_most),
        cmocka_unit_test(a_long_query_is_cut_and_says_so),
        cmocka_unit_test(as_many_different_words_are_read_as_the_limit_says),
        cmocka_unit_test(limits_of_an_index_are_kept),
        cmocka_unit_test(text_beyond_the_limit_of_a_tool_is_not_read),
        cmocka_unit_test(scripts_without_spaces_are_found),
        cmocka_unit_test(a_name_that_borders_cut_is_found_whole_and_in_parts),
        cmocka_unit_test(an_explanation_adds_up),
        cmocka_unit_test(values_have_names),
    };

    return cmocka_run_group_tests(tests, shop_open, shop_close);
}
