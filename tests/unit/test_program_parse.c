/* test_program_parse.c: texts that are refused and where, hostile texts, lack of memory, and time. */
#include "spent.h"
#include "unit/program_cases.h"
#include <stdio.h>

/* Parses exactly `bytes` bytes, with nothing behind them that could be read; all memory must come back. A text that is
 * taken must print to a text that reads back to the same bytes. */
static hd_status try_text(const char *text, size_t bytes, size_t fail_at, hd_error *error) {
    char *exact = malloc(bytes ? bytes : 1);
    test_memory memory;
    assert_non_null(exact);
    memcpy(exact, text, bytes);
    *error = (hd_error){ 0 };
    hd_status status = HD_STATUS_OUT_OF_HOST_MEMORY;
    hd_program *p = hdi_program_new(&test_memory_start(&memory, fail_at)->allocator, NULL);
    if (p) status = hdi_program_parse(p, exact, bytes, test_find_kernel, NULL, error);
    if (p) assert_int_equal(p->error.status, status);
    if (status == HD_OK && fail_at == 0) {
        hdi_text first = { .allocator = &memory.allocator }, second = { .allocator = &memory.allocator };
        hd_program *again = hdi_program_new(&memory.allocator, NULL);
        hdi_program_print(p, &first);
        assert_int_equal(hdi_program_parse(again, first.bytes, first.count, test_find_kernel, NULL, NULL), HD_OK);
        hdi_program_print(again, &second);
        assert_string_equal(first.bytes, second.bytes);
        assert_true(hdi_program_hash(p) == hdi_program_hash(again));
        hdi_text_free(&first);
        hdi_text_free(&second);
        hdi_program_free(again);
    }
    hdi_program_free(p);
    free(exact);
    assert_int_equal(memory.bytes_alive, 0);
    return status;
}

static char *every_op_text(void) {
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    hdi_text text = { .allocator = &hdi_default_allocator };
    test_every_op(p);
    hdi_program_print(p, &text);
    hdi_program_free(p);
    assert_false(text.failed);
    return text.bytes;
}

#define X "heddle 1\nx = input f32[2,3] \"x\"\n"
#define LONG_WORD "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
                  "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
                  "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
                  "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" /* 256 */
