/* hotbed: finds the Python that it was installed beside and becomes hotbed in that Python.
 *
 * A program of our own, so that `hotbed run`, which must be quick, can be answered here without a Python once it
 * exists. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

enum { OUR_FAULT = 2 };

/* What `python -m hotbed` does, except that -m would import modules from the working folder before hotbed can
 * prevent it: a pathlib.py there, perhaps somebody else's, would run. */
static char start[] = "import sys; sys.path = [folder for folder in sys.path if folder]\n"
                      "from hotbed.cli.main import main; main()";

/* Path of this program with symbolic links resolved; 0, or -1 with errno set. */
static int own_path(char path[PATH_MAX]) {
#ifdef __APPLE__
    char given[PATH_MAX];
    uint32_t size = sizeof given;
    if (_NSGetExecutablePath(given, &size) != 0) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return realpath(given, path) ? 0 : -1;
#else
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length < 0) return -1;
    if (length == PATH_MAX - 1) {
        errno = ENAMETOOLONG;
        return -1;
    }
    path[length] = '\0';
    return 0;
#endif
}

/* Writes the path of an interpreter in `folder` (its length: `length`) to `python`; 0, or -1 if there is none. */
static int find_python(const char *folder, size_t length, char python[PATH_MAX]) {
    static const char *const names[] = {"python3", "python"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int written = snprintf(python, PATH_MAX, "%.*s/%s", (int)length, folder, names[i]);
        if (written < PATH_MAX && access(python, X_OK) == 0) return 0;
    }
    return -1;
}

int main(int argc, char **argv) {
    char path[PATH_MAX], python[PATH_MAX];
    if (own_path(path) != 0) {
        fprintf(stderr, "error: hotbed cannot find its own path: %s\n", strerror(errno));
        return OUR_FAULT;
    }
    size_t folder = (size_t)(strrchr(path, '/') - path);
    if (find_python(path, folder, python) != 0) {
        fprintf(stderr, "error: no python3 beside %s; run `python3 -m hotbed` with the Python that has hotbed\n", path);
        return OUR_FAULT;
    }
    /* python -c start, the arguments, NULL */
    char **command = calloc((size_t)argc + 4, sizeof *command);
    if (!command) {
        fprintf(stderr, "error: hotbed is out of memory\n");
        return OUR_FAULT;
    }
    command[0] = python;
    command[1] = "-c";
    command[2] = start;
    for (int i = 1; i < argc; i++) command[i + 2] = argv[i];
    execv(python, command);
    fprintf(stderr, "error: cannot start %s: %s\n", python, strerror(errno));
    free(command);
    return OUR_FAULT;
}
