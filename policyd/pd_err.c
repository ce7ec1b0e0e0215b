/* Texts of the daemon's status codes, and the one way to fill a fault. */
#include "pd_err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const status_texts[] = {
    [-PD_OK] = "ok",
    [-PD_E_INTERNAL] = "internal error",
    [-PD_E_NOMEM] = "out of memory",
    [-PD_E_INVALID] = "invalid",
    [-PD_E_NOT_FOUND] = "not found",
    [-PD_E_CONFLICT] = "conflict",
    [-PD_E_REVISION] = "revision differs",
    [-PD_E_FULL] = "queue full",
    [-PD_E_TIMEOUT] = "timed out",
    [-PD_E_IO] = "input/output error",
    [-PD_E_CORRUPT] = "store is damaged",
    [-PD_E_NEWER] = "store is of a newer version",
    [-PD_E_LOCKED] = "locked by another process",
    [-PD_E_CRYPTO] = "cryptographic check failed",
    [-PD_E_CLOSED] = "shutting down",
    [-PD_E_SYSTEM] = "refused by the operating system",
    [-PD_E_ROLLBACK] = "rolled back on request",
};

const char *pd_status_text(pd_status_t status)
{
    int index = -(int)status;

    if (index < 0 || index >= (int)(sizeof(status_texts) / sizeof(status_texts[0]))) {
        return "unknown status";
    }
    return status_texts[index];
}

/* Drops a character that a cut left incomplete: these texts become JSON, which must be UTF-8. */
static void trim_cut_character(char *text)
{
    size_t end = strlen(text);
    size_t start = end;
    size_t need = 1;
    unsigned char lead;

    while (start > 0 && end - start < 4 && ((unsigned char)text[start - 1] & 0xc0) == 0x80) {
        start--;
    }
    if (start == 0) {
        return;
    }
    start--;
    lead = (unsigned char)text[start];
    if (lead >= 0xf0) {
        need = 4;
    } else if (lead >= 0xe0) {
        need = 3;
    } else if (lead >= 0xc0) {
        need = 2;
    }
    if (end - start < need) {
        text[start] = '\0';
    }
}

pd_status_t pd_fault(pd_fault_t *fault, mcp_code_t code, const char *hint, const char *format, ...)
{
    va_list args;

    if (fault == NULL || fault->code != MCP_CODE_NONE) {
        return PD_E_INVALID;
    }
    fault->code = code;
    va_start(args, format);
    if (vsnprintf(fault->message, sizeof(fault->message), format, args) < 0) {
        fault->message[0] = '\0';
    }
    va_end(args);
    trim_cut_character(fault->message);
    (void)snprintf(fault->hint, sizeof(fault->hint), "%s", hint == NULL ? "" : hint); /* may cut */
    trim_cut_character(fault->hint);
    return PD_E_INVALID;
}
