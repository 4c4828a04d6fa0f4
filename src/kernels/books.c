/* books.c: the table of all code books, constants of the format, and how plans come by it. */
#include "kernels/books.h"
#include "kernels/cpu/books.h"

const uint16_t hdi_books[HDI_BOOK_ENTRIES] = {
#include "kernels/books.inc"
};

hd_status hdi_books_operand(const hdi_caps *caps, hd_dtype weights, const hdi_tensor *otherwise,
                            hdi_lowering *lowering, hdi_tensor *out_books, hd_error *error) {
    *out_books = *otherwise;
    if (!HDI_HAS_BOOK((uint32_t)weights) || caps->native_kernels) return HD_OK;
    const uint32_t storage = lowering->constant(lowering->user, hdi_books, sizeof hdi_books);
    if (storage == HDI_NO_INDEX)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the table of code books");
    *out_books = hdi_tensor_dense(storage, HD_I32, HD_SHAPE(sizeof hdi_books / 4));
    return HD_OK;
}
