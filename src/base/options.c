/* options.c: the one table of options, and the one place that reads the environment. */
#include "base/base.h"
#include <stdlib.h>

static const char *const names[HDI_OPTION_COUNT] = {
#define OPTION_NAME(field, name, value, help) name,
    HDI_OPTION_LIST(OPTION_NAME)
#undef OPTION_NAME
};

const char *hdi_option_get(hdi_option option) {
    const char *text = getenv(names[option]);
    return text && text[0] ? text : NULL;
}
