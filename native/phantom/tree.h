/* An ordered set of nodes that live inside their owners: by key, then by tie. Every operation is logarithmic. */
#ifndef HOTBED_PHANTOM_TREE_H
#define HOTBED_PHANTOM_TREE_H

#include <stdint.h>

struct node {
    uint64_t key, tie;
    struct node *left, *right;
    uint32_t rank;
};

struct tree {
    struct node *root;
    uint32_t seed;
};

void tree_insert(struct tree *tree, struct node *node);
void tree_remove(struct tree *tree, struct node *node);

/* Last node with key <= `key`, first node with (key, tie) >= the given ones; NULL if there is none. */
struct node *tree_floor(const struct tree *tree, uint64_t key);
struct node *tree_ceiling(const struct tree *tree, uint64_t key, uint64_t tie);
struct node *tree_first(const struct tree *tree);

/* The owner of `node`, a NULL node included. */
#define OWNER(node, type, member) ((type *)owner_of((node), offsetof(type, member)))

static inline void *owner_of(struct node *node, uintptr_t offset) {
    return node ? (char *)node - offset : (void *)0;
}

#endif
