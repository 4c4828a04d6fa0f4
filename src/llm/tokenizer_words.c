/* tokenizer_words.c: cuts text into words by the patterns that vocabularies were trained with. It takes any bytes, in
 * linear time. */
#include "llm/tokenizer_words.h"
#include "llm/utf8.h"
#include <string.h>

/* GPT-2's pattern. */
#define GPT2 "'(?:[stmd]|re|ve|ll)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
/* In others a word may end in these, in capitals too; the long s is an s in capitals and not. */
#define ENDINGS "'(?:[sS\u017FtTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
#define GAPS "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define AFTER_WORDS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" GAPS
/* Llama 3's pattern and its kin: a word takes one other character along. */
#define WORDS(numbers) ENDINGS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers AFTER_WORDS
/* GPT-4o's and its kin: words end before a capital that follows a small letter. */
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(endings, numbers) "[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "*" SMALL "+" endings \
    "|[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "+" SMALL "*" endings "|" numbers "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" GAPS
/* DeepSeek V3's. */
#define MARKED "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" \
    " ?[\\p{P}\\p{S}]+[\\r\\n]*|" GAPS
/* Letters that have case, as DeepSeek's first models list them. */
#define LETTERS_WITH_CASE \
    "A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373" \
    "\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F" \
    "\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77" \
    "\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D" \
    "\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB" \
    "\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128" \
    "\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4" \
    "\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF" \
    "\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3" \
    "\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943"
#define IDEOGRAPHS "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"

/* Names in GGUF, with a space behind each; what each in turn cuts the parts that the one before left into, matches and
 * what lies between them; and whether a word that is a token is taken as it is, whatever the merges say. Texts of those
 * that do so begin with BOS, unless the file says otherwise. */
static const struct {
    const char *names;
    bool        whole_words;
    const char *patterns[HDL_WORDS_STAGES];
} rules[] = {
    { "gpt-2 gpt2 phi-2 mpt olmo jais trillion granite-docling exaone4 jina-es jina-de jina-v1-en jina-v2-es "
      "jina-v2-de "
      "jina-v2-code roberta-bpe gigachat a.x-4.0 mellum modern-bert ", false, { GPT2 } },
    { "starcoder smollm refact command-r codeshell exaone minerva-7b mellum2 ", false, { "\\p{N}", GPT2 } },
    { "default ", false, { "[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]" } },
    { "falcon ", false, { "[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]" } },
    { "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano ", true,
      { WORDS("\\p{N}{1,3}") } },
    { "dbrx smaug-bpe glm4 chatglm-bpe ", false, { WORDS("\\p{N}{1,3}") } },
    { "qwen2 deepseek-r1-qwen stablelm2 hunyuan solar-open megrez kormo f2llmv2 grok-2 ", false, { WORDS("\\p{N}") } },
    { "qwen35 ", false,
      { ENDINGS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" GAPS } },
    { "seed-coder ", false, { ENDINGS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" GAPS } },
    { "bailingmoe bailingmoe2 llada-moe ", false,
      { ENDINGS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
        } },
    { "tekken ", true, { CASED("", "\\p{N}") } },
    { "gpt-4o llama4 kanana2 talkie minimax-m2 ", false, { CASED("(?:" ENDINGS ")?", "\\p{N}{1,3}") } },
    { "deepseek-llm ", false, { "[\\r\\n]", "\\s?[" LETTERS_WITH_CASE "]+",
      "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+", "(?<!\\s)\\s+$", IDEOGRAPHS, "\\p{N}" } },
    { "deepseek-coder ", false, { "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", IDEOGRAPHS, "\\p{N}" } },
    { "deepseek-v3 hunyuan-dense joyai-llm hy_v4 ", false,
      { "\\p{N}{1,3}", "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+", MARKED } },
    { "poro-chat bloom gpt3-finnish ", false, { " ?[^(\\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+" } },
    { "viking ", false, { " ?[^(\\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+", "\\p{N}" } },
};

/* The rule's number, or -1. */
static int find(const char *pre) {
    const size_t bytes = strlen(pre);
    for (size_t i = 0; i < sizeof rules / sizeof *rules && bytes; i++)
        for (const char *name = rules[i].names; *name; name += strcspn(name, " ") + 1)
            if (strcspn(name, " ") == bytes && memcmp(name, pre, bytes) == 0) return (int)i;
    return -1;
}

bool hdl_words_begin(const char *pre) { return find(pre) >= 0 && rules[find(pre)].whole_words; }

bool hdl_words_find(const char *pre, hdl_word_rule *out_rule) {
    const int i = find(pre);
    *out_rule = (hdl_word_rule){ 0 };
    if (i < 0) return false;
    out_rule->whole_words = rules[i].whole_words;
    for (; out_rule->count < HDL_WORDS_STAGES && rules[i].patterns[out_rule->count]; out_rule->count++)
        if (!hdl_pattern_compile(rules[i].patterns[out_rule->count], &out_rule->patterns[out_rule->count]))
            return false;
    return true;
}

/* The end of stage `s`'s next part, which begins at `at`, within `limit`. */
static size_t next_part(hdl_words *words, uint32_t s, size_t at, size_t limit) {
    const hdl_pattern *pattern = &words->rule->patterns[s];
    hdl_words_stage *stage = &words->stages[s];
    if (stage->match_end > at && stage->match == at) return stage->match_end;
    const size_t begin = s ? words->stages[s - 1].begin : 0;
    for (size_t next = at; next < limit; next = hdl_utf8_next(words->text, next, limit)) {
        const size_t found = hdl_pattern_match(pattern, words->text, begin, limit, next);
        if (found == HDL_NO_MATCH || found == next) continue;
        stage->match = next;
        stage->match_end = found;
        return next > at ? next : found;
    }
    return limit;
}

bool hdl_words_next(hdl_words *words, size_t *out_end) {
    size_t limit = words->bytes;
    if (words->at >= words->bytes) return false;
    for (uint32_t s = 0; s < words->rule->count; s++) {
        hdl_words_stage *stage = &words->stages[s];
        if (stage->end <= words->at) {
            stage->begin = words->at;
            stage->end = next_part(words, s, words->at, limit);
        }
        limit = stage->end;
    }
    *out_end = words->at = limit;
    return true;
}
