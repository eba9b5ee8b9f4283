/* A program walks down the list of results, passes over those whose numerical notes it does not want, and takes the
 * first whose plan can be finalized. The walk is repeated here on the lists of the other layouts. */
#include "whatif.h"

#include "config.h"
#include "facts.h"
#include "phantom.h"
#include "properties.h"
#include "real.h"
#include "usage.h"

#include <pthread.h>
#include <stdlib.h>

enum { RESULTS = 64 };

struct search {
    int references, others;
    void *other[PHANTOM_ALTERNATIVES]; /* finalized heuristics under the other layouts */
    uint32_t notes[RESULTS];           /* bit per numerical note of a result */
    uint64_t tried;                    /* bit per result of which the program made a plan */
    int used;                          /* the result that the program ran first; -1: none yet */
    uint64_t alternatives[PHANTOM_ALTERNATIVES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *ask(void *graph, int mode, void *device) {
    const struct backend *real = real_backend();
    void *heuristics = NULL;
    if (real->create(DNN_HEURISTICS, &heuristics))
        return NULL;
    if (!real->set(heuristics, DNN_HEURISTICS_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph) &&
        !real->set(heuristics, DNN_HEURISTICS_MODE, DNN_TYPE_HEURISTICS_MODE, 1, &mode) &&
        !real->set(heuristics, DNN_HEURISTICS_DEVICE, DNN_TYPE_DESCRIPTOR, 1, &device) && !real->finalize(heuristics))
        return heuristics;
    real->destroy(heuristics);
    return NULL;
}

struct search *search_begin(void *graph, int mode) {
    struct search *search = calloc(1, sizeof *search);
    if (!search)
        return NULL;
    search->references = 1;
    search->used = -1;
    for (int i = 1; i < properties_count(); i++) {
        void *heuristics = ask(graph, mode, properties_descriptor(i));
        if (!heuristics)
            break;
        search->other[search->others++] = heuristics;
    }
    return search;
}

struct search *search_share(struct search *search) {
    if (search)
        __atomic_fetch_add(&search->references, 1, __ATOMIC_RELAXED);
    return search;
}

static void forget_others(struct search *search) {
    while (search->others)
        real_backend()->destroy(search->other[--search->others]);
}

void search_drop(struct search *search) {
    if (!search || __atomic_sub_fetch(&search->references, 1, __ATOMIC_ACQ_REL))
        return;
    forget_others(search);
    free(search);
}

void search_note(struct search *search, int index, const int *notes, int64_t count) {
    if (index >= 0 && index < RESULTS)
        search->notes[index] = config_note_bits(notes, count);
}

void search_tried(struct search *search, int index) {
    if (index >= 0 && index < RESULTS)
        search->tried |= (uint64_t)1 << index;
}

/* Notes for which the program passed results over: they are on results that it did not try, not on the one it took. */
static uint32_t unwanted_notes(const struct search *search, int taken) {
    uint32_t unwanted = 0;
    for (int i = 0; i < taken && i < RESULTS; i++)
        if (!(search->tried >> i & 1))
            unwanted |= search->notes[i];
    return taken < RESULTS ? unwanted & ~search->notes[taken] : unwanted;
}

/* Bytes that a plan made of `config` wants; -1 if none can be made. */
static int64_t planned_bytes(void *config, void *device) {
    const struct backend *real = real_backend();
    void *plan = NULL;
    int64_t bytes = -1;
    long long count = 0;
    if (config_compiles(config))
        return config_workspace(config);
    if (real->create(DNN_PLAN, &plan))
        return -1;
    if (real->set(plan, DNN_PLAN_CONFIG, DNN_TYPE_DESCRIPTOR, 1, &config) ||
        real->set(plan, DNN_PLAN_DEVICE, DNN_TYPE_DESCRIPTOR, 1, &device) || real->finalize(plan) ||
        real->get(plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &count, &bytes))
        bytes = -1;
    real->destroy(plan);
    return bytes;
}

/* cuDNN fills descriptors that the caller has made. Returns how many it filled; the caller destroys them. */
static int fetch_results(void *heuristics, void **configs, int count) {
    const struct backend *real = real_backend();
    int made = 0;
    long long got = 0;
    while (made < count && !real->create(DNN_ENGINE_CONFIG, &configs[made]))
        made++;
    if (real->get(heuristics, DNN_HEURISTICS_RESULTS, DNN_TYPE_DESCRIPTOR, made, &got, configs))
        got = 0;
    for (int i = (int)got; i < made; i++)
        real->destroy(configs[i]);
    return (int)got;
}

static int64_t first_bytes(void *heuristics, void *device, uint32_t unwanted) {
    void *configs[RESULTS];
    int64_t bytes = -1;
    int count = fetch_results(heuristics, configs, RESULTS);
    for (int i = 0; i < count; i++) {
        if (bytes < 0 && !(unwanted && config_numerical_notes(configs[i]) & unwanted))
            bytes = planned_bytes(configs[i], device);
        real_backend()->destroy(configs[i]);
    }
    return bytes;
}

static void find_alternatives(struct search *search, int taken, uint64_t bytes) {
    uint32_t unwanted = unwanted_notes(search, taken);
    for (int i = 0; i < PHANTOM_ALTERNATIVES; i++) {
        int64_t other =
            i < search->others ? first_bytes(search->other[i], properties_descriptor(i + 1), unwanted) : -1;
        search->alternatives[i] = other < 0 ? bytes : (uint64_t)other;
    }
    forget_others(search);
}

void search_run(struct search *search, int index, uint64_t bytes, uint64_t *alternatives) {
    pthread_mutex_lock(&lock);
    if (search->used < 0) {
        search->used = index;
        find_alternatives(search, index, bytes);
    }
    int first = search->used == index;
    for (int i = 0; i < PHANTOM_ALTERNATIVES; i++)
        alternatives[i] = first ? search->alternatives[i] : bytes;
    pthread_mutex_unlock(&lock);
    if (!first)
        usage_remark("cuDNN: the program compares convolution plans by time (cudnn.benchmark); here all take the same "
                     "time and the first one wins, the card may choose one with another workspace");
}
