/* Handles are never reused, and the table grows. */
#include "book.h"
#include "check.h"

#include <stdlib.h>

enum { OBJECTS = 20000 };

int main(void) {
    static uint64_t handle[OBJECTS];
    struct book book = {0};
    for (int i = 0; i < OBJECTS; i++) {
        struct object *object = book_new(&book, i % 2 ? EVENT : STREAM, sizeof *object);
        handle[i] = object->handle;
        CHECK(i == 0 || handle[i] > handle[i - 1]);
        if (i % 3 == 0)
            book_delete(&book, object);
    }
    for (int i = 0; i < OBJECTS; i++) {
        CHECK((book_find(&book, handle[i], i % 2 ? EVENT : STREAM) != NULL) == (i % 3 != 0));
        CHECK(book_find(&book, handle[i], GRAPH) == NULL);
    }
    CHECK(book_find(&book, 0, STREAM) == NULL);
    size_t cursor = 0;
    int events = 0;
    for (struct object *object; (object = book_next(&book, EVENT, &cursor)); events++)
        book_delete(&book, object);
    CHECK_EQUAL(events, OBJECTS / 3 + 1); /* odd numbers below 20000 that 3 does not divide */
    cursor = 0;
    for (struct object *object; (object = book_next(&book, STREAM, &cursor));)
        book_delete(&book, object);
    free(book.slots);
    return 0;
}
