#define _GNU_SOURCE /* dl_iterate_phdr: unlike dladdr, it is in the same library under every glibc */
#include "caller.h"

#include "usage.h"

#include <link.h>
#include <string.h>

struct search {
    uintptr_t address;
    const char *object; /* path of the object that `address` is in */
};

static int contains(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && search->address - begin < part->p_memsz) {
            search->object = info->dlpi_name;
            return 1;
        }
    }
    return 0;
}

static int is_nccl(const char *path) {
    const char *slash = strrchr(path, '/');
    return !strncmp(slash ? slash + 1 : path, "libnccl", strlen("libnccl"));
}

void caller_note(const void *address) {
    struct search search = {.address = (uintptr_t)address};
    if (!dl_iterate_phdr(contains, &search) || !is_nccl(search.object))
        return;
    usage_call(PHANTOM_NCCL);
    usage_remark("NCCL has no model yet: its calls fail here where they would not on a card. Run one process without a "
                 "process group, or with gloo and a world of 1, and without DataParallel; what NCCL itself holds is "
                 "counted as measured");
}
