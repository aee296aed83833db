/* ---- one launch stored with its memory, as gpuwatch/launch/exchange.py reads it */

typedef struct {
  CUdeviceptr at;
  size_t size;
} Range;

/* Adds the allocation that `value` lies in, if it lies in one that is new. */
static void add_range(Range *ranges, uint32_t *count, uint64_t value) {
  for (uint32_t i = 0; i < *count; i++)
    if (value >= ranges[i].at && value - ranges[i].at < ranges[i].size) return;
  CUdeviceptr at = 0;
  size_t size = 0;
  if (*count < MOST_STORED && value >= 4096 &&
      cuMemGetAddressRange(&at, &size, value) == CUDA_SUCCESS && size > 0)
    ranges[(*count)++] = (Range){at, size};
}

/* Words of a buffer that may be addresses: those that share their upper bits with one that is. */
static void add_ranges_in(Range *ranges, uint32_t *count, const uint64_t *words, size_t size) {
  for (size_t i = 0; i < size; i++) {
    bool near = false;
    for (uint32_t k = 0; k < *count && !near; k++) near = words[i] >> 36 == ranges[k].at >> 36;
    if (near && words[i] >> 36 != 0) add_range(ranges, count, words[i]);
  }
}

static bool append(FILE *file, CUdeviceptr at, size_t size, Range *ranges, uint32_t *count) {
  enum { PIECE = 16 << 20 };
  uint64_t *piece = malloc(PIECE);
  bool good = piece != NULL && file != NULL;
  for (size_t done = 0; good && done < size; done += PIECE) {
    const size_t part = size - done < PIECE ? size - done : PIECE;
    good = cuMemcpyDtoH(piece, at + done, part) == CUDA_SUCCESS &&
           fwrite(piece, 1, part, file) == part;
    if (good) add_ranges_in(ranges, count, piece, part / 8);
  }
  free(piece);
  return good;
}

static FILE *stored(const char *name) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return fopen(path, "wb");
}

/* The block of parameters, from whichever form the launch gives it in; more than `room` bytes where
 * it does not fit. */
static size_t parameter_block(const Launch *launch, uint8_t *block, size_t room) {
  CUfunction function = *launch->function;
  size_t end = 0;
  if (launch->parameters != NULL && *launch->parameters != NULL) {
    size_t offset = 0, size = 0;
    for (size_t i = 0;; i++) {
      CUresult status = cuFuncGetParamInfo(function, i, &offset, &size);
      if (status != CUDA_SUCCESS) status = cuKernelGetParamInfo((CUkernel)function, i, &offset, &size);
      if (status != CUDA_SUCCESS) return end;
      if (offset + size > room) return room + 1;
      memcpy(block + offset, (*launch->parameters)[i], size);
      end = offset + size;
    }
  }
  const void *given = NULL;
  for (void **one = launch->extra != NULL ? *launch->extra : NULL;
       one != NULL && *one != CU_LAUNCH_PARAM_END; one += 2) {
    if (*one == CU_LAUNCH_PARAM_BUFFER_SIZE) end = *(const size_t *)one[1];
    if (*one == CU_LAUNCH_PARAM_BUFFER_POINTER) given = one[1];
  }
  if (given == NULL) return 0;
  if (end <= room) memcpy(block, given, end);
  return end;
}

/* Writes the module's variables behind one another, and a line for each. */
static bool append_variables(const Kernel *kernel, FILE *lines, Range *ranges, uint32_t *count) {
  FILE *values = stored("0.variables");
  bool good = values != NULL;
  char *rest = NULL, *names = strdup(kernel->variables == NULL ? "" : kernel->variables);
  for (char *name = names == NULL ? NULL : strtok_r(names, " ", &rest); good && name != NULL;
       name = strtok_r(NULL, " ", &rest)) {
    CUdeviceptr at = 0;
    size_t size = 0;
    if (own_global(kernel->owner, kernel->library, name, &at, &size) != CUDA_SUCCESS) continue;
    good = append(values, at, size, ranges, count);
    fprintf(lines, "variable %llu %zu 1 %s\n", at, size, name);
  }
  free(names);
  return values != NULL && fclose(values) == 0 && good;
}

/* What the parameters lead to, and what that leads to; gives how many buffers, or a problem. */
static const char *append_all(const Kernel *kernel, const Launch *launch, FILE *lines,
                              uint32_t *written) {
  static uint8_t block[MOST_PARAMETERS];
  const size_t size = parameter_block(launch, block, sizeof block);
  Range *ranges = calloc(MOST_STORED, sizeof *ranges);
  FILE *buffers = stored("0.buffers");
  const char *problem = ranges != NULL && buffers != NULL ? NULL : "there is no room for it";
  if (size > sizeof block) problem = "its parameters are too large";
  uint32_t count = 0;
  for (size_t at = 0; problem == NULL && at + 8 <= size; at++) {
    uint64_t word = 0;
    memcpy(&word, block + at, 8);
    add_range(ranges, &count, word);
  }
  if (problem == NULL && !append_variables(kernel, lines, ranges, &count))
    problem = "its variables cannot be read";
  while (problem == NULL && *written < count) {
    const Range one = ranges[(*written)++];
    fprintf(lines, "buffer %llu %zu\n", one.at, one.size);
    if (!append(buffers, one.at, one.size, ranges, &count))
      problem = ferror(buffers) ? "there is no room for it" : "its memory cannot be read";
  }
  if (buffers != NULL && fclose(buffers) != 0) problem = "there is no room for it";
  free(ranges);
  if (problem == NULL && !write_file("0.parameters", block, size))
    problem = "there is no room for it";
  return problem;
}

/* One launch of a run is stored: the first that was asked for. Lets go of the lock meanwhile. */
static void store_launch(uint32_t number, const Launch *launch) {
  Kernel kernel = kernels[number];
  kernel.variables = strdup(kernel.variables == NULL ? "" : kernel.variables);
  for (uint32_t i = 1; i < kernel_count; i++) kernels[i].stored = -1;
  pthread_mutex_unlock(&lock);
  const Shape *s = &launch->shape;
  const uint32_t one[3] = {1, 1, 1}, *c = launch->clustered ? launch->cluster : one;
  uint32_t written = 0;
  const char *problem = NULL;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  (void)cuThreadExchangeStreamCaptureMode(&mode);
  FILE *lines = stored("launches");
  if (lines == NULL) problem = "there is no room for it";
  else if (is_captured(launch->stream)) problem = "it is part of a CUDA graph";
  else if (cuStreamSynchronize(launch->stream) != CUDA_SUCCESS) problem = "what ran before it failed";
  else {
    fprintf(lines, "launch 0 %s %u %u %u %u %u %u %u %d %u %u %u cudaSuccess\n", kernel.name,
            s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2],
            s->dynamic_shared, launch->cooperative, c[0], c[1], c[2]);
    problem = append_all(&kernel, launch, lines, &written);
    fprintf(lines, "kept\n");
  }
  if (lines != NULL && fclose(lines) != 0) problem = "there is no room for it";
  (void)cuThreadExchangeStreamCaptureMode(&mode);
  free(kernel.variables);
  pthread_mutex_lock(&lock);
  tell("stored %u %u %s", number, written, problem == NULL ? "" : problem);
}
