/* Converts API descriptions and judges what comes of them, for t/bench: a line a document (name, ok or refused, operations, bytes of schemas, ms, KiB at most so far, why).
 * usage: convert_all FILE… */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <apr_strings.h>
#include <jansson.h>

#include "policyd/oas.h"
#include "policyd/oas_files.h"
#include "policyd/pd_catalog.h"
#include "proto/mcp_hash.h"

static char *read_file(const char *path, size_t *bytes, apr_pool_t *pool)
{
    FILE *file = fopen(path, "rb");
    char *text;
    long end;

    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < 0) {
        return NULL;
    }
    rewind(file);
    text = apr_palloc(pool, (size_t)end + 1);
    *bytes = fread(text, 1, (size_t)end, file);
    text[*bytes] = '\0';
    fclose(file);
    return text;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    int i;

    apr_initialize();
    if (mcp_hash_init() != MCP_OK) return 2;
    for (i = 1; i < argc; i++) {
        apr_pool_t *pool;
        char why[600] = "";
        oas_options_t options;
        oas_files_t *files = NULL;
        oas_doc_t *doc = NULL;
        json_t *root = NULL, *made = NULL, *report = NULL;
        size_t bytes = 0, operations = 0, schema = 0;
        double began = now_ms();
        char *text;
        int ok = 0;
        struct rusage usage;

        apr_pool_create(&pool, NULL);
        memset(&options, 0, sizeof options);
        text = read_file(argv[i], &bytes, pool);
        if (text == NULL) {
            snprintf(why, sizeof why, "can't be read");
        } else if (oas_read(text, bytes, &root, why, sizeof why) == OAS_OK &&
                   oas_files_make(argv[i], NULL, pool, &files, why, sizeof why) == OAS_OK &&
                   oas_doc_make(root, argv[i], oas_files_load, files, pool, &doc, why, sizeof why) == OAS_OK &&
                   oas_convert(doc, &options, pool, &made, &report, why, sizeof why) == OAS_OK) {
            json_t *file;
            size_t k;

            ok = 1;
            json_array_foreach(made, k, file)
            {
                pd_fault_t fault;
                json_t *normal = NULL;
                pd_connector_t *connector = NULL;

                memset(&fault, 0, sizeof fault);
                if (pd_catalog_check(file, &normal, &fault) != PD_OK) {
                    snprintf(why, sizeof why, "check: %.500s", fault.message);
                    ok = 0;
                } else if (pd_catalog_compile("con_x", normal, &connector) != PD_OK) {
                    snprintf(why, sizeof why, "compile");
                    ok = 0;
                } else {
                    int n;
                    operations += (size_t)connector->operations->nelts;
                    for (n = 0; n < connector->operations->nelts; n++)
                        schema += APR_ARRAY_IDX(connector->operations, n, pd_operation_t).schema_bytes;
                    pd_catalog_release(&connector);
                }
                json_decref(normal);
            }
        }
        getrusage(RUSAGE_SELF, &usage);
        printf("%s\t%s\t%lu\t%lu\t%.0f\t%ld\t%s\n", argv[i], ok ? "ok" : "refused", (unsigned long)operations, (unsigned long)schema, now_ms() - began, usage.ru_maxrss, why);
        fflush(stdout);
        json_decref(made);
        json_decref(report);
        apr_pool_destroy(pool);
    }
    return 0;
}
