/* policyd.conf, and clients.allow: the first byte of the input chooses. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>

#include "../../policyd/pd_config.h"
#include "../../policyd/pd_curve.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return apr_initialize() == APR_SUCCESS ? 0 : 1;
}

/* What every accepted configuration has. */
static void check_config(const pd_config_t *config)
{
    int i;

    if (config->state_dir[0] != '/' || config->key_dir[0] != '/' || config->admin_socket[0] != '/' ||
        config->pid_file[0] != '/' || config->query_endpoints->nelts < 1 ||
        config->query_endpoints->nelts > PD_CONFIG_MAX_ENDPOINTS ||
        config->reserved_labels->nelts < 1 || config->actors->nelts > PD_CONFIG_MAX_ACTORS) {
        abort();
    }
    for (i = 0; i < config->actors->nelts; i++) {
        if (APR_ARRAY_IDX(config->actors, i, pd_config_actor_t).uid <= 0) {
            abort();
        }
    }
}

static void try_config(const char *text, size_t bytes, apr_pool_t *pool)
{
    pd_config_t *config = NULL;
    char why[256];

    memset(why, 0, sizeof why);
    if (pd_config_parse("fuzz", text, bytes, pool, &config, why, sizeof why) == PD_OK) {
        check_config(config);
    } else if (config != NULL || why[0] == '\0' || memchr(why, '\n', sizeof why) != NULL) {
        abort(); /* a refusal writes nothing but its reason, in one line */
    }
}

static void try_allow(const char *text, size_t bytes)
{
    pd_curve_allow_t *allow = NULL;
    char why[256] = "";

    if (pd_curve_allow_parse("fuzz", text, bytes, &allow, why, sizeof why) == PD_OK) {
        if (pd_curve_allow_count(allow) > PD_CURVE_MAX_ALLOW) {
            abort();
        }
        pd_curve_allow_free(&allow);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = NULL;

    if (size == 0 || apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return 0;
    }
    if (data[0] == 'A') {
        try_allow((const char *)data + 1, size - 1);
    } else {
        try_config((const char *)data + 1, size - 1, pool);
    }
    apr_pool_destroy(pool);
    return 0;
}
