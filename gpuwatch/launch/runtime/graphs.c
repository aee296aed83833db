/* Graphs: work in the order in which it was added, which every order of dependencies allows. */
#include "runtime.h"

struct node { struct work work; };
struct graph { struct node **nodes; int count; };

/* An executable graph has copies of the nodes, so that either can change alone. */
struct executable { struct node *nodes; struct node **origins; int count; };

struct graph *new_graph(void)
{
    struct graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL) die("out of memory");
    return graph;
}

static struct node *add(cudaGraph_t graph, struct work work)
{
    struct graph *g = (struct graph *)graph;
    struct node *node = malloc(sizeof *node);
    if (node == NULL) die("out of memory");
    node->work = work;
    g->nodes = grown(g->nodes, g->count, sizeof *g->nodes);
    return g->nodes[g->count++] = node;
}

void append(struct graph *graph, struct work work) { add((cudaGraph_t)graph, work); }

static struct work copied(const struct work *work)
{
    struct work copy = *work;
    if (work->kind != KERNEL_WORK) return copy;
    const size_t size = parameter_bytes(work->kernel.kernel);
    copy.kernel.parameters = malloc(size + 1);
    if (copy.kernel.parameters == NULL) die("out of memory");
    memcpy(copy.kernel.parameters, work->kernel.parameters, size);
    return copy;
}

static void forget(const struct work *work)
{
    if (work->kind == KERNEL_WORK) free(work->kernel.parameters);
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
    (void)flags;
    *graph = (cudaGraph_t)new_graph();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    struct graph *g = (struct graph *)graph;
    for (int i = 0; i < g->count; ++i) {
        forget(&g->nodes[i]->work);
        free(g->nodes[i]);
    }
    free(g->nodes);
    free(g);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    const struct graph *g = (const struct graph *)graph;
    for (size_t i = 0; nodes != NULL && i < *count && i < (size_t)g->count; ++i)
        nodes[i] = (cudaGraphNode_t)g->nodes[i];
    if (nodes == NULL || *count > (size_t)g->count) *count = (size_t)g->count;
    return cudaSuccess;
}

static cudaError_t added(cudaGraphNode_t *node, cudaGraph_t graph, struct work work)
{
    *node = (cudaGraphNode_t)add(graph, work);
    return cudaSuccess;
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *before, size_t count)
{
    (void)before, (void)count;
    return added(node, graph, (struct work){.kind = NO_WORK});
}

static cudaError_t kernel_work(struct work *work, const struct cudaKernelNodeParams *p)
{
    const struct kernel *k = kernel_of(p->func);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    if (k->parameter_count > 0 && p->kernelParams == NULL) return fail(cudaErrorInvalidValue);
    *work = (struct work){.kind = KERNEL_WORK};
    work->kernel.kernel = k;
    work->kernel.shape =
        (struct shape){.grid = p->gridDim, .block = p->blockDim, .shared = p->sharedMemBytes};
    work->kernel.parameters = packed_parameters(k, p->kernelParams);
    return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *before, size_t count,
                                   const struct cudaKernelNodeParams *p)
{
    (void)before, (void)count;
    struct work work;
    const cudaError_t error = kernel_work(&work, p);
    return error != cudaSuccess ? error : added(node, graph, work);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *before, size_t count, void *to,
                                     const void *from, size_t n, enum cudaMemcpyKind kind)
{
    (void)before, (void)count, (void)kind;
    const struct copy copy = {.to = to, .from = from, .width = n, .height = 1, .depth = 1};
    return added(node, graph, (struct work){COPY_WORK, .copy = copy});
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *before, size_t count,
                                   const struct cudaMemsetParams *p)
{
    (void)before, (void)count;
    const struct fill fill = {.to = p->dst, .value = p->value, .element = p->elementSize,
                              .pitch = p->pitch, .width = p->width, .height = p->height,
                              .depth = 1};
    return added(node, graph, (struct work){FILL_WORK, .fill = fill});
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *before, size_t count,
                                 const struct cudaHostNodeParams *p)
{
    (void)before, (void)count;
    struct work work = {.kind = HOST_WORK};
    work.host.function = p->fn;
    work.host.data = p->userData;
    return added(node, graph, work);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *result, cudaGraph_t graph,
                                 unsigned long long flags)
{
    (void)flags;
    const struct graph *g = (const struct graph *)graph;
    struct executable *e = calloc(1, sizeof *e);
    const size_t room = (size_t)g->count + 1;
    if (e == NULL || (e->nodes = calloc(room, sizeof *e->nodes)) == NULL
        || (e->origins = calloc(room, sizeof *e->origins)) == NULL)
        die("out of memory");
    for (; e->count < g->count; ++e->count) {
        e->origins[e->count] = g->nodes[e->count];
        e->nodes[e->count].work = copied(&g->nodes[e->count]->work);
    }
    *result = (cudaGraphExec_t)e;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *result, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(result, graph, flags);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *p)
{
    struct executable *e = (struct executable *)graph;
    for (int i = 0; i < e->count; ++i) {
        if (e->origins[i] != (struct node *)node) continue;
        struct work work;
        const cudaError_t error = kernel_work(&work, p);
        if (error != cudaSuccess) return error;
        forget(&e->nodes[i].work);
        e->nodes[i].work = work;
        return cudaSuccess;
    }
    return fail(cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    (void)stream;
    const struct executable *e = (const struct executable *)graph;
    for (int i = 0; i < e->count; ++i) {
        const cudaError_t error = perform(&e->nodes[i].work);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}
PER_THREAD(cudaGraphLaunch, _ptsz);

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    struct executable *e = (struct executable *)graph;
    for (int i = 0; i < e->count; ++i) forget(&e->nodes[i].work);
    free(e->nodes);
    free(e->origins);
    free(e);
    return cudaSuccess;
}