static const struct {
    hd_status   status;
    const char *text, *reason;
} refused[] = {
    { HD_STATUS_PARSE, "", "line 1, column 1: the text is empty: it begins with heddle 1" },
    { HD_STATUS_PARSE, "\n# nothing\n", "line 3, column 1: the text is empty: it begins with heddle 1" },
    { HD_STATUS_PARSE, "\xEF\xBB\xBFheddle 1\n", "line 1, column 1: expected heddle 1" },
    { HD_STATUS_PARSE, "x = input f32[1] \"x\"\n", "line 1, column 1: the first line must be: heddle 1" },
    { HD_STATUS_UNSUPPORTED_VERSION, "heddle 2\n", "line 1, column 7: version 2 of the text form is not known, only 1" },
    { HD_STATUS_PARSE, "heddle\n", "line 1, column 7: expected a whole number" },
    { HD_STATUS_PARSE, "heddle 1 x\n", "line 1, column 10: expected the end of the line" },
    { HD_STATUS_PARSE, "heddle 1\nheddle 1\n", "line 2, column 8: expected = after heddle" },
    { HD_STATUS_PARSE, X "y = frobnicate x\n", "line 3, column 5: no operation is called frobnicate" },
    { HD_STATUS_PARSE, X "y = none x\n", "line 3, column 5: no operation is called none" },
    { HD_STATUS_PARSE, X "y = \n", "line 3, column 5: expected an operation" },
    { HD_STATUS_PARSE, X "y relu x\n", "line 3, column 3: expected = after y" },
    { HD_STATUS_PARSE, X "= relu x\n", "line 3, column 1: expected a value's name or output" },
    { HD_STATUS_PARSE, X "x = relu x\n", "line 3, column 1: there is a value x already" },
    { HD_STATUS_PARSE, X "y = relu y\n", "line 3, column 10: no value is called y" },
    { HD_STATUS_PARSE, X "y = relu X\n", "line 3, column 10: no value is called X" },
    { HD_STATUS_PARSE, X "y = relu x, x\n", "line 3, column 11: expected an operand or attribute" },
    { HD_STATUS_PARSE, X "y = relu \x01\n", "line 3, column 10: expected an operand or attribute" },
    { HD_STATUS_LIMIT, X "y = add x x x\n", "line 3, column 5: add: 3 operands, at most 2" },
    { HD_STATUS_UNKNOWN_VALUE, X "y = add x -\n", "line 3, column 5: add: operand 2 is value 0, the program has 1 to 1" },
    { HD_STATUS_SHAPE, X "  y = matmul x x\n", "line 3, column 7: matmul: inner lengths differ: [2,3] x [2,3]" },
    { HD_STATUS_TYPE, X "i = cast x dtype=i32\ny = gelu i\n", "line 4, column 5: gelu: operand 1 is i32, it must be f32, f16 or bf16" },
    { HD_STATUS_PARSE, X "y = softmax x\n", "line 3, column 5: softmax needs axis=" },
    { HD_STATUS_PARSE, X "y = softmax x axis\n", "line 3, column 15: axis is written with = and a value" },
    { HD_STATUS_PARSE, X "y = softmax x axis=1 axis=1\n", "line 3, column 22: axis is given twice" },
    { HD_STATUS_PARSE, X "y = softmax x axis=1.0\n", "line 3, column 20: expected a whole number" },
    { HD_STATUS_PARSE, X "y = softmax x axis=\n", "line 3, column 20: expected a whole number" },
    { HD_STATUS_PARSE, X "y = softmax x axis=-\n", "line 3, column 20: expected a whole number" },
    { HD_STATUS_PARSE, X "y = softmax x axis=9223372036854775808\n", "line 3, column 20: expected a whole number" },
    { HD_STATUS_PARSE, X "y = softmax x eps=1\n", "line 3, column 15: softmax has no attribute eps; it has axis" },
    { HD_STATUS_PARSE, X "y = relu x axis=1\n", "line 3, column 12: relu has no attribute axis; it has none" },
    { HD_STATUS_PARSE, X "y = matmul x x transpose_b=1\n", "line 3, column 16: transpose_b is written without =" },
    { HD_STATUS_PARSE, X "y = scale x factor=one\n", "line 3, column 20: expected a number" },
    { HD_STATUS_PARSE, X "y = scale x factor=1e39\n", "line 3, column 20: expected a number" },
    { HD_STATUS_PARSE, X "y = scale x factor=0x10\n", "line 3, column 20: expected a number" },
    { HD_STATUS_PARSE, X "y = permute x axes=1,0\n", "line 3, column 20: expected [" },
    { HD_STATUS_PARSE, X "y = permute x axes=[1,0\n", "line 3, column 24: expected ]" },
    { HD_STATUS_PARSE, X "y = permute x axes=[1,]\n", "line 3, column 23: expected a whole number" },
    { HD_STATUS_PARSE, X "y = permute x axes=[1 0]\n", "line 3, column 23: expected ]" },
    { HD_STATUS_LIMIT, X "y = permute x axes=[0,1,2,3,4,5,6]\n", "line 3, column 20: the list has more than 6 numbers" },
    { HD_STATUS_PARSE, X "y = slice x begin=[0,0] end=[1]\n", "line 3, column 5: the lists have 2 and 1 numbers" },
    { HD_STATUS_PARSE, X "y = slice x begin=[0,0]\n", "line 3, column 5: slice needs end=" },
    { HD_STATUS_PARSE, X "y = cast x dtype=f33\n", "line 3, column 18: no data type is called f33" },
    { HD_STATUS_PARSE, X "y = cast x dtype=none\n", "line 3, column 18: no data type is called none" },
    { HD_STATUS_PARSE, X "y = input f32[2]\n", "line 3, column 17: expected \"" },
    { HD_STATUS_PARSE, X "y = input f32 \"y\"\n", "line 3, column 15: expected [" },
    { HD_STATUS_PARSE, X "y = input f32[2] \"y\n", "line 3, column 20: the name has no closing quote" },
    { HD_STATUS_PARSE, X "y = input f32[2] \"y\" x\n", "line 3, column 22: expected the end of the line" },
    { HD_STATUS_INVALID_ARGUMENT, X "y = input f32[2] \"\"\n", "line 3, column 5: input: the name is empty" },
    { HD_STATUS_INVALID_ARGUMENT, X "y = input f32[2] \"a\tb\"\n",
      "line 3, column 5: input: byte 2 of the name is a quote, a control character or no UTF-8" },
    { HD_STATUS_LIMIT, X "y = input f32[2] \"" LONG_WORD "\"\n", "line 3, column 19: the name has more than 255 bytes" },
    { HD_STATUS_LIMIT, X LONG_WORD " = relu x\n", "line 3, column 1: a word has more than 255 bytes" },
    { HD_STATUS_NAME_TAKEN, X "y = input f32[2] \"x\"\n", "line 3, column 5: input: the name \"x\" is taken" },
    { HD_STATUS_NAME_TAKEN, X "output x \"x\"\n", "line 3, column 1: output: the name \"x\" is taken" },
    { HD_STATUS_PARSE, X "output y \"y\"\n", "line 3, column 8: no value is called y" },
    { HD_STATUS_PARSE, X "output x y\n", "line 3, column 10: expected \"" },
    { HD_STATUS_PARSE, X "output\n", "line 3, column 7: expected a value" },
    { HD_STATUS_PARSE, X "y = rope x x pairing=thirds\n", "line 3, column 22: expected halves or neighbours" },
    { HD_STATUS_PARSE, X "y = rope x x factors=[1,a]\n", "line 3, column 25: expected a number" },
    { HD_STATUS_PARSE, X "y = dispatch x kernel=0123 dtype=f32 shape=[1] groups=[1,1,1]\n",
      "line 3, column 23: expected a kernel's hash, 16 digits of 0-9 and a-f" },
    { HD_STATUS_KERNEL_NOT_FOUND, X "y = dispatch x kernel=0000000000000000 dtype=f32 shape=[1] groups=[1,1,1]\n",
      "line 3, column 23: no kernel has the hash 0000000000000000" },
    { HD_STATUS_PARSE, X "y = dispatch x kernel=0123456789abcdef push=0123456\n", "line 3, column 45: expected words of 8 digits of 0-9 and a-f" },
    { HD_STATUS_PARSE, X "y = dispatch x kernel=0123456789abcdef push=0123456G\n", "line 3, column 45: expected words of 8 digits of 0-9 and a-f" },
    { HD_STATUS_LIMIT, X "y = dispatch x push=" LONG_WORD "\n", "line 3, column 21: a word has more than 255 bytes" },
    { HD_STATUS_PARSE, X "y = dispatch x groups=[1,1]\n", "line 3, column 23: expected 3 group counts" },
    { HD_STATUS_LIMIT, X "y = dispatch x groups=[1,1,4294967296]\n", "line 3, column 23: a group count is not of 32 bits" },
    { HD_STATUS_PARSE, X "y = dispatch x groups=[1,1,1]\n", "line 3, column 5: dispatch needs kernel=" },
};

