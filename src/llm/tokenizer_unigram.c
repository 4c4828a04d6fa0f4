/* tokenizer_unigram.c: the pieces of a text whose scores have the largest sum, found from left to right: for every
 * place the best way to get there. The text is valid UTF-8. Sums are floats added in the order of the text and ties
 * keep the way that was found first, as in SentencePiece, so that equal vocabularies give equal ids. */
#include "llm/tokenizer_inside.h"
#include "llm/utf8.h"

/* The best way to a place: its last piece's begin and id; `begin` is NOWHERE where no way is known yet. */
typedef struct hdl_step {
    float    score;
    uint32_t begin;
    int32_t  id;
} step;

#define NOWHERE UINT32_MAX

static void reach(step *place, float score, uint32_t begin, int32_t id) {
    if (place->begin == NOWHERE || score > place->score) *place = (step){ score, begin, id };
}

/* All pieces that begin at `at`, and the character itself as an unknown one where it is no piece. */
static void go_on(const hdl_tokenizer *t, step *steps, const uint8_t *text, uint32_t at, uint32_t bytes,
                  uint32_t character) {
    uint64_t hash = HDL_HASH_START;
    uint32_t longest = t->texts.longest[text[at]];
    bool known = false;
    if (longest > bytes - at) longest = bytes - at;
    for (uint32_t count = 1; count <= longest; count++) {
        hash = hdl_hash(hash, text[at + count - 1]);
        int32_t id = hdl_text_table_probe(t, &t->texts, hash, text + at, count);
        if (id == HDL_NO_TOKEN) continue;
        reach(&steps[at + count], steps[at].score + t->scores[id], at, id);
        known |= count == character;
    }
    if (!known) reach(&steps[at + character], steps[at].score + t->unknown_score, at, HDL_NO_TOKEN);
}

bool hdl_unigram(hdl_tokenizing *run, const uint8_t *text, size_t bytes) {
    if (!hdl_grow(run->allocator, &run->steps, &run->step_capacity, bytes + 1, sizeof *run->steps)) return false;
    step *steps = run->steps;
    uint32_t end = (uint32_t)bytes, character, code;
    for (uint32_t i = 0; i <= end; i++) steps[i].begin = NOWHERE;
    steps[0] = (step){ 0, 0, HDL_NO_TOKEN };
    for (uint32_t at = 0; at < end; at += character) {
        character = hdl_utf8_read(text + at, end - at, &code);
        go_on(run->t, steps, text, at, end, character);
    }
    /* The way is known from its end: turn it round, so that each place tells where its piece ends and which it is. */
    step here = steps[end];
    for (uint32_t at = end; at > 0;) {
        uint32_t begin = here.begin;
        step before = steps[begin];
        steps[begin] = (step){ 0, at, here.id };
        at = begin;
        here = before;
    }
    for (uint32_t at = 0, next; at < end; at = next) {
        next = steps[at].begin;
        if (steps[at].id == HDL_NO_TOKEN ? !hdl_emit_unknown(run, text + at, next - at) : !hdl_emit(run, steps[at].id))
            return false;
    }
    return true;
}

void hdl_unigram_free(hdl_tokenizing *run) {
    hdl_free(run->allocator, run->steps, run->step_capacity * sizeof *run->steps);
}
