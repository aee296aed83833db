/* Module variables: __device__, __constant__ and __managed__ ones. */
#include "runtime.h"

struct variable *variables;
int variable_count;

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global);
void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size);

static void fill_first_content(struct variable *v)
{
    const char *hex = first_content(v->name);
    for (size_t i = 0; hex != NULL && i < v->size && hex[2 * i] != '\0'; ++i) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1) die("a first content is no hexadecimal number");
        v->memory[i] = (char)byte;
    }
}

/* Source files that declare one variable share its memory. */
static struct variable *add_variable(const void *host, const char *name, size_t size)
{
    char *memory = NULL;
    int is_set = 0;
    for (int i = 0; i < variable_count; ++i) {
        if (strcmp(variables[i].name, name) != 0) continue;
        memory = variables[i].memory;
        is_set = variables[i].is_set;
    }
    variables = grown(variables, variable_count, sizeof *variables);
    struct variable *v = &variables[variable_count++];
    *v = (struct variable){host, strdup(name), memory, size, is_set};
    if (memory == NULL && size > 0) {
        if (allocate((void **)&v->memory, size, VARIABLE_MEMORY) != cudaSuccess)
            die("out of memory");
        fill_first_content(v);
    }
    return v;
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global)
{
    (void)handle, (void)device, (void)external, (void)constant, (void)global;
    add_variable(host, name, size);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global)
{
    (void)handle, (void)device, (void)external, (void)constant, (void)global;
    struct variable *v = add_variable(host, name, size);
    v->is_set = 1;
    *host = v->memory;
}

void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size)
{
    (void)handle, (void)name, (void)host, (void)size;
}

/* A symbol is the host's shadow of a variable, or for a managed one its memory. */
static struct variable *variable_of(const void *symbol)
{
    for (int i = 0; i < variable_count; ++i)
        if (variables[i].host == symbol || variables[i].memory == symbol) return &variables[i];
    return NULL;
}

static void mark_set(const struct variable *v)
{
    for (int i = 0; i < variable_count; ++i)
        if (variables[i].memory == v->memory) variables[i].is_set = 1;
}

static cudaError_t copy_part(cudaStream_t stream, const void *symbol, size_t offset, size_t n,
                             void *to, const void *from)
{
    const struct variable *v = variable_of(symbol);
    if (v == NULL) return fail(cudaErrorInvalidSymbol);
    if (offset > v->size || n > v->size - offset) return fail(cudaErrorInvalidValue);
    if (from != NULL) mark_set(v);
    struct copy copy = {.width = n, .height = 1, .depth = 1};
    copy.to = from != NULL ? v->memory + offset : to;
    copy.from = from != NULL ? from : v->memory + offset;
    return submit(stream, (struct work){COPY_WORK, .copy = copy});
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t n, size_t offset,
                               enum cudaMemcpyKind kind)
{
    (void)kind;
    return copy_part(NULL, symbol, offset, n, NULL, from);
}
PER_THREAD(cudaMemcpyToSymbol, _ptds);

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t n, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    return copy_part(stream, symbol, offset, n, NULL, from);
}
PER_THREAD(cudaMemcpyToSymbolAsync, _ptsz);

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t n, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    (void)kind;
    return copy_part(NULL, symbol, offset, n, to, NULL);
}
PER_THREAD(cudaMemcpyFromSymbol, _ptds);

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t n, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    return copy_part(stream, symbol, offset, n, to, NULL);
}
PER_THREAD(cudaMemcpyFromSymbolAsync, _ptsz);

/* The address may be written to without this runtime's knowing, so the content counts as set. */
cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    const struct variable *v = variable_of(symbol);
    if (v == NULL) return fail(cudaErrorInvalidSymbol);
    mark_set(v);
    *address = v->memory;
    return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
    const struct variable *v = variable_of(symbol);
    if (v == NULL) return fail(cudaErrorInvalidSymbol);
    *size = v->size;
    return cudaSuccess;
}
