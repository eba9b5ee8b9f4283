/* dlsym() would do, but its symbol version is 2.34 when built on a new glibc and it lives in another library on an old
 * one; the object's own GNU hash table answers the same question everywhere. */
#include "self.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* The loader has made these addresses absolute on most machines, not on all. */
static const void *table(ElfW(Sxword) tag) {
    uintptr_t base = (uintptr_t)&__ehdr_start;
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return (const void *)(entry->d_un.d_ptr < base ? base + entry->d_un.d_ptr : entry->d_un.d_ptr);
    return NULL;
}

static uint32_t hash(const char *text, size_t length, uint32_t start) {
    for (size_t i = 0; i < length; i++)
        start = start * 33 + (unsigned char)text[i];
    return start;
}

static int same(const char *symbol, const char *name, size_t length, const char *suffix) {
    return !strncmp(symbol, name, length) && !strcmp(symbol + length, suffix);
}

void *self_find(const char *name, size_t length, const char *suffix) {
    const uint32_t *head = table(DT_GNU_HASH);
    const ElfW(Sym) *symbols = table(DT_SYMTAB);
    const char *strings = table(DT_STRTAB);
    if (!head || !symbols || !strings)
        return NULL;
    /* Header: bucket count, first hashed symbol, words of the filter. Then filter, buckets, chains. */
    const uint32_t *buckets = head + 4 + head[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chains = buckets + head[0];
    uint32_t wanted = hash(suffix, strlen(suffix), hash(name, length, 5381));
    uint32_t i = buckets[wanted % head[0]];
    for (; i >= head[1]; i++) {
        uint32_t found = chains[i - head[1]];
        if ((found | 1) == (wanted | 1) && same(strings + symbols[i].st_name, name, length, suffix))
            return symbols[i].st_shndx ? (void *)((uintptr_t)&__ehdr_start + symbols[i].st_value) : NULL;
        if (found & 1)
            return NULL;
    }
    return NULL;
}
