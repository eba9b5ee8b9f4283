/* Every row of the libraries' tables: what it says to write is written and nothing beside it, and what is set can be
 * read. */
#include "check.h"
#include "cuda.h"
#include "self.h"

#include <string.h>

enum kind { WRITES, TELLS_SIZE, MAKES, ENDS, KEEPS, TELLS_KEPT };

/* What a row promises: arguments count from 1; 0: none. `many` is an argument that is a count or a number of bytes, of
 * elements of `bytes`; `type` one that is a cudaDataType. */
struct row {
    enum kind kind;
    const char *name, *field;
    int out, bytes, out_2, bytes_2, many, type;
};

#define BOTH(ROW, name) ROW(name) ROW(name##_64)
#define WORKS(name) {WRITES, #name, NULL, 0, 0, 0, 0, 0, 0},
#define WORKS_ON(name, stream) WORKS(name)
#define WORKS_IN(name, address, bytes) WORKS(name)
#define WORKS_IN_ELEMENTS(name, address, count, element) WORKS(name)
#define ACCEPTS(name) WORKS(name)
#define LENDS(name, address, bytes) WORKS(name)
#define RETURNS(name, field)
#define MATRIX(name, rows, columns, values) CREATES(name, 1)
#define REFUSES(name)
#define GIVES_2(name, out, bytes, out_2, bytes_2) {WRITES, #name, NULL, out, bytes, out_2, bytes_2, 0, 0},
#define GIVES(name, out, bytes) GIVES_2(name, out, bytes, 0, 0)
#define GIVES_TYPED(name, out, type) {WRITES, #name, NULL, out, 4, 0, 0, 0, type},
#define GIVES_MANY(name, out, count, element) {WRITES, #name, NULL, out, element, 0, 0, count, 0},
#define RESIDUALS(name, out, count) GIVES_MANY(name, out, count, 8)
#define TELLS(name, out, bytes) GIVES(name, out, bytes)
#define TELLS_MANY(name, out, bytes) GIVES_MANY(name, out, bytes, 1)
#define SIZES(name, out, bytes) GIVES(name, out, bytes)
#define SIZES_2(name, out, bytes, out_2, bytes_2) GIVES_2(name, out, bytes, out_2, bytes_2)
#define SIZE_IS_2(name, out, bytes, size, out_2, bytes_2) {TELLS_SIZE, #name, NULL, out, bytes, out_2, bytes_2, 0, 0},
#define SIZE_IS(name, out, bytes, size) SIZE_IS_2(name, out, bytes, size, 0, 0)
#define VECTOR_SIZE(name, sparse, out) GIVES(name, out, 8)
#define PRODUCT_SIZE(name, sparse, product, algorithm, out) GIVES(name, out, 8)
#define DENSE(name, rows, columns) CREATES(name, 1)
#define COMPRESSED(name, rows, columns, values, index, type) CREATES(name, 1)
#define CREATES(name, out) {MAKES, #name, NULL, out, 8, 0, 0, 0, 0},
#define DESTROYS(name) {ENDS, #name, NULL, 0, 0, 0, 0, 0, 0},
#define SETS(name, field) {KEEPS, #name, #field, 0, 0, 0, 0, 0, 0},
#define READS(name, field, bytes) {TELLS_KEPT, #name, #field, 2, bytes, 0, 0, 0, 0},

static const struct row rows[] = {
#include "cublas.def"
#include "cublaslt.def"
#include "cufft.def"
#include "curand.def"
#include "cusolver.def"
#include "cusparse.def"
#include "cusparselt.def"
#include "nvrtc.def"
};

enum { ARGUMENTS = 24, ROOM = 64, MANY = 3, FLOAT_OF_32_BITS = 0, POISON = 0xa5 };

typedef uint64_t A;
typedef int (*function)(A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A);

static unsigned char memory[ARGUMENTS + 1][ROOM];

