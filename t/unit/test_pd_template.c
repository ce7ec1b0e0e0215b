/* Which of two URL templates is the more specific one, and whether they meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <apr_general.h>

#include "../../policyd/pd_template.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static apr_pool_t *pool;

static const pd_template_t *read_path(const char *path)
{
    pd_operation_t operation = {.id = "x", .method = "GET", .path = path};

    return pd_template_read(&operation, pool);
}

static int sign(int value)
{
    return (value > 0) - (value < 0);
}

static void literals_are_more_specific_from_left_to_right(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        int order; /* of a against b */
    } table[] = {
        {"/users/{id}", "/users/admin", -1},
        {"/users/{id}", "/users/{name}", 0},
        {"/{a}/x", "/y/{b}", -1},
        {"/a/{id}", "/a/{+rest}", 1},
        {"/a/{id}.json", "/a/{id}", 1},
        {"/a/{id}?kind=x", "/a/{id}", 1},
        {"/a/b", "/A/B", 0},
        {"/a?x=1&y=2", "/a?x=1", 1},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(table); i++) {
        const pd_template_t *a = read_path(table[i].a);
        const pd_template_t *b = read_path(table[i].b);

        assert_int_equal(sign(pd_template_order(a, b)), table[i].order);
        assert_int_equal(sign(pd_template_order(b, a)), -table[i].order);
    }
}

static void templates_meet_where_a_url_fits_both(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        int meet;
    } table[] = {
        {"/users/{id}", "/users/admin", 1},
        {"/users/{id}", "/users/ADMIN/x", 0},
        {"/users/{id}", "/groups/{id}", 0},
        {"/Users/{id}", "/users/admin", 1},
        {"/v/{id}.json", "/v/a.json", 1},
        {"/v/{id}.json", "/v/.json", 0},
        {"/v/{id}.json", "/v/a.xml", 0},
        {"/v/{id}.json", "/v/{id}.xml", 0},
        {"/v/a{id}", "/v/{id}b", 1},
        {"/f/{+path}", "/f/a/b/c", 1},
        {"/f/{+path}", "/g/a/b/c", 0},
        {"/f/{+path}/end", "/f/a/b/c", 0},
        {"/f/{+path}/end", "/f/a/b/end", 1},
        {"/f/{+path}", "/f", 0},
        {"/f/{+path}/x", "/{+any}", 1},
        {"/", "/", 1},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(table); i++) {
        const pd_template_t *a = read_path(table[i].a);
        const pd_template_t *b = read_path(table[i].b);

        if (pd_template_overlaps(a, b) != table[i].meet ||
            pd_template_overlaps(b, a) != table[i].meet) {
            fail_msg("%s and %s", table[i].a, table[i].b);
        }
    }
}

static void a_shape_forgets_names_case_and_the_order_of_the_query(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        int is_same;
    } table[] = {
        {"/things/{id}", "/things/{name}", 1},
        {"/Things/{id}", "/things/{id}", 1},
        {"/things/{id}", "/things/{+id}", 0},
        {"/things/{a}-{b}", "/things/{c}-{d}", 1},
        {"/things/{a}-{b}", "/things/{c}", 0},
        {"/things?a=1&b=2", "/things?b=2&a=1", 1},
        {"/things?a=1", "/things", 0},
        {"/things#one", "/things#two", 1},
        {"/things/{id", "/things/{id", 1},
    };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(table); i++) {
        int is_same = strcmp(pd_template_shape(read_path(table[i].a)),
                             pd_template_shape(read_path(table[i].b))) == 0;

        if (is_same != table[i].is_same) {
            fail_msg("%s and %s", table[i].a, table[i].b);
        }
    }
}

static int setup(void **state)
{
    (void)state;
    assert_int_equal(apr_initialize(), APR_SUCCESS);
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(literals_are_more_specific_from_left_to_right),
        cmocka_unit_test(templates_meet_where_a_url_fits_both),
        cmocka_unit_test(a_shape_forgets_names_case_and_the_order_of_the_query)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
