/* Entry points of the snapshot reader: sets the machine up, runs it, hands its arrays over. */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "machine.h"

uint32_t snapshot_abi(void) { return SNAPSHOT_ABI; }

static void set_widths(struct machine *m)
{
    struct {
        struct array *array;
        uint32_t width;
    } widths[] = {
        { &m->stack, 8 },          { &m->memo, 8 },        { &m->action, 1 },
        { &m->address, 8 },      { &m->size, 8 },           { &m->stream, 8 },      { &m->time_us, 8 },
        { &m->pool, 4 },         { &m->call_stack, 4 },     { &m->metadata, 4 },    { &m->compile_context, 4 },
        { &m->text_end, 8 },     { &m->text_bytes, 1 },     { &m->frame_filename, 4 }, { &m->frame_line, 8 },
        { &m->frame_name, 4 },   { &m->stack_end, 8 },      { &m->stack_frames, 4 }, { &m->pools, 8 },
        { &m->devices, sizeof(struct snapshot_device) },    { &m->rest, 1 },        { &m->scratch, 4 },
    };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        widths[i].array->width = widths[i].width;
}

/* Moves the items of an array into the result. */
static void *handed_over(struct array *array)
{
    if (array->items != NULL)
        shrink(array);
    void *items = array->items;
    array->items = NULL;
    return items;
}

static void hand_over(struct machine *m)
{
    struct snapshot *out = m->out;
    out->row_count = m->action.count;
    out->device_count = m->devices.count;
    out->text_count = m->text_end.count;
    out->frame_count = m->frame_line.count;
    out->stack_count = m->stack_end.count;
    out->pool_count = m->pools.count / 2;
    out->rest_bytes = m->rest.count;
    out->action = handed_over(&m->action);
    out->address = handed_over(&m->address);
    out->size = handed_over(&m->size);
    out->stream = handed_over(&m->stream);
    out->time_us = handed_over(&m->time_us);
    out->pool = handed_over(&m->pool);
    out->stack = handed_over(&m->call_stack);
    out->metadata = handed_over(&m->metadata);
    out->compile_context = handed_over(&m->compile_context);
    out->devices = handed_over(&m->devices);
    out->text_end = handed_over(&m->text_end);
    out->text_bytes = handed_over(&m->text_bytes);
    out->frame_filename = handed_over(&m->frame_filename);
    out->frame_line = handed_over(&m->frame_line);
    out->frame_name = handed_over(&m->frame_name);
    out->stack_end = handed_over(&m->stack_end);
    out->stack_frames = handed_over(&m->stack_frames);
    out->pools = handed_over(&m->pools);
    out->rest = handed_over(&m->rest);
}

uint32_t snapshot_read(const uint8_t *data, uint64_t bytes, uint64_t memory_limit, struct snapshot *out)
{
    memset(out, 0, sizeof *out);
    struct machine *m = calloc(1, sizeof *m);
    if (m == NULL)
        return out->status = SNAPSHOT_NO_MEMORY;
    m->data = data;
    m->bytes = bytes;
    m->memory_left = memory_limit;
    m->out = out;
    set_widths(m);
    if (setjmp(m->give_up) == 0) {
        write_result(m, run(m));
        hand_over(m);
    } else {
        /* The lists of repeated rows belong to the result; nobody will free them if there is none. */
        for (uint64_t i = 0; i < m->devices.count; i++)
            free(((struct snapshot_device *)m->devices.items)[i].rows);
    }
    out->position = m->position;
    free_machine(m);
    free(m);
    return out->status;
}

void snapshot_free(struct snapshot *out)
{
    for (uint64_t i = 0; out->devices != NULL && i < out->device_count; i++)
        free(out->devices[i].rows);
    void *arrays[] = {
        out->action, out->address, out->size, out->stream, out->time_us, out->pool, out->stack, out->metadata,
        out->compile_context, out->devices, out->text_end, out->text_bytes, out->frame_filename, out->frame_line,
        out->frame_name, out->stack_end, out->stack_frames, out->pools, out->rest,
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    memset(out, 0, sizeof *out);
}

void snapshot_free_array(void *array) { free(array); }
