#include "spec.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct spec H200 = {
    .name = "NVIDIA H200",
    .driver = "580.95.05",
    .total = 150109880320u,
    .cuda = 13000,
    .major = 9,
    .minor = 0,
    .sm = 132,
    .l2 = 62914560,
    .smem_sm = 233472,
    .smem_optin = 232448,
    .bus = 6016,
    .clock = 1980000,
    .memory_clock = 3201000,
    .ecc = 1,
    .peer = 1,
    .layouts = 1,
    .layout = {{.sms = {18, 18, 18, 18, 18, 16, 16, 10}}},
};

/* Resident threads and blocks of a multiprocessor follow from the compute capability. */
static void fill_residency(struct spec *spec) {
    int cc = spec->major * 10 + spec->minor;
    int threads = cc == 75 ? 1024 : cc == 86 || cc == 87 || cc == 89 || cc >= 120 ? 1536 : 2048;
    int blocks = cc == 75 || cc == 86 || cc == 87 ? 16 : cc == 89 || cc >= 120 ? 24 : 32;
    if (!spec->threads_per_sm)
        spec->threads_per_sm = threads;
    if (!spec->blocks_per_sm)
        spec->blocks_per_sm = blocks;
}

static void set_text(char *to, size_t room, const char *value, size_t length) {
    if (length >= room)
        length = room - 1;
    memcpy(to, value, length);
    to[length] = 0;
}

static void set_number(struct spec *spec, const char *key, size_t length, long long value) {
    const struct {
        const char *key;
        int *at;
    } small[] = {
        {"sm", &spec->sm},           {"threads_sm", &spec->threads_per_sm}, {"blocks_sm", &spec->blocks_per_sm},
        {"l2", &spec->l2},           {"smem_sm", &spec->smem_sm},           {"smem_optin", &spec->smem_optin},
        {"bus", &spec->bus},         {"clock", &spec->clock},               {"memclock", &spec->memory_clock},
        {"ecc", &spec->ecc},         {"peer", &spec->peer},                 {"cuda", &spec->cuda},
        {"behind", &spec->behind},
    };
    const struct {
        const char *key;
        uint64_t *at;
    } large[] = {{"total", &spec->total}, {"nvml_total", &spec->nvml_total}, {"context", &spec->context}, {"others", &spec->others}};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (strlen(small[i].key) == length && !strncmp(small[i].key, key, length))
            *small[i].at = (int)value;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        if (strlen(large[i].key) == length && !strncmp(large[i].key, key, length))
            *large[i].at = (uint64_t)value;
    if (length == 2 && !strncmp("cc", key, 2)) {
        spec->major = (int)(value / 10);
        spec->minor = (int)(value % 10);
    }
}

/* Numbers up to the next '|' or ';', at most `room`; returns where they end. */
static const char *read_numbers(const char *text, int *out, int room) {
    for (int i = 0; *text >= '0' && *text <= '9'; text += *text == ',') {
        char *end;
        long value = strtol(text, &end, 10);
        if (i < room)
            out[i++] = (int)value;
        text = end;
    }
    return text;
}

/* gpc=18,18,16|18,17,17 and clusters=52,26,...|...: alternatives after '|', in the same order. */
static void set_layouts(struct spec *spec, const char *text, bool clusters) {
    if (!clusters) {
        spec->layouts = 0;
        memset(spec->layout, 0, sizeof spec->layout);
    }
    for (int i = 0; i < MAX_LAYOUTS; i++) {
        struct layout *layout = &spec->layout[i];
        text = clusters ? read_numbers(text, layout->clusters, MAX_CLUSTER)
                        : read_numbers(text, layout->sms, MAX_GPCS);
        if (!clusters)
            spec->layouts = i + 1;
        if (*text++ != '|')
            return;
    }
}

