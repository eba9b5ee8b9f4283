/* What a capture records: nodes and dependencies across streams, and objects that live as long as their graph. */
#include "check.h"
#include "cuda.h"

static int destroyed;

static void on_destroy(void *data) {
    destroyed += *(int *)data;
}

static void user_objects(void) {
    void *graph = NULL, *executable = NULL, *object = NULL;
    int one = 1;
    cudaGraphCreate(&graph, 0);
    CHECK_EQUAL(cudaUserObjectCreate(&object, &one, on_destroy, 1, 1), 0);
    CHECK_EQUAL(cudaGraphRetainUserObject(graph, object, 1, 1), 0);
    CHECK_EQUAL(cudaGraphInstantiate(&executable, graph, 0), 0);
    CHECK_EQUAL(cudaGraphDestroy(graph), 0);
    CHECK_EQUAL(destroyed, 0);
    CHECK_EQUAL(cudaGraphExecDestroy(executable), 0);
    CHECK_EQUAL(destroyed, 1);
    CHECK_EQUAL(cudaGraphExecDestroy(executable), 1);
}

static uint64_t graph_memory(void) {
    uint64_t used = 9;
    CHECK_EQUAL(cudaDeviceGetGraphMemAttribute(0, 0, &used), 0);
    return used;
}

/* Memory that a capture was given and did not free lives until its executable graph goes. */
static void memory_of_a_capture(void *stream) {
    void *graph = NULL, *executable = NULL, *kept = NULL, *freed = NULL;
    CHECK_EQUAL(cudaStreamBeginCapture(stream, 0), 0);
    CHECK_EQUAL(cudaMallocAsync(&kept, 10 * MIB, stream), 0);
    CHECK_EQUAL(cudaMallocAsync(&freed, 20 * MIB, stream), 0);
    CHECK_EQUAL(cudaFreeAsync(freed, stream), 0);
    CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), 0);
    CHECK_EQUAL(graph_memory(), 10 * MIB);
    CHECK_EQUAL(cudaGraphInstantiate(&executable, graph, 0), 0);
    CHECK_EQUAL(cudaGraphDestroy(graph), 0);
    CHECK_EQUAL(graph_memory(), 10 * MIB);
    CHECK_EQUAL(cudaGraphExecDestroy(executable), 0);
    CHECK_EQUAL(graph_memory(), 0);
}

static size_t dependencies_of(uint64_t node, uint64_t *first) {
    size_t count = 1;
    CHECK_EQUAL(cudaGraphNodeGetDependencies((void *)node, first, NULL, &count), 0);
    count = 0;
    CHECK_EQUAL(cudaGraphNodeGetDependencies((void *)node, NULL, NULL, &count), 0);
    return count;
}

int main(void) {
    void *stream = NULL, *side = NULL, *event = NULL, *graph = NULL, *while_capturing = NULL;
    unsigned long long id = 0, second_id = 0;
    uint64_t nodes[8] = {0}, before = 0;
    size_t count = 8;
    int status = 0;
    cudaStreamCreateWithFlags(&stream, 1);
    cudaStreamCreateWithFlags(&side, 1);
    cudaEventCreateWithFlags(&event, 2);
    CHECK_EQUAL(cudaStreamBeginCapture(stream, 0), 0);
    cudaMemsetAsync((void *)8, 0, 8, stream);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(side, event, 0);
    cudaMemsetAsync((void *)8, 0, 8, side);
    cudaMemsetAsync((void *)8, 0, 8, stream);
    cudaStreamGetCaptureInfo_v2(stream, &status, &id, &while_capturing, NULL, NULL);
    cudaStreamGetCaptureInfo_v2(side, &status, &second_id, NULL, NULL, NULL);
    CHECK(status == 1 && id && id == second_id);
    cudaEventRecord(event, side);
    cudaStreamWaitEvent(stream, event, 0);
    cudaMemsetAsync((void *)8, 0, 8, stream);
    CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), 0);
    CHECK(graph == while_capturing);
    CHECK_EQUAL(cudaGraphGetNodes(graph, nodes, &count), 0);
    CHECK_EQUAL(count, 4);
    CHECK_EQUAL(dependencies_of(nodes[0], &before), 0);
    CHECK_EQUAL(dependencies_of(nodes[1], &before), 1);
    CHECK(before == nodes[0]);
    CHECK_EQUAL(dependencies_of(nodes[3], &before), 2);
    cudaStreamGetCaptureInfo_v2(side, &status, &id, NULL, NULL, NULL);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(cudaGraphDestroy(graph), 0);
    CHECK_EQUAL(cudaGraphDestroy(graph), 1);
    user_objects();
    memory_of_a_capture(stream);
    return 0;
}
