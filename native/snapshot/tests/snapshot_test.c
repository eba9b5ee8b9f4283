/* Tests of the snapshot reader on pickles written by hand, byte by byte. Exit status: number of failed checks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"

static int failures;

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            failures++;                                                                    \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, __func__, #condition); \
        }                                                                                  \
    } while (0)

/* A pickle under construction. */
struct pickle {
    uint8_t bytes[65536];
    size_t length;
};

static void raw(struct pickle *p, const char *bytes, size_t length)
{
    memcpy(p->bytes + p->length, bytes, length);
    p->length += length;
}

#define RAW(p, literal) raw(p, literal, sizeof literal - 1)

static void text(struct pickle *p, const char *s)
{
    RAW(p, "\x8c");
    uint8_t length = (uint8_t)strlen(s);
    raw(p, (const char *)&length, 1);
    raw(p, s, length);
}

/* {"segments": [], "device_traces": [[ ... */
static void begin(struct pickle *p)
{
    p->length = 0;
    RAW(p, "\x80\x04}(");
    text(p, "segments");
    RAW(p, "]");
    text(p, "device_traces");
    RAW(p, "](](");
}

static void end(struct pickle *p) { RAW(p, "eeu."); }

/* Reads a copy of exactly the right size, so that the sanitizer sees every byte read too many. */
static uint32_t read_copy(const uint8_t *bytes, size_t length, struct snapshot *out)
{
    uint8_t *copy = malloc(length > 0 ? length : 1);
    memcpy(copy, bytes, length);
    uint32_t status = snapshot_read(copy, length, (uint64_t)64 << 20, out);
    free(copy);
    return status;
}

static uint32_t read_pickle(const struct pickle *p, struct snapshot *out) { return read_copy(p->bytes, p->length, out); }

static uint32_t status_of(const char *bytes, size_t length)
{
    struct snapshot out;
    uint32_t status = read_copy((const uint8_t *)bytes, length, &out);
    snapshot_free(&out);
    return status;
}

#define STATUS(literal) status_of(literal, sizeof literal - 1)

static void entry_becomes_row(void)
{
    struct pickle p;
    struct snapshot out;
    begin(&p);
    RAW(&p, "}(");
    text(&p, "action"); text(&p, "segment_map");
    text(&p, "addr"); RAW(&p, "\x8a\x06\x00\x00\x00\xb6\x0c\x7f");
    text(&p, "size"); RAW(&p, "J\x00\x00@\x01");
    text(&p, "stream"); RAW(&p, "K\x07");
    text(&p, "time_us"); RAW(&p, "\x8a\x07\xf6\xc9\x25\xf9\x75\x62\x06");
    text(&p, "pool_id"); RAW(&p, "K\x02K\x00\x86");
    text(&p, "user_metadata"); text(&p, "step 3");
    text(&p, "compile_context"); text(&p, "N/A");
    RAW(&p, "u");
    end(&p);
    CHECK(read_pickle(&p, &out) == SNAPSHOT_OK);
    CHECK(out.row_count == 1 && out.device_count == 1 && out.devices[0].count == 1 && out.devices[0].rows == NULL);
    CHECK(out.action[0] == 5 && out.address[0] == 0x7f0cb6000000 && out.size[0] == 20971520 && out.stream[0] == 7);
    CHECK(out.time_us[0] == 0x066275f925c9f6);
    CHECK(out.pool[0] == 0 && out.pools[0] == 2 && out.pools[1] == 0);
    CHECK(out.metadata[0] == 0 && out.compile_context[0] == -1 && out.stack[0] == -1);
    CHECK(out.text_count == 1 && out.text_end[0] == 6 && memcmp(out.text_bytes, "step 3", 6) == 0);
    CHECK(out.rest_bytes == 15 && memcmp(out.rest, "{\"segments\":[]}", 15) == 0);
    snapshot_free(&out);
}

