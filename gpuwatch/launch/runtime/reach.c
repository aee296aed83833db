/* Which allocations a launch can reach, so that the others need not be written down. */
#include "runtime.h"

#define WORD sizeof(uintptr_t)

static char *marks;
static int *waiting, waiting_count;
static const char *lowest, *highest;

static void mark(const void *address)
{
    if ((const char *)address < lowest || (const char *)address > highest) return;
    const struct allocation *a = allocation_of(address);
    if (a == NULL || marks[a - allocations]) return;
    marks[a - allocations] = 1;
    waiting[waiting_count++] = (int)(a - allocations);
}

static void mark_from(const char *bytes, size_t size, size_t step)
{
    for (size_t at = 0; at + WORD <= size; at += step) {
        const void *address;
        memcpy(&address, bytes + at, WORD);
        mark(address);
    }
}

/* One byte for each allocation, to be freed: whether a parameter, a variable or a marked
 * allocation holds an address in it. Call with the lock held. */
char *reachable(const char *parameters, size_t size)
{
    marks = calloc((size_t)allocation_count + 1, 1);
    waiting = calloc((size_t)allocation_count + 1, sizeof *waiting);
    if (marks == NULL || waiting == NULL) die("out of memory");
    if (allocation_count > 0) {
        const struct allocation *last = &allocations[allocation_count - 1];
        lowest = allocations[0].start;
        highest = last->start + last->size;
    }
    mark_from(parameters, size, 1);
    for (int i = 0; i < variable_count; ++i)
        if (variables[i].is_set) mark_from(variables[i].memory, variables[i].size, WORD);
    while (waiting_count > 0) {
        const struct allocation *a = &allocations[waiting[--waiting_count]];
        mark_from(a->start, a->size, WORD);
    }
    free(waiting);
    return marks;
}
