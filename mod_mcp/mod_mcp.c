/* mod_mcp: the module record and its hooks, nothing else. */
#include "mcp_config.h"
#include "mcp_handler.h"
#include "mcp_input.h"
#include "mcp_lifecycle.h"
#include "mcp_rest.h"
#include "mcp_status.h"
#include "mcp_wellknown.h"

#include <stdint.h>
#include <string.h>

#include <apr_strings.h>
#include <http_connection.h>
#include <http_request.h>
#include <mod_status.h>
#include <mpm_common.h>

static const char OURS[] = "ours"; /* the mark of a request that leads to no file */

static int is_below(const char *uri, const char *path)
{
    size_t bytes = path != NULL ? strlen(path) : 0;

    return bytes > 0 && strncmp(uri, path, bytes) == 0 && (uri[bytes] == '/' || uri[bytes] == '\0');
}

/* Our endpoints are no files: nothing of them is mapped to one, whatever their paths look like. Here the location is known; what has been rewritten into
 * another path since is not judged by it. Runs last but for core, so that Redirect, RewriteRule and Alias work here as everywhere. */
static int translate_name(request_rec *r)
{
    const mcp_dir_conf_t *conf = mcp_config_dir(r);
    int is_endpoint = conf != NULL && conf->is_endpoint == 1 && is_below(r->uri, conf->path);
    int is_api = conf != NULL && conf->is_api == 1 && is_below(r->uri, conf->api_path);

    if (!is_endpoint && !is_api) {
        return DECLINED;
    }
    ap_set_module_config(r->request_config, &mcp_module, (void *)(uintptr_t)OURS);
    r->filename = apr_pstrcat(r->pool, "mcp:", is_endpoint ? conf->path : conf->api_path, NULL);
    return OK;
}

/* The walk through directories, whose access rules speak of files, is left out for what is no file, and so is httpd's own answer to TRACE, which asks for
 * no token; the rules of <Location> still hold. Runs first, before core maps the URL to a file. */
static int map_to_storage(request_rec *r)
{
    return ap_get_module_config(r->request_config, &mcp_module) == OURS || mcp_wellknown_is_ours(r) ? OK : DECLINED;
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    /* after the whole configuration is read, with -t too: contradictions are told before anything restarts */
    ap_hook_check_config(mcp_config_check, NULL, NULL, APR_HOOK_MIDDLE);
    /* the parent only says that it is there; all work waits for the children */
    ap_hook_post_config(mcp_lifecycle_post_config, NULL, NULL, APR_HOOK_MIDDLE);
    /* after mod_ssl and others have set up OpenSSL in the child: we change nothing process-wide of theirs */
    ap_hook_child_init(mcp_lifecycle_child_init, NULL, NULL, APR_HOOK_LAST);
    ap_hook_child_stopping(mcp_lifecycle_child_stopping, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_translate_name(translate_name, NULL, NULL, APR_HOOK_LAST);
    ap_hook_map_to_storage(map_to_storage, NULL, NULL, APR_HOOK_FIRST);
    /* a slow sender holds no worker */
    mcp_input_register();
    ap_hook_pre_connection(mcp_input_pre_connection, NULL, NULL, APR_HOOK_MIDDLE);
    /* a section of server-status, where mod_status is loaded */
    APR_OPTIONAL_HOOK(ap, status_hook, mcp_status_show, NULL, NULL, APR_HOOK_MIDDLE);
    /* before mod_dir, autoindex and the default handler look for files */
    ap_hook_handler(mcp_wellknown_handler, NULL, NULL, APR_HOOK_FIRST);
    /* a REST API may lie below an endpoint's path, which answers for all else there */
    ap_hook_handler(mcp_rest_handler, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_handler(mcp_handler, NULL, NULL, APR_HOOK_FIRST);
}

/* not AP_DECLARE_MODULE: mcp_private.h has declared the log macro's index already */
module AP_MODULE_DECLARE_DATA mcp_module = {STANDARD20_MODULE_STUFF,
                          mcp_config_create_dir,
                          mcp_config_merge_dir,
                          mcp_config_create_server,
                          mcp_config_merge_server,
                          mcp_config_commands,
                          register_hooks,
                          AP_MODULE_FLAG_NONE};
