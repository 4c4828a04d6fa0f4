// pages.glsl: where the keys of a sequence lie in k and v. PAGE 0: one sequence's rows after the other's. Else in pages of
// 2^PAGE rows, of which a sequence has push.S >> PAGE; pages[] has their numbers in the pool of push.N pages. A tile that a
// kernel reads at once lies in one page, so that its number is asked for once.

// The page that holds the key; a number outside of the pool becomes the nearest one inside.
uint page_of(uint batch, uint key) {
    return PAGE == 0u ? 0u : uint(min(max(pages[batch * (push.S >> PAGE) + (min(key, push.S - 1u) >> PAGE)], 0), int(push.N) - 1));
}
// The row of k and v that the key is; `page` is the one that holds it.
uint row_of(uint batch, uint page, uint key) {
    return PAGE == 0u ? batch * push.S + key : (page << PAGE) + (key & ((1u << PAGE) - 1u));
}