static void frame(struct pickle *p, const char *filename, const char *line, const char *name)
{
    RAW(p, "}(");
    text(p, "name"); text(p, name);
    text(p, "filename"); text(p, filename);
    text(p, "line"); raw(p, line, 2);
    RAW(p, "u");
}

static void entry_with_stack(struct pickle *p, const char *line)
{
    RAW(p, "}(");
    text(p, "action"); text(p, "alloc");
    text(p, "frames"); RAW(p, "](");
    frame(p, "a.py", line, "f");
    frame(p, "a.py", "K\x09", "main");
    RAW(p, "eu");
}

static void equal_stacks_are_stored_once(void)
{
    struct pickle p;
    struct snapshot out;
    begin(&p);
    entry_with_stack(&p, "K\x03");
    entry_with_stack(&p, "K\x04");
    entry_with_stack(&p, "K\x03");
    end(&p);
    CHECK(read_pickle(&p, &out) == SNAPSHOT_OK);
    CHECK(out.row_count == 3 && out.stack[0] == 0 && out.stack[1] == 1 && out.stack[2] == 0);
    CHECK(out.stack_count == 2 && out.stack_end[0] == 2 && out.stack_end[1] == 4);
    CHECK(out.frame_count == 3 && out.frame_line[0] == 3 && out.frame_line[1] == 9 && out.frame_line[2] == 4);
    CHECK(out.stack_frames[1] == 1 && out.stack_frames[3] == 1);
    snapshot_free(&out);
}

static void repeated_entry_is_listed_twice(void)
{
    struct pickle p;
    struct snapshot out;
    begin(&p);
    RAW(&p, "}\x94(");
    text(&p, "action"); text(&p, "oom");
    text(&p, "device_free"); RAW(&p, "M\x00\x02");
    RAW(&p, "uh\x00");
    end(&p);
    CHECK(read_pickle(&p, &out) == SNAPSHOT_OK);
    CHECK(out.row_count == 1 && out.devices[0].count == 2);
    CHECK(out.devices[0].rows != NULL && out.devices[0].rows[0] == 0 && out.devices[0].rows[1] == 0);
    CHECK(out.action[0] == 7 && out.address[0] == 512);
    snapshot_free(&out);
}

static void rest_is_json(void)
{
    struct pickle p = { .length = 0 };
    struct snapshot out;
    RAW(&p, "\x80\x02}(");
    text(&p, "segments");
    RAW(&p, "](}(");
    text(&p, "segment_pool_id"); RAW(&p, "K\x01K\x00\x86");
    text(&p, "frames"); RAW(&p, "]");
    text(&p, "q\"\n"); RAW(&p, "G\x3f\xe8\x00\x00\x00\x00\x00\x00");
    text(&p, "big"); RAW(&p, "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00");
    RAW(&p, "ueu.");
    const char *expected =
        "{\"segments\":[{\"segment_pool_id\":[1,0],\"frames\":-1,\"q\\u0022\\u000a\":0.75,\"big\":18446744073709551615}]}";
    CHECK(read_pickle(&p, &out) == SNAPSHOT_OK);
    CHECK(out.rest_bytes == strlen(expected) && memcmp(out.rest, expected, out.rest_bytes) == 0);
    snapshot_free(&out);
}

static void refuses_to_import(void)
{
    struct snapshot out;
    static const char attack[] = "\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.";
    CHECK(read_copy((const uint8_t *)attack, sizeof attack - 1, &out) == SNAPSHOT_REFUSED);
    CHECK(out.instruction == 0x93 && strcmp(out.detail, "posix.system") == 0);
    snapshot_free(&out);
    static const char old[] = "cos\nsystem\n(S'id'\ntR.";
    CHECK(read_copy((const uint8_t *)old, sizeof old - 1, &out) == SNAPSHOT_REFUSED);
    CHECK(out.instruction == 'c' && strcmp(out.detail, "os.system") == 0);
    snapshot_free(&out);
    static const uint8_t others[] = { 'R', 'b', 'o', 0x81, 0x92, 0x82, 0x83, 0x84, 'P', 'Q', 0x97, 0x98, 0x8f, 0x90, 0x91 };
    for (size_t i = 0; i < sizeof others; i++)
        CHECK(status_of((const char *)&others[i], 1) == SNAPSHOT_REFUSED);
}

