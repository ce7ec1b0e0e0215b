/* What the importer's rooms share beside oas.h. */
#ifndef OAS_PRIVATE_H
#define OAS_PRIVATE_H

#include <stdio.h>

#include "oas.h"

/* Says why, cut to its room; OAS_FAIL, so that a function can return it. */
#define oas_fail(why, size, ...) ((void)snprintf((why), (size), __VA_ARGS__), OAS_FAIL)

/* An iterator's argument is not const in jansson, but what it points at is only read. */
#define oas_iterable(value) ((json_t *)(uintptr_t)(value))

#endif