/* Calls a row; argument i is the address of memory[i] unless it is given. */
static int call(const struct row *row, A first, A second) {
    function found = (function)self_find(row->name, strlen(row->name), "");
    A a[ARGUMENTS + 1];
    if (!found)
        fprintf(stderr, "%s is not exported\n", row->name);
    CHECK(found);
    memset(memory, POISON, sizeof memory);
    for (int i = 1; i <= ARGUMENTS; i++)
        a[i] = (A)memory[i];
    a[1] = first ? first : a[1];
    a[2] = second ? second : a[2];
    if (row->many)
        a[row->many] = MANY;
    if (row->type)
        a[row->type] = FLOAT_OF_32_BITS;
    return found(a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16],
                 a[17], a[18], a[19], a[20], a[21], a[22], a[23], a[24]);
}

static int promised(const struct row *row, int argument) {
    if (argument == row->out)
        return row->many ? row->bytes * MANY : row->bytes;
    return argument == row->out_2 ? row->bytes_2 : 0;
}

static void check_written(const struct row *row) {
    for (int i = 1; i <= ARGUMENTS; i++)
        for (int at = 0; at < ROOM; at++) {
            unsigned char wanted = at < promised(row, i) ? 0 : POISON;
            if (row->kind == TELLS_SIZE && i == row->out && at < row->bytes)
                continue; /* a size of some kind */
            if (memory[i][at] != wanted)
                fprintf(stderr, "%s, argument %d, byte %d\n", row->name, i, at);
            CHECK_EQUAL(memory[i][at], wanted);
        }
}

static A made_handle(const struct row *row) {
    A handle = 0;
    CHECK_EQUAL(call(row, 0, 0), 0);
    memcpy(&handle, memory[row->out], sizeof handle);
    CHECK(handle != 0);
    return handle;
}

/* The row that comes next, of one kind and with one field if that matters. */
static const struct row *following(const struct row *row, enum kind kind, const char *field) {
    const struct row *end = rows + sizeof rows / sizeof *rows;
    while (++row < end && (row->kind != kind || (field && strcmp(row->field, field))))
        continue;
    return row < end ? row : NULL;
}

static void check_objects(void) {
    for (const struct row *row = rows; row; row = following(row, MAKES, NULL)) {
        if (row->kind != MAKES || row->out != 1 || !following(row, ENDS, NULL) || following(row, ENDS, NULL) > row + 2)
            continue;
        A handle = made_handle(row);
        CHECK_EQUAL(call(following(row, ENDS, NULL), handle, 0), 0);
        CHECK(call(following(row, ENDS, NULL), handle, 0) != 0);
    }
}

/* Handles of cuBLAS and cuSOLVER: the table's first rows make them. */
static void check_settings(A (*make)(void), const char *prefix) {
    A handle = make(), kept = 0x1234;
    for (const struct row *row = rows; (row = following(row, TELLS_KEPT, NULL));) {
        const struct row *setter = row;
        if (strncmp(row->name, prefix, strlen(prefix)))
            continue;
        while (setter->kind != KEEPS || strcmp(setter->field, row->field))
            setter--;
        CHECK_EQUAL(call(setter, handle, kept), 0);
        CHECK_EQUAL(call(row, handle, 0), 0);
        A told = 0;
        memcpy(&told, memory[2], (size_t)row->bytes);
        CHECK_EQUAL(told, kept);
        kept++;
    }
}

int cublasCreate_v2(void **out);
int cusolverDnCreate(void **out);

static A cublas_handle(void) {
    void *out = NULL;
    CHECK_EQUAL(cublasCreate_v2(&out), 0);
    return (A)out;
}

static A cusolver_handle(void) {
    void *out = NULL;
    CHECK_EQUAL(cusolverDnCreate(&out), 0);
    return (A)out;
}

int main(void) {
    CHECK(sizeof rows / sizeof *rows > 500);
    for (const struct row *row = rows; row < rows + sizeof rows / sizeof *rows; row++)
        if (row->kind == WRITES || row->kind == TELLS_SIZE) {
            call(row, 0, 0);
            check_written(row);
        }
    check_objects();
    check_settings(cublas_handle, "cublas");
    check_settings(cusolver_handle, "cusolver");
    return 0;
}
