/* A treap: a search tree by (key, tie) that a random rank keeps shallow. */
#include "tree.h"

#include <stdbool.h>
#include <stddef.h>

static bool less(const struct node *a, uint64_t key, uint64_t tie) {
    return a->key < key || (a->key == key && a->tie < tie);
}

/* Ranks come from a generator with a fixed start, so two runs of one program behave alike. */
static uint32_t next_rank(struct tree *tree) {
    uint32_t x = tree->seed ? tree->seed : 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return tree->seed = x;
}

void tree_insert(struct tree *tree, struct node *node) {
    node->rank = next_rank(tree);
    struct node **place = &tree->root;
    while (*place && (*place)->rank >= node->rank)
        place = less(*place, node->key, node->tie) ? &(*place)->right : &(*place)->left;
    struct node *rest = *place, **low = &node->left, **high = &node->right;
    *place = node;
    while (rest) {
        if (less(rest, node->key, node->tie)) {
            *low = rest;
            low = &rest->right;
        } else {
            *high = rest;
            high = &rest->left;
        }
        rest = less(rest, node->key, node->tie) ? rest->right : rest->left;
    }
    *low = *high = NULL;
}

void tree_remove(struct tree *tree, struct node *node) {
    struct node **place = &tree->root;
    while (*place != node)
        place = less(*place, node->key, node->tie) ? &(*place)->right : &(*place)->left;
    struct node *low = node->left, *high = node->right;
    while (low && high) {
        if (low->rank > high->rank) {
            *place = low;
            place = &low->right;
            low = low->right;
        } else {
            *place = high;
            place = &high->left;
            high = high->left;
        }
    }
    *place = low ? low : high;
}

struct node *tree_floor(const struct tree *tree, uint64_t key) {
    struct node *best = NULL;
    for (struct node *n = tree->root; n;) {
        if (n->key <= key)
            best = n;
        n = n->key <= key ? n->right : n->left;
    }
    return best;
}

struct node *tree_ceiling(const struct tree *tree, uint64_t key, uint64_t tie) {
    struct node *best = NULL;
    for (struct node *n = tree->root; n;) {
        bool below = less(n, key, tie);
        if (!below)
            best = n;
        n = below ? n->right : n->left;
    }
    return best;
}

struct node *tree_first(const struct tree *tree) {
    return tree_ceiling(tree, 0, 0);
}
