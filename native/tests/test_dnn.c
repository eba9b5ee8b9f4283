/* cuDNN's answers that need no cuDNN: descriptors that keep attributes, the table of the legacy interface, and the search
 * for the private properties, in memory made up for it. */
#include "../dnn/backend.h"
#include "../dnn/facts.h"
#include "../dnn/layout.h"
#include "../dnn/real.h"
#include "check.h"
#include "phantom.h"
#include "self.h"

#include <stddef.h>
#include <string.h>

static void *made(int kind) {
    void *descriptor = NULL;
    CHECK_EQUAL(store_create(kind, &descriptor), DNN_SUCCESS);
    CHECK(descriptor);
    return descriptor;
}

static void keep(void *descriptor, int name, int type, int64_t count, const void *values) {
    CHECK_EQUAL(store_set(descriptor, name, type, count, values), DNN_SUCCESS);
}

/* Attributes of which only the number matters here. */
enum { TENSOR = 14, CONVOLUTION = 1 };

static void *tensor(int64_t n, int64_t c, int64_t side) {
    void *descriptor = made(TENSOR);
    int element = DNN_FLOAT;
    int64_t sizes[] = {n, c, side, side}, strides[] = {c * side * side, side * side, side, 1};
    keep(descriptor, DNN_TENSOR_TYPE, DNN_TYPE_INT32, 1, &element);
    keep(descriptor, DNN_TENSOR_SIZES, DNN_TYPE_INT64, 4, sizes);
    keep(descriptor, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 4, strides);
    return descriptor;
}

static void attributes_are_kept(void) {
    void *x = tensor(32, 64, 56);
    int64_t sizes[6] = {0, 0, 0, 0, 7, 7}, count = 0;
    CHECK_EQUAL(store_get(x, DNN_TENSOR_SIZES, DNN_TYPE_INT64, 6, &count, sizes), DNN_SUCCESS);
    CHECK_EQUAL(count, 4);
    CHECK(sizes[0] == 32 && sizes[1] == 64 && sizes[3] == 56 && sizes[4] == 7);
    sizes[1] = 9;
    CHECK_EQUAL(store_get(x, DNN_TENSOR_SIZES, DNN_TYPE_INT64, 1, &count, sizes), DNN_SUCCESS);
    CHECK(count == 4 && sizes[0] == 32 && sizes[1] == 9);
    CHECK_EQUAL(store_get(x, DNN_TENSOR_SIZES, DNN_TYPE_INT64, 0, &count, NULL), DNN_SUCCESS);
    keep(x, DNN_TENSOR_SIZES, DNN_TYPE_INT64, 2, sizes);
    CHECK_EQUAL(store_get(x, DNN_TENSOR_SIZES, DNN_TYPE_INT64, 6, &count, sizes), DNN_SUCCESS);
    CHECK_EQUAL(count, 2);
    CHECK_EQUAL(store_set(NULL, DNN_TENSOR_SIZES, DNN_TYPE_INT64, 2, sizes), DNN_BAD_PARAM);
    store_destroy(x);
}

/* A forward convolution with 64 filters of 3 x 3, as a graph of one operation. */
static void *convolution_graph(void) {
    void *parts[] = {made(CONVOLUTION), tensor(64, 64, 3), tensor(32, 64, 56), tensor(32, 64, 54)};
    void *operation = made(DNN_CONVOLUTION_FORWARD), *graph = made(DNN_GRAPH);
    for (int i = 0; i < 4; i++) {
        keep(operation, DNN_FORWARD_CONVOLUTION + i, DNN_TYPE_DESCRIPTOR, 1, &parts[i]);
        store_destroy(parts[i]);
    }
    keep(graph, DNN_GRAPH_OPERATIONS, DNN_TYPE_DESCRIPTOR, 1, &operation);
    store_destroy(operation);
    CHECK_EQUAL(store_finalize(graph), DNN_SUCCESS);
    return graph;
}

/* From the graph to an executed plan, as torch goes about it; descriptors given up as early as possible. */
static void a_plan_lends_what_the_rule_says(void) {
    void *graph = convolution_graph(), *search = made(DNN_HEURISTICS), *config = made(DNN_ENGINE_CONFIG);
    void *plan = made(DNN_PLAN), *pack = made(DNN_VARIANT_PACK), *workspace = &graph;
    int64_t count = 0, bytes = 0, channels_last = 4 * (32 * 64 * (56 * 56 + 54 * 54) + 64 * 64 * 9) + 16;
    keep(search, DNN_HEURISTICS_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph);
    store_destroy(graph);
    CHECK_EQUAL(store_finalize(search), DNN_SUCCESS);
    CHECK_EQUAL(store_get(search, DNN_HEURISTICS_RESULTS, DNN_TYPE_DESCRIPTOR, 1, &count, &config), DNN_SUCCESS);
    store_destroy(search);
    keep(plan, DNN_PLAN_CONFIG, DNN_TYPE_DESCRIPTOR, 1, &config);
    store_destroy(config);
    CHECK_EQUAL(store_finalize(plan), DNN_SUCCESS);
    CHECK_EQUAL(store_get(plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &count, &bytes), DNN_SUCCESS);
    CHECK_EQUAL(bytes, channels_last);
    keep(pack, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, &workspace);
    int64_t before = phantom_workspaces(NULL, 0, 0);
    CHECK_EQUAL(store_execute(plan, pack), DNN_SUCCESS);
    struct phantom_workspace lent = {0};
    CHECK_EQUAL(phantom_workspaces(&lent, before, 1), before + 1);
    CHECK_EQUAL(lent.address, (uintptr_t)workspace);
    CHECK_EQUAL(lent.bytes, bytes);
    CHECK_EQUAL(lent.alternative_bytes[PHANTOM_ALTERNATIVES - 1], bytes);
    CHECK_EQUAL(lent.library, PHANTOM_CUDNN);
    store_destroy(pack);
    store_destroy(plan);
}

