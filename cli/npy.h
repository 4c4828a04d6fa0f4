/* npy.h: NumPy's .npy files. Files come from outside: every size is checked before memory is taken, and a refusal says
 * what to do. Knows nothing of heddle but how many axes a tensor has. */
#ifndef CLI_NPY_H
#define CLI_NPY_H

#include <heddle.h>
#include <stdio.h>

#define NPY_WHY 256 /* room for a reason, with its ending zero */

/* An array in C order, little-endian. */
typedef struct npy_array {
    char     kind;       /* 'f' float, 'i' and 'u' integers, 'b' bool */
    uint32_t item_bytes;
    hd_shape shape;
    uint64_t bytes;      /* of the data */
    void    *data;       /* npy_free */
} npy_array;

/* Reads one array up to the end of the file; Fortran order is turned into C order. False: `why` says why and what to
 * do. */
bool npy_read(FILE *file, npy_array *out_array, char why[NPY_WHY]);
bool npy_load(const char *path, npy_array *out_array, char why[NPY_WHY]);
/* Writes format 1.0. */
bool npy_save(const char *path, const npy_array *array, char why[NPY_WHY]);
void npy_free(npy_array *array);

#endif
