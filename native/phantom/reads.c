#define _POSIX_C_SOURCE 200809L /* strdup, open */
#include "reads.h"

#include "state.h"
#include "usage.h"
#include "values.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_READERS = 4096, MOST_BYTES_EACH = 8 << 20, LOOK_AHEAD = 16, LOOK_BACK = 64, STOPPED_EXIT_STATUS = 77 };
static const uint64_t MOST_LOGGED_BYTES = 256 << 20;

struct entry {
    struct phantom_read read;
    const unsigned char *bytes; /* read.stored of them */
    bool used;                  /* it has answered a read */
};

/* The reads of one thread. Threads are numbered by their first read, so that another run finds them again. */
struct reader {
    struct entry *log, *learnt;
    int64_t logged, log_room, learnt_count, learnt_room, next;
    bool taken; /* a thread makes its learnt reads again */
};

static struct {
    char *stop_note;
    bool logging, answering;
    struct reader *readers[MOST_READERS];
    int numbered;          /* threads that have read */
    uint64_t logged_bytes;
    unsigned char *learnt; /* what the entries of all `learnt` point into */
    unsigned generation; /* changes in a forked child, where the numbers begin anew */
} reads;

static _Thread_local struct {
    unsigned generation;
    int number; /* of this thread, counted from 1; 0: it has not read yet */
    int64_t count;
    struct reader *learnt; /* whose reads this thread makes again */
    struct phantom_answer handed[PHANTOM_ANSWERS];
    int handed_count, next;
} mine;

static struct reader *reader_of(int number) {
    if (number < 0 || number >= MOST_READERS)
        return NULL;
    if (!reads.readers[number])
        reads.readers[number] = calloc(1, sizeof **reads.readers);
    return reads.readers[number];
}

static bool append(struct entry **list, int64_t *count, int64_t *room, struct entry entry) {
    if (*count == *room) {
        int64_t more = *room ? *room * 2 : 64;
        struct entry *grown = realloc(*list, (size_t)more * sizeof *grown);
        if (!grown)
            return false;
        *list = grown;
        *room = more;
    }
    (*list)[(*count)++] = entry;
    return true;
}

static bool all_zero(const unsigned char *bytes, uint64_t size) {
    return !size || (!bytes[0] && !memcmp(bytes, bytes + 1, size - 1));
}

static void keep(struct reader *reader, const void *bytes, uint64_t size, bool certain) {
    struct entry entry = {.read = {.thread = mine.number - 1, .certain = certain, .size = size}};
    bool worth = size <= MOST_BYTES_EACH && reads.logged_bytes + size <= MOST_LOGGED_BYTES && !all_zero(bytes, size);
    unsigned char *copy = worth ? malloc(size) : NULL;
    if (copy) {
        entry.bytes = memcpy(copy, bytes, size);
        entry.read.stored = size;
        reads.logged_bytes += size;
    }
    if (!append(&reader->log, &reader->logged, &reader->log_room, entry))
        free(copy);
}

/* The answer that Python has handed over for this read; the last one holds for what follows it. */
static bool handed(void *to, uint64_t size) {
    if (!mine.handed_count)
        return false;
    const struct phantom_answer *answer = &mine.handed[mine.next];
    if (mine.next + 1 < mine.handed_count)
        mine.next++;
    if (answer->size != size && (!answer->number || size > answer->size))
        return false;
    memcpy(to, answer->bytes, size);
    return true;
}

/* The learnt read that is made again now. Where the next one is of another size, some have fallen away or come in another
 * order: it is one of those soon to come, or of those passed over. NULL: none was like it. */
static struct entry *find_learnt(const struct reader *reader, uint64_t size) {
    for (int64_t i = reader->next; i < reader->learnt_count && i < reader->next + LOOK_AHEAD; i++)
        if (reader->learnt[i].read.size == size && !reader->learnt[i].used)
            return &reader->learnt[i];
    for (int64_t i = reader->next > LOOK_BACK ? reader->next - LOOK_BACK : 0; i < reader->next; i++)
        if (reader->learnt[i].read.size == size && !reader->learnt[i].used)
            return &reader->learnt[i];
    return NULL;
}

/* A read of certain bytes needs no answer, so it takes only the very next one, lest it take that of another. */
static const struct entry *next_learnt(struct reader *reader, uint64_t size, bool certain) {
    struct entry *found = find_learnt(reader, size);
    if (!found || (certain && found != &reader->learnt[reader->next]))
        return NULL;
    found->used = true;
    if (found >= &reader->learnt[reader->next])
        reader->next = found - reader->learnt + 1;
    return found;
}

static bool take(const struct entry *entry, void *to) {
    if (entry && entry->read.stored)
        memcpy(to, entry->bytes, entry->read.stored);
    return entry && entry->read.stored;
}

/* Ends the process without any of its own clean-up: it will run again with answers. */
static void stop(uint64_t from, uint64_t size) {
    int file = open(reads.stop_note, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file >= 0) {
        dprintf(file, "read of %llu bytes at 0x%llx\n", (unsigned long long)size, (unsigned long long)from);
        close(file);
    }
    _exit(STOPPED_EXIT_STATUS);
}

static void number_this_thread(void) {
    if (mine.generation != reads.generation || !mine.number) {
        mine.generation = reads.generation;
        mine.number = ++reads.numbered;
        mine.count = 0;
        mine.learnt = NULL;
    }
}

static struct reader *begun_alike(uint64_t size) {
    for (int i = 0; i < MOST_READERS; i++) {
        struct reader *reader = reads.readers[i];
        if (reader && !reader->taken && reader->learnt_count && reader->learnt[0].read.size == size)
            return reader;
    }
    return NULL;
}

