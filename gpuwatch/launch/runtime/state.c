/* What the request says, and the last error. */
#include "runtime.h"

static const char *const answer_names[ANSWERS] = {
    [SMS] = "sm_count", [SM_THREADS] = "threads_per_sm", [WARP] = "warp_size",
    [BLOCK_THREADS] = "threads_per_block", [BLOCK_SHARED] = "shared_per_block",
    [SM_SHARED] = "shared_per_sm", [SM_REGISTERS] = "registers_per_sm",
    [MAJOR] = "compute_major", [MINOR] = "compute_minor", [MEMORY] = "memory_bytes",
    [CLOCK] = "clock_khz", [SM_BLOCKS] = "blocks_per_sm",
};

long long answers[ANSWERS];
char device_name[256] = "GPU";
struct kernel *kernels;
int kernel_count;
long kept_launch = -1;
pthread_mutex_t runtime_lock = PTHREAD_MUTEX_INITIALIZER;

static struct { char *name, *content; } *contents;
static int content_count;
static _Thread_local cudaError_t last_error;

cudaError_t fail(cudaError_t error)
{
    if (error != cudaSuccess) last_error = error;
    return error;
}

void die(const char *what)
{
    fprintf(stderr, "capture: %s\n", what);
    _Exit(125);
}

/* Room for one more element: the array doubles at every power of two. */
void *grown(void *array, int count, size_t element)
{
    if ((count & (count - 1)) != 0) return array;
    array = realloc(array, (count == 0 ? 1 : 2 * (size_t)count) * element);
    if (array == NULL) die("out of memory");
    return array;
}

FILE *opened(const char *name, const char *mode)
{
    char path[4096];
    const char *folder = getenv("GPUWATCH_CAPTURE_DIR");
    if (folder == NULL) die("GPUWATCH_CAPTURE_DIR is not set");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, mode);
    if (file == NULL) die("cannot open a file of the capture folder");
    return file;
}

struct kernel *kernel_of(const void *host)
{
    for (int i = 0; host != NULL && i < kernel_count; ++i)
        if (kernels[i].host == host) return &kernels[i];
    return NULL;
}

const char *first_content(const char *variable)
{
    for (int i = 0; i < content_count; ++i)
        if (strcmp(contents[i].name, variable) == 0) return contents[i].content;
    return NULL;
}

static char *word(char **place) { return strtok_r(NULL, " \n", place); }
static size_t number(char **place) { return strtoull(word(place), NULL, 10); }

static void read_kernel(char **place)
{
    kernels = grown(kernels, kernel_count, sizeof *kernels);
    struct kernel *k = &kernels[kernel_count++];
    memset(k, 0, sizeof *k);
    k->name = strdup(word(place));
    k->registers = (int)number(place);
    k->shared = number(place);
    k->threads = (int)number(place);
    k->cluster.x = (unsigned)number(place);
    k->cluster.y = (unsigned)number(place);
    k->cluster.z = (unsigned)number(place);
    k->parameter_count = (int)number(place);
    k->parameters = calloc((size_t)k->parameter_count + 1, sizeof *k->parameters);
    for (int i = 0; i < k->parameter_count; ++i) {
        k->parameters[i].offset = number(place);
        k->parameters[i].size = number(place);
    }
}

static void read_answer(char **place)
{
    const char *name = word(place);
    for (int i = 0; i < ANSWERS; ++i)
        if (strcmp(answer_names[i], name) == 0) answers[i] = (long long)number(place);
}

static void read_variable(char **place)
{
    contents = grown(contents, content_count, sizeof *contents);
    contents[content_count].name = strdup(word(place));
    contents[content_count++].content = strdup(word(place));
}

static void read_line(char *line)
{
    char *place;
    const char *kind = strtok_r(line, " \n", &place);
    if (strcmp(kind, "kernel") == 0) read_kernel(&place);
    else if (strcmp(kind, "answer") == 0) read_answer(&place);
    else if (strcmp(kind, "variable") == 0) read_variable(&place);
    else if (strcmp(kind, "keep") == 0) kept_launch = (long)number(&place);
    else snprintf(device_name, sizeof device_name, "%s", strtok_r(NULL, "\n", &place));
}

__attribute__((constructor(101))) static void read_request(void)
{
    FILE *request = opened("request", "r");
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, request) > 0) read_line(line);
    free(line);
    fclose(request);
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
