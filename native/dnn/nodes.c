#include "nodes.h"

#include "whatif.h"

#include <pthread.h>
#include <stdlib.h>

enum { BUCKETS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *buckets[BUCKETS];

static struct node **place(const void *descriptor) {
    struct node **at = &buckets[((uintptr_t)descriptor >> 4) * 2654435761u % BUCKETS];
    while (*at && (*at)->descriptor != descriptor)
        at = &(*at)->next;
    return at;
}

struct node *node_add(void *descriptor, int kind) {
    struct node *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    *node = (struct node){.descriptor = descriptor, .kind = kind, .index = -1, .workspace = -1};
    pthread_mutex_lock(&lock);
    struct node **at = place(descriptor);
    node->next = *at;
    *at = node;
    pthread_mutex_unlock(&lock);
    return node;
}

struct node *node_find(const void *descriptor) {
    pthread_mutex_lock(&lock);
    struct node *node = *place(descriptor);
    pthread_mutex_unlock(&lock);
    return node;
}

void node_remove(const void *descriptor) {
    pthread_mutex_lock(&lock);
    struct node **at = place(descriptor), *node = *at;
    if (node)
        *at = node->next;
    pthread_mutex_unlock(&lock);
    if (node)
        search_drop(node->search);
    free(node);
}
