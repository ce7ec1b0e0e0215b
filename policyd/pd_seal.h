/* Credentials at rest: sealed under the master key with the connection's id and origin as
 * associated data, so that a sealed blob moved to another connection or origin
 * does not open. */
#ifndef PD_SEAL_H
#define PD_SEAL_H

#include <apr_pools.h>
#include <jansson.h>

#include "pd_err.h"

/* Seals a credential object; *ret in pool. */
pd_status_t pd_seal_credential(const unsigned char key[32], const char *connection_id,
                               const char *origin, const json_t *credential, apr_pool_t *pool,
                               const void **ret, size_t *ret_bytes);
/* Opens it; *ret: new reference, whose strings the caller wipes with pd_seal_wipe(). PD_E_CRYPTO
 * if it does not open. */
pd_status_t pd_unseal_credential(const unsigned char key[32], const char *connection_id,
                                 const char *origin, const void *sealed, size_t bytes,
                                 json_t **ret);
/* Overwrites every string of an object before it is let go. */
void pd_seal_wipe(json_t *secret);

/* Reads the master key from file (32 bytes as 64 hex digits and a newline; owner only, else
 * refused). */
pd_status_t pd_seal_load_key(const char *file, unsigned char key[32], char *why, size_t size);
/* Makes a new key file, mode 0600; refuses to overwrite. */
pd_status_t pd_seal_make_key(const char *file, char *why, size_t size);

#endif
