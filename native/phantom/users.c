#define _GNU_SOURCE
#include "users.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void users_note(void) {
    const char *folder = getenv("HOTBED_PHANTOM_USERS");
    char path[PATH_MAX];
    if (!folder || !*folder)
        return;
    int length = snprintf(path, sizeof path, "%s/gpu-user.%d", folder, (int)getpid());
    if (length < 0 || (size_t)length >= sizeof path)
        return;
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0)
        close(file);
}
