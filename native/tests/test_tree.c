/* The ordered tree against a sorted array. */
#include "check.h"
#include "tree.h"

#include <string.h>

enum { NODES = 500, STEPS = 20000 };

static struct node nodes[NODES];
static int in_tree[NODES];

/* What the array says: the last node with key <= `key`, or the first with (key, tie) >= the given ones. */
static struct node *expected(uint64_t key, uint64_t tie, int floor) {
    struct node *best = NULL;
    for (int i = 0; i < NODES; i++) {
        struct node *n = &nodes[i];
        int above = n->key > key || (n->key == key && n->tie >= tie);
        if (!in_tree[i] || (floor ? n->key > key : !above))
            continue;
        int later = best && (n->key > best->key || (n->key == best->key && n->tie > best->tie));
        if (!best || later == floor)
            best = n;
    }
    return best;
}

int main(void) {
    struct tree tree;
    memset(&tree, 0, sizeof tree);
    srand(1);
    for (int step = 0; step < STEPS; step++) {
        int i = rand() % NODES;
        if (in_tree[i]) {
            tree_remove(&tree, &nodes[i]);
        } else {
            nodes[i].key = (uint64_t)(rand() % 300);
            nodes[i].tie = (uint64_t)i;
            tree_insert(&tree, &nodes[i]);
        }
        in_tree[i] = !in_tree[i];
        uint64_t key = (uint64_t)(rand() % 320), tie = (uint64_t)(rand() % NODES);
        CHECK(tree_ceiling(&tree, key, tie) == expected(key, tie, 0));
        CHECK(tree_floor(&tree, key) == expected(key, 0, 1));
    }
    return 0;
}