static void damaged_data_is_told_apart(void)
{
    CHECK(STATUS("") == SNAPSHOT_CUT_SHORT);
    CHECK(STATUS("\x80\x04") == SNAPSHOT_CUT_SHORT);
    CHECK(STATUS("\x80\x04]") == SNAPSHOT_CUT_SHORT);
    CHECK(STATUS("\x8d\xff\xff\xff\xff\xff\xff\xff\xffx.") == SNAPSHOT_CUT_SHORT);
    CHECK(STATUS("X\xff\xff\xff\xff.") == SNAPSHOT_CUT_SHORT);
    CHECK(STATUS("\x80\x06.") == SNAPSHOT_PROTOCOL);
    CHECK(STATUS("{\"json\": 1}") == SNAPSHOT_NOT_PICKLE);
    CHECK(STATUS("h\x00.") == SNAPSHOT_DAMAGED);
    CHECK(STATUS("(.") == SNAPSHOT_DAMAGED);
    CHECK(STATUS("K\x01K\x01" "a.") == SNAPSHOT_DAMAGED);
    CHECK(STATUS("}(K\x01u.") == SNAPSHOT_DAMAGED);
    CHECK(STATUS("}(]K\x01u.") == SNAPSHOT_DAMAGED);
    CHECK(STATUS("\x8c\x02\xc0\x80.") == SNAPSHOT_DAMAGED);
    CHECK(STATUS("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.") == SNAPSHOT_DAMAGED);
    CHECK(STATUS("K\x01.") == SNAPSHOT_NO_SNAPSHOT);
    CHECK(STATUS("}.") == SNAPSHOT_NO_SNAPSHOT);
    CHECK(STATUS("(lp0\n.") == SNAPSHOT_UNSUPPORTED);
}

/* Containers that hold themselves, and stacks that are changed after they were read. */
static void knots_are_left_to_the_slow_reader(void)
{
    CHECK(STATUS("]\x94(h\x00" "e.") == SNAPSHOT_UNSUPPORTED);
    struct pickle p;
    struct snapshot out;
    begin(&p);
    RAW(&p, "}(");
    text(&p, "action"); text(&p, "alloc");
    text(&p, "frames"); RAW(&p, "]\x94");
    RAW(&p, "ueh\x00N" "a0](");
    end(&p);
    CHECK(read_pickle(&p, &out) == SNAPSHOT_UNSUPPORTED);
    snapshot_free(&out);
    begin(&p);
    RAW(&p, "e]\x94(K\x01" "e}(");
    text(&p, "action"); text(&p, "alloc");
    text(&p, "frames"); RAW(&p, "h\x00");
    RAW(&p, "ua](");
    end(&p);
    CHECK(read_pickle(&p, &out) == SNAPSHOT_UNSUPPORTED);
    snapshot_free(&out);
}

static void memory_is_bounded(void)
{
    size_t length = 1 << 20;
    uint8_t *bytes = malloc(length);
    memset(bytes, ']', length);
    struct snapshot out;
    CHECK(snapshot_read(bytes, length, 4 << 20, &out) == SNAPSHOT_NO_MEMORY);
    snapshot_free(&out);
    free(bytes);
}

int main(void)
{
    CHECK(snapshot_abi() == SNAPSHOT_ABI);
    entry_becomes_row();
    equal_stacks_are_stored_once();
    repeated_entry_is_listed_twice();
    rest_is_json();
    refuses_to_import();
    damaged_data_is_told_apart();
    knots_are_left_to_the_slow_reader();
    memory_is_bounded();
    return failures;
}