static void refusals_name_the_place(void **state) {
    (void)state;
    for (size_t i = 0; i < HDI_COUNT(refused); i++) {
        hd_error error;
        hd_status status = try_text(refused[i].text, strlen(refused[i].text), 0, &error);
        if (status != refused[i].status) fail_msg("%s: %s, %s", refused[i].text, hd_status_name(status), error.text);
        assert_string_equal(error.text, refused[i].reason);
    }
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    assert_int_equal(hdi_program_parse(p, NULL, 0, NULL, NULL, NULL), HD_STATUS_PARSE);
    assert_int_equal(hd_input(p, "x", HD_F32, HD_SHAPE(1)), 0); /* it stays failed */
    hdi_program_free(p);
    hd_error error;
    assert_int_equal(try_text("heddle 1\0\n", 10, 0, &error), HD_STATUS_PARSE);
    assert_int_equal(try_text("heddle 1\nx = input f32[1] \"a\0b\"\n", 33, 0, &error), HD_STATUS_PARSE);
}

static void every_truncation(void **state) {
    (void)state;
    char *text = every_op_text();
    size_t taken = 0, bytes = strlen(text);
    for (size_t cut = 0; cut <= bytes; cut++) {
        hd_error error;
        taken += try_text(text, cut, 0, &error) == HD_OK;
    }
    print_message("%zu truncations, %zu are programs\n", bytes + 1, taken);
    assert_true(taken >= 80 && taken < bytes / 4);
    free(text);
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Changes the text in one to four places: a byte, a bit, a cut, a line twice, bytes of another place. */
static size_t mutate(char *text, size_t bytes, size_t room, uint64_t *random) {
    static const char likely[] = "\n\"#=[],- v019_.\xFF\x80";
    for (uint64_t n = next_random(random) % 4 + 1; n > 0 && bytes > 0; n--) {
        size_t at = next_random(random) % bytes, length = next_random(random) % 20 + 1, from = next_random(random) % bytes;
        length = HDI_MIN(length, bytes - HDI_MAX(at, from));
        switch (next_random(random) % 6) {
        case 0: text[at] = likely[next_random(random) % (sizeof likely - 1)]; break;
        case 1: text[at] = (char)(text[at] ^ 1 << next_random(random) % 8); break;
        case 2:
            memmove(text + at, text + at + length, bytes - at - length);
            bytes -= length;
            break;
        case 3: memmove(text + at, text + from, length); break;
        case 4: /* a whole line twice */
            while (at > 0 && text[at - 1] != '\n') at--;
            for (length = 0; at + length < bytes && text[at + length] != '\n';) length++;
            length += at + length < bytes;
            /* fall through */
        default:
            if (bytes + length > room) break;
            memmove(text + at + length, text + at, bytes - at);
            bytes += length;
            break;
        }
    }
    return bytes;
}

static void mutated_texts(void **state) {
    (void)state;
    char *whole = every_op_text(), text[16384];
    uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
    size_t taken = 0, whole_bytes = strlen(whole);
    assert_true(2 * whole_bytes < sizeof text);
    for (int i = 0; i < 20000; i++) {
        hd_error error;
        memcpy(text, whole, whole_bytes);
        size_t bytes = mutate(text, whole_bytes, sizeof text, &random);
        hd_status status = try_text(text, bytes, 0, &error);
        taken += status == HD_OK;
        if (status) assert_true(strncmp(error.text, "line ", 5) == 0);
    }
    print_message("20,000 mutations, %zu are programs\n", taken);
    assert_true(taken > 100 && taken < 10000);
    free(whole);
}

static void memory_may_run_out(void **state) {
    (void)state;
    char *text = every_op_text();
    for (size_t n = 1;; n++) {
        hd_error error;
        hd_status status = try_text(text, strlen(text), n, &error);
        if (status == HD_OK) {
            print_message("%zu allocations, each failed once\n", n - 1);
            assert_true(n > 10);
            break;
        }
        assert_int_equal(status, HD_STATUS_OUT_OF_HOST_MEMORY);
        assert_true(n < 1000);
    }
    free(text);
}

/* 100,000 inputs and as many outputs: 300,000 names. */
static void long_texts_take_no_time(void **state) {
    (void)state;
    hdi_text text = { .allocator = &hdi_default_allocator };
    hdi_text_add(&text, "heddle 1\n");
    for (int i = 0; i < 100000; i++) hdi_text_add(&text, "value_%d = input f32[2] \"in %d\"\noutput value_%d \"out %d\"\n", i, i, i, i);
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    const double began = spent_seconds();
    assert_int_equal(hdi_program_parse(p, text.bytes, text.count, NULL, NULL, NULL), HD_OK);
    const double took = spent_seconds() - began;
    print_message("%zu bytes, 300,000 names: %.0f us\n", text.count, took * 1e6);
    assert_true(took < 5);
    assert_int_equal(p->output_count, 100000);
    hdi_program_free(p);
    hdi_text_free(&text);
}

/* One line of 4 MiB, in ways that could make a parser look twice. */
static void long_lines_take_no_time(void **state) {
    (void)state;
    static const char *const parts[] = { "x ", "-", "\"", "[", "factors=[1", ",1", "#", " ", "1", "=" };
    size_t room = 4u << 20;
    char *text = malloc(room);
    for (size_t k = 0; k < HDI_COUNT(parts); k++) {
        size_t at = (size_t)snprintf(text, room, X "y = rope x x %s", parts[k][0] == ',' ? "factors=[1" : "");
        while (at + 16 < room) {
            memcpy(text + at, parts[k], strlen(parts[k]));
            at += strlen(parts[k]);
        }
        hd_error error;
        const double began = spent_seconds();
        assert_int_not_equal(try_text(text, at, 0, &error), HD_OK);
        assert_true(spent_seconds() - began < 2);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_name_the_place), cmocka_unit_test(every_truncation),
        cmocka_unit_test(mutated_texts),           cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(long_texts_take_no_time), cmocka_unit_test(long_lines_take_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