static int sum_of(const int *values, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

/* Keeps the layouts that have the card's multiprocessors. Where nobody measured it, a cluster fits wherever its size
 * fits into one GPC. */
static void fill_layouts(struct spec *spec) {
    int kept = 0;
    for (int i = 0; i < spec->layouts; i++) {
        struct layout layout = spec->layout[i];
        if (sum_of(layout.sms, MAX_GPCS) != spec->sm)
            continue;
        bool measured = layout.clusters[0];
        for (int size = 1; !measured && size <= MAX_CLUSTER; size++)
            for (int gpc = 0; gpc < MAX_GPCS; gpc++)
                layout.clusters[size - 1] += layout.sms[gpc] / size;
        spec->layout[kept++] = layout;
    }
    spec->layouts = kept;
}

/* "key=value;key=value": a pair that makes no sense is skipped, the launcher is the one who checks. */
static void parse(struct spec *spec, const char *text) {
    while (*text) {
        size_t pair = strcspn(text, ";");
        const char *equals = memchr(text, '=', pair);
        if (equals) {
            size_t key = (size_t)(equals - text), value = pair - key - 1;
            if (key == 4 && !strncmp(text, "name", 4))
                set_text(spec->name, sizeof spec->name, equals + 1, value);
            else if (key == 6 && !strncmp(text, "driver", 6))
                set_text(spec->driver, sizeof spec->driver, equals + 1, value);
            else if (key == 3 && !strncmp(text, "gpc", 3))
                set_layouts(spec, equals + 1, false);
            else if (key == 8 && !strncmp(text, "clusters", 8))
                set_layouts(spec, equals + 1, true);
            else if (value && equals[1] >= '0' && equals[1] <= '9')
                set_number(spec, text, key, strtoll(equals + 1, NULL, 10));
        }
        text += pair;
        text += *text == ';';
    }
}

/* Index meant by one entry of CUDA_VISIBLE_DEVICES: a number or the beginning of a UUID; -1 for none. */
static int physical_index(const struct spec *spec, const char *entry, size_t length) {
    while (length && *entry == ' ') {
        entry++;
        length--;
    }
    if (length >= 4 && !strncmp(entry, "GPU-", 4)) {
        for (int i = 0; i < spec->physical; i++) {
            char uuid[41];
            spec_uuid(i, uuid);
            if (!strncmp(uuid, entry, length))
                return i;
        }
        return -1;
    }
    if (!length || *entry < '0' || *entry > '9')
        return -1;
    long index = strtol(entry, NULL, 10);
    return index < spec->physical ? (int)index : -1;
}

/* As CUDA does: the list ends at the first entry that names no device; a device named twice empties it. */
static void choose_visible(struct spec *spec, const char *list) {
    spec->count = 0;
    while (*list) {
        size_t length = strcspn(list, ",");
        int index = physical_index(spec, list, length);
        if (index < 0)
            return;
        for (int i = 0; i < spec->count; i++) {
            if (spec->visible[i] == index) {
                spec->count = 0;
                return;
            }
        }
        spec->visible[spec->count++] = index;
        list += length;
        list += *list == ',';
    }
}

void spec_read(struct spec *spec) {
    const char *gpu = getenv("HOTBED_PHANTOM_GPU"), *count = getenv("HOTBED_PHANTOM_COUNT");
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    *spec = H200;
    if (gpu)
        parse(spec, gpu);
    fill_residency(spec);
    fill_layouts(spec);
    if (!spec->nvml_total)
        spec->nvml_total = spec->total;
    long devices = count ? strtol(count, NULL, 10) : 1;
    spec->physical = devices < 0 ? 0 : devices > MAX_DEVICES ? MAX_DEVICES : (int)devices;
    spec->count = spec->physical;
    for (int i = 0; i < spec->physical; i++)
        spec->visible[i] = i;
    if (visible)
        choose_visible(spec, visible);
}

void spec_uuid_bytes(int physical, unsigned char bytes[16]) {
    memcpy(bytes, "hotbedphantom\0\0\0", 16);
    bytes[15] = (unsigned char)physical;
}

void spec_uuid(int physical, char text[41]) {
    unsigned char bytes[16];
    spec_uuid_bytes(physical, bytes);
    char *at = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}

int spec_bus_number(int physical) {
    return 6 + physical;
}