#define HOST(name, parameters, arguments) {#name, DNN_NOT_INITIALIZED},
#define WORK(name, parameters, workspace, bytes) {#name, DNN_SUCCESS},
#define REFUSES(name) {#name, DNN_NOT_SUPPORTED},
static const struct row {
    const char *name;
    int status;
} rows[] = {
#include "../dnn/legacy.def"
};

enum { ARGUMENTS = 24, ROOM = 64, POISON = 0xa5 };
typedef uint64_t A;
typedef int (*function)(A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A);

/* No row writes through a pointer of its own: what runs on the device has no content, the rest is cuDNN's. */
static void rows_answer_and_write_nothing(void) {
    static unsigned char memory[ARGUMENTS][ROOM];
    A a[ARGUMENTS];
    for (const struct row *row = rows; row < rows + sizeof rows / sizeof *rows; row++) {
        function found = (function)self_find(row->name, strlen(row->name), "");
        CHECK(found);
        if (row->status == DNN_NOT_INITIALIZED && real_version())
            continue;
        memset(memory, POISON, sizeof memory);
        for (int i = 0; i < ARGUMENTS; i++)
            a[i] = (A)memory[i];
        int status = found(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
                           a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23]);
        if (status != row->status)
            fprintf(stderr, "%s\n", row->name);
        CHECK_EQUAL(status, row->status);
        for (size_t i = 0; i < sizeof memory; i++)
            CHECK_EQUAL(memory[i / ROOM][i % ROOM], POISON);
    }
}

static void refusals_are_named(void) {
    int named = 0;
    for (int i = 0; i < phantom_unmodelled_count(); i++)
        named |= !strcmp(phantom_unmodelled_name(i), "cudnnReduceTensor");
    CHECK(named);
}

/* Properties as cuDNN 9.19 keeps them, behind a pointer of the descriptor. */
enum { FIRST = 8, VERSIONS = FIRST + 26, GPCS = VERSIONS + 2, CLUSTERS = VERSIONS + 26, NAME = VERSIONS + 42 };
static struct {
    _Alignas(8) int ints[256];
    void *pointers[128];
} fake;
static struct spec spec;

static void make_properties(void) {
    memset(&fake, 0, sizeof fake);
    spec = (struct spec){.major = 9, .sm = 132, .cuda = 13000, .name = "NVIDIA H200"};
    spec.layout[0] = (struct layout){.sms = {18, 18, 16, 16, 16, 16, 16, 16}, .clusters = {132, 66}};
    int grid[] = {INT32_MAX, 65535, 65535};
    memcpy(fake.ints + FIRST, grid, sizeof grid);
    fake.ints[FIRST + 7] = spec.sm;
    fake.ints[VERSIONS] = 900;
    fake.ints[VERSIONS + 1] = spec.cuda;
    fake.ints[GPCS] = 18;
    for (int size = 1; size <= MAX_CLUSTER; size++)
        fake.ints[CLUSTERS + size - 1] = 18 / size;
    memcpy(fake.ints + NAME, spec.name, strlen(spec.name));
    fake.pointers[3] = fake.ints;
}

static int look(struct properties *out) {
    return layout_find(fake.pointers, &spec, out);
}

static void properties_are_found_and_told(void) {
    struct properties found = {0};
    make_properties();
    CHECK_EQUAL(look(&found), 0);
    CHECK(found.first == (char *)(fake.ints + FIRST) && found.versions == (char *)(fake.ints + VERSIONS));
    CHECK_EQUAL(found.bytes, (NAME - FIRST) * sizeof(int) + strlen(spec.name) + 1);
    int before[256];
    memcpy(before, fake.ints, sizeof before);
    CHECK_EQUAL(layout_write(&found, &spec, &spec.layout[0]), 0);
    memcpy(before + GPCS, spec.layout[0].sms, sizeof spec.layout[0].sms);
    memcpy(before + CLUSTERS, spec.layout[0].clusters, sizeof spec.layout[0].clusters);
    CHECK(!memcmp(before, fake.ints, sizeof before));
}

static void other_properties_are_refused(void) {
    static const struct {
        int at, value;
    } changes[] = {
        {NAME, 7},          /* another name */
        {FIRST + 7, 131},   /* other multiprocessors */
        {FIRST, 1},         /* no largest grid before them */
        {VERSIONS, 800},    /* another device */
        {GPCS + 1, 18},     /* a second GPC, which a described device does not have */
        {CLUSTERS + 1, 66}, /* clusters that do not go with the GPC */
    };
    struct properties found = {0};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        make_properties();
        fake.ints[changes[i].at] = changes[i].value;
        CHECK_EQUAL(look(&found), -1);
    }
    make_properties();
    fake.pointers[3] = (void *)(uintptr_t)0xdead0000; /* not mapped */
    CHECK_EQUAL(look(&found), -1);
    CHECK(!found.first);
}

int main(void) {
    attributes_are_kept();
    a_plan_lends_what_the_rule_says();
    rows_answer_and_write_nothing();
    refusals_are_named();
    properties_are_found_and_told();
    other_properties_are_refused();
    return 0;
}
