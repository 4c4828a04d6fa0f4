/* verdicts.c: which kernel variants were judged on a device, and which of them are wrong, as lines of text:
 *
 *   kernels 81985529216486895
 *   arithmetic inexact 0
 *   verdict 3 exact judged 31 wrong 2
 *
 * The first line names the kernels and answers of a build: verdicts on others say nothing. */
#include "facts/facts.h"
#include <inttypes.h>

static const char *const modes[] = { "fast", "exact" };

void hdi_verdicts_print(const hdi_facts *f, hdi_text *out) {
    if (f->kernels == 0) return;
    hdi_text_add(out, "kernels %" PRIu64 "\n", f->kernels);
    if (f->arithmetic) hdi_text_add(out, "arithmetic inexact %u\n", f->caps.inexact ? 1u : 0u);
    for (uint32_t i = 0; i < HDI_CAPS_MODULES * 2; i++) {
        const uint64_t judged = f->judged[i / 2][i % 2], wrong = f->caps.wrong[i / 2][i % 2] & judged;
        if (judged)
            hdi_text_add(out, "verdict %u %s judged %" PRIu64 " wrong %" PRIu64 "\n", i / 2, modes[i % 2], judged,
                wrong);
    }
}

/* "NAME 31" */
static bool read_number(hdi_span *rest, const char *name, uint64_t most, uint64_t *out) {
    return hdi_word_is(hdi_word_next(rest), name) && hdi_whole_read(hdi_word_next(rest), most, out);
}

static bool is_at_end(hdi_span rest) {
    const hdi_span word = hdi_word_next(&rest);
    return word.at == word.end;
}

bool hdi_verdicts_read(hdi_span line, bool *ours, hdi_facts *f) {
    uint64_t module, judged, wrong;
    hdi_span rest = line;
    if (read_number(&rest, "kernels", UINT64_MAX, &wrong)) {
        *ours = f->kernels != 0 && wrong == f->kernels;
        return is_at_end(rest);
    }
    rest = line;
    if (hdi_word_is(hdi_word_next(&rest), "arithmetic")) {
        if (!read_number(&rest, "inexact", 1, &wrong) || !is_at_end(rest)) return false;
        if (*ours) f->arithmetic = true, f->caps.inexact = wrong;
        return true;
    }
    rest = line;
    if (!read_number(&rest, "verdict", HDI_CAPS_MODULES - 1, &module)) return false;
    const hdi_span mode = hdi_word_next(&rest);
    const uint32_t exact = hdi_word_is(mode, modes[1]);
    if (!exact && !hdi_word_is(mode, modes[0])) return false;
    if (!read_number(&rest, "judged", UINT64_MAX, &judged) || !read_number(&rest, "wrong", UINT64_MAX, &wrong))
        return false;
    if (!is_at_end(rest) || (wrong & ~judged)) return false;
    if (*ours) f->judged[module][exact] = judged, f->caps.wrong[module][exact] = wrong;
    return true;
}
