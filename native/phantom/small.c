#include "small.h"

#include "state.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN_BYTES = 512 };

static struct page {
    struct slot slot;
    int device;
} *pages;
static int count, room;

/* Adds a page; NULL if the device has none left. */
static struct page *add_page(void) {
    struct device *device = device_now();
    struct page *grown = slot_grow(pages, count, &room, sizeof *pages);
    if (grown)
        pages = grown;
    if (!grown || device_take(device, PAGE_BYTES))
        return NULL;
    uint64_t begin = address_take(&phantom.addresses, PAGE_BYTES, &phantom.memory);
    if (!begin) {
        device_return(device, PAGE_BYTES);
        return NULL;
    }
    pages[count] = (struct page){.slot = {.begin = begin, .end = begin + PAGE_BYTES, .gap = PAGE_BYTES},
                                 .device = current_device};
    return &pages[count++];
}

int small_take(uint64_t size, uint64_t *address) {
    uint64_t bytes = (size + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    *address = 0;
    for (int i = 0; i < count && !*address; i++)
        *address = pages[i].device == current_device && pages[i].slot.gap >= bytes ? slot_take(&pages[i].slot, bytes) : 0;
    if (*address)
        return SUCCESS;
    struct page *page = add_page();
    *address = page ? slot_take(&page->slot, bytes) : 0;
    return *address ? SUCCESS : OUT_OF_MEMORY;
}

void small_give_back(int device, uint64_t address) {
    int i = 0;
    while (i < count && (address < pages[i].slot.begin || address >= pages[i].slot.end))
        i++;
    if (i == count)
        return;
    slot_give_back(&pages[i].slot, address);
    if (pages[i].slot.count)
        return;
    address_give_back(&phantom.addresses, pages[i].slot.begin);
    device_return(&phantom.device[device], PAGE_BYTES);
    free(pages[i].slot.used);
    count--;
    memmove(pages + i, pages + i + 1, (size_t)(count - i) * sizeof *pages);
}

void small_forget(void) {
    for (int i = 0; i < count; i++)
        free(pages[i].slot.used);
    free(pages);
    pages = NULL;
    count = room = 0;
}