/* Threads that run side by side may begin to read in another order: where the learnt reads of this thread's number
 * began otherwise, it is taken for the first one whose reads began alike. */
static struct reader *learnt_by_this_thread(uint64_t size) {
    if (!mine.learnt) {
        struct reader *same = reader_of(mine.number - 1), *other = NULL;
        if (!same || same->taken || !find_learnt(same, size))
            other = begun_alike(size);
        mine.learnt = other ? other : same;
        if (mine.learnt)
            mine.learnt->taken = true;
    }
    return mine.learnt;
}

static bool all_certain(unsigned char *to, uint64_t from, uint64_t width, uint64_t height, uint64_t pitch) {
    bool certain = true;
    for (uint64_t i = 0; i < height && certain; i++)
        certain = values_read(from + i * pitch, to + i * width, width);
    return certain;
}

void reads_answer(void *to, uint64_t from, uint64_t width, uint64_t height, uint64_t pitch) {
    uint64_t size = width * height;
    bool certain = all_certain(to, from, width, height, pitch);
    if (!certain && reads.stop_note)
        stop(from, size);
    number_this_thread();
    mine.count++;
    struct reader *learnt = reads.answering ? learnt_by_this_thread(size) : NULL;
    const struct entry *entry = learnt ? next_learnt(learnt, size, certain) : NULL;
    if (reads.answering && !certain && !entry)
        usage_remark("the program read device values that were not read when they were learnt: these read as zero");
    if (!certain && !handed(to, size) && !take(entry, to))
        memset(to, 0, size);
    struct reader *logging = reads.logging ? reader_of(mine.number - 1) : NULL;
    if (logging)
        keep(logging, to, size, certain);
}

void reads_forget(void) {
    free(reads.stop_note);
    reads.stop_note = NULL;
    reads.logging = reads.answering = false;
    reads.numbered = 0;
    reads.generation++;
}

static int stop_at_uncertain_read(const char *note) {
    free(reads.stop_note);
    reads.stop_note = note ? strdup(note) : NULL;
    return note && !reads.stop_note ? -1 : 0;
}

PHANTOM_API int phantom_stop_at_uncertain_read(const char *note) {
    return DRIVER(stop_at_uncertain_read(note));
}

PHANTOM_API void phantom_log_reads(int on) {
    DRIVER((reads.logging = on != 0, SUCCESS));
}

PHANTOM_API void phantom_hand_answers(const struct phantom_answer *answers, int n) {
    mine.handed_count = n < 0 ? 0 : n > PHANTOM_ANSWERS ? PHANTOM_ANSWERS : n;
    mine.next = 0;
    for (int i = 0; i < mine.handed_count; i++)
        mine.handed[i] = answers[i];
}

PHANTOM_API int64_t phantom_reads_so_far(int32_t *thread) {
    bool any = mine.generation == reads.generation && mine.number;
    *thread = any ? mine.number - 1 : -1;
    return any ? mine.count : 0;
}

PHANTOM_API int phantom_certain(uint64_t from, void *to, uint64_t size) {
    int certain = DRIVER(values_read(from, to, size));
    return certain;
}

/* Entries as bytes: a struct phantom_read, then what it stores. */
static int64_t write_log(unsigned char *out, int64_t room) {
    int64_t at = 0;
    for (int number = 0; number < reads.numbered && number < MOST_READERS; number++) {
        const struct reader *reader = reads.readers[number];
        for (int64_t i = 0; reader && i < reader->logged; i++) {
            const struct entry *entry = &reader->log[i];
            int64_t end = at + (int64_t)(sizeof entry->read + entry->read.stored);
            if (end <= room) {
                memcpy(out + at, &entry->read, sizeof entry->read);
                if (entry->read.stored)
                    memcpy(out + at + sizeof entry->read, entry->bytes, entry->read.stored);
            }
            at = end;
        }
    }
    return at;
}

PHANTOM_API int64_t phantom_read_log(void *out, int64_t room) {
    enter();
    int64_t size = write_log(out, room);
    leave(SUCCESS);
    return size;
}

static int learn(const unsigned char *bytes, int64_t size) {
    unsigned char *copy = size > 0 ? malloc((size_t)size) : NULL;
    free(reads.learnt);
    reads.learnt = copy;
    if (!copy && size)
        return -1;
    for (int i = 0; i < MOST_READERS; i++)
        if (reads.readers[i]) {
            reads.readers[i]->learnt_count = reads.readers[i]->next = 0;
            reads.readers[i]->taken = false;
        }
    for (int64_t at = 0; at < size;) {
        struct entry entry = {.bytes = copy + at + sizeof entry.read};
        if (size - at < (int64_t)sizeof entry.read)
            return -1;
        memcpy(&entry.read, bytes + at, sizeof entry.read);
        at += (int64_t)sizeof entry.read;
        struct reader *reader = reader_of(entry.read.thread);
        if (!reader || entry.read.stored > (uint64_t)(size - at) ||
            (entry.read.stored && entry.read.stored != entry.read.size))
            return -1;
        memcpy(copy + at, bytes + at, entry.read.stored);
        at += (int64_t)entry.read.stored;
        if (!append(&reader->learnt, &reader->learnt_count, &reader->learnt_room, entry))
            return -1;
    }
    reads.answering = true;
    return 0;
}

PHANTOM_API int phantom_answer_reads(const void *learnt_log, int64_t size) {
    return DRIVER(learn(learnt_log, size));
}
